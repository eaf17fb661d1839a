/* BEiT's window bias: the class token's three rows, before patches indexed like Swin's. */
#include "tests/support/cmocka.h"
#include "tests/support/request.h"

#include <math.h>
#include <stdlib.h>

#define INF ((double)INFINITY)

static void assert_first(const char *json, const double *expected, size_t n)
{
    struct test_request r;
    size_t n_got;
    struct pe_plan *plan = test_plan(&r, json);
    double *got = test_values(plan, 0, &n_got);
    assert_int_equal(n_got, n);
    for (size_t i = 0; i < n; i++)
        if (got[i] != expected[i])
            fail_msg("%s: element %zu is %.10g, expected %.10g", json, i, got[i], expected[i]);
    free(got);
    pe_plan_free(plan);
    test_request_drop(&r);
}

/* Indices by hand, from unilm's beit/modeling_finetune.py. */
TEST(published_index)
{
    const double square[] = {11, 9, 9, 9, 9, 10, 4, 3, 1, 0, 10, 5, 4, 2, 1, 10, 7, 6, 4, 3, 10, 8, 7, 5, 4};
    assert_first("{'scheme':'beit','grid':[2,2]}", square, 25);
    const double one[] = {3, 1, 2, 0};
    assert_first("{'scheme':'beit','len':1}", one, 4);
}

/* rows of the table: key right of, beside, left of the query; class to patch, patch to class, class to class */
#define TABLE "'table':[[1],[2],[3],[40],[50],[60]]"

TEST(the_class_token_has_rows_of_its_own)
{
    const double bias[] = {60, 40, 40, 50, 2, 1, 50, 3, 2}, causal[] = {60, -INF, -INF, 50, 2, -INF, 50, 3, 2};
    const double keys[] = {-INF, 40, -INF, -INF, 2, -INF, -INF, 3, -INF};
    assert_first("{'scheme':'beit','len':2," TABLE "}", bias, 9);
    assert_first("{'scheme':'beit','grid':[2,1]," TABLE "}", bias, 9);
    assert_first("{'scheme':'beit','len':2,'causal':true," TABLE "}", causal, 9);
    assert_first("{'scheme':'beit','len':2,'key_mask':[0,1,0]," TABLE "}", keys, 9);
}

TEST(refusals)
{
    test_refused("{'scheme':'beit','len':3," TABLE "}", "/table", "[8,1]");
    test_refused("{'scheme':'beit','len':2,'key_mask':[1,1]}", "/key_mask", "3");
    test_refused("{'scheme':'beit','grid':[2,2,2]}", "/grid", "3 axes");
}
