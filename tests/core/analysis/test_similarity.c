/* similarity: reference values, closed forms, and plain loops over tables whose similarity depends on the position. */
#include "tests/support/analysis.h"
#include "tests/support/cmocka.h"

#include <math.h>
#include <stdio.h>

static struct test_analysis a;

static void near(const char *path, double expected, double tolerance) { test_near(&a, path, expected, tolerance); }

static double cosines(double d, int n_pairs)
{
    double sum = 0;
    for (int c = 0; c < n_pairs; c++)
        sum += cos(d * pow(10000, -c / (double)n_pairs));
    return sum;
}

TEST(sinusoids)
{
    test_analyse(&a, "{'scheme':'sinusoidal','dim':128,'len':512,'metrics':['similarity']}");
    const double *means = test_tensor(&a, "similarity.0", NULL), *spread = test_tensor(&a, "spread.0", NULL);
    assert_true(fabs(means[1] / 64 - 0.97021) < 5e-6);
    near("0.similarity.minimum.distance", 468, 0);
    near("0.similarity.minimum.value", means[468], 0);
    near("0.similarity.peak", 64, 1e-12);
    near("0.similarity.value", 0, 1e-11);
    assert_true(test_is_null(&a, "0.similarity.witness"));
    int rise = 1;
    while (cosines(rise, 64) <= cosines(rise - 1, 64))
        rise++;
    near("0.similarity.rises_at", rise, 0);
    for (int d = 0; d < 512; d++)
        assert_true(fabs(means[d] - cosines(d, 64)) < 1e-11 && spread[d] < 1e-11);
    assert_null(test_tensor(&a, "gram.0", NULL));
    test_analysis_drop(&a);
}

/* A factor on cosines and sines counts twice. */
TEST(rotary)
{
    test_analyse(
        &a, "{'scheme':'rope','head_dim':64,'len':300,'offset':1000,'attention_factor':1.5,'metrics':['similarity']}");
    const double *means = test_tensor(&a, "similarity.0", NULL);
    for (int d = 0; d < 300; d++)
        assert_true(fabs(means[d] - 2.25 * cosines(d, 32)) < 1e-11);
    test_analysis_drop(&a);
}

/* zeta_c = (2c + gamma·d)/((1 + gamma)·d) */
static double scaled(double d, int n_pairs, double scale_base)
{
    double sum = 0, dim = 2 * n_pairs;
    for (int c = 0; c < n_pairs; c++)
        sum += pow((2 * c + 0.4 * dim) / (1.4 * dim), d / scale_base) * cos(d * pow(10000, -c / (double)n_pairs));
    return sum;
}

/* The sequence is far from the centre of the scale, so a scale by itself would underflow. */
TEST(xpos)
{
    test_analyse(&a, "{'scheme':'xpos','head_dim':16,'len':200,'offset':1000000,'outputs':['similarity','gram'],"
                     "'metrics':['similarity']}");
    const double *means = test_tensor(&a, "similarity.0", NULL), *gram = test_tensor(&a, "gram.0", NULL);
    for (int d = 0; d < 200; d++) {
        assert_true(fabs(means[d] - scaled(d, 8, 512)) < 1e-12);
        assert_true(fabs(gram[199 * 200 + 199 - d] - scaled(d, 8, 512)) < 1e-12); /* query 199, key 199 - d */
        assert_true(fabs(gram[d] - scaled(-d, 8, 512)) < 1e-12);                  /* query 0, key d */
    }
    near("0.similarity.value", 0, 0);
    test_analysis_drop(&a);
}

