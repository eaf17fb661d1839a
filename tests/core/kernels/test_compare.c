/* Kernels that compare rows, on every instruction set of this machine: against plain loops in long double. */
#include "tests/support/kernel_sets.h"
#include "tests/support/random.h"

#include <math.h>
#include <string.h>

enum { MANY = 70, DEEP = 45, PANEL = PE_PANEL_BYTES / sizeof(double), WIDE = MANY + PANEL, ROUNDS = 200 };

static double number(void) { return (double)(random_bits() >> 11) / 0x1p52 - 1; }

static size_t chance(size_t n) { return (size_t)(random_bits() % n); }

static void fill(double *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = number();
}

static double square_apart(const double *a, const double *b, size_t n)
{
    long double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += ((long double)a[i] - (long double)b[i]) * ((long double)a[i] - (long double)b[i]);
    return (double)sum;
}

/* Sizes of all kinds, in one chunk of channels or in two. */
static void distances_of(const struct pe_kernels *kernels)
{
    static double a[MANY * DEEP], b[MANY * DEEP], panels[WIDE * DEEP], c[MANY * WIDE];
    size_t m = 1 + chance(MANY), n = 1 + chance(MANY), k = 1 + chance(DEEP), first = chance(k);
    fill(a, m * k);
    fill(b, n * k);
    for (size_t i = 0; i < MANY * WIDE; i++)
        c[i] = 7;
    for (size_t at = 0, part = first; at < k; at += part, part = k - at) {
        part = part ? part : k;
        kernels->pack_f64(b + at, k, n, part, panels);
        kernels->apart_f64(m, n, part, a + at, k, panels, at > 0, c, WIDE);
    }
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++) {
            double expected = square_apart(a + i * k, b + j * k, k);
            assert_true(fabs(c[i * WIDE + j] - expected) <= 1e-14 * expected);
        }
    for (size_t i = 0; i < MANY; i++)
        for (size_t j = i < m ? (n + PANEL - 1) / PANEL * PANEL : 0; j < WIDE; j++)
            assert_true(c[i * WIDE + j] == 7);
}

/* Equal rows are exactly 0 apart, wherever they stand. */
static void equal_rows(const struct pe_kernels *kernels)
{
    static double a[MANY * DEEP], panels[WIDE * DEEP], c[MANY * WIDE];
    fill(a, MANY * DEEP);
    kernels->pack_f64(a, DEEP, MANY, DEEP, panels);
    kernels->apart_f64(MANY, MANY, DEEP, a, DEEP, panels, false, c, WIDE);
    for (size_t i = 0; i < MANY; i++)
        for (size_t j = 0; j < MANY; j++)
            assert_true((c[i * WIDE + j] == 0) == (i == j));
}

TEST(distances)
{
    for (int round = 0; round < ROUNDS; round++)
        for_all(distances_of);
    for_all(equal_rows);
}

static void along_a_row(const struct pe_kernels *kernels)
{
    double x[MANY], sum[MANY], least[MANY], most[MANY], before[3][MANY];
    size_t n = chance(MANY);
    double smallest = (double)INFINITY;
    fill(x, MANY);
    fill(sum, MANY);
    fill(least, MANY);
    fill(most, MANY);
    memcpy(before[0], sum, sizeof sum);
    memcpy(before[1], least, sizeof sum);
    memcpy(before[2], most, sizeof sum);
    kernels->tally_f64(x, n, sum, least, most);
    for (size_t i = 0; i < MANY; i++) {
        bool in = i < n;
        smallest = in ? fmin(smallest, x[i]) : smallest;
        assert_true(sum[i] == before[0][i] + (in ? x[i] : 0));
        assert_true(least[i] == (in ? fmin(before[1][i], x[i]) : before[1][i]));
        assert_true(most[i] == (in ? fmax(before[2][i], x[i]) : before[2][i]));
    }
    assert_true(kernels->least_f64(x, n) == smallest);
}

TEST(ranges)
{
    for (int round = 0; round < ROUNDS; round++)
        for_all(along_a_row);
}

static void planes_of(const struct pe_kernels *kernels)
{
    double x[MANY], y[MANY], a[MANY], b[MANY], c = cos(1), s = sin(1);
    size_t n = chance(MANY);
    long double dot = 0;
    fill(x, MANY);
    fill(y, MANY);
    memcpy(a, x, sizeof a);
    memcpy(b, y, sizeof b);
    for (size_t i = 0; i < n; i++)
        dot += (long double)x[i] * (long double)y[i];
    assert_true(fabs(kernels->dot_f64(x, y, n) - (double)dot) < 1e-14);
    kernels->plane_f64(x, y, n, c, s);
    for (size_t i = 0; i < MANY; i++) {
        assert_true(fabs(x[i] - (i < n ? c * a[i] + s * b[i] : a[i])) < 1e-15);
        assert_true(fabs(y[i] - (i < n ? c * b[i] - s * a[i] : b[i])) < 1e-15);
    }
}

TEST(planes)
{
    for (int round = 0; round < ROUNDS; round++)
        for_all(planes_of);
}
