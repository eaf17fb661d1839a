/* step, norms, collisions: reference values, laws, small tables whose numbers are known. */
#include "tests/support/analysis.h"
#include "tests/support/cmocka.h"

#include <math.h>
#include <string.h>

static struct test_analysis a;

static void near(const char *path, double expected, double tolerance) { test_near(&a, path, expected, tolerance); }

/* ---- step ---- */

TEST(steps_of_rows)
{
    test_analyse(&a,
                 "{'scheme':'learned','dim':2,'table':[[0,0],[3,4],[3,5],[-9,0],[-9,0]],'len':5,'metrics':['step']}");
    const uint64_t *shape;
    const double *step = test_tensor(&a, "step.0", &shape), expected[] = {5, 1, 13, 0};
    assert_int_equal(shape[0], 4);
    for (int i = 0; i < 4; i++)
        assert_true(step[i] == expected[i]);
    near("0.step.value", 13, 0);
    near("0.step.min", 0, 0);
    near("0.step.mean", 4.75, 0);
    near("0.step.witness.rows.0", 2, 0);
    near("0.step.witness.rows.1", 3, 0);
    test_analysis_drop(&a);
}

/* A grid of two lines: no step from the end of a line to the next. */
TEST(steps_of_grids)
{
    test_analyse(&a, "{'scheme':'sinusoidal','dim':8,'grid':[2,3],'metrics':['step']}");
    const double *step = test_tensor(&a, "step.0", NULL);
    double expected = sqrt(4 * pow(sin(0.5), 2) + 4 * pow(sin(0.005), 2));
    for (int i = 0; i < 5; i++)
        assert_true(i == 2 ? isnan(step[i]) : fabs(step[i] - expected) < 1e-14);
    near("0.step.mean", expected, 1e-14);
    test_analysis_drop(&a);
}

/* ALiBi with one head of slope 2^-8: every distance is that far from the next nearer one on its side. */
TEST(steps_of_distances)
{
    test_analyse(&a, "{'scheme':'alibi','num_heads':1,'len':4,'metrics':['step']}");
    const uint64_t *shape;
    const double *step = test_tensor(&a, "step.0", &shape);
    assert_int_equal(shape[0], 6);
    for (int i = 0; i < 6; i++)
        assert_true(step[i] == 0x1p-8);
    near("0.step.witness.distances.0", -1, 0);
    near("0.step.witness.distances.1", 0, 0);
    test_analysis_drop(&a);
    test_analyse(&a, "{'scheme':'none','dim':4,'len':3,'metrics':['step']}");
    assert_true(test_is_null(&a, "0.step.witness") && test_number(&a, "0.step.value") == 0);
    test_analysis_drop(&a);
    test_analyse(&a, "{'scheme':'sinusoidal','dim':4,'len':1,'metrics':['step']}");
    assert_true(test_is_null(&a, "0.step.value") && test_is_null(&a, "0.step.mean"));
    test_analysis_drop(&a);
}

/* ---- norms ---- */

TEST(norms_of_rope)
{
    test_analyse(&a, "{'scheme':'rope','head_dim':128,'len':64,'metrics':['norms']}");
    near("0.norms.value", 0, 1e-15);
    near("0.norms.dtypes.f32", 4.0e-8, 5e-10);
    near("0.norms.dtypes.f16", 3.3e-4, 5e-6);
    near("0.norms.dtypes.bf16", 2.7e-3, 5e-5);
    assert_true(test_is_null(&a, "0.norms.witness"));
    assert_true(test_word(&a, "0.norms.detail") && strstr(test_word(&a, "0.norms.detail"), "kept"));
    test_analysis_drop(&a);
    test_analyse(
        &a, "{'scheme':'rope','head_dim':8,'len':64,'attention_factor':1.25,'metrics':['norms'],'dtypes':['f16']}");
    near("0.norms.value", 0.25, 1e-15);
    near("0.norms.witness.row", 0, 0);
    assert_true(test_result(&a, "0.norms.dtypes.f16") && !test_result(&a, "0.norms.dtypes.f64"));
    test_analysis_drop(&a);
}

