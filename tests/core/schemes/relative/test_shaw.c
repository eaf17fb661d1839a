/* Shaw's table rows: by hand from the paper's equations, both directions, BERT's unclipped table, positions, refusals.
 */
#include "tests/support/cmocka.h"
#include "tests/support/plans.h"
#include "tests/support/request.h"

#include <stdio.h>
#include <stdlib.h>

static void assert_index(const char *fields, const double *expected, size_t n)
{
    struct test_request r;
    char json[640];
    size_t got_n;
    snprintf(json, sizeof json, "{'scheme':'shaw',%s}", fields);
    struct pe_plan *plan = test_plan(&r, json);
    assert_int_equal(pe_plan_n_outputs(plan), 1);
    assert_string_equal(pe_plan_output(plan, 0)->name, "index");
    assert_int_equal(pe_plan_output(plan, 0)->dtype, PE_I32);
    double *got = test_values(plan, 0, &got_n);
    assert_int_equal(got_n, n);
    for (size_t i = 0; i < n; i++)
        if (got[i] != expected[i])
            fail_msg("%s: element %zu is %g, expected %g", fields, i, got[i], expected[i]);
    free(got);
    pe_plan_free(plan);
    test_request_drop(&r);
}

TEST(positions)
{
    assert_index("'q_positions':[5,-3],'k_positions':[0,4,900]", (const double[]){0, 3, 8, 7, 8, 8}, 6);
    /* a list of queries over a run of keys, and packed sequences by their listed positions */
    assert_index("'q_positions':[3,0],'k_positions':[0,1,2,3],'max_relative':1",
                 (const double[]){0, 0, 0, 1, 1, 2, 2, 2}, 8);
    assert_index("'lens':[2,1],'max_relative':1", (const double[]){1, 2, 1, 0, 1, 0, 1, 2, 1}, 9);
    assert_index("'q_positions':[1099511627776],'k_positions':[-1099511627776,1099511627775]", (const double[]){0, 3},
                 2);
}

#define KEY "'table_style':'relative_key'"

TEST(laws)
{
    test_assert_laws("{'scheme':'shaw','q_len':3,'k_len':40,'max_relative':9}");
    test_assert_laws("{'scheme':'shaw','len':5," KEY "}");
    test_assert_laws(
        "{'scheme':'shaw','q_positions':[3,1,70],'k_positions':[5,0,-8],'p_min':-3,'direction':'query_minus_key'}");
}
