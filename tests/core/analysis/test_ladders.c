/* wavelengths, decay, precision: published values, the formulas in plain loops, and cosl of extended precision. */
#include "core/numeric/numeric.h"
#include "tests/support/analysis.h"
#include "tests/support/cmocka.h"

#include <math.h>
#include <string.h>

static struct test_analysis a;

static void near(const char *path, double expected, double tolerance) { test_near(&a, path, expected, tolerance); }

/* ---- wavelengths ---- */

TEST(wavelengths_of_llama)
{
    test_analyse(&a, "{'preset':'llama-3.1','len':16,'metrics':['wavelengths']}");
    near("0.wavelengths.value", .5, 0);
    near("0.wavelengths.witness.pair", 32, 0);
    near("0.wavelengths.kept", 29, 0);
    near("0.wavelengths.train_len", 8192, 0);
    near("0.wavelengths.slowest_ratio", 1 / 8.0, 1e-15);
    near("0.wavelengths.fastest_ratio", 1, 0);
    const uint64_t *shape;
    const double *ratio = test_tensor(&a, "ratio.0", &shape);
    assert_int_equal(shape[0], 64);
    assert_true(ratio[28] == 1 && ratio[29] < 1 && ratio[63] == 1 / 8.0);
    test_analysis_drop(&a);
}

/* 2·pi·base^((d-2)/d), and shares of full turns within T positions. */
TEST(wavelengths_of_plain_ladders)
{
    static const struct {
        const char *json;
        double share, first, longest;
    } rows[] = {
        {"{'scheme':'rope','head_dim':128,'len':9,'train_len':2048,'metrics':['wavelengths']}", 41 / 64.0, 41, 54410},
        {"{'scheme':'rope','head_dim':128,'len':9,'train_len':4096,'metrics':['wavelengths']}", 46 / 64.0, 46, 54410},
        {"{'scheme':'rope','head_dim':64,'len':128,'metrics':['wavelengths']}", 11 / 32.0, 11, 47117},
        {"{'scheme':'sinusoidal','dim':512,'len':9,'train_len':70000,'metrics':['wavelengths']}", 1, -1, 60611},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_analyse(&a, rows[i].json);
        near("0.wavelengths.value", rows[i].share, 0);
        near("0.wavelengths.longest", rows[i].longest, .5);
        near("0.wavelengths.shortest", 2 * M_PI, 1e-15);
        if (rows[i].first < 0)
            assert_true(test_is_null(&a, "0.wavelengths.witness"));
        else
            near("0.wavelengths.witness.pair", rows[i].first, 0);
        test_analysis_drop(&a);
    }
}

/* The column of zeros of a padded width is no wave. */
TEST(padding_is_no_wave)
{
    const uint64_t *shape;
    test_analyse(&a, "{'scheme':'sinusoidal','dim':9,'odd':'pad','len':12,'metrics':['wavelengths','decay']}");
    test_tensor(&a, "turns.0", &shape);
    assert_int_equal(shape[0], 4);
    assert_true(test_tensor(&a, "decay.0", NULL)[0] == 2.5);
    test_analysis_drop(&a);
}

/* ---- decay ---- */

