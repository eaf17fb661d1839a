/* Tables of waves: a kernel's doubles with their bounds, rounded where the bound decides, else decided in double-double. */
#include "core/waves.h"
#include "core/dd.h"
#include "core/dtype.h"
#include "core/kernels/kernels.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct pe_waves {
    size_t n;
    bool scaled; /* some amplitude is not 1 */
    double *fh, *fl, *ah, *al; /* [n, padded]; one allocation, as is quarter */
    int64_t *quarter;
};

static atomic_uint_fast64_t n_undecided;

uint64_t pe_undecided_count(void)
{
    return atomic_load_explicit(&n_undecided, memory_order_relaxed);
}

/* ---- Making ---- */

static size_t padded(size_t n)
{
    return (n + PE_WAVES_LANES - 1) / PE_WAVES_LANES * PE_WAVES_LANES;
}

enum pe_status pe_waves_new(const struct pe_wave *columns, size_t n, struct pe_waves **out)
{
    size_t room = padded(n) + PE_WAVES_LANES; /* a range of columns may begin anywhere, and is read in whole groups */
    struct pe_waves *w = malloc(sizeof *w);
    double *all = w ? calloc(room, 4 * sizeof(double) + sizeof(int64_t)) : NULL;
    if (!all) {
        free(w);
        return PE_NO_MEMORY;
    }
    *w = (struct pe_waves){.n = n, .fh = all, .fl = all + room, .ah = all + 2 * room, .al = all + 3 * room};
    w->quarter = (int64_t *)(void *)(all + 4 * room);
    for (size_t j = 0; j < n; j++) {
        w->fh[j] = columns[j].fh;
        w->fl[j] = columns[j].fl;
        w->ah[j] = columns[j].ah;
        w->al[j] = columns[j].al;
        w->quarter[j] = columns[j].quarter;
        w->scaled |= columns[j].ah != 1 || columns[j].al != 0;
    }
    *out = w;
    return PE_OK;
}

void pe_waves_free(struct pe_waves *waves)
{
    if (waves)
        free(waves->fh);
    free(waves);
}

/* ---- One value in double-double ---- */

static struct pe_dd dd_sum3(double a, double b, double c)
{
    struct pe_dd s = dd_two_sum(a, b);
    return dd_add(s, dd(c));
}

/* sin(x) or cos(x), |x| ≤ π/4, by the series. */
static struct pe_dd series(struct pe_dd x, bool cosine)
{
    struct pe_dd square = dd_neg(dd_mul(x, x)), sum = {0, 0};
    for (int n = cosine ? 28 : 29; n > 1; n -= 2)
        sum = dd_mul(dd_div(square, dd((double)n * (n - 1))), dd_add(dd(1), sum));
    sum = dd_add(dd(1), sum);
    return cosine ? sum : dd_mul(x, sum);
}

/* a·sin(π/2·(p·F + quarter)); *is_exact where p·F is 0. Relative error 2^-96 or so, and |p·F|·2^-100 absolute from the phase. */
static struct pe_dd value_dd(const struct pe_waves *w, size_t j, double p, double *phase)
{
    static const struct pe_dd half_pi = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54};
    struct pe_dd high = dd_two_prod(w->fh[j], p), low = dd_two_prod(w->fl[j], p);
    double turns = nearbyint(high.hi);
    struct pe_dd r = dd_add(dd_sum3(high.hi - turns, high.lo, low.hi), dd(low.lo));
    int64_t q = (int64_t)turns + w->quarter[j];
    struct pe_dd v = series(dd_mul(r, half_pi), q & 1);
    v = dd_mul(v, (struct pe_dd){w->ah[j], w->al[j]});
    *phase = fabs(high.hi);
    return q & 2 ? dd_sub(dd(0), v) : v;
}

static bool rounds_alike(enum pe_dtype dtype, double a, double b)
{
    switch (dtype) {
    case PE_F32: return (float)a == (float)b;
    case PE_F16: return pe_f16_round(a) == pe_f16_round(b);
    default: return pe_bf16_round(a) == pe_bf16_round(b);
    }
}