/* xPos: queries at p are scaled by (gamma / (1 + gamma))^(p/scale_base) in the first pair. */
TEST(norms_of_xpos)
{
    test_analyse(&a, "{'scheme':'xpos','head_dim':8,'len':100,'metrics':['norms']}");
    near("0.norms.value", 1 - pow(0.4 / 1.4, 99 / 512.0), 1e-14);
    near("0.norms.witness.row", 99, 0);
    near("0.norms.witness.pair", 0, 0);
    test_analysis_drop(&a);
}

/* V-JEPA 2's block of channels 0 and 1, with 2 pairs of angles p and p/100: [[cos p, -sin p], [sin p/100, cos p/100]].
 * The product of its singular values is its determinant, cos(p)cos(p/100) + sin(p)sin(p/100) = cos(.99 p); the sum of
 * their squares is 2. Channels 2 and 3 have the same block. */
TEST(norms_of_no_rotation)
{
    double largest = 0;
    for (int p = 0; p < 9; p++) {
        double det = fabs(cos(0.99 * p));
        double high = (sqrt(2 + 2 * det) + sqrt(2 - 2 * det)) / 2, low = (sqrt(2 + 2 * det) - sqrt(2 - 2 * det)) / 2;
        largest = fmax(largest, fmax(fabs(high - 1), fabs(low - 1)));
    }
    test_analyse(&a, "{'scheme':'rope','head_dim':4,'layout':'vjepa2','len':9,'metrics':['norms']}");
    near("0.norms.value", largest, 1e-14);
    test_analysis_drop(&a);
}

/* ---- collisions ---- */

TEST(collisions)
{
    test_analyse(&a, "{'scheme':'integer','len':600,'metrics':['collisions'],'dtypes':['f64','bf16']}");
    near("0.collisions.witness.rows.0", 256, 0);
    near("0.collisions.witness.rows.1", 257, 0);
    /* above 256 a bf16 has steps of 2: 257..512 lose half; above 512 of 4 */
    near("0.collisions.value", 128 + 65, 0);
    near("0.collisions.dtypes.f64.repeated", 0, 0);
    assert_true(test_is_null(&a, "0.collisions.dtypes.f64.witness"));
    test_analysis_drop(&a);
    test_analyse(&a, "{'scheme':'alibi','causal':true,'len':2048,'metrics':['collisions']}");
    near("0.collisions.value", 1407, 0);
    near("0.collisions.witness.distances.0", -256, 0);
    near("0.collisions.witness.distances.1", -257, 0);
    near("0.collisions.dtypes.f32.repeated", 0, 0);
    test_analysis_drop(&a);
}

/* The first pair in the order of its first row, not the first repetition met; -0 is 0. */
TEST(first_pair)
{
    test_analyse(&a, "{'scheme':'learned','dim':2,'table':[[0,1],[5,5],[5,5],[-0.0,1],[5,5]],'len':5,"
                     "'metrics':['collisions'],'dtypes':['f32']}");
    near("0.collisions.value", 3, 0);
    near("0.collisions.witness.rows.0", 0, 0);
    near("0.collisions.witness.rows.1", 3, 0);
    test_analysis_drop(&a);
}

TEST(refusals)
{
    test_analysis_refused("{'scheme':'rope','head_dim':8,'len':4,'dtypes':['f8']}", "/dtypes/0", "f8");
    test_analysis_refused("{'scheme':'rope','head_dim':8,'len':4,'dtypes':['f16','f16']}", "/dtypes/1", "twice");
    test_analysis_refused("{'scheme':'rope','head_dim':8,'len':4,'metrics':['step'],'dtypes':['f16']}", "/dtypes",
                          "norms");
    test_analysis_refused("{'scheme':'alibi','len':4,'metrics':['step','norms']}", "/metrics/1", "rotary");
}

TEST(failures)
{
    test_analysis_fails_cleanly("{'scheme':'rope','head_dim':8,'len':300,'metrics':['step','norms','collisions']}");
    test_analysis_fails_cleanly("{'scheme':'kerple','len':300,'metrics':['step','collisions']}");
}
