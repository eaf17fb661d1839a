/* Fourier features: each style against its formula, exact zeros, refusals.
 *
 * The rows expected were computed with mpmath at 200 bits (sinpi, cospi where an angle has the factor π), of the
 * doubles x = 0.3, y = -0.7. */
#include "tests/support/cmocka.h"
#include "tests/support/plans.h"
#include "tests/support/request.h"

#include <math.h>
#include <stdlib.h>

#define F "{'scheme':'fourier',"
#define P F "'style':'perceiver',"
#define G F "'style':'gaussian',"
#define XY "'positions':[[0.3],[-0.7]]}"

static const double TOLERANCE = 1e-15;

TEST(nerf)
{
    /* [x, y, sin x, sin y, cos x, cos y, sin 2x, …]; times π and without [x, y]; of f = 1, 2.5, 4 without [x] */
    const double code[] = {0.3,
                           -0.7,
                           0.29552020666133956,
                           -0.64421768723769102,
                           0.95533648912560602,
                           0.76484218728448845,
                           0.56464247339503534,
                           -0.98544972998846017,
                           0.82533561490967831,
                           0.16996714290024103};
    const double paper[] = {0.8090169943749474,  -0.80901699437494751, 0.58778525229247316,  -0.58778525229247302,
                            0.95105651629515359, 0.95105651629515349,  -0.30901699437494736, -0.30901699437494769};
    const double even[] = {0.29552020666133956, 0.95533648912560602, 0.68163876002333415,
                           0.73168886887382091, 0.93203908596722633, 0.36235775447667362};
    test_assert_row(F "'num_freqs':2," XY, 0, code, 10, TOLERANCE);
    test_assert_row(F "'num_freqs':2,'multiply_pi':true,'include_input':false," XY, 0, paper, 8, TOLERANCE);
    test_assert_row(F "'num_freqs':3,'log_sampling':false,'include_input':false,'positions':[0.3]}", 0, even, 6,
                    TOLERANCE);
}

/* Where the angles are whole quarters nothing may be off, not even in f64: tolerance 0. */
TEST(perceiver)
{
    /* [y, x, sinpi(y f), sinpi(x f), cospi(y f), cospi(x f)] at y = 1, x = -1/2 with f = 1, 4 of y and 1, 10 of x; [t,
     * sinpi(t f), cospi(t f)] at t = -1/3 with f = 1, 4/3, 5/3, 2 */
    const double grid[] = {1, -0.5, 0, 0, -1, 0, -1, 1, 0, -1};
    const double run[] = {-0.33333333333333333, -0.86602540378443865, -0.98480775301220806,
                          -0.98480775301220806, -0.86602540378443865, 0.5,
                          0.17364817766693035,  -0.17364817766693035, -0.5};
    test_assert_row(P "'num_bands':2,'max_resolution':[8,20],'grid':[3,5]}", 11, grid, 10, 0);
    test_assert_row(P "'num_bands':2,'max_resolution':[8,20],'concat_pos':false,'grid':[3,5]}", 11, grid + 2, 8, 0);
    test_assert_row(P "'num_bands':2,'max_resolution':[8,20],'sine_only':true,'grid':[3,5]}", 11, grid, 6, 0);
    test_assert_row(P "'num_bands':2,'max_resolution':[8,20],'positions':[[1],[-0.5]]}", 0, grid, 10, 0);
    test_assert_row(P "'num_bands':4,'len':4}", 1, run, 9, TOLERANCE);
    const double one[] = {-1, 0, -1}; /* one point stands at -1, one band is 1 */
    test_assert_row(P "'num_bands':1,'len':1}", 0, one, 3, 0);
}

/* At both ends of a spread axis the angles are whole multiples of π/(num_bands - 1)·…: where f is an integer the sine
 * is 0, not 1e-31, and the cosine of a half is 0; whatever fractions the frequencies are. */
TEST(zeros_are_zeros)
{
    struct test_request r;
    size_t n;
    struct pe_plan *plan = test_plan(&r, P "'num_bands':15,'max_resolution':[30],'len':31}");
    double *v = test_values(plan, 0, &n); /* f = 1, 2, … 15; [31, 31] */
    for (int i = 0; i < 31; i++)
        for (int k = 0; k < 15; k++) { /* f·x = (k + 1)·(i - 15)/15 */
            int product = (k + 1) * (i - 15);
            assert_int_equal(v[i * 31 + 1 + k] == 0, product % 15 == 0);
            assert_int_equal(fabs(v[i * 31 + 16 + k]) == 1, product % 15 == 0);
        }
    free(v);
    pe_plan_free(plan);
    test_request_drop(&r);
}

TEST(gaussian)
{
    /* [cospi(2 (b·x)), sinpi(2 (b·x))] with b = [[0.5, -0.25], [1.7, 0.3]] rounded to f32, as
     * tensors in JSON are (mpmath); and where terms cancel, b·x = 3/4 */
    const double row[] = {-0.45399049973954670, -0.30901702999268214, 0.89100652418836791, 0.95105650472224929};
    const double cancelled[] = {0, -1};
    test_assert_row(G "'b':[[0.5,-0.25],[1.7,0.3]]," XY, 0, row, 4, TOLERANCE);
    test_assert_row(G "'b':[[3,-3]],'positions':[[0.35],[0.1]]}", 0, cancelled, 2, 1e-15);
    test_assert_row(G "'b':[[1048576,-1048576,0.25]],'positions':[[0.7],[0.7],[3]]}", 0, cancelled, 2, 0);
}

