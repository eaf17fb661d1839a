/* receptive, extrapolation: published values, closed forms, and counts in plain loops. */
#include "tests/support/analysis.h"
#include "tests/support/cmocka.h"

#include <math.h>
#include <stdlib.h>

static struct test_analysis a;

static void near(const char *path, double expected, double tolerance) { test_near(&a, path, expected, tolerance); }

static bool is_there(const char *path) { return test_result(&a, path) != NULL; }

/* ---- receptive ---- */

TEST(receptive_of_alibi)
{
    static const double ninety[] = {4, 9, 18, 36, 73, 147, 294, 588};
    test_analyse(&a, "{'scheme':'alibi','causal':true,'len':2048,'metrics':['receptive']}");
    for (int h = 0; h < 8; h++) {
        char path[] = "0.receptive.ninety.0";
        path[sizeof path - 2] = (char)('0' + h);
        near(path, ninety[h], 0);
    }
    near("0.receptive.value", 588, 0);
    near("0.receptive.witness.head", 7, 0);
    test_analysis_drop(&a);
}

/* A geometric series: with weights r^d, d < n, the mass within d is (1 - r^(d+1))/(1 - r^n). */
TEST(receptive_of_one_slope)
{
    enum { N = 5000 };
    const uint64_t *shape;
    double r = exp(-0x1p-8), all = 0, distance = 0, entropy = 0, reached = -1;
    test_analyse(&a, "{'scheme':'alibi','num_heads':1,'causal':true,'len':5000,'offset':7,'metrics':['receptive']}");
    const double *mass = test_tensor(&a, "receptive.0", &shape);
    assert_true(shape[0] == 1 && shape[1] == N);
    for (int d = 0; d < N; d++)
        all += pow(r, d);
    for (int d = 0; d < N; d++) {
        double p = pow(r, d) / all, within = (1 - pow(r, d + 1)) / (1 - pow(r, N));
        distance += p * d;
        entropy -= p * log(p);
        reached = reached < 0 && within >= .5 ? d : reached;
        assert_true(fabs(mass[d] - within) < 1e-12);
    }
    near("0.receptive.half.0", reached, 0);
    near("0.receptive.mean_distance.0", distance, 1e-9);
    near("0.receptive.entropy.0", entropy, 1e-11);
    test_analysis_drop(&a);
}

/* Two keys at distance 2 and one at 0: two places, with 2·e^(-2s) and 1 as weights. */
TEST(receptive_of_listed_keys)
{
    const uint64_t *shape;
    double far = exp(-2 * 0x1p-8);
    test_analyse(&a,
                 "{'scheme':'alibi','num_heads':1,'k_positions':[0,4,2],'q_positions':[2],'metrics':['receptive']}");
    const double *mass = test_tensor(&a, "receptive.0", &shape);
    assert_true(shape[0] == 1 && shape[1] == 2);
    assert_true(fabs(mass[0] - 1 / (1 + 2 * far)) < 1e-15 && fabs(mass[1] - 1) < 1e-15);
    near("0.receptive.value", 2, 0);
    test_analysis_drop(&a);
    test_analyse(&a, "{'scheme':'alibi','causal':true,'window':3,'len':20,'metrics':['receptive']}");
    test_tensor(&a, "receptive.0", &shape);
    assert_true(shape[1] == 3);
    near("0.receptive.ninety_nine.7", 2, 0);
    test_analysis_drop(&a);
    test_analyse(&a, "{'scheme':'alibi','key_mask':[1,0,0],'causal':true,'window':2,'len':3,'metrics':['receptive']}");
    assert_true(test_is_null(&a, "0.receptive.value"));
    test_analysis_drop(&a);
}

/* ---- extrapolation: angles, positions, pairs ---- */

#define T128_E1024 "'train_len':128,'eval_len':1024,'metrics':['extrapolation'],'len':16}"
#define T128_E256 "'train_len':128,'eval_len':256,'metrics':['extrapolation'],'len':16}"

TEST(unseen_angles)
{
    static const struct {
        const char *json;
        double share, tolerance;
    } rows[] = {
        {"{'scheme':'rope'," T128_E1024, .5726, 5e-5},
        {"{'scheme':'rope','scaling':{'type':'ntk','factor':8}," T128_E1024, .2860, 1e-4},
        {"{'scheme':'rope'," T128_E256, .616, 6e-4},
        {"{'scheme':'rope','scaling':{'type':'ntk','factor':2}," T128_E256, .243, 6e-4},
        {"{'scheme':'rope','scaling':{'type':'linear','factor':2}," T128_E256, .005, 6e-4},
        {"{'scheme':'sinusoidal','dim':64," T128_E1024, .5726, 5e-5},
        {"{'scheme':'rope','head_dim':128,'len':4,'train_len':4096,'metrics':['extrapolation']}", .247, 6e-4},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_analyse(&a, rows[i].json);
        near("0.extrapolation.unseen_angles", rows[i].share, rows[i].tolerance);
        near("0.extrapolation.value", test_number(&a, "0.extrapolation.unseen_angles"), 0);
        const double *unseen = test_tensor(&a, "unseen.0", NULL);
        int first = (int)test_number(&a, "0.extrapolation.witness.pair");
        assert_true(unseen[first] > 0);
        for (int c = 0; c < first; c++)
            assert_true(unseen[c] == 0);
        test_analysis_drop(&a);
    }
}

