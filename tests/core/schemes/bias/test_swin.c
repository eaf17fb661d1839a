/* Swin's window bias: indices by hand, values looked up exactly, masks, sizes and refusals. */
#include "tests/support/cmocka.h"
#include "tests/support/request.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define INF ((double)INFINITY)

/* Checks that output 0 of the request is called name, equals these numbers, and has no -0. */
static void assert_first(const char *json, const char *name, const double *expected, size_t n)
{
    struct test_request r;
    size_t n_got;
    struct pe_plan *plan = test_plan(&r, json);
    double *got = test_values(plan, 0, &n_got);
    assert_string_equal(pe_plan_output(plan, 0)->name, name);
    assert_int_equal(pe_plan_n_outputs(plan), 1);
    assert_int_equal(n_got, n);
    for (size_t i = 0; i < n; i++)
        if (got[i] != expected[i] || (got[i] == 0 && signbit(got[i])))
            fail_msg("%s: element %zu is %.10g, expected %.10g", json, i, got[i], expected[i]);
    free(got);
    pe_plan_free(plan);
    test_request_drop(&r);
}

/* By hand; Microsoft's code gives the same. */
TEST(published_indices)
{
    const double square[] = {4, 3, 1, 0, 5, 4, 2, 1, 7, 6, 4, 3, 8, 7, 5, 4};
    assert_first("{'scheme':'swin','grid':[2,2]}", "index", square, 16);
    const double line[] = {2, 1, 0, 3, 2, 1, 4, 3, 2};
    assert_first("{'scheme':'swin','len':3}", "index", line, 9);
    assert_first("{'scheme':'swin','grid':[1,3]}", "index", line, 9);
    assert_first("{'scheme':'swin','grid':[3,1]}", "index", line, 9);
    const double oblong[] = {7,  6,  5,  2, 1, 0, 8,  7,  6,  3, 2, 1, 9,  8,  7,  4, 3, 2,
                             12, 11, 10, 7, 6, 5, 13, 12, 11, 8, 7, 6, 14, 13, 12, 9, 8, 7};
    assert_first("{'scheme':'swin','grid':[2,3]}", "index", oblong, 36);
}

#define TABLE "'table':[[10,-1],[20,-2],[30,-3],[40,-4],[50,-5]]"

TEST(values_are_looked_up)
{
    const double line[] = {30, 20, 10, 40, 30, 20, 50, 40, 30, -3, -2, -1, -4, -3, -2, -5, -4, -3};
    assert_first("{'scheme':'swin','len':3," TABLE "}", "bias", line, 18);
    assert_first("{'scheme':'swin','grid':[3,1],'num_heads':2," TABLE "}", "bias", line, 18);
}

TEST(masks_count_tokens)
{
    const double causal[] = {30, -INF, -INF, 40, 30, -INF, 50, 40, 30, -3, -INF, -INF, -4, -3, -INF, -5, -4, -3};
    const double keys[] = {30, -INF, 10, 40, -INF, 20, 50, -INF, 30, -3, -INF, -1, -4, -INF, -2, -5, -INF, -3};
    const double window[] = {30, 20, -INF, 40, 30, 20, -INF, 40, 30, -3, -2, -INF, -4, -3, -2, -INF, -4, -3};
    const double right[] = {30, -INF, -INF, 40, 30, -INF, -INF, 40, 30, -3, -INF, -INF, -4, -3, -INF, -INF, -4, -3};
    assert_first("{'scheme':'swin','len':3,'causal':true," TABLE "}", "bias", causal, 18);
    assert_first("{'scheme':'swin','len':3,'key_mask':[1,0,1]," TABLE "}", "bias", keys, 18);
    assert_first("{'scheme':'swin','len':3,'window':2," TABLE "}", "bias", window, 18);
    assert_first("{'scheme':'swin','len':3,'window':2,'window_right':0," TABLE "}", "bias", right, 18);
}

TEST(zero_is_never_negative)
{
    const double zero[] = {0};
    assert_first("{'scheme':'swin','len':1,'table':[[-0.0]]}", "bias", zero, 1);
    struct test_request r;
    struct pe_plan *plan = NULL;
    struct pe_failure err;
    size_t n;
    test_request_parse(&r, "{'scheme':'swin','len':1,'table':[[-1e-9]]}");
    r.request.dtype = PE_F16; /* too small for it */
    assert_int_equal(pe_plan_new(&r.request, &plan, &err), PE_OK);
    double *got = test_values(plan, 0, &n);
    assert_true(got[0] == 0 && !signbit(got[0]));
    free(got);
    pe_plan_free(plan);
    test_request_drop(&r);
}

