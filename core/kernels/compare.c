/* Rows compared with rows, for analysis: squared distances of many pairs, ranges and sums along a row, dot products and
 * turns in a plane.
 *
 * Distances are computed from differences. From a Gram matrix, |a|² + |b|² - 2a·b, two rows that nearly agree would
 * lose all digits, and nearly equal rows are just what an analysis looks for. The tiles are those of attention's
 * products (attend_products.h): TALL rows by two registers of columns, whose sums stay in registers for all of k. Each
 * step is a difference and a fused square, twice the work of a product for half the pairs.
 *
 * Results are read as measurements with nine digits, so sums are fused where the machine can and may differ in their
 * last bits between instruction sets, unlike the tables of this folder. */
#include "core/kernels/kernels.h"
#include "core/kernels/lanes.h"

#include <math.h>

#if defined(__AVX512F__) || defined(__aarch64__)
enum { TALL = 12 };
#else
enum { TALL = 6 };
#endif
enum { PANEL = PE_PANEL_BYTES / sizeof(double), TILE = 2 * LANES };
_Static_assert(PANEL % TILE == 0, "a panel holds whole tiles");

/* A register at any address, as in attend_products.h. */
typedef double anywhere __attribute__((vector_size(LANES * sizeof(double)), aligned(sizeof(double)), may_alias));

PE_INLINED void store(double *at, vd x) { *(anywhere *)at = x; }

PE_INLINED void put(double *at, vd x, bool adds) { store(at, adds ? load(at) + x : x); }

PE_INLINED vd everywhere(double x) { return x - (vd){0}; } /* x - 0 is x, also for -0: no operation */

/* rows must be a compile-time constant at each call. */
PE_INLINED void tile(size_t rows, size_t k, const double *a, size_t a_stride, const double *b, bool adds, double *c,
                     size_t c_stride)
{
    vd sum[TALL][2];
    for (size_t r = 0; r < rows; r++)
        sum[r][0] = sum[r][1] = all_lanes(0);
    for (size_t x = 0; x < k; x++, b += PANEL) {
        vd left = *(const anywhere *)b, right = *(const anywhere *)(b + LANES);
        for (size_t r = 0; r < rows; r++) {
            vd all = everywhere(a[r * a_stride + x]), one = all - left, other = all - right;
            sum[r][0] = product_plus(one, one, sum[r][0]);
            sum[r][1] = product_plus(other, other, sum[r][1]);
        }
    }
    for (size_t r = 0; r < rows; r++) {
        put(c + r * c_stride, sum[r][0], adds);
        put(c + r * c_stride + LANES, sum[r][1], adds);
    }
}

static __attribute__((noinline)) void tall_tile(size_t k, const double *a, size_t a_stride, const double *b, bool adds,
                                                double *c, size_t c_stride)
{
    tile(TALL, k, a, a_stride, b, adds, c, c_stride);
}

static __attribute__((noinline)) void single_tile(size_t k, const double *a, size_t a_stride, const double *b,
                                                  bool adds, double *c, size_t c_stride)
{
    tile(1, k, a, a_stride, b, adds, c, c_stride);
}

void PE_KERNEL(pe_apart_f64)(size_t m, size_t n, size_t k, const double *a, size_t a_stride, const double *panels,
                             bool adds, double *c, size_t c_stride)
{
    for (size_t j = 0; j < n; j += TILE) {
        const double *b = panels + j / PANEL * PANEL * k + j % PANEL;
        size_t i = 0;
        for (; m - i >= TALL; i += TALL)
            tall_tile(k, a + i * a_stride, a_stride, b, adds, c + i * c_stride + j, c_stride);
        for (; i < m; i++)
            single_tile(k, a + i * a_stride, a_stride, b, adds, c + i * c_stride + j, c_stride);
    }
}

/* ---- Along a row ---- */

double PE_KERNEL(pe_least_f64)(const double *x, size_t n)
{
    size_t i = 0;
    double result = HUGE_VAL;
    vd least = all_lanes(HUGE_VAL);
    for (; n - i >= LANES; i += LANES)
        least = smaller(least, load(x + i));
    for (size_t lane = 0; lane < LANES; lane++)
        result = least[lane] < result ? least[lane] : result;
    for (; i < n; i++)
        result = x[i] < result ? x[i] : result;
    return result;
}

void PE_KERNEL(pe_tally_f64)(const double *x, size_t n, double *sum, double *least, double *most)
{
    size_t i = 0;
    for (; n - i >= LANES; i += LANES) {
        vd v = load(x + i);
        store(sum + i, load(sum + i) + v);
        store(least + i, smaller(v, load(least + i)));
        store(most + i, -smaller(-v, -load(most + i)));
    }
    for (; i < n; i++) {
        sum[i] += x[i];
        least[i] = x[i] < least[i] ? x[i] : least[i];
        most[i] = x[i] > most[i] ? x[i] : most[i];
    }
}

/* Four chains hide the latency of a fused operation. */
double PE_KERNEL(pe_dot_f64)(const double *a, const double *b, size_t n)
{
    enum { CHAINS = 4 };
    vd sums[CHAINS] = {all_lanes(0), all_lanes(0), all_lanes(0), all_lanes(0)};
    size_t i = 0;
    for (; n - i >= CHAINS * LANES; i += CHAINS * LANES)
        for (size_t chain = 0; chain < CHAINS; chain++)
            sums[chain] = product_plus(load(a + i + chain * LANES), load(b + i + chain * LANES), sums[chain]);
    vd all = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    double sum = 0;
    for (size_t lane = 0; lane < LANES; lane++)
        sum += all[lane];
    for (; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

void PE_KERNEL(pe_plane_f64)(double *x, double *y, size_t n, double c, double s)
{
    size_t i = 0;
    for (; n - i >= LANES; i += LANES) {
        vd a = load(x + i), b = load(y + i);
        store(x + i, c * a + s * b);
        store(y + i, c * b - s * a);
    }
    for (; i < n; i++) {
        double a = x[i], b = y[i];
        x[i] = c * a + s * b;
        y[i] = c * b - s * a;
    }
}