/* What the kernel could not decide. */
static double decide(const struct pe_waves *w, enum pe_dtype dtype, size_t j, double p)
{
    double phase;
    struct pe_dd v = value_dd(w, j, p, &phase);
    double error = fabs(v.hi) * 0x1p-95 + phase * fabs(w->ah[j]) * 0x1p-100;
    double least = dd_round_odd(dd_sub(v, dd(error))), most = dd_round_odd(dd_add(v, dd(error)));
    if (phase > 0 && !rounds_alike(dtype, least, most))
        atomic_fetch_add_explicit(&n_undecided, 1, memory_order_relaxed);
    return dd_round_odd(v);
}

/* ---- Filling ---- */

enum { GROUP = 256 }; /* columns at a time: two arrays of doubles on the stack */

/* Rounds a group of values; where the two ends of a value's interval round differently, it is decided anew. */
static void store_f32(const struct pe_waves *w, size_t col, double p, const double *v, const double *b, size_t n, float *dst)
{
    unsigned undecided = 0;
    for (size_t j = 0; j < n; j++) {
        float low = (float)(v[j] - b[j]), high = (float)(v[j] + b[j]);
        undecided |= low != high;
        dst[j] = low;
    }
    for (size_t j = 0; undecided && j < n; j++)
        if ((float)(v[j] - b[j]) != (float)(v[j] + b[j]))
            dst[j] = (float)decide(w, PE_F32, col + j, p);
}

static void store_half(const struct pe_waves *w, enum pe_dtype dtype, size_t col, double p, const double *v, const double *b, size_t n,
                       uint16_t *dst)
{
    uint16_t (*round_to)(double) = dtype == PE_F16 ? pe_f16_round : pe_bf16_round;
    for (size_t j = 0; j < n; j++) {
        uint16_t low = round_to(v[j] - b[j]), high = round_to(v[j] + b[j]);
        dst[j] = low == high ? low : round_to(decide(w, dtype, col + j, p));
    }
}

static void fill_row(const struct pe_waves *w, enum pe_dtype dtype, double p, size_t col0, size_t n_cols, char *dst)
{
    _Alignas(64) double v[GROUP], b[GROUP];
    for (size_t at = 0; at < n_cols; at += GROUP) {
        size_t col = col0 + at, n = n_cols - at < GROUP ? n_cols - at : GROUP;
        pe_kernels()->waves(p, w->fh + col, w->fl + col, w->ah + col, w->al + col, w->quarter + col, w->scaled, n, v, b);
        char *to = dst + at * pe_dtype_size(dtype);
        if (dtype == PE_F32)
            store_f32(w, col, p, v, b, n, (float *)(void *)to);
        else if (dtype == PE_F64)
            memcpy(to, v, n * sizeof *v);
        else
            store_half(w, dtype, col, p, v, b, n, (uint16_t *)(void *)to);
    }
}

void pe_waves_fill(const struct pe_waves *waves, enum pe_dtype dtype, const struct pe_positions *positions, uint64_t row0,
                   size_t n_rows, size_t col0, size_t n_cols, void *dst, size_t stride)
{
    for (size_t i = 0; i < n_rows; i++)
        fill_row(waves, dtype, pe_position_at(positions, row0 + i), col0, n_cols,
                 (char *)dst + i * stride * pe_dtype_size(dtype));
}

void pe_sincos_f32(double angle, float *cos_out, float *sin_out)
{
    static const struct pe_wave one_radian[2] = {{0x1.45f306dc9c883p-1, -0x1.6b01ec5417056p-55, 1, 0, 1},
                                                 {0x1.45f306dc9c883p-1, -0x1.6b01ec5417056p-55, 1, 0, 0}};
    double fh[PE_WAVES_LANES] = {one_radian[0].fh, one_radian[1].fh}, fl[PE_WAVES_LANES] = {one_radian[0].fl, one_radian[1].fl};
    double ah[PE_WAVES_LANES] = {1, 1}, al[PE_WAVES_LANES] = {0};
    int64_t quarter[PE_WAVES_LANES] = {1, 0};
    const struct pe_waves w = {.n = 2, .fh = fh, .fl = fl, .ah = ah, .al = al, .quarter = quarter};
    float values[2];
    fill_row(&w, PE_F32, angle, 0, 2, (char *)values);
    *cos_out = values[0];
    *sin_out = values[1];
}