TEST(decay_of_roformer)
{
    test_analyse(&a, "{'scheme':'rope','head_dim':128,'len':513,'metrics':['decay']}");
    const double *curve = test_tensor(&a, "decay.0", NULL);
    static const struct {
        int distance;
        double bound;
    } rows[] = {{0, 32.5}, {1, 31.538}, {2, 28.956}, {8, 19.817}, {32, 13.384}, {128, 9.273}, {512, 5.311}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_true(fabs(curve[rows[i].distance] - rows[i].bound) < 6e-4);
    assert_true(fabs(curve[4] - 22.604) < 5e-4);
    near("0.decay.rises", 241, 0);
    near("0.decay.value", 5.311 / 32.5, 1e-4);
    int least = 0;
    for (int d = 0; d < 513; d++)
        least = curve[d] < curve[least] ? d : least;
    near("0.decay.witness.distance", least, 0);
    near("0.decay.witness.value", curve[least], 0);
    test_analysis_drop(&a);
}

/* Two pairs in closed form, wherever the run begins: (|1| + |1 + e^(i·d·(w0 - w1))|)/2. */
TEST(decay_of_two_pairs)
{
    test_analyse(&a, "{'scheme':'rope','head_dim':4,'inv_freq':[0.75,0.25],'len':200,'offset':90,'metrics':['decay']}");
    const double *curve = test_tensor(&a, "decay.0", NULL);
    for (int d = 0; d < 200; d++)
        assert_true(fabs(curve[d] - (1 + 2 * fabs(cos(d * .25))) / 2) < 1e-14);
    test_analysis_drop(&a);
    test_analysis_refused("{'scheme':'rope','positions':[0,2,3],'metrics':['decay']}", "/metrics/0", "consecutive");
    test_analysis_refused("{'scheme':'xpos','len':4,'metrics':['decay']}", "/metrics/0", "rope");
}

/* ---- precision ---- */

TEST(precision_far_away)
{
    static const struct {
        const char *json;
        double error;
    } rows[] = {
        {"{'scheme':'rope','base':5e5,'head_dim':128,'positions':[1024],'metrics':['precision']}", 1.76e-5},
        {"{'scheme':'rope','base':5e5,'head_dim':128,'len':1,'offset':8192,'metrics':['precision']}", 1.41e-4},
        {"{'scheme':'rope','base':5e5,'head_dim':128,'positions':[131072],'metrics':['precision']}", 2.33e-3},
        {"{'scheme':'rope','base':5e5,'head_dim':128,'positions':[1048576],'metrics':['precision']}", 1.83e-2},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_analyse(&a, rows[i].json);
        near("0.precision.value", rows[i].error, 3e-3 * rows[i].error);
        near("0.precision.recipes.f32.worst", rows[i].error, 3e-3 * rows[i].error);
        test_analysis_drop(&a);
    }
}

static double rounded(enum pe_dtype dtype, double x)
{
    char room[8];
    pe_store(dtype, room, 0, x);
    return pe_element(dtype, room, 0);
}

/* One frequency, with positions near and beyond the range of fast reductions, against the C library: powers of two, so
 * that p·w is exact. */
TEST(precision_of_each_recipe)
{
    static const struct {
        const char *name;
        enum pe_dtype w, p, product, result;
    } recipes[] = {{"f32", PE_F32, PE_F32, PE_F32, PE_F32},
                   {"f32_bf16", PE_F32, PE_F32, PE_F32, PE_BF16},
                   {"bf16_inv_freq", PE_BF16, PE_F32, PE_F32, PE_F32},
                   {"f16_inv_freq", PE_F16, PE_F32, PE_F32, PE_F32},
                   {"bf16", PE_BF16, PE_BF16, PE_BF16, PE_BF16}};
    enum { N = 31, RECIPES = 5 };
    test_analyse(&a,
                 "{'scheme':'rope','head_dim':2,'inv_freq':[0.7],'metrics':['precision'],'positions':[1,2,4,8,16,32,"
                 "64,128,256,512,1024,2048,4096,8192,16384,32768,65536,131072,262144,524288,1048576,2097152,4194304,"
                 "8388608,16777216,33554432,67108864,134217728,268435456,536870912,1073741824]}");
    const uint64_t *shape;
    const double *errors = test_tensor(&a, "precision.0", &shape);
    assert_true(shape[0] == RECIPES && shape[1] == N);
    for (int r = 0; r < RECIPES; r++)
        for (int i = 0; i < N; i++) {
            double p = ldexp(1, i), product = rounded(recipes[r].p, p) * rounded(recipes[r].w, .7);
            double angle = rounded(recipes[r].product, product);
            double c = fabs(rounded(recipes[r].result, cos(angle)) - (double)cosl((long double)p * (long double).7));
            double s = fabs(rounded(recipes[r].result, sin(angle)) - (double)sinl((long double)p * (long double).7));
            if (!(fabs(errors[r * N + i] - fmax(c, s)) < 2e-15))
                fail_msg("%s at 2^%d: %.17g, expected %.17g", recipes[r].name, i, errors[r * N + i], fmax(c, s));
        }
    test_analysis_drop(&a);
}

/* Positions above 256 repeat in bf16: one of two up to 512, three of four to 1024. */
TEST(rows_that_repeat)
{
    int repeated = 0;
    for (int p = 1; p < 600; p++)
        repeated += rounded(PE_BF16, p) == rounded(PE_BF16, p - 1);
    test_analyse(&a, "{'scheme':'rope','head_dim':8,'len':600,'metrics':['precision'],'recipes':['bf16','f32']}");
    near("0.precision.recipes.bf16.repeats", repeated, 0);
    near("0.precision.recipes.f32.repeats", 0, 0);
    near("0.precision.value", test_number(&a, "0.precision.recipes.bf16.worst"), 0);
    assert_string_equal(test_word(&a, "0.precision.recipe"), "bf16");
    const double *errors = test_tensor(&a, "precision.0", NULL);
    for (int e = 0; e < 4; e++) {
        static const double limits[] = {1e-4, 1e-3, 1e-2, 1e-1};
        char path[64] = "0.precision.recipes.bf16.above.0.row";
        int row = 0;
        path[strlen("0.precision.recipes.bf16.above.")] = (char)('0' + e);
        while (!(errors[row] > limits[e]))
            row++;
        near(path, row, 0);
    }
    assert_true(test_is_null(&a, "0.precision.recipes.f32.above.3.row"));
    test_analysis_drop(&a);
}

TEST(words_of_recipes)
{
    test_analysis_refused("{'scheme':'rope','len':4,'recipes':['f32','bf32']}", "/recipes/1", "bf32");
    test_analysis_refused("{'scheme':'rope','len':4,'recipes':['f32','f32']}", "/recipes/1", "twice");
    test_analysis_refused("{'scheme':'alibi','len':4,'recipes':['f32']}", "/recipes", "precision");
    test_analysis_refused("{'scheme':'rope','len':4,'metrics':['decay'],'train_len':8}", "/train_len", "wavelengths");
}

TEST(failures)
{
    test_analysis_fails_cleanly("{'scheme':'rope','head_dim':8,'len':70,'metrics':['wavelengths','decay','precision'],"
                                "'scaling':{'type':'linear','factor':2}}");
    test_analysis_fails_cleanly(
        "{'scheme':'sinusoidal','dim':8,'len':70,'metrics':['wavelengths','decay','precision']}");
}
