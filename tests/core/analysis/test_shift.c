/* shift: the addition theorem's matrices in closed form, fits whose result is known, rules of k. */
#include "tests/support/analysis.h"
#include "tests/support/cmocka.h"

#include <math.h>
#include <stdio.h>

static struct test_analysis a;

static void near(const char *path, double expected, double tolerance) { test_near(&a, path, expected, tolerance); }

static void expect_linear(const char *json, const char *method)
{
    test_analyse(&a, json);
    near("0.shift.value", 0, 2e-12);
    assert_true(test_is_null(&a, "0.shift.witness"));
    assert_string_equal(test_word(&a, "0.shift.method"), method);
    test_analysis_drop(&a);
}

#define SHIFT "'metrics':['shift']}"

TEST(exact_ones)
{
    expect_linear("{'scheme':'sinusoidal','dim':64,'len':300,'k':[1,7,299]," SHIFT, "exact");
    expect_linear("{'scheme':'sinusoidal','dim':6,'len':40,'layout':'half','flip_sin_to_cos':true," SHIFT, "exact");
    expect_linear("{'scheme':'sinusoidal','dim':7,'len':40,'odd':'pad','offset':1000000," SHIFT, "exact");
    expect_linear("{'scheme':'sinusoidal','dim':4096,'len':4," SHIFT, "exact");
    expect_linear("{'scheme':'rope','head_dim':64,'len':300,'direction':-1,'attention_factor':2," SHIFT, "exact");
    expect_linear("{'scheme':'xpos','head_dim':16,'len':40," SHIFT, "exact");
    expect_linear("{'scheme':'rope','head_dim':4,'inv_freq':[1,0],'len':9," SHIFT, "exact"); /* a pair that rests */
    expect_linear("{'scheme':'none','dim':16,'len':40," SHIFT, "exact");
    test_analyse(&a, "{'scheme':'sinusoidal','dim':7,'len':60,'odd':'paper','base':20," SHIFT); /* a sine alone */
    assert_string_equal(test_word(&a, "0.shift.method"), "fit");
    assert_true(test_number(&a, "0.shift.value") > 1e-3);
    test_analysis_drop(&a);
}

/* Rows are [cos | sin] of the frequencies 1 and 1/100. */
TEST(matrix_of_rope)
{
    test_analyse(&a, "{'scheme':'rope','head_dim':4,'len':9,'k':[2,5],'outputs':['shift_matrix']," SHIFT);
    const uint64_t *shape;
    const double *m = test_tensor(&a, "shift_matrix.0", &shape);
    assert_true(shape[0] == 2 && shape[1] == 4 && shape[2] == 4);
    for (int i = 0; i < 2; i++, m += 16) {
        double k = i ? 5 : 2, expected[16] = {cos(k), 0, -sin(k), 0, 0, cos(k / 100), 0, -sin(k / 100),
                                              sin(k), 0, cos(k),  0, 0, sin(k / 100), 0, cos(k / 100)};
        for (int j = 0; j < 16; j++)
            assert_true(fabs(m[j] - expected[j]) < 1e-15);
    }
    near("0.shift.by_k.1.k", 5, 0);
    test_analysis_drop(&a);
}

/* The frameworks' float32 angles are not exactly linear in the position. */
TEST(rounded_angles)
{
    test_analyse(&a, "{'scheme':'rope','head_dim':16,'len':50,'offset':100000,'arith':'float32'," SHIFT);
    assert_string_equal(test_word(&a, "0.shift.method"), "exact");
    assert_true(test_number(&a, "0.shift.value") > 1e-4 && test_number(&a, "0.shift.value") < 1e-1);
    assert_false(test_is_null(&a, "0.shift.witness"));
    test_analysis_drop(&a);
}

