/* Sinusoidal encoding: reference values, the three answers for an odd width, orders of columns, linear shift. */
#include "tests/support/cmocka.h"
#include "tests/support/request.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* One row of `fields` at position p, as doubles of an f64 answer. */
static double *row_of(const char *fields, int dim, double p)
{
    char json[256];
    struct test_request r;
    struct pe_plan *plan = NULL;
    struct pe_failure err;
    size_t n;
    snprintf(json, sizeof json, "{'scheme':'sinusoidal','dim':%d,'positions':[%.17g]%s}", dim, p, fields);
    test_request_parse(&r, json);
    r.request.dtype = PE_F64;
    if (pe_plan_new(&r.request, &plan, &err))
        fail_msg("%s: %s", json, err.detail);
    double *row = test_values(plan, 0, &n);
    assert_int_equal(n, dim);
    pe_plan_free(plan);
    test_request_drop(&r);
    return row;
}

static void assert_row(const char *fields, int dim, double p, const double *expected, double tolerance)
{
    double *row = row_of(fields, dim, p);
    for (int j = 0; j < dim; j++)
        if (!(fabs(row[j] - expected[j]) <= tolerance))
            fail_msg("dim %d%s: column %d is %.15g, expected %.15g", dim, fields, j, row[j], expected[j]);
    free(row);
}

TEST(reference_values)
{
    double *row = row_of("", 512, 1);
    const double first[] = {0.841470984808, 0.540302305868, 0.821856190018, 0.569695008693};
    for (int j = 0; j < 4; j++)
        assert_true(fabs(row[j] - first[j]) < 1e-12);
    assert_true(fabs(row[510] - 0.000103663292658) < 1e-15 && fabs(row[511] - 0.999999994627) < 1e-12);
    free(row);
    const double five[] = {0.841470985, 0.540302306, 0.025116223, 0.999684538, 0.000630957};
    assert_row("", 5, 1, five, 1e-9);
}

/* w_i for a width, directly from the formulas, with the C library's pow. */
static double w(double i, double denominator) { return pow(10000, -i / denominator); }

TEST(odd_widths)
{
    double p = 3;
    const double paper[] = {sin(p), cos(p), sin(p * w(1, 2.5)), cos(p * w(1, 2.5)), sin(p * w(2, 2.5))};
    const double paper_half[] = {sin(p), sin(p * w(1, 2.5)), sin(p * w(2, 2.5)), cos(p), cos(p * w(1, 2.5))};
    const double pad[] = {sin(p), cos(p), sin(p * w(1, 2)), cos(p * w(1, 2)), 0};
    const double pad_half[] = {sin(p), sin(p * w(1, 2)), cos(p), cos(p * w(1, 2)), 0};
    const double cut[] = {sin(p), cos(p), sin(p * w(1, 3)), cos(p * w(1, 3)), sin(p * w(2, 3))};
    const double cut_half[] = {sin(p), sin(p * w(1, 3)), sin(p * w(2, 3)), cos(p), cos(p * w(1, 3))};
    assert_row("", 5, p, paper, 1e-14);
    assert_row(",'layout':'half'", 5, p, paper_half, 1e-14);
    assert_row(",'odd':'pad'", 5, p, pad, 1e-14);
    assert_row(",'odd':'pad','layout':'half'", 5, p, pad_half, 1e-14);
    assert_row(",'odd':'truncate'", 5, p, cut, 1e-14);
    assert_row(",'odd':'truncate','layout':'half'", 5, p, cut_half, 1e-14);
    assert_row("", 1, p, paper, 1e-14);
}

TEST(shifted_flipped_scaled)
{
    double p = 3;
    const double shifted[] = {sin(p), sin(p * w(1, 2)), sin(p * w(2, 2)), cos(p), cos(p * w(1, 2)), cos(p * w(2, 2))};
    const double flipped[] = {cos(p), cos(p * w(1, 3)), cos(p * w(2, 3)), sin(p), sin(p * w(1, 3)), sin(p * w(2, 3))};
    const double flipped_pairs[] = {cos(p), sin(p), cos(p * w(1, 2)), sin(p * w(1, 2))};
    const double scaled[] = {sin(-2.5 * p), cos(2.5 * p)};
    assert_row(",'layout':'half','freq_shift':1", 6, p, shifted, 1e-14);
    assert_row(",'layout':'half','flip_sin_to_cos':true", 6, p, flipped, 1e-14);
    assert_row(",'flip_sin_to_cos':true", 4, p, flipped_pairs, 1e-14);
    assert_row(",'angle_scale':-2.5", 2, p, scaled, 1e-14);
    const double lone[] = {sin(p), cos(p)}; /* one frequency: tensor2tensor's rule; other libraries divide by zero */
    assert_row(",'freq_shift':1", 2, p, lone, 1e-14);
}

/* PE(p+k) = M·PE(p) with M of k alone: [[cos kw, sin kw], [-sin kw, cos kw]] on each pair (sin, cos). */
TEST(shift_is_linear)
{
    const double k = 7;
    for (double p = 0; p < 1000; p += 111.25) {
        double *here = row_of("", 64, p), *there = row_of("", 64, p + k);
        for (int i = 0; i < 32; i++) {
            double a = k * w(i, 32), s = here[2 * i], c = here[2 * i + 1];
            assert_true(fabs(there[2 * i] - (s * cos(a) + c * sin(a))) < 1e-13);
            assert_true(fabs(there[2 * i + 1] - (c * cos(a) - s * sin(a))) < 1e-13);
        }
        free(here);
        free(there);
    }
}

/* float32: each step of the formula rounded, here with the C library's float functions. */
TEST(recipe_is_the_frameworks)
{
    char json[] = "{'scheme':'sinusoidal','dim':8,'positions':[0,1,100,4095,131071],'arith':'float32'}";
    const float positions[] = {0, 1, 100, 4095, 131071};
    struct test_request r;
    size_t n;
    struct pe_plan *plan = test_plan(&r, json);
    double *v = test_values(plan, 0, &n);
    for (int i = 0; i < 5; i++)
        for (int c = 0; c < 4; c++) {
            float inv_freq = 1.0f / (float)pow(10000, (double)((float)(2 * c) / 8));
            float angle = positions[i] * inv_freq;
            assert_true(fabs(v[i * 8 + 2 * c] - sin((double)angle)) <= 3.1e-8);
            assert_true(fabs(v[i * 8 + 2 * c + 1] - cos((double)angle)) <= 3.1e-8);
        }
    free(v);
    pe_plan_free(plan);
    test_request_drop(&r);
}
