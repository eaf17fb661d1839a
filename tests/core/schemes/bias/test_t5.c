/* T5's buckets: reference values, distances where libraries' logarithms round differently, tables sent and seeded, the
 * answer without a table, masks and refusals. */
#include "tests/support/cmocka.h"
#include "tests/support/plans.h"
#include "tests/support/request.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The default answer of a request: one output of this name. */
static double *ask(const char *output, const char *fields, size_t *n)
{
    struct test_request r;
    char json[640];
    snprintf(json, sizeof json, "{'scheme':'t5',%s}", fields);
    struct pe_plan *plan = test_plan(&r, json);
    assert_int_equal(pe_plan_n_outputs(plan), 1);
    assert_string_equal(pe_plan_output(plan, 0)->name, output);
    double *values = test_values(plan, 0, n);
    pe_plan_free(plan);
    test_request_drop(&r);
    return values;
}

static void assert_values(const char *output, const char *fields, const double *expected, size_t n)
{
    size_t got_n;
    double *got = ask(output, fields, &got_n);
    assert_int_equal(got_n, n);
    for (size_t i = 0; i < n; i++)
        if (got[i] != expected[i] || signbit(got[i]) != signbit(expected[i]))
            fail_msg("%s: element %zu is %.10g, expected %.10g", fields, i, got[i], expected[i]);
    free(got);
}

TEST(buckets_of_the_specification)
{
    const double both[] = {15, 15, 15, 14, 14, 13, 10, 9, 8, 7, 1, 0, 17, 23, 24, 26, 30, 31, 31};
    const double causal[] = {31, 31, 31, 30, 26, 26, 17, 16, 16, 15, 1, 0, 0, 0};
    assert_values("buckets",
                  "'q_positions':[0],'k_positions':[-200,-128,-91,-90,-64,-63,-16,-15,-8,-7,-1,0,1,7,8,16,64,128,200]",
                  both, 19);
    assert_values(
        "buckets",
        "'bidirectional':false,'q_positions':[0],'k_positions':[-200,-128,-113,-112,-64,-63,-19,-18,-16,-15,-1,0,1,50]",
        causal, 14);
}

/* The bucket rises exactly at these distances, for a run and for a list. */
static void assert_rises(const char *fields, const double *first, size_t n)
{
    char json[256];
    size_t len;
    snprintf(json, sizeof json, "%s,'q_len':1,'k_len':300", fields); /* the query is the last */
    double *got = ask("buckets", json, &len);
    size_t bucket = 0;
    for (size_t distance = 0; distance < 300; distance++) {
        while (bucket + 1 < n && (double)distance >= first[bucket + 1])
            bucket++;
        assert_int_equal(got[299 - distance], bucket);
    }
    free(got);
}

TEST(first_distances)
{
    const double both[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 32, 46, 64, 91};
    const double causal[] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                             16, 19, 21, 24, 27, 31, 35, 40, 46, 52, 59, 67, 77, 87, 99, 113};
    assert_rises("'bidirectional':true", both, 16);
    assert_rises("'bidirectional':false", causal, 32);
}

#define NEAR(nb, m, both, k)                                                                                           \
    "'num_buckets':" #nb ",'max_distance':" #m ",'bidirectional':" #both ",'q_positions':[0],'k_"                      \
    "positions':" k

/* Distances at which the logarithm is an integer: float64 falls short at the first four, float32 at the last.
 * (18/4)^4 = (81/4)^2; (20/8)^8 = (50/8)^4; (40/16)^16 = (100/16)^8; (36/24)^24 = (81/24)^8, (54/24)^24 = (81/24)^16 */
TEST(ties_are_exact)
{
    assert_values("buckets", NEAR(8, 81, false, "[-17,-18]"), (const double[]){5, 6}, 2);
    assert_values("buckets", NEAR(32, 50, true, "[-19,-20,20]"), (const double[]){11, 12, 28}, 3);
    assert_values("buckets", NEAR(64, 100, true, "[-39,-40]"), (const double[]){23, 24}, 2);
    assert_values("buckets", NEAR(64, 256, true, "[-127,-128]"), (const double[]){27, 28}, 2);
    assert_values("buckets", NEAR(96, 81, true, "[-35,-36,-53,-54]"), (const double[]){31, 32, 39, 40}, 4);
    assert_values("buckets", NEAR(96, 81, true, "[-36]") ",'arith':'float32'", (const double[]){31}, 1);
    assert_values("buckets", NEAR(32, 128, true, "[-64,-32,-16]") ",'arith':'float32'", (const double[]){14, 12, 10},
                  3);
    /* three numbers without a common factor, and a prime where two powers cannot meet */
    assert_values("buckets", NEAR(32, 2147483647, true, "[-7,-8,-2147483646,-2147483647]"),
                  (const double[]){7, 8, 15, 15}, 4);
}

