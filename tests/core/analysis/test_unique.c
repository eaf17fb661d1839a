/* unique: reference values, laws, and the plain double loop over small tables of numbers. */
#include "tests/support/analysis.h"
#include "tests/support/cmocka.h"

#include <math.h>
#include <stdio.h>

static void expect(const char *json, double value, double tolerance, const char *places, double first, double second)
{
    static struct test_analysis a;
    char path[64];
    test_analyse(&a, json);
    assert_true(fabs(test_number(&a, "0.unique.value") - value) <= tolerance);
    snprintf(path, sizeof path, "0.unique.witness.%s.0", places);
    assert_true(test_number(&a, path) == first);
    snprintf(path, sizeof path, "0.unique.witness.%s.1", places);
    assert_true(test_number(&a, path) == second);
    test_analysis_drop(&a);
}

#define UNIQUE "'metrics':['unique']}"

/* Neighbours of a sinusoid are |e^(iw) - 1| apart in each pair: 4·sum of sin^2(w/2). */
TEST(sinusoids)
{
    expect("{'scheme':'sinusoidal','dim':64,'len':64," UNIQUE, 1.4718480481, 5e-11, "rows", 0, 1);
    expect("{'scheme':'sinusoidal','dim':4,'len':4096," UNIQUE, 0.0444064, 5e-8, "rows", 0, 1885);
    double sum = 0;
    for (int c = 0; c < 150; c++)
        sum += 4 * pow(sin(pow(10000, -c / 150.0) / 2), 2);
    expect("{'scheme':'sinusoidal','dim':300,'len':400," UNIQUE, sqrt(sum), 1e-13, "rows", 0, 1);
    expect("{'scheme':'rope','head_dim':300,'len':333,'offset':7," UNIQUE, sqrt(sum), 1e-12, "rows", 0, 1);
}

TEST(equal_rows)
{
    expect("{'scheme':'none','len':7," UNIQUE, 0, 0, "rows", 0, 1);
    expect("{'scheme':'alibi','len':64," UNIQUE, 0, 0, "distances", -1, 1);
    /* rows 1 and 4 are the same numbers */
    expect("{'scheme':'learned','dim':2,'table':[[1,2],[3,5],[8,1],[0,9],[3,5],[8,1]],'len':6," UNIQUE, 0, 0, "rows", 1,
           4);
}

/* Causal ALiBi: heads' slopes 2^-1 … 2^-8, so distances 0 and -1 are sqrt(sum of 4^-h) apart; all steps tie. */
TEST(steps_that_tie)
{
    double sum = 0;
    for (int h = 1; h <= 8; h++)
        sum += pow(4, -h);
    expect("{'scheme':'alibi','causal':true,'len':300," UNIQUE, sqrt(sum), 1e-15, "distances", 0, -1);
}

TEST(plain_loop)
{
    enum { N = 150, DIM = 3 };
    static char json[1 << 14];
    static double x[N][DIM];
    unsigned state = 5;
    size_t at = (size_t)snprintf(json, sizeof json, "{'scheme':'learned','dim':3,'len':150," UNIQUE);
    at--;
    at += (size_t)snprintf(json + at, sizeof json - at, ",'table':[");
    for (size_t i = 0; i < N * DIM; i++) {
        state = state * 1664525u + 1013904223u;
        x[i / DIM][i % DIM] = (double)(state >> 20);
        at += (size_t)snprintf(json + at, sizeof json - at, "%s%u%s",
                               i % DIM ? ","
                               : i     ? ",["
                                       : "[",
                               state >> 20, i % DIM == DIM - 1 ? "]" : "");
    }
    snprintf(json + at, sizeof json - at, "]}");
    double least = (double)INFINITY;
    size_t first = 0, second = 0;
    for (size_t i = 0; i < N; i++)
        for (size_t j = i + 1; j < N; j++) {
            double d = sqrt(pow(x[i][0] - x[j][0], 2) + pow(x[i][1] - x[j][1], 2) + pow(x[i][2] - x[j][2], 2));
            if (d < least) {
                least = d;
                first = i;
                second = j;
            }
        }
    expect(json, least, 1e-12 * least, "rows", (double)first, (double)second);
}

TEST(one_row)
{
    static struct test_analysis a;
    test_analyse(&a, "{'scheme':'sinusoidal','dim':8,'len':1," UNIQUE);
    assert_true(test_is_null(&a, "0.unique.value") && test_is_null(&a, "0.unique.witness"));
    test_analysis_drop(&a);
}

/* The largest entry, and nothing to show where all are 0. */
TEST(bounds)
{
    static struct test_analysis a;
    test_analyse(&a, "{'scheme':'learned','dim':2,'table':[[3,-4],[0,4],[4,1]],'len':3,'metrics':['bounds']}");
    assert_true(test_number(&a, "0.bounds.value") == 4 && test_number(&a, "0.bounds.norm_max") == 5);
    assert_true(test_number(&a, "0.bounds.min") == -4 && test_number(&a, "0.bounds.norm_min") == 4);
    assert_true(test_number(&a, "0.bounds.witness.row") == 0 && test_number(&a, "0.bounds.witness.column") == 1);
    test_analysis_drop(&a);
    test_analyse(&a, "{'scheme':'none','dim':2,'len':3,'metrics':['bounds']}");
    assert_true(test_number(&a, "0.bounds.value") == 0 && test_is_null(&a, "0.bounds.witness"));
    test_analysis_drop(&a);
}

TEST(failures) { test_analysis_fails_cleanly("{'scheme':'sinusoidal','dim':8,'len':300," UNIQUE); }
