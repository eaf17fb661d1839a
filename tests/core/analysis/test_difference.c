/* difference: small tables whose differences are known, every dtype, infinities, and maps larger than a block. */
#include "core/numeric/numeric.h"
#include "tests/support/analysis.h"
#include "tests/support/cmocka.h"

#include <math.h>

static struct test_analysis a;

static void near(const char *path, double expected, double tolerance) { test_near(&a, path, expected, tolerance); }

static void word(const char *path, const char *expected) { assert_string_equal(test_word(&a, path), expected); }

/* The same request, rounded to another dtype. */
static void analyse_as(enum pe_dtype dtype, const char *json)
{
    struct pe_failure err;
    test_analyse(&a, json);
    pe_analysis_free(a.analysis);
    a.request.dtype = dtype;
    assert_int_equal(pe_analysis_new(&a.request, &a.analysis, &err), PE_OK);
}

#define TWO_TABLES                                                                                                     \
    "{'metrics':['difference'],'scheme':'learned','dim':2,'len':3,'configs':[{'table':[[1,2],[3,4],[5,6]]},"           \
    "{'table':[[1,2],[3,5],[5,5.5]]}]}"

TEST(tables)
{
    test_analyse(&a, TWO_TABLES);
    assert_true(!test_result(&a, "0.difference")); /* the first has nothing to be compared with */
    near("1.difference.value", 1, 0);
    word("1.difference.witness.output", "encoding");
    near("1.difference.witness.index.0", 1, 0);
    near("1.difference.witness.index.1", 1, 0);
    near("1.difference.equal", 4 / 6.0, 1e-16);
    near("1.difference.max_ulp", 0x1p21, 0); /* 4 and 5 have steps of 2^-21 between them: 2^21; 5.5 and 6: 2^20 */
    near("1.difference.first.row", 1, 0);
    word("1.difference.compared.0", "encoding");
    const uint64_t *shape;
    const double *rows = test_tensor(&a, "difference.1", &shape);
    assert_true(shape[0] == 3 && rows[0] == 0 && rows[1] == 1 && rows[2] == .5);
    test_analysis_drop(&a);
}

/* Between 4 and 5 lie 1/ulp numbers: f16 has 10 bits behind the point, bf16 7, f64 52, and 4 takes two of them. */
TEST(dtypes)
{
    static const struct {
        enum pe_dtype dtype;
        double steps;
    } rows[] = {{PE_F16, 0x1p8}, {PE_BF16, 0x1p5}, {PE_F64, 0x1p50}, {PE_F32, 0x1p21}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        analyse_as(rows[i].dtype, TWO_TABLES);
        near("1.difference.max_ulp", rows[i].steps, 0);
        word("1.difference.dtype", pe_dtype_name(rows[i].dtype));
        test_analysis_drop(&a);
    }
}

TEST(tolerance)
{
    test_analyse(&a, "{'metrics':['difference'],'tolerance':0.75,'scheme':'learned','dim':1,'len':3,"
                     "'configs':[{'table':[[1],[3],[5]]},{'table':[[1.5],[3.75],[6]]}]}");
    near("1.difference.first.row", 2, 0); /* beyond it, not at it */
    test_analysis_drop(&a);
    test_analyse(&a, "{'metrics':['difference'],'tolerance':2,'scheme':'learned','dim':1,'len':3,"
                     "'configs':[{'table':[[1],[3],[5]]},{'table':[[1.5],[3.75],[6]]}]}");
    assert_true(test_is_null(&a, "1.difference.first"));
    test_analysis_drop(&a);
}

/* The largest finite number and infinity are neighbours; so are zeros of both signs. */
TEST(infinities)
{
    analyse_as(PE_F16, "{'metrics':['difference'],'scheme':'learned','dim':1,'len':2,"
                       "'configs':[{'table':[[65504],[-0.0]]},{'table':[[66000],[0]]}]}");
    near("1.difference.max_ulp", 1, 0);
    assert_true(isinf(test_number(&a, "1.difference.value")));
    near("1.difference.equal", .5, 0);
    test_analysis_drop(&a);
    test_analyse(&a, "{'metrics':['difference'],'scheme':'alibi','num_heads':2,'len':3,"
                     "'configs':[{},{'causal':true}]}");
    near("1.difference.witness.index.0", 0, 0); /* query 0, head 0, key 1 */
    near("1.difference.witness.index.1", 0, 0);
    near("1.difference.witness.index.2", 1, 0);
    near("1.difference.equal", 6 / 9.0, 1e-16);
    const double *rows = test_tensor(&a, "difference.1", NULL);
    assert_true(isinf(rows[0]) && isinf(rows[1]) && rows[2] == 0);
    test_analysis_drop(&a);
}

