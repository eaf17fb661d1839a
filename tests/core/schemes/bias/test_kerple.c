/* KERPLE: reference values, ALiBi as its special case, integer roots (ties of the narrow formats), masks, refusals. */
#include "tests/support/cmocka.h"
#include "tests/support/plans.h"
#include "tests/support/request.h"

#include <math.h>
#include <stdlib.h>

#define KERPLE "{'scheme':'kerple','num_heads':1,"

TEST(values_of_the_specification)
{
    const double log[] = {0, -.6931471806, -1.0986122887, -1.3862943611, -1.6094379124};
    const double power[] = {0, -.5, -1.4142135624, -2.5980762114, -4};
    test_assert_row(KERPLE "'len':5}", 0, log, 5, 1e-10);
    test_assert_row(KERPLE "'positions':[0,1,2,3,4]}", 0, log, 5, 1e-10);
    test_assert_row(KERPLE "'kind':'power','r1':0.5,'r2':1.5,'len':5}", 0, power, 5, 1e-10);
    test_assert_row("{'scheme':'kerple','num_heads':2,'kind':'power','r1':[9,0.5],'r2':[1,1.5],'len':5}", 5, power, 5,
                    1e-10);
    test_assert_row(KERPLE "'len':5,'arith':'float32'}", 0, log, 5, 1e-6);
}

TEST(masks)
{
    const double inf = (double)INFINITY, row[] = {-inf, -1, 0, -inf};
    struct test_request r;
    size_t n;
    struct pe_plan *plan = test_plan(&r, KERPLE "'kind':'power','len':4,'causal':true,'window':2}");
    double *got = test_values(plan, 0, &n);
    for (size_t j = 0; j < 4; j++)
        assert_true(got[8 + j] == row[j]);
    assert_false(signbit(got[10]));
    free(got);
    pe_plan_free(plan);
    test_request_drop(&r);
}

static double one_value(const char *json, enum pe_dtype dtype)
{
    struct test_request r;
    struct pe_plan *plan = NULL;
    struct pe_failure err;
    size_t n;
    test_request_parse(&r, json);
    r.request.dtype = dtype;
    assert_int_equal(pe_plan_new(&r.request, &plan, &err), PE_OK);
    double *v = test_values(plan, 0, &n), value = *v;
    free(v);
    pe_plan_free(plan);
    test_request_drop(&r);
    return value;
}

#define POWER(r2, n) KERPLE "'kind':'power','r2':" r2 ",'q_positions':[0],'k_positions':[" n "]}"

/* Middles between two numbers go to the even one, above and below. */
TEST(ties)
{
    assert_true(one_value(POWER("1", "16777217"), PE_F32) == -16777216);
    assert_true(one_value(POWER("1", "16777219"), PE_F32) == -16777220);
    assert_true(one_value(POWER("0.5", "66049"), PE_BF16) == -256); /* 257 */
    assert_true(one_value(POWER("0.5", "67081"), PE_BF16) == -260); /* 259 */
    assert_true(one_value(POWER("0.25", "4362470401"), PE_BF16) == -256);
    assert_true(one_value(POWER("2", "2049"), PE_F32) == -4198401);
    assert_true(one_value(POWER("2", "4097"), PE_F32) == -16785408); /* 16785409, a tie */
    assert_true(one_value(POWER("1.5", "4"), PE_F16) == -8);
    assert_true(one_value(POWER("0.75", "0.0625"), PE_F16) == -0.125);
}

TEST(refusals)
{
    test_refused(KERPLE "'len':3,'r1':[1,2]}", "/r1", "num_heads");
    test_refused(KERPLE "'len':3,'r1':'much'}", "/r1", "not a number");
    test_refused(KERPLE "'len':3,'r1':-1}", "/r1", "from 0");
    test_refused(KERPLE "'len':3,'r2':[0]}", "/r2", "from 1e-12");
    test_refused(KERPLE "'len':3,'kind':'power','r2':2.5}", "/r2", "to 2");
    test_refused(KERPLE "'len':3,'kind':'powr'}", "/kind", "power");
}