/* The outputs of this request's answer. */
static void assert_outputs(const char *json, const char *const *asked, size_t n_asked, const char *expected)
{
    struct test_request r;
    struct pe_plan *plan = NULL;
    struct pe_failure err = {.detail = ""};
    char names[64] = "";
    test_request_parse(&r, json);
    r.request.outputs = asked;
    r.request.n_outputs = n_asked;
    if (pe_plan_new(&r.request, &plan, &err))
        fail_msg("%s: %s: %s", json, err.pointer, err.detail);
    for (size_t i = 0; i < pe_plan_n_outputs(plan); i++)
        strcat(strcat(names, pe_plan_output(plan, i)->name), " ");
    assert_string_equal(names, expected);
    pe_plan_free(plan);
    test_request_drop(&r);
}

TEST(defaults_follow_the_weights)
{
    const char *const index[] = {"index"}, *const both[] = {"index", "bias"};
    assert_outputs("{'scheme':'swin','len':3}", NULL, 0, "index ");
    assert_outputs("{'scheme':'swin','len':3,'seed':0}", NULL, 0, "bias ");
    assert_outputs("{'scheme':'swin','len':3," TABLE "}", NULL, 0, "bias ");
    assert_outputs("{'scheme':'swin','len':3," TABLE "}", index, 1, "index ");
    assert_outputs("{'scheme':'swin','len':3," TABLE "}", both, 2, "index bias ");
    struct test_request r;
    struct pe_plan *plan = NULL;
    struct pe_failure err;
    test_request_parse(&r, "{'scheme':'swin','grid':[7,7],'num_heads':3}");
    r.request.outputs = both;
    r.request.n_outputs = 2;
    assert_int_equal(pe_plan_new(&r.request, &plan, &err), PE_INVALID);
    assert_string_equal(err.pointer, "/table");
    assert_non_null(strstr(err.detail, "[169,3]"));
    assert_non_null(strstr(err.detail, "seed"));
    test_request_drop(&r);
}

static void assert_large(const char *json, const char *pointer, const char *word)
{
    struct test_request r;
    struct pe_plan *plan = NULL;
    struct pe_failure err;
    test_request_parse(&r, json);
    assert_int_equal(pe_plan_new(&r.request, &plan, &err), PE_TOO_LARGE);
    assert_string_equal(err.pointer, pointer);
    assert_non_null(strstr(err.detail, word));
    test_request_drop(&r);
}

TEST(refusals)
{
    test_refused("{'scheme':'swin','grid':[2,2]," TABLE "}", "/table", "[9,2]");
    test_refused("{'scheme':'swin','len':2,'table':[1,2,3]}", "/table", "[3,8]");
    test_refused("{'scheme':'swin','len':3,'num_heads':3," TABLE "}", "/num_heads", "2");
    test_refused("{'scheme':'swin','grid':[2,2,2]}", "/grid", "3 axes");
    test_refused("{'scheme':'swin'}", "/len", "grid");
    test_refused("{'scheme':'swin','positions':[0,1,2]}", "/positions", "grid");
    test_refused("{'scheme':'swin','positions':[[0,1],[0,1]]}", "/positions", "grid");
    test_refused("{'scheme':'swin','lens':[2,1]}", "/lens", "grid");
    test_refused("{'scheme':'swin','segments':[{'type':'image','grid':[1,4,4]}]}", "/segments", "grid");
    test_refused("{'scheme':'swin','grid':[4,4],'order':'merge'}", "/order", "line");
    test_refused("{'scheme':'swin','q_len':2}", "/q_len", "one sequence");
    test_refused("{'scheme':'swin','grid':[2,2],'key_mask':[1,0]}", "/key_mask", "4");
    test_refused("{'scheme':'swin','grid':[2,2],'std':1.0}", "/std", "random");
    assert_large("{'scheme':'swin','len':1073741824}", "/len", "2^31");
    assert_large("{'scheme':'swin','grid':[32768,32768]}", "/grid", "2^31");
    assert_large("{'scheme':'swin','grid':[64,64],'num_heads':261,'seed':0}", "/grid", "4194304");
}
