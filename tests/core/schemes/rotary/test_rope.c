/* RoPE: reference values, its forms, and its laws. */
#include "tests/support/cmocka.h"
#include "tests/support/request.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static struct pe_plan *rotate_plan(struct test_request *r, const char *json)
{
    struct pe_plan *plan = NULL;
    struct pe_failure err;
    test_request_parse(r, json);
    r->request.operation = PE_ROTATE;
    r->request.dtype = PE_F64;
    if (pe_plan_new(&r->request, &plan, &err))
        fail_msg("%s: %s: %s", json, err.pointer, err.detail);
    return plan;
}

static void assert_rotated(const char *json, const double *expected, size_t n, double tolerance)
{
    struct test_request r;
    size_t got;
    struct pe_plan *plan = rotate_plan(&r, json);
    double *y = test_values(plan, 0, &got);
    assert_int_equal(got, n);
    for (size_t i = 0; i < n; i++)
        if (!(fabs(y[i] - expected[i]) <= tolerance))
            fail_msg("%s: element %zu is %.15g, expected %.15g", json, i, y[i], expected[i]);
    free(y);
    pe_plan_free(plan);
    test_request_drop(&r);
}

/* x = (1, 2, 3, 4) at position 5, base 10000, to 12 digits */
TEST(reference_values)
{
    const double interleaved[] = {2.20151073479, -0.391599903737, 2.7963341041, 4.14493854939};
    const double half[] = {3.16043500945, 1.79758384371, -0.107937718273, 4.09495938012};
    assert_rotated("{'scheme':'rope','offset':5,'q':[[1,2,3,4]]}", interleaved, 4, 1e-11);
    assert_rotated("{'scheme':'rope','offset':5,'layout':'half','q':[[1,2,3,4]]}", half, 4, 1e-11);
}

TEST(direction_minus_one_undoes)
{
    const double x[] = {1, 2, 3, 4};
    assert_rotated(
        "{'scheme':'rope','offset':5,'direction':-1,'q':[[2.20151073479,-0.391599903737,2.7963341041,4.14493854939]]}",
        x, 4, 1e-6); /* the input is text, so f32 */
}

TEST(partial_rotary_passes_the_rest)
{
    const double first[] = {cos(3) - 2 * sin(3), 2 * cos(3) + sin(3), 3, 4};
    const double last[] = {1, 2, 3 * cos(3) - 4 * sin(3), 4 * cos(3) + 3 * sin(3)};
    assert_rotated("{'scheme':'rope','offset':3,'rotary_dim':2,'q':[[1,2,3,4]]}", first, 4, 1e-14);
    assert_rotated("{'scheme':'rope','offset':3,'partial_rotary_factor':0.5,'q':[[1,2,3,4]]}", first, 4, 1e-14);
    assert_rotated("{'scheme':'rope','offset':3,'rotary_dim':2,'rotary_offset':2,'q':[[1,2,3,4]]}", last, 4, 1e-14);
}

/* Decoding: with five keys and one query the query is at the last key's position. */
TEST(queries_stand_at_the_end)
{
    struct test_request r;
    size_t n;
    struct pe_plan *plan = rotate_plan(&r, "{'scheme':'rope','q':[[1,0]],'k':[[1,0],[1,0],[1,0],[1,0],[1,0]]}");
    double *q = test_values(plan, 0, &n), *k = test_values(plan, 1, &n);
    assert_true(q[0] == k[8] && q[1] == k[9] && fabs(q[0] - cos(4)) < 1e-15);
    free(q);
    free(k);
    pe_plan_free(plan);
    test_request_drop(&r);
}

/* default r = 128: w1, w31, w63 */
TEST(frequencies)
{
    struct test_request r;
    struct pe_plan *plan = NULL;
    struct pe_failure err;
    const char *wanted[] = {"inv_freq"};
    size_t n;
    test_request_parse(&r, "{'scheme':'rope','head_dim':128,'len':1}");
    r.request.outputs = wanted;
    r.request.n_outputs = 1;
    assert_int_equal(pe_plan_new(&r.request, &plan, &err), PE_OK);
    double *w = test_values(plan, 0, &n);
    assert_int_equal(n, 64);
    for (size_t i = 0; i < 64; i++) /* independent: the C library's pow */
        assert_true(fabs(w[i] - pow(10000, -2.0 * (double)i / 128)) <= 4e-16 * w[i]);
    assert_true(fabs(w[1] - 0.86596432336) < 1e-11 && fabs(w[31] - 0.0115478198469) < 1e-12);
    assert_true(fabs(w[63] - 0.000115478198469) < 1e-14);
    free(w);
    pe_plan_free(plan);
    test_request_drop(&r);
}