TEST(odd_counts_and_fractions)
{
    assert_values("buckets", NEAR(5, 9, true, "[-9,-1,0,1,2,9]"), (const double[]){1, 1, 0, 3, 3, 3}, 6);
    assert_values("buckets", NEAR(32, 128, true, "[-0.5,0.5,7.999,8]"), (const double[]){0, 16, 23, 24}, 4);
    assert_values("buckets", NEAR(32, 128, false, "[-0.5,0.5,-16,-15.5]"), (const double[]){0, 0, 16, 15}, 4);
}

#define TABLE "'table':[[1,-1],[2,-0.0],[3,0.5],[4,7]]"

/* num_heads and num_buckets are the table's: side 2, so buckets 0 | 1 to the left, 3 to the right. */
TEST(tables)
{
    const double bias[] = {1, 4, 4, 2, 1, 4, 2, 2, 1, -1, 7, 7, 0, -1, 7, 0, 0, -1};
    const double masked[] = {1, -(double)INFINITY, -(double)INFINITY, 2, 1, -(double)INFINITY, 2, 2, 1};
    const double scaled[] = {1.5, -1.5};
    size_t n;
    assert_values("bias", TABLE ",'len':3", bias, 18);
    assert_values("bias", TABLE ",'positions':[0,1,2]", bias, 18);
    assert_values("bias", TABLE ",'len':1,'table_scale':1.5", scaled, 2);
    double *causal = ask("bias", TABLE ",'len':3,'causal':true", &n);
    assert_memory_equal(causal, masked, sizeof masked);
    free(causal);
    test_assert_laws("{'scheme':'t5'," TABLE ",'len':70,'window':9}");
}

TEST(refusals)
{
    test_refused("{'scheme':'t5','len':3,'num_buckets':3}", "/num_buckets", "at least 4");
    test_refused("{'scheme':'t5','len':3,'max_distance':8}", "/max_distance", "above 8");
    test_refused("{'scheme':'t5','len':3,'max_distance':16,'bidirectional':false}", "/max_distance", "above 16");
    test_refused("{'scheme':'t5','len':3,'num_heads':3," TABLE "}", "/num_heads", "makes it 2");
    test_refused("{'scheme':'t5','len':3,'num_buckets':8," TABLE "}", "/num_buckets", "makes it 4");
    test_refused("{'scheme':'t5','len':3,'table':[1,2,3,4]}", "/table", "[32,8]");
    test_refused("{'scheme':'t5','len':3,'std':1}", "/std", "not used");
}

/* A request for the bias by name without weights is refused with the ways to supply them; with weights, buckets are
 * returned on request. */
TEST(what_is_answered)
{
    static const char *const bias[] = {"bias"}, *const both[] = {"buckets", "bias"};
    struct test_request r;
    struct pe_plan *plan = NULL;
    struct pe_failure err;
    test_request_parse(&r, "{'scheme':'t5','len':3,'seed':1}");
    r.request.outputs = both;
    r.request.n_outputs = 2;
    assert_int_equal(pe_plan_new(&r.request, &plan, &err), PE_OK);
    assert_int_equal(pe_plan_output(plan, 0)->dtype, PE_I32);
    assert_int_equal(pe_plan_n_outputs(plan), 2);
    pe_plan_free(plan);
    plan = NULL;
    r.request.n_fields--;
    r.request.outputs = bias;
    r.request.n_outputs = 1;
    assert_int_equal(pe_plan_new(&r.request, &plan, &err), PE_INVALID);
    assert_string_equal(err.pointer, "/table");
    assert_non_null(strstr(err.detail, "\"seed\""));
    test_request_drop(&r);
}