/* NTK by the length that the model sees: dynamic scaling at E has other frequencies than at T. */
TEST(dynamic_scaling_sees_the_longer_length)
{
    double shares[2];
    for (int i = 0; i < 2; i++) {
        test_analyse(&a, i ? "{'scheme':'rope'," T128_E1024
                           : "{'scheme':'rope','scaling':{'type':'dynamic','factor':1,'max_position_embeddings':128},"
                             "'eval_len':1024,'metrics':['extrapolation'],'len':16}");
        near("0.extrapolation.train_len", 128, 0);
        shares[i] = test_number(&a, "0.extrapolation.unseen_angles");
        test_analysis_drop(&a);
    }
    assert_true(shares[0] < .3 && shares[1] > .5); /* factor 1 at 8 times the length is ntk 8 */
}

TEST(positions_without_row)
{
    test_analyse(&a, "{'configs':[{'scheme':'learned','dim':4,'seed':0,'len':128}],'metrics':['extrapolation']}");
    near("0.extrapolation.value", .5, 0);
    assert_true(!is_there("0.extrapolation.attention") && !test_tensor(&a, "unseen.0", NULL));
    test_analysis_drop(&a);
    test_analyse(&a, "{'configs':[{'scheme':'learned','dim':4,'seed':0,'rows':98,'row_offset':2,'len':64}],"
                     "'eval_len':96,'metrics':['extrapolation']}");
    near("0.extrapolation.positions_without_row", 0, 0);
    assert_true(is_there("0.extrapolation.attention"));
    test_analysis_drop(&a);
}

TEST(unseen_pairs)
{
    for (int causal = 0; causal < 2; causal++) {
        double beyond = 0, all = 0;
        for (int q = 0; q < 60; q++)
            for (int k = 0; k < (causal ? q + 1 : 60); k++) {
                beyond += abs(q - k) >= 23;
                all++;
            }
        test_analyse(&a, causal
                             ? "{'scheme':'kerple','causal':true,'train_len':23,'eval_len':60,'len':4,"
                               "'metrics':['extrapolation']}"
                             : "{'scheme':'kerple','train_len':23,'eval_len':60,'len':4,'metrics':['extrapolation']}");
        near("0.extrapolation.unseen_pairs", beyond / all, 1e-15);
        test_analysis_drop(&a);
    }
}

TEST(saturated_buckets)
{
    static const struct {
        const char *json;
        double train, eval, tolerance;
    } rows[] = {
        {"{'scheme':'t5','bidirectional':false,'causal':true,'len':128,'metrics':['extrapolation']}", .015, .313, 6e-4},
        {"{'scheme':'t5','bidirectional':false,'causal':true,'len':512,'metrics':['extrapolation']}", .608, .792, 6e-4},
        {"{'scheme':'t5','len':128,'metrics':['extrapolation']}", .086, .418, 6e-4},
        /* |k - q| ≥ 4: (n - 4)(n - 3) of n^2 pairs */
        {"{'scheme':'shaw','len':9,'metrics':['extrapolation']}", 30 / 81.0, 14 * 15 / 324.0, 1e-15},
        {"{'scheme':'shaw','max_relative':4,'len':9,'metrics':['extrapolation']}", 30 / 81.0, 14 * 15 / 324.0, 1e-15},
        /* rows 0 and 2·5 - 1 of clip(q - k + 5, 0, 9): q - k ≤ -5 and q - k ≥ 4 */
        {"{'scheme':'deberta','max_relative_positions':5,'len':9,'metrics':['extrapolation']}", (10 + 15) / 81.0,
         (13 * 14 / 2 + 14 * 15 / 2) / 324.0, 1e-15},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_analyse(&a, rows[i].json);
        near("0.extrapolation.saturated.train", rows[i].train, rows[i].tolerance);
        near("0.extrapolation.saturated.eval", rows[i].eval, rows[i].tolerance);
        test_analysis_drop(&a);
    }
}

/* ---- extrapolation: attention ---- */