/* All forms contain the same cosines and sines, in their own order. */
TEST(forms_agree)
{
    enum { N = 5, C = 3 };
    static const char *const layouts[] = {"interleaved", "half"};
    for (int half = 0; half < 2; half++) {
        char json[256];
        struct test_request r[5];
        struct pe_plan *plans[5];
        double *v[5][2] = {{NULL}};
        static const char *const forms[] = {"pairs", "expanded", "concat", "complex", "matrix"};
        for (int f = 0; f < 5; f++) {
            snprintf(json, sizeof json, "{'scheme':'rope','head_dim':6,'len':%d,'offset':-2,'layout':'%s','form':'%s'}",
                     N, layouts[half], forms[f]);
            plans[f] = test_plan(&r[f], json);
            size_t n;
            for (size_t i = 0; i < pe_plan_n_outputs(plans[f]); i++)
                v[f][i] = test_values(plans[f], i, &n);
        }
        for (int n = 0; n < N; n++)
            for (int c = 0; c < C; c++) {
                double cosine = v[0][0][n * C + c], sine = v[0][1][n * C + c];
                int first = half ? c : 2 * c, second = half ? c + C : 2 * c + 1;
                assert_true(v[1][0][n * 2 * C + first] == cosine && v[1][0][n * 2 * C + second] == cosine);
                assert_true(v[1][1][n * 2 * C + first] == sine && v[1][1][n * 2 * C + second] == sine);
                assert_true(v[2][0][n * 2 * C + c] == cosine && v[2][0][n * 2 * C + C + c] == sine);
                assert_true(v[3][0][n * 2 * C + 2 * c] == cosine && v[3][0][n * 2 * C + 2 * c + 1] == sine);
                const double *m = v[4][0] + (n * C + c) * 4;
                assert_true(m[0] == cosine && m[1] == -sine && m[2] == sine && m[3] == cosine);
            }
        for (int f = 0; f < 5; f++) {
            free(v[f][0]);
            free(v[f][1]);
            pe_plan_free(plans[f]);
            test_request_drop(&r[f]);
        }
    }
}

/* Norms are kept; R(a)·R(b) = R(a+b); scores depend on the distance only. */
TEST(laws)
{
    const char *q = "'q':[[0.5,-1.25,2,3,-0.75,1,0.125,-2]]";
    double rotated[3][8];
    const int at[] = {0, 7, 12};
    for (int i = 0; i < 3; i++) {
        char json[200];
        size_t n;
        struct test_request r;
        snprintf(json, sizeof json, "{'scheme':'rope','layout':'half','offset':%d,%s}", at[i], q);
        struct pe_plan *plan = rotate_plan(&r, json);
        double *y = test_values(plan, 0, &n), norm = 0, norm0 = 0;
        for (int j = 0; j < 8; j++) {
            rotated[i][j] = y[j];
            norm += y[j] * y[j];
            norm0 += rotated[0][j] * rotated[0][j];
        }
        assert_true(fabs(norm - norm0) < 1e-14 * norm0);
        free(y);
        pe_plan_free(plan);
        test_request_drop(&r);
    }
    double by_cos = 0, by_table = 0; /* <R(7)q, R(12)q> from the tensors, and from q and the distance 5 */
    for (int j = 0; j < 8; j++)
        by_table += rotated[1][j] * rotated[2][j];
    for (int c = 0; c < 4; c++) {
        double a = rotated[0][c], b = rotated[0][c + 4];
        by_cos += (a * a + b * b) * cos(5 * pow(10000, -c / 4.0));
    }
    assert_true(fabs(by_cos - by_table) < 1e-13);
}