/* b's element i is that of the generator: it depends on seed, name and i only. */
TEST(seeded)
{
    struct test_request r;
    size_t n, m;
    struct pe_plan *plan = test_plan(&r, G "'num_freqs':3,'positions':[1e-3]}");
    double *few = test_values(plan, 0, &n);
    pe_plan_free(plan);
    test_request_drop(&r);
    plan = test_plan(&r, G "'positions':[1e-3]}");
    double *many = test_values(plan, 0, &m);
    assert_true(n == 6 && m == 512);
    assert_memory_equal(few, many, 3 * sizeof *few);
    assert_memory_equal(few + 3, many + 256, 3 * sizeof *few);
    double sum = 0; /* sin(2π b/1000) is 2π b/1000 nearly, and b's variance 1 */
    for (int i = 256; i < 512; i++)
        sum += pow(many[i] / 6.283185307e-3, 2);
    assert_true(sum / 256 > 0.7 && sum / 256 < 1.3);
    free(few);
    free(many);
    pe_plan_free(plan);
    test_request_drop(&r);
}

/* float32: each step rounded, with the C library's functions. */
TEST(float32_is_the_recipe)
{
    float x = 0.3f, y = -0.7f, turn = (float)6.283185307179586, angle = turn * x * 1.7f + turn * y * 0.3f;
    const double g[] = {(double)(float)cos((double)angle), (double)(float)sin((double)angle)};
    float eight = 128.0f * x;
    const double nerf8[] = {(double)(float)sin((double)eight), (double)(float)cos((double)eight)};
    test_assert_row(G "'arith':'float32','b':[[1.7,0.3]]," XY, 0, g, 2, 6e-8);
    struct test_request r;
    size_t n;
    struct pe_plan *plan = test_plan(&r, F "'arith':'float32','num_freqs':8,'positions':[0.3]}");
    double *v = test_values(plan, 0, &n);
    assert_true(fabs(v[15] - nerf8[0]) <= 6e-8 && fabs(v[16] - nerf8[1]) <= 6e-8);
    free(v);
    pe_plan_free(plan);
    test_request_drop(&r);
}

TEST(laws)
{
    test_assert_laws(F "'num_freqs':4,'grid':[3,4]}");
    test_assert_laws(F "'num_freqs':5,'log_sampling':false,'multiply_pi':true,'positions':[[0.3,1,2],[3,-1,1]]}");
    test_assert_laws(P "'num_bands':150,'grid':[5,4]}");
    test_assert_laws(P "'num_bands':3,'channels_first':true,'order':'merge','grid':[4,4]}");
    test_assert_laws(P "'num_bands':3,'arith':'float32','len':9}");
    test_assert_laws(P "'num_bands':3,'positions':[0.5,-1,0.1]}");
    test_assert_laws(G "'num_freqs':150,'seed':7,'sigma':2.5,'positions':[[0.3,1,2],[3,-1,1]]}");
    test_assert_laws(G "'b':[[0.1],[2]],'len':5}");
    test_assert_laws(G "'arith':'float32','num_freqs':3,'grid':[3,4,5]}");
}

static const struct {
    const char *json, *pointer, *word;
} refusals[] = {
    {F "'num_freqs':49,'len':2}", "/num_freqs", "from 1 to 48"},
    {F "'num_bands':4,'len':2}", "/num_bands", "needs style=perceiver"},
    {F "'b':[[1]],'len':2}", "/b", "needs style=gaussian"},
    {F "'num_freqs':48,'positions':[64]}", "", "2^51"},
    {F "'num_freqs':48,'multiply_pi':true,'log_sampling':false,'positions':[64]}", "", "2^51"},
    {P "'num_freqs':4,'len':2}", "/num_freqs", "needs style=nerf|gaussian"},
    {P "'max_resolution':[4,4],'len':2}", "/max_resolution", "needed: 1"},
    {P "'max_resolution':[4.5],'len':2}", "/max_resolution", "integers"},
    {P "'positions':[[0.1],[0.2]]}", "/max_resolution", "missing"},
    {P "'offset':2,'len':4}", "/offset", "spreads"},
    {P "'lens':[2,3]}", "/lens", "grid or a run"},
    {P "'len':4294967296}", "/len", "2^31"},
    {P "'num_bands':32768,'grid':[2,2]}", "/num_bands", "at most 65536"},
    {P "'num_bands':2,'max_resolution':[2000000000],'positions':[2097152]}", "", "2^51"},
    {G "'b':[[1],[2]],'num_freqs':3,'len':2}", "/num_freqs", "makes it 2"},
    {G "'b':[[1],[2]],'grid':[2,2]}", "/b", "needed: [2,2]"},
    {G "'b':[[1]],'seed':3,'len':2}", "/seed", "b was sent"},
    {G "'b':[[1]],'sigma':3,'len':2}", "/sigma", "b was sent"},
    {G "'b':[[1e300]],'len':2}", "/b", "2^49"},
    {G "'b':[[1e14]],'len':200}", "", "2^51"},
    {F "'dim':64,'len':2}", "/dim", "unknown"},
};

TEST(what_is_refused)
{
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
        test_refused(refusals[i].json, refusals[i].pointer, refusals[i].word);
}
