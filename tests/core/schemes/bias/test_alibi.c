/* ALiBi: the published slopes, every form, masks, alignment, rounding, and the law that the bias depends on
 * distance only. */
#include "tests/support/cmocka.h"
#include "tests/support/request.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct answer {
    struct test_request r;
    struct pe_plan *plan;
    double *bias, *slopes;
};

static const char *const bias_and_slopes[] = {"bias", "slopes"};

static struct answer ask(const char *fields)
{
    struct answer a;
    struct pe_failure err;
    char json[512];
    size_t n;
    snprintf(json, sizeof json, "{'scheme':'alibi',%s}", fields);
    test_request_parse(&a.r, json);
    a.r.request.outputs = bias_and_slopes;
    a.r.request.n_outputs = 2;
    a.plan = NULL;
    if (pe_plan_new(&a.r.request, &a.plan, &err))
        fail_msg("%s: %s: %s", json, err.pointer, err.detail);
    a.bias = test_values(a.plan, 0, &n);
    a.slopes = test_values(a.plan, 1, &n);
    return a;
}

static void done(struct answer *a)
{
    free(a->bias);
    free(a->slopes);
    pe_plan_free(a->plan);
    test_request_drop(&a->r);
}

static void assert_bias(const char *fields, const double *expected, size_t n)
{
    struct answer a = ask(fields);
    for (size_t i = 0; i < n; i++) {
        bool same = a.bias[i] == expected[i];
        if (!same || (expected[i] == 0 && signbit(a.bias[i])))
            fail_msg("%s: element %zu is %.10g, expected %.10g", fields, i, a.bias[i], expected[i]);
    }
    done(&a);
}

TEST(the_bias_alone_is_the_default)
{
    struct test_request r;
    struct pe_plan *plan = test_plan(&r, "{'scheme':'alibi','len':2}");
    assert_int_equal(pe_plan_n_outputs(plan), 1);
    assert_string_equal(pe_plan_output(plan, 0)->name, "bias");
    pe_plan_free(plan);
    test_request_drop(&r);
}

TEST(slopes_of_the_paper)
{
    const double six[] = {.25, .0625, .015625, .00390625, .5, .125}, three[] = {0x1p-4, 0x1p-8, 0x1p-2},
                 one[] = {0x1p-8};
    const double twelve[] = {.5,       .25,       .125,        .0625,       .03125,      .015625,
                             .0078125, .00390625, .7071067812, .3535533906, .1767766953, .0883883476};
    struct answer a = ask("'num_heads':6,'len':1"), b = ask("'num_heads':12,'len':1");
    struct answer c = ask("'num_heads':3,'len':1"), d = ask("'num_heads':1,'len':1");
    for (int h = 0; h < 6; h++)
        assert_true(a.slopes[h] == six[h]);
    for (int h = 0; h < 12; h++)
        assert_true(fabs(b.slopes[h] - twelve[h]) < 1e-7 * twelve[h]);
    for (int h = 0; h < 3; h++)
        assert_true(c.slopes[h] == three[h]);
    assert_true(d.slopes[0] == one[0]);
    done(&a);
    done(&b);
    done(&c);
    done(&d);
}

#define INF ((double)INFINITY)

/* one head of slope 1, three positions */
TEST(forms)
{
    const double symmetric[] = {0, -1, -2, -1, 0, -1, -2, -1, 0}, relative[] = {0, 0, 0, -1, 0, 0, -2, -1, 0};
    const double asymmetric[] = {0, -3, -6, -2, 0, -3, -4, -2, 0}, key[] = {5, 6, 7, 5, 6, 7, 5, 6, 7};
    const double key_end[] = {-2, -1, 0, -2, -1, 0, -2, -1, 0}, masked[] = {-INF, 0, 1, -INF, 0, 1, -INF, 0, 1};
    assert_bias("'num_heads':1,'slopes':[1],'len':3", symmetric, 9);
    assert_bias("'num_heads':1,'slopes':[1],'len':3,'form':'relative'", relative, 9);
    assert_bias("'num_heads':1,'form':'asymmetric','slopes_left':[2],'slopes_right':[3],'len':3", asymmetric, 9);
    assert_bias("'num_heads':1,'slopes':[1],'len':3,'offset':5,'form':'key'", key, 9);
    assert_bias("'num_heads':1,'slopes':[1],'len':3,'offset':5,'form':'key_end'", key_end, 9);
    assert_bias("'num_heads':1,'slopes':[1],'len':3,'form':'key_mask','key_mask':[0,1,1]", masked, 9);
}

