/* floater: a linear equation has an exponential for solution, and halving the step divides the error by 2 to the order.
 */
#include "tests/support/cmocka.h"
#include "tests/support/plans.h"
#include "tests/support/request.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define F "{'scheme':'floater',"
/* dp/dt = -2 p: two layers that change nothing but the sign and the scale. */
#define DECAY "'activation':'identity','time_input':false,'p0':[1],'w1':[[2]],'b1':[0],'w2':[[-1]],'b2':[0],"
/* dp/dt = t: the time is the last input of both layers; here the second passes it on. */
#define CLOCK "'activation':'identity','p0':[0],'w1':[[0,0]],'b1':[0],'w2':[[0,1]],'b2':[0],"

static double last_row(const char *method, int substeps)
{
    char json[512];
    struct test_request r;
    size_t n;
    snprintf(json, sizeof json, F DECAY "'dt':0.25,'len':5,'method':'%s','substeps':%d}", method, substeps);
    struct pe_plan *plan;
    struct pe_failure err;
    test_request_parse(&r, json);
    r.request.dtype = PE_F64;
    assert_int_equal(pe_plan_new(&r.request, &plan, &err), PE_OK);
    double *v = test_values(plan, 0, &n), last = v[n - 1];
    free(v);
    pe_plan_free(plan);
    test_request_drop(&r);
    return last;
}

static void assert_order(const char *method, int order)
{
    double truth = exp(-2), coarse = fabs(last_row(method, 8) - truth), fine = fabs(last_row(method, 16) - truth);
    double ratio = coarse / fine, expected = pow(2, order);
    if (!(ratio > 0.9 * expected && ratio < 1.1 * expected))
        fail_msg("%s: halving the step divides the error by %g, not by %g", method, ratio, expected);
}

TEST(orders_of_convergence)
{
    assert_order("euler", 1);
    assert_order("midpoint", 2);
    assert_order("rk4", 4);
    assert_order("rk4_38", 4);
}

/* p(t) = t²/2 exactly, by every method of order 2 and more. */
TEST(time_is_the_last_input)
{
    test_assert_row(F CLOCK "'dt':0.5,'len':5}", 4, (const double[]){2}, 1, 1e-15);
    test_assert_row(F CLOCK "'dt':0.5,'len':5,'method':'midpoint'}", 3, (const double[]){1.125}, 1, 1e-15);
    /* Euler is late: with s = 1/2 it has s²·(0 + 1 + 2 + 3) */
    test_assert_row(F CLOCK "'dt':0.5,'len':5,'method':'euler','substeps':1}", 4, (const double[]){1.5}, 1, 1e-15);
}

TEST(laws)
{
    test_assert_laws(F DECAY "'len':100}");
    test_assert_laws(F "'dim':7,'hidden':3,'seed':1,'positions':[50,2,49,0],'method':'midpoint'}");
}

TEST(refusals)
{
    test_refused(F "'len':2}", "/p0", "seed");
    test_refused(F DECAY "'positions':[-2]}", "/positions", "-2");
    test_refused(F DECAY "'len':2,'substeps':0}", "/substeps", "from 1");
    test_refused(F DECAY "'len':2,'method':'rk5'}", "/method", "rk4");
    test_refused(F "'seed':0,'len':1000000}", "/len", "steps");
}