TEST(attention_of_alibi)
{
    test_analyse(&a, "{'scheme':'alibi','causal':true," T128_E1024);
    near("0.extrapolation.value", .1418, 5e-5);
    near("0.extrapolation.attention.mass_beyond", .1418, 5e-5);
    near("0.extrapolation.attention.entropy.0", 3.276, 5e-4);
    near("0.extrapolation.attention.entropy.1", 3.717, 5e-4);
    assert_true(test_is_null(&a, "0.extrapolation.witness"));
    test_analysis_drop(&a);
}

/* A query that sees only itself. */
TEST(attention_to_itself)
{
    test_analyse(&a, "{'scheme':'alibi','causal':true,'window':1," T128_E256);
    near("0.extrapolation.attention.entropy.1", 0, 1e-15);
    near("0.extrapolation.attention.mean_distance.0", 0, 1e-15);
    near("0.extrapolation.attention.mass_beyond", 0, 0);
    test_analysis_drop(&a);
}

/* Rotating by nothing gives attention without positions; so does a rotation of all by the same large slow angle. */
TEST(attention_without_positions)
{
    double found[3][2];
    static const char *const requests[] = {
        "{'scheme':'rope','head_dim':4,'inv_freq':[0,0]," T128_E256,
        "{'scheme':'rope','head_dim':4,'inv_freq':[1e-9,1e-9]," T128_E256,
        "{'scheme':'alibi','slopes':[0,0,0,0,0,0,0,0]," T128_E256,
    };
    for (int i = 0; i < 3; i++) {
        test_analyse(&a, requests[i]);
        found[i][0] = test_number(&a, "0.extrapolation.attention.entropy.1");
        found[i][1] = test_number(&a, "0.extrapolation.attention.mean_distance.1");
        test_analysis_drop(&a);
    }
    for (int j = 0; j < 2; j++)
        assert_true(fabs(found[0][j] - found[1][j]) < 1e-5 * found[0][j]);
    assert_true(fabs(found[2][0] - log(256)) < .6); /* other keys: 64 channels instead of 4 */
}

/* The encoding is added to queries and keys: where it is large, queries attend to the rows nearest to theirs. */
TEST(attention_to_large_rows)
{
    test_analyse(&a, "{'configs':[{'scheme':'learned','dim':64,'seed':3,'std':10,'rows':256}]," T128_E256);
    near("0.extrapolation.attention.entropy.0", 0, 1e-6);
    near("0.extrapolation.attention.mean_distance.1", 0, 1e-3);
    test_analysis_drop(&a);
}

TEST(seeds_of_attention)
{
    double entropy[2];
    for (int i = 0; i < 2; i++) {
        test_analyse(&a, i ? "{'scheme':'rope','seed':1," T128_E256 : "{'scheme':'rope','seed':0," T128_E256);
        entropy[i] = test_number(&a, "0.extrapolation.attention.entropy.0");
        test_analysis_drop(&a);
    }
    assert_true(entropy[0] != entropy[1] && fabs(entropy[0] - entropy[1]) < .1);
}

TEST(refusals)
{
    test_analysis_refused("{'scheme':'rope','len':9,'eval_len':8,'metrics':['extrapolation']}", "/eval_len", "9");
    test_analysis_refused("{'scheme':'rope','len':9,'train_len':20,'eval_len':19}", "/eval_len", "20");
    test_analysis_refused("{'scheme':'rope','len':9,'eval_len':65537}", "/eval_len", "65536");
    test_analysis_refused("{'scheme':'rope','len':9,'train_len':40000}", "/train_len", "80000");
    test_analysis_refused("{'scheme':'rope','len':9,'metrics':['wavelengths'],'eval_len':9}", "/eval_len",
                          "extrapolation");
}

/* A context of 262144 positions: only a request for this metric is refused. */
TEST(contexts_beyond_the_limit)
{
    test_analyse(&a, "{'preset':'qwen3-next-yarn-1m','len':4}");
    assert_true(is_there("0.wavelengths") && !is_there("0.extrapolation"));
    test_analysis_drop(&a);
    test_analysis_refused("{'preset':'qwen3-next-yarn-1m','len':4,'metrics':['extrapolation']}", "/train_len",
                          "524288");
}

TEST(failures)
{
    test_analysis_fails_cleanly("{'scheme':'alibi','len':70,'metrics':['receptive','extrapolation'],'num_heads':2}");
    test_analysis_fails_cleanly("{'scheme':'rope','head_dim':8,'len':70,'metrics':['extrapolation'],"
                                "'scaling':{'type':'linear','factor':2}}");
    test_analysis_fails_cleanly(
        "{'configs':[{'scheme':'learned','dim':8,'seed':0,'rows':99}],'len':20,'metrics':['extrapolation']}");
    test_analysis_fails_cleanly("{'configs':[{'scheme':'t5','seed':0}],'len':20,'metrics':['extrapolation']}");
}