/* One column 0, 1, 2 …: M = sum of i(i+1) over sum of i^2, i even; odd rows miss by |i + 1 - M i|. */
TEST(fit_of_one_column)
{
    enum { N = 21 };
    double above = 0, below = 0, worst = -1;
    int row = 0;
    for (int i = 0; i + 1 < N; i += 2) {
        above += i * (i + 1);
        below += i * i;
    }
    for (int i = 1; i + 1 < N; i += 2)
        if (fabs(i + 1 - above / below * i) > worst + 1e-9) {
            worst = fabs(i + 1 - above / below * i);
            row = i;
        }
    test_analyse(&a, "{'scheme':'integer','dim':1,'len':21,'outputs':['shift_matrix']," SHIFT);
    near("0.shift.value", worst, 1e-13);
    near("0.shift.by_k.0.relative", worst / 20, 1e-14);
    near("0.shift.witness.row", row, 0);
    near("0.shift.witness.column", 0, 0);
    near("0.shift.witness.k", 1, 0);
    assert_true(fabs(test_tensor(&a, "shift_matrix.0", NULL)[0] - above / below) < 1e-14);
    test_analysis_drop(&a);
}

/* The same number in four columns: of all matrices that fit, the smallest has M/4 everywhere. */
TEST(smallest_matrix)
{
    test_analyse(&a, "{'scheme':'integer','dim':4,'len':21,'outputs':['shift_matrix']," SHIFT);
    const double *m = test_tensor(&a, "shift_matrix.0", NULL);
    double above = 0, below = 0;
    for (int i = 0; i + 1 < 21; i += 2) {
        above += i * (i + 1);
        below += i * i;
    }
    for (int i = 0; i < 16; i++)
        assert_true(fabs(m[i] - above / below / 4) < 1e-14);
    test_analysis_drop(&a);
}

/* A learned table whose rows are powers of [[0, -1], [1, 1]]: the fit finds it. */
TEST(fit_of_a_recurrence)
{
    char json[1024];
    int x = 3, y = 1;
    size_t at = (size_t)snprintf(json, sizeof json,
                                 "{'scheme':'learned','dim':2,'len':12,'outputs':['shift_matrix'],'metrics':['shift'],"
                                 "'table':[");
    for (int i = 0; i < 12; i++) {
        at += (size_t)snprintf(json + at, sizeof json - at, "%s[%d,%d]", i ? "," : "", x, y);
        int next = -y;
        y = x + y;
        x = next;
    }
    snprintf(json + at, sizeof json - at, "]}");
    test_analyse(&a, json);
    const double *m = test_tensor(&a, "shift_matrix.0", NULL), expected[] = {0, -1, 1, 1};
    for (int i = 0; i < 4; i++)
        assert_true(fabs(m[i] - expected[i]) < 1e-14);
    near("0.shift.value", 0, 1e-14);
    assert_string_equal(test_word(&a, "0.shift.method"), "fit");
    test_analysis_drop(&a);
}

TEST(too_few_rows)
{
    test_analyse(&a, "{'scheme':'integer','dim':2,'len':5,'k':[4,1]," SHIFT);
    assert_true(test_is_null(&a, "0.shift.by_k.0.value") && test_is_null(&a, "0.shift.by_k.0.witness"));
    assert_false(test_is_null(&a, "0.shift.value"));
    near("0.shift.witness.k", 1, 0);
    test_analysis_drop(&a);
    test_analyse(&a, "{'scheme':'sinusoidal','dim':8,'len':1," SHIFT);
    assert_true(test_is_null(&a, "0.shift.value") && test_is_null(&a, "0.shift.witness"));
    test_analysis_drop(&a);
}

TEST(refusals)
{
    test_analysis_refused("{'scheme':'sinusoidal','dim':8,'len':5,'k':[1,5]," SHIFT, "/k/1", "at most 4");
    test_analysis_refused("{'scheme':'sinusoidal','dim':8,'len':5,'k':[1.5]," SHIFT, "/k/0", "integers");
    test_analysis_refused("{'scheme':'sinusoidal','dim':8,'len':5,'k':[0]," SHIFT, "/k", "1");
    test_analysis_refused("{'scheme':'sinusoidal','dim':8,'positions':[0,2]," SHIFT, "/metrics/0", "consecutive");
    test_analysis_refused("{'scheme':'integer','dim':2049,'len':5," SHIFT, "/metrics/0", "2048");
    test_analysis_refused("{'configs':[{'len':9},{'len':4}],'scheme':'rope','k':[4]," SHIFT, "/k/0", "at most 3");
}

TEST(failures)
{
    test_analysis_fails_cleanly("{'scheme':'rope','head_dim':8,'len':300," SHIFT);
    test_analysis_fails_cleanly("{'scheme':'integer','dim':8,'len':300,'k':[1,2]," SHIFT);
}