/* A table of numbers without any order, of more than one block: every pair in plain loops. */
TEST(tables)
{
    enum { N = 301, DIM = 3 };
    static double x[N][DIM], dots[N];
    static char json[1 << 15];
    unsigned state = 9;
    size_t at = (size_t)snprintf(json, sizeof json,
                                 "{'scheme':'learned','dim':3,'len':%d,'metrics':['similarity'],"
                                 "'outputs':['gram','spread','similarity'],'table':[",
                                 N);
    for (size_t i = 0; i < N * DIM; i++) {
        state = state * 1664525u + 1013904223u;
        x[i / DIM][i % DIM] = (double)(state >> 24) - 100;
        at += (size_t)snprintf(json + at, sizeof json - at, "%s%g%s",
                               i % DIM ? ","
                               : i     ? ",["
                                       : "[",
                               x[i / DIM][i % DIM], i % DIM == DIM - 1 ? "]" : "");
    }
    snprintf(json + at, sizeof json - at, "]}");
    test_analyse(&a, json);
    const uint64_t *shape;
    const double *means = test_tensor(&a, "similarity.0", NULL), *spread = test_tensor(&a, "spread.0", NULL),
                 *gram = test_tensor(&a, "gram.0", &shape);
    assert_true(shape[0] == N && shape[1] == N);
    double widest = -1;
    int expected[3] = {0};
    for (int d = 0; d < N; d++) {
        double sum = 0;
        int least = 0, most = 0;
        for (int j = 0; j + d < N; j++) {
            dots[j] = x[j][0] * x[j + d][0] + x[j][1] * x[j + d][1] + x[j][2] * x[j + d][2];
            sum += dots[j];
            least = dots[j] < dots[least] ? j : least;
            most = dots[j] > dots[most] ? j : most;
            assert_true(gram[j * N + j + d] == dots[j] && gram[(j + d) * N + j] == dots[j]);
        }
        assert_true(fabs(means[d] - sum / (N - d)) < 1e-9);
        assert_true(spread[d] == dots[most] - dots[least]);
        if (spread[d] > widest) {
            widest = spread[d];
            expected[0] = d;
            expected[1] = least + d;
            expected[2] = most + d;
        }
    }
    near("0.similarity.value", widest, 0);
    near("0.similarity.witness.distance", expected[0], 0);
    near("0.similarity.witness.rows.0", expected[1], 0);
    near("0.similarity.witness.rows.1", expected[2], 0);
    test_analysis_drop(&a);
}

/* sin(p)·sin(q) summed over pairs, and sines of one base with cosines of another. */
TEST(pairings)
{
    enum { N = 40, C = 4 };
    static const char *const words[] = {"sin", "cos", "mismatched"};
    for (int w = 0; w < 3; w++) {
        char json[256];
        snprintf(
            json, sizeof json,
            "{'scheme':'sinusoidal','dim':8,'len':%d,'metrics':['similarity'],'outputs':['gram'],'pairing':'%s'%s}", N,
            words[w], w == 2 ? ",'other_base':50" : "");
        test_analyse(&a, json);
        const double *gram = test_tensor(&a, "gram.0", NULL);
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++) {
                double sum = 0;
                for (int c = 0; c < C; c++) {
                    double s = pow(10000, -c / (double)C), o = pow(w == 2 ? 50 : 10000, -c / (double)C);
                    sum += (w != 1 ? sin(i * s) * sin(j * s) : 0) + (w != 0 ? cos(i * o) * cos(j * o) : 0);
                }
                assert_true(fabs(gram[i * N + j] - sum) < 1e-13);
            }
        test_analysis_drop(&a);
    }
}

TEST(nothing)
{
    test_analyse(&a, "{'scheme':'none','dim':8,'len':1,'metrics':['similarity']}");
    assert_true(test_is_null(&a, "0.similarity.rises_at") && test_is_null(&a, "0.similarity.witness"));
    near("0.similarity.minimum.distance", 0, 0);
    test_analysis_drop(&a);
}

#define SIMILARITY ",'metrics':['similarity']}"

TEST(refusals)
{
    test_analysis_refused("{'scheme':'rope','len':8,'pairing':'sin'" SIMILARITY, "/pairing", "sinusoidal");
    test_analysis_refused("{'scheme':'sinusoidal','dim':9,'len':8,'pairing':'sin'" SIMILARITY, "/pairing", "even");
    test_analysis_refused("{'scheme':'sinusoidal','len':8,'pairing':'mismatched'" SIMILARITY, "/other_base", "missing");
    test_analysis_refused("{'scheme':'sinusoidal','len':8,'other_base':9" SIMILARITY, "/other_base", "mismatched");
    test_analysis_refused("{'scheme':'sinusoidal','len':8,'pairing':'mismatched','other_base':1" SIMILARITY,
                          "/other_base", "same frequency");
    test_analysis_refused("{'scheme':'sinusoidal','positions':[1,3,4]" SIMILARITY, "/metrics/0", "consecutive");
    test_analysis_refused("{'scheme':'alibi','len':8" SIMILARITY, "/metrics/0", "absolute and rotary");
}

TEST(failures)
{
    test_analysis_fails_cleanly("{'scheme':'rope','head_dim':8,'len':300" SIMILARITY);
    test_analysis_fails_cleanly("{'scheme':'xpos','head_dim':8,'len':300" SIMILARITY);
    test_analysis_fails_cleanly("{'scheme':'sinusoidal','len':300,'pairing':'mismatched','other_base':7" SIMILARITY);
}