/* cos and sin do not depend on the layout, but what they do to a vector does. */
TEST(rotated)
{
    analyse_as(PE_F64, "{'metrics':['difference'],'scheme':'rope','head_dim':4,'len':2,"
                       "'configs':[{'inv_freq':[1,0]},{'inv_freq':[1,0],'layout':'half'}]}");
    /* v = (1, 1.25, 1.5, 1.75): pairs (0,1), (2,3) or (0,2), (1,3), and the first of them turns by 1 */
    double c = cos(1), s = sin(1);
    double one[] = {c - 1.25 * s, s + 1.25 * c, 1.5, 1.75}, two[] = {c - 1.5 * s, 1.25, s + 1.5 * c, 1.75};
    int worst = 0;
    for (int i = 0; i < 4; i++)
        worst = fabs(one[i] - two[i]) > fabs(one[worst] - two[worst]) ? i : worst;
    near("1.difference.value", fabs(one[worst] - two[worst]), 1e-15);
    word("1.difference.witness.output", "rotated");
    near("1.difference.witness.index.0", 1, 0);
    near("1.difference.witness.index.1", worst, 0);
    word("1.difference.compared.0", "cos");
    word("1.difference.compared.1", "sin");
    word("1.difference.compared.2", "rotated");
    near("1.difference.equal", (4 + 4 + 5) / 16.0, 0);
    test_analysis_drop(&a);
}

TEST(the_same)
{
    test_analyse(&a, "{'metrics':['difference'],'scheme':'xpos','head_dim':8,'len':40,'configs':[{},{}]}");
    near("1.difference.value", 0, 0);
    near("1.difference.equal", 1, 0);
    near("1.difference.max_ulp", 0, 0);
    assert_true(test_is_null(&a, "1.difference.witness") && test_is_null(&a, "1.difference.first"));
    test_analysis_drop(&a);
}

TEST(nothing_alike)
{
    test_analyse(&a, "{'metrics':['difference'],'len':3,'configs':[{'scheme':'alibi'},{'scheme':'rope'},"
                     "{'scheme':'alibi','num_heads':4},{'scheme':'kerple'}]}");
    assert_true(test_is_null(&a, "1.difference.value") && test_is_null(&a, "2.difference.value"));
    assert_true(!test_tensor(&a, "difference.1", NULL) && test_tensor(&a, "difference.3", NULL));
    assert_true(test_number(&a, "3.difference.value") > 0);
    test_analysis_drop(&a);
    test_analysis_refused("{'scheme':'rope','len':3,'metrics':['difference']}", "/metrics/0", "after the first");
}

/* Integers are compared as they are: 2^24 and 2^24 + 1 are one float. */
TEST(integers)
{
    test_analyse(&a, "{'metrics':['difference'],'scheme':'shaw','len':6,'configs':[{'max_relative':4},{'p_min':-4,"
                     "'p_max':3}]}");
    near("1.difference.value", 1, 0);
    near("1.difference.max_ulp", 1, 0);
    near("1.difference.witness.index.0", 0, 0);
    near("1.difference.witness.index.1", 4, 0);
    near("1.difference.equal", 33 / 36.0, 1e-15); /* k - q = 4 twice, 5 once */
    test_analysis_drop(&a);
}

/* Channels first: positions are rows there too. */
TEST(channels_first)
{
    const uint64_t *shape;
    test_analyse(&a, "{'metrics':['difference'],'scheme':'sinusoidal','dim':8,'grid':[2,3],'channels_first':true,"
                     "'configs':[{},{'angle_scale':1.5}]}");
    const double *rows = test_tensor(&a, "difference.1", &shape);
    assert_true(shape[0] == 6 && rows[0] == 0);
    for (int i = 1; i < 6; i++)
        assert_true(rows[i] > .1);
    test_analysis_drop(&a);
}

/* [2, 700, 700] takes several blocks: slopes s and 1.5·s are apart by s/2 for each step of distance. */
TEST(large_maps)
{
    const uint64_t *shape;
    analyse_as(PE_F64, "{'metrics':['difference'],'scheme':'alibi','len':700,'causal':true,"
                       "'configs':[{'slopes':[0.5,0.25]},{'slopes':[0.5,0.375]}],'num_heads':2}");
    near("1.difference.value", 699 * .125, 0);
    near("1.difference.witness.index.0", 699, 0);
    near("1.difference.witness.index.1", 1, 0);
    near("1.difference.witness.index.2", 0, 0);
    near("1.difference.equal", 1 - 699 * 700 / 2 / (2.0 * 700 * 700), 1e-15);
    const double *rows = test_tensor(&a, "difference.1", &shape);
    assert_int_equal(shape[0], 700);
    for (int q = 0; q < 700; q++)
        assert_true(rows[q] == q * .125);
    test_analysis_drop(&a);
}

TEST(failures)
{
    test_analysis_fails_cleanly("{'metrics':['difference'],'scheme':'rope','head_dim':8,'len':4000,"
                                "'configs':[{},{'layout':'half'}]}");
    test_analysis_fails_cleanly("{'metrics':['difference'],'scheme':'alibi','len':150,'configs':[{},{'causal':true}]}");
}
