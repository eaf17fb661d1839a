/* DeBERTa's buckets: reference values, ends of the table, where the logarithm is an integer, the two
 * spellings, refusals. */
#include "tests/support/cmocka.h"
#include "tests/support/plans.h"
#include "tests/support/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double *ask(const char *fields, size_t *n)
{
    struct test_request r;
    char json[640];
    snprintf(json, sizeof json, "{'scheme':'deberta',%s}", fields);
    struct pe_plan *plan = test_plan(&r, json);
    assert_int_equal(pe_plan_n_outputs(plan), 1);
    assert_string_equal(pe_plan_output(plan, 0)->name, "index");
    assert_int_equal(pe_plan_output(plan, 0)->dtype, PE_I32);
    double *values = test_values(plan, 0, n);
    pe_plan_free(plan);
    test_request_drop(&r);
    return values;
}

static void assert_index(const char *fields, const double *expected, size_t n)
{
    size_t got_n;
    double *got = ask(fields, &got_n);
    assert_int_equal(got_n, n);
    for (size_t i = 0; i < n; i++)
        if (got[i] != expected[i])
            fail_msg("%s: element %zu is %g, expected %g", fields, i, got[i], expected[i]);
    free(got);
}

#define V3 "'position_buckets':256,"

/* Keys before the query: delta = q - k > 0, row 256 + bucket. */
TEST(buckets_of_the_specification)
{
    const double past[] = {0, 1, 128, 129, 130, 143, 169, 192, 207, 233, 254, 255, 255};
    double rows[13];
    for (size_t i = 0; i < 13; i++)
        rows[i] = 256 + past[i];
    assert_index(V3 "'q_positions':[0],'k_positions':[0,-1,-128,-129,-130,-150,-200,-256,-300,-400,-500,-508,-511]",
                 rows, 13);
    for (size_t i = 0; i < 13; i++)
        rows[i] = 256 - past[i];
    assert_index(V3 "'q_positions':[0],'k_positions':[0,1,128,129,130,150,200,256,300,400,500,508,511]", rows, 13);
}

/* The map is the same for runs of rows and pair by pair. */
TEST(runs_are_lists)
{
    size_t n, m;
    double *run = ask(V3 "'q_len':1,'k_len':1400,'q_offset':700", &n);
    assert_int_equal(n, 1400);
    for (int k = 0; k < 1400; k += 7) {
        char json[96];
        snprintf(json, sizeof json, V3 "'q_positions':[700,3],'k_positions':[%d,9]", k);
        double *pair = ask(json, &m);
        assert_true(run[k] == pair[0]);
        free(pair);
    }
    free(run);
}

TEST(ends_of_the_table)
{
    const char far[] = "'q_positions':[1000],'k_positions':[2000,1513,1512,1511,489,488,0]";
    char json[256];
    const double kept[] = {0, 0, 0, 1, 511, 511, 511}, clamped[] = {1, 1, 1, 1, 511, 511, 511};
    assert_index(strcat(strcpy(json, V3), far), kept, 7);
    assert_index(strcat(strcpy(json, V3 "'clamp_first':true,"), far), clamped, 7);
    /* v1: a row for each distance below 512, of 1024 */
    const double v1[] = {0, 0, 0, 1, 1023, 1023, 1023}, v1_clamped[] = {1, 1, 1, 1, 1023, 1023, 1023};
    assert_index(far, v1, 7);
    assert_index(strcat(strcpy(json, "'clamp_first':true,"), far), v1_clamped, 7);
    assert_index("'len':3", (const double[]){512, 511, 510, 513, 512, 511, 514, 513, 512}, 9);
    assert_index("'len':3,'max_relative':1", (const double[]){1, 0, 0, 1, 1, 0, 1, 1, 1}, 9);
}

#define NEAR(nb, m, k) "'position_buckets':" #nb ",'max_relative_positions':" #m ",'q_positions':[0],'k_positions':" k

/* Distances at which the logarithm is an integer belong to that bucket, the next distance to the next bucket: (20/10)^9
 * = (80/10)^3, (40/10)^9 = (80/10)^6; (6/4)^3 = (27/8): m 4, top 9 and 6 = 4·(9/4)^(1/2) needs an even l. */
TEST(ties_are_exact)
{
    assert_index(NEAR(20, 81, "[-20,-21,-40,-41,-80,-81]"), (const double[]){33, 34, 36, 37, 39, 39}, 6);
    assert_index(NEAR(20, 81, "[20,21,40,41,80,81]"), (const double[]){7, 6, 4, 3, 1, 0}, 6);
    /* mid 5: (15/5)^4 = (45/5)^2 */
    assert_index(NEAR(10, 46, "[15,16,45,46]"), (const double[]){3, 2, 1, 0}, 4);
    /* 320/800: 799 is the last step exactly; float32 makes it one more */
    assert_index(NEAR(320, 800, "[799,800,-799]"), (const double[]){1, 0, 639}, 3);
    /* an odd count goes on for a bucket beyond M: mid 3, l 2, top 12: (n/3)^2 against 4^3: 24 */
    assert_index(NEAR(7, 13, "[3,4,6,7,12,13,24,25]"), (const double[]){4, 3, 3, 2, 2, 1, 1, 0}, 8);
    /* one step only, far beyond: mid 2, l 1, top 65535: n·2 against top^2 */
    assert_index(NEAR(5, 65536, "[2,3,65535,65536,2147418112,2147418113]"), (const double[]){3, 2, 2, 1, 1, 0}, 6);
    /* no step at all: every distance from one on shares a bucket */
    assert_index(NEAR(2, 512, "[-9,-1,0,1,9,100000]"), (const double[]){3, 3, 2, 1, 1, 1}, 6);
}

#define DEBERTA "{'scheme':'deberta','len':3,"

TEST(laws)
{
    test_assert_laws("{'scheme':'deberta','q_len':5,'k_len':300,'position_buckets':16,'max_relative_positions':40}");
    test_assert_laws("{'scheme':'deberta','q_positions':[3,1,70],'k_positions':[5,0,-8],'clamp_first':true,"
                     "'max_relative_positions':20,'pos_att_type':['p2c'],'norm_rel_ebd':true}");
}
