/* Transformer-XL, XLNet and Conformer: which distances, their sinusoids by hand, clamps, memory, lists of any length,
 * refusals. */
#include "tests/support/cmocka.h"
#include "tests/support/plans.h"
#include "tests/support/request.h"

#include <stdio.h>
#include <stdlib.h>

/* Plans one request whose outputs are `encoding` and `distances`. */
static struct pe_plan *plan_of(struct test_request *r, const char *fields)
{
    char json[512];
    snprintf(json, sizeof json, "{'d_model':4,%s}", fields);
    struct pe_plan *plan = test_plan(r, json);
    assert_int_equal(pe_plan_n_outputs(plan), 2);
    assert_string_equal(pe_plan_output(plan, 0)->name, "encoding");
    assert_string_equal(pe_plan_output(plan, 1)->name, "distances");
    assert_int_equal(pe_plan_output(plan, 0)->n_rows, pe_plan_output(plan, 1)->row_len);
    return plan;
}

static void assert_distances(const char *fields, int64_t first, int64_t last)
{
    struct test_request r;
    struct pe_plan *plan = plan_of(&r, fields);
    size_t n;
    assert_int_equal(pe_plan_output(plan, 1)->dtype, PE_I32);
    double *got = test_values(plan, 1, &n);
    if ((int64_t)n != first - last + 1)
        fail_msg("%s: %zu distances, expected %lld … %lld", fields, n, (long long)first, (long long)last);
    for (size_t i = 0; i < n; i++)
        assert_true(got[i] == (double)(first - (int64_t)i));
    free(got);
    pe_plan_free(plan);
    test_request_drop(&r);
}

#define XL "'scheme':'transformer_xl',"
#define XLNET "'scheme':'xlnet',"
#define CONFORMER "'scheme':'conformer',"

TEST(distances_of_the_released_code)
{
    assert_distances(XL "'len':5", 4, 0);
    assert_distances(XLNET "'len':5", 5, -4);
    assert_distances(XLNET "'len':5,'causal':true", 5, 0);
    assert_distances(CONFORMER "'len':5", 4, -4);
    assert_distances(XL "'q_len':2,'k_len':7", 6, 0);
    assert_distances(XLNET "'q_len':2,'k_len':7", 7, -1);
    assert_distances(CONFORMER "'q_len':2,'k_len':7", 6, -1);
    assert_distances(XL "'len':1", 0, 0);
    assert_distances(CONFORMER "'len':1,'offset':77", 0, 0);
}

TEST(memory)
{
    assert_distances(XL "'len':4,'mem_len':3", 6, 0);
    assert_distances(XLNET "'len':4,'mem_len':3,'offset':50", 7, -3);
    assert_distances(CONFORMER "'len':4,'mem_len':3", 6, -3);
    assert_distances(XL "'q_len':4,'k_len':7,'mem_len':3", 6, 0); /* the keys are counted already */
}

/* All distances from the farthest past to the farthest future that occur. */
TEST(other_sequences)
{
    assert_distances(CONFORMER "'positions':[0,9,4]", 9, -9);
    assert_distances(XL "'positions':[0,9,4]", 9, 0);
    assert_distances(XLNET "'q_positions':[3,1],'k_positions':[-2,5]", 6, -4);
    assert_distances(CONFORMER "'lens':[3,2]", 2, -2);
    assert_distances(CONFORMER "'q_len':2,'k_len':3,'q_offset':-5", -4, -7);
    assert_distances(XL "'q_len':2,'k_len':3,'q_offset':-5", 0, 0);
}

/* w = 1, 1/100: sin and cos of 3, 2, 1, 0 and of hundredths of them. */
#define S3 0.14112000805987
#define C3 -0.98999249660045
#define S2 0.90929742682568
#define C2 -0.41614683654714
#define S1 0.84147098480790
#define C1 0.54030230586814
#define S03 0.029995500202496
#define C03 0.99955003374899
#define S02 0.019998666693333
#define C02 0.99980000666658
#define S01 0.0099998333341667
#define C01 0.99995000041667

static const double halves[][4] = {{S3, S03, C3, C03}, {S2, S02, C2, C02}, {S1, S01, C1, C01}, {0, 0, 1, 1}};
static const double future[][4] = {{-S1, -S01, C1, C01}};

static void assert_rows(const char *fields, uint64_t row, const double expected[][4], size_t n)
{
    char json[512];
    snprintf(json, sizeof json, "{'d_model':4,%s}", fields);
    for (size_t i = 0; i < n; i++)
        test_assert_row(json, row + i, expected[i], 4, 1e-13);
}

TEST(sinusoids)
{
    const double alternating[][4] = {{S1, C1, S01, C01}, {0, 1, 0, 1}, {-S1, C1, -S01, C01}};
    assert_rows(XL "'len':4", 0, halves, 4);
    assert_rows(XLNET "'len':3", 0, halves, 4);
    assert_rows(XLNET "'len':3", 4, future, 1);
    assert_rows(CONFORMER "'len':2", 0, alternating, 3);
}

/* Clamped is R's argument: above only, or on both sides. */
TEST(clamps)
{
    const double xl[][4] = {
        {S2, S02, C2, C02}, {S2, S02, C2, C02}, {S2, S02, C2, C02}, {S1, S01, C1, C01}, {0, 0, 1, 1}};
    const double both[][4] = {{S1, S01, C1, C01}, {S1, S01, C1, C01},   {S1, S01, C1, C01},
                              {0, 0, 1, 1},       {-S1, -S01, C1, C01}, {-S1, -S01, C1, C01}};
    assert_rows(XL "'len':5,'clamp_len':2", 0, xl, 5);
    assert_rows(XLNET "'len':3,'clamp_len':1", 0, both, 6);
    assert_rows(XL "'len':4,'clamp_len':0", 0, halves, 4);
    assert_distances(XLNET "'len':3,'clamp_len':1", 3, -2);
}
