/* properties: the counts of published schemes, and each wish on encodings that are known to have it or not. */
#include "tests/support/analysis.h"
#include "tests/support/cmocka.h"

#include <stdio.h>

static struct test_analysis a;

static void near(const char *path, double expected, double tolerance) { test_near(&a, path, expected, tolerance); }

static bool holds(const char *wish)
{
    char path[80];
    snprintf(path, sizeof path, "0.properties.wishes.%s.holds", wish);
    const struct pe_value *value = test_result(&a, path);
    assert_true(value && value->kind == PE_BOOLEAN);
    return value->boolean;
}

#define WISHES "unique", "linear", "generalises", "deterministic", "n_dimensional"

TEST(counts)
{
    static const char *const names[] = {WISHES};
    static const struct {
        const char *json, *holding; /* of the five, in order */
    } rows[] = {
        {"{'scheme':'sinusoidal','len':64,'metrics':['properties']}", "ulgdn"},
        {"{'scheme':'sinusoidal','dim':64,'offset':1000,'len':63,'metrics':['properties']}", "ulgdn"},
        {"{'scheme':'rope','len':64,'metrics':['properties']}", "ulgdn"},
        {"{'scheme':'rope','head_dim':4,'len':64,'metrics':['properties']}", "ulgd-"},
        {"{'scheme':'binary','dim':8,'len':64,'metrics':['properties']}", "u--d-"},
        {"{'configs':[{'scheme':'learned','seed':0}],'len':64,'metrics':['properties']}", "u---n"},
        {"{'scheme':'alibi','len':64,'metrics':['properties']}", "-lgd-"},
        {"{'scheme':'alibi','causal':true,'len':64,'metrics':['properties']}", "ulgd-"},
        {"{'configs':[{'scheme':'t5','seed':0}],'len':64,'metrics':['properties']}", "-lg--"},
        {"{'scheme':'none','len':64,'metrics':['properties']}", "-lgd-"},
        {"{'scheme':'integer','dim':4,'len':64,'metrics':['properties']}", "u--d-"},
        {"{'scheme':'integer','normalize':'length','dim':4,'len':64,'metrics':['properties']}", "--gd-"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int n = 0;
        test_analyse(&a, rows[i].json);
        for (int w = 0; w < 5; w++) {
            n += rows[i].holding[w] != '-';
            if (holds(names[w]) != (rows[i].holding[w] != '-'))
                fail_msg("%s: %s", rows[i].json, names[w]);
        }
        near("0.properties.value", n, 0);
        test_analysis_drop(&a);
    }
}

/* Shares of the length change with it: the last row of the first half of 64 is 31/64, alone 31/32. */
TEST(change_with_the_length)
{
    test_analyse(&a, "{'scheme':'integer','normalize':'length','dim':4,'len':64,'metrics':['properties']}");
    near("0.properties.wishes.unique.length_change", 31 / 32.0 - 31 / 64.0, 1e-15);
    test_analysis_drop(&a);
    test_analyse(&a, "{'scheme':'sinusoidal','dim':8,'positions':[0,5.5,9,2],'metrics':['properties']}");
    near("0.properties.wishes.unique.length_change", 0, 0);
    assert_true(test_is_null(&a, "0.properties.wishes.linear.value") && !holds("linear"));
    test_analysis_drop(&a);
    /* LongRoPE's list and dynamic scaling go by the length: the same row is another one */
    test_analyse(&a,
                 "{'scheme':'rope','head_dim':8,'scaling':{'type':'dynamic','factor':2,'max_position_embeddings':8},"
                 "'len':40,'metrics':['properties']}");
    assert_true(test_number(&a, "0.properties.wishes.unique.length_change") > .1 && !holds("unique"));
    test_analysis_drop(&a);
}

TEST(larger_at_eight_times_the_length)
{
    test_analyse(&a, "{'scheme':'integer','dim':4,'len':64,'metrics':['properties']}");
    near("0.properties.wishes.generalises.value", 511 / 63.0, 1e-14);
    test_analysis_drop(&a);
    test_analyse(&a, "{'scheme':'alibi','len':64,'metrics':['properties']}");
    near("0.properties.wishes.generalises.value", 511 / 63.0, 1e-14);
    test_analysis_drop(&a);
    /* a key's bias counts from the end: the first query's own key is no row */
    test_analyse(&a, "{'scheme':'alibi','num_heads':1,'form':'key_end','window':3,'len':2,'metrics':['properties']}");
    near("0.properties.wishes.generalises.value", 14, 1e-13);
    test_analysis_drop(&a);
}

TEST(moved_biases)
{
    /* listed positions with equal gaps: the same distances, no Toeplitz map */
    test_analyse(&a, "{'scheme':'alibi','positions':[0.5,2.5,4.5,6.5],'metrics':['properties']}");
    near("0.properties.wishes.linear.value", 0, 0);
    test_analysis_drop(&a);
    /* b = -s|k - q|: from (0, 1) to (1, 2) the distance grows by one of three */
    test_analyse(&a, "{'scheme':'alibi','num_heads':1,'positions':[0,1,3],'metrics':['properties']}");
    near("0.properties.wishes.linear.value", 1 / 3.0, 1e-15);
    assert_true(!holds("linear"));
    test_analysis_drop(&a);
}

TEST(learned_numbers)
{
    static const struct {
        const char *json;
        double n;
    } rows[] = {
        {"{'configs':[{'scheme':'learned','seed':0,'dim':6,'rows':20}],'len':4,'metrics':['properties']}", 120},
        {"{'configs':[{'scheme':'t5','seed':0}],'len':4,'metrics':['properties']}", 256},
        {"{'configs':[{'scheme':'fire','seed':0}],'len':4,'metrics':['properties']}", 2 * 32 + 8 * 33},
        {"{'configs':[{'scheme':'fourier','style':'gaussian','num_freqs':4}],'len':4,'metrics':['properties']}", 0},
        {"{'scheme':'kerple','len':4,'metrics':['properties']}", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_analyse(&a, rows[i].json);
        near("0.properties.wishes.deterministic.value", rows[i].n, 0);
        test_analysis_drop(&a);
    }
}

/* V-JEPA 2's layout pairs channels as if they were neighbours; the tables of cosines are those of a rotation. */
TEST(grids)
{
    test_analyse(&a, "{'scheme':'rope','head_dim':16,'base':100,'layout':'half','len':9,'metrics':['properties']}");
    assert_true(test_number(&a, "0.properties.wishes.n_dimensional.value") < 1e-14);
    test_analysis_drop(&a);
    test_analyse(&a, "{'scheme':'sinusoidal','dim':9,'len':9,'metrics':['properties']}");
    assert_true(!holds("n_dimensional")); /* an odd width has a sine without its cosine */
    test_analysis_drop(&a);
    test_analysis_refused("{'scheme':'sinusoidal','dim':8,'grid':[2,3],'metrics':['properties']}", "/metrics/0",
                          "one axis");
}

TEST(failures)
{
    test_analysis_fails_cleanly("{'scheme':'sinusoidal','dim':8,'len':70,'metrics':['properties']}");
    test_analysis_fails_cleanly("{'scheme':'alibi','num_heads':2,'positions':[0,1,3],'metrics':['properties']}");
}