TEST(masks)
{
    const double causal[] = {0, -INF, -INF, -1, 0, -INF, -2, -1, 0}, window[] = {0, -1, -INF, -1, 0, -1, -INF, -1, 0};
    const double both[] = {0, -INF, -INF, -1, 0, -INF, -INF, -1, 0}, right[] = {0, -INF, -INF, -1, 0, -INF, -2, -1, 0};
    const double keys[] = {0, -INF, -2, -1, -INF, -1, -2, -INF, 0};
    assert_bias("'num_heads':1,'slopes':[1],'len':3,'causal':true", causal, 9);
    assert_bias("'num_heads':1,'slopes':[1],'len':3,'window':2", window, 9);
    assert_bias("'num_heads':1,'slopes':[1],'len':3,'window':2,'causal':true", both, 9);
    assert_bias("'num_heads':1,'slopes':[1],'len':3,'window_right':0", right, 9);
    assert_bias("'num_heads':1,'slopes':[1],'len':3,'key_mask':[1,0,1]", keys, 9);
    /* lists that are no runs: the same, by another path */
    const double apart[] = {0, -INF, -INF, -2, 0, -INF, -INF, -1, 0};
    assert_bias("'num_heads':1,'slopes':[1],'positions':[4,5,6],'window':2,'causal':true", both, 9);
    assert_bias("'num_heads':1,'slopes':[1],'positions':[4,6,7],'window':3,'causal':true", apart, 9);
    const double key_causal[] = {0, -INF, -INF, 0, 1, -INF, 0, 1, 2};
    assert_bias("'num_heads':1,'slopes':[1],'len':3,'form':'key','causal':true", key_causal, 9);
}

/* Queries are the last of the keys unless q_offset says otherwise. */
TEST(alignment)
{
    const double end[] = {-2, -1, 0, -1}, start[] = {0, -1, -2, -3};
    assert_bias("'num_heads':1,'slopes':[1],'q_len':1,'k_len':4,'q_offset':2", end, 4);
    assert_bias("'num_heads':1,'slopes':[1],'q_len':1,'k_len':4,'q_offset':0", start, 4);
    const double usual[] = {-3, -2, -1, 0};
    assert_bias("'num_heads':1,'slopes':[1],'q_len':1,'k_len':4", usual, 4);
    assert_bias("'num_heads':1,'slopes':[1],'q_positions':[0.25,2],'k_positions':[0.75,2]",
                (const double[]){-.5, -1.75, -1.25, 0}, 4);
}

/* Every f32 is the float nearest to the exact product; here by comparison in long double with an irrational slope. */
TEST(products_are_rounded_once)
{
    struct answer a = ask("'num_heads':12,'q_len':1,'k_len':20000,'q_offset':0,'form':'symmetric'");
    for (int h = 8; h < 12; h++)
        for (int j = 0; j < 20000; j++) {
            long double exact = -powl(2.0L, -(long double)(2 * (h - 8) + 1) / 2) * (long double)j;
            assert_true((float)exact == (float)a.bias[h * 20000 + j]);
        }
    done(&a);
}

TEST(depends_on_distance_only)
{
    struct answer a = ask("'num_heads':3,'len':40,'offset':1000000,'window':17"),
                  b = ask("'num_heads':3,'len':40,'window':17");
    for (int h = 0; h < 3; h++)
        for (int i = 1; i < 40; i++)
            for (int j = 1; j < 40; j++) {
                assert_true(a.bias[(h * 40 + i) * 40 + j] == a.bias[(h * 40 + i - 1) * 40 + j - 1]);
                assert_true(a.bias[(h * 40 + i) * 40 + j] == b.bias[(h * 40 + i) * 40 + j]);
            }
    done(&a);
    done(&b);
}

/* Rows of many tiles, any part of a row, and lists give what single elements give. */
TEST(wide_maps_are_consistent)
{
    struct answer a = ask("'num_heads':2,'q_len':3,'k_len':9000,'slopes':[0.3,0.1],'window':5000");
    for (int h = 0; h < 2; h++)
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 9000; j++) {
                double rel = j - (8997.0 + i), slope = h ? 0.1 : 0.3;
                double expected = -rel < 5000 && rel < 5000 ? (double)(float)(-slope * fabs(rel)) : -INF;
                double got = a.bias[(h * 3 + i) * 9000 + j], ulp = fabs(expected) * 0x1p-23;
                assert_true(got == expected || fabs(got - expected) <= ulp);
            }
    done(&a);
}
