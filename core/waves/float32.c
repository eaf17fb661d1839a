/* The frameworks' float32 recipe: the angle is a float, its sine or cosine the float nearest to that of the angle.
 *
 * For models whose weights were trained with tables that were rounded at each step, the exact table is the wrong one.
 * `arith: float32` repeats the recipe of torch and JAX on a CPU: position and frequency are rounded to floats, their
 * product is rounded to a float, and only then is the sine taken. At position 131072 that angle is off by as much as
 * 0.009, which is the point: the model has seen those values.
 *
 * A library's sine of a float is right to an ulp or two, and which of the two depends on its version and on the
 * machine. Here it is the nearest float, by the levels of wave_table.c: the angle times 2/π is a frequency in
 * double-double at position 1. So the answer is one that a framework may give, and the same one everywhere.
 *
 * `arith: ggml` differs in the steps to the angle only. A pair's angle there is the one before it times a constant, so
 * roundings add up along the pairs: at position 131072 with base 500000 a cosine is off by as much as 0.012. */
#include "core/waves/waves.h"
#include "core/numeric/numeric.h"
#include "core/kernels/kernels.h"

const char *const pe_arith_words[] = {[PE_ARITH_EXACT] = "exact", [PE_ARITH_FLOAT32] = "float32", NULL};

enum { GROUP = 4 * PE_WAVES_LANES }; /* columns at a time */

/* The phases of a row: each is a wave whose frequency is the row's angle, at position 1. The kernel computes whole
 * groups, so what lies behind the last column is computed too: zeros, or the row before, never uninitialized memory. */
struct phases {
    _Alignas(64) double fh[GROUP], fl[GROUP], values[GROUP], bounds[GROUP];
    _Alignas(64) int64_t quarter[GROUP];
    float angles[GROUP];
    struct pe_ggml_chain chains[PE_AXES_MAX];
};

float pe_ggml_angle(const struct pe_ggml_steps *g, struct pe_ggml_chain *chain, double position)
{
    float p = (float)position;
    if (chain->position != p || chain->pair > g->pair)
        *chain = (struct pe_ggml_chain){p, p, 0};
    for (; chain->pair < g->pair; chain->pair++)
        chain->theta *= g->power;
    float x = chain->theta / g->divisor, y = g->scale * x;
    return y * (1 - g->keep) + x * g->keep;
}

static float angle(struct phases *s, const struct pe_wave *wave, double position)
{
    if (wave->steps)
        return pe_ggml_angle(wave->steps, &s->chains[wave->axis], position);
    return (float)position * (float)wave->fh;
}

/* The float nearest to the sine or cosine: if the two ends of the kernel's interval round differently, double-double
 * decides. */
static float nearest(const struct phases *s, size_t j)
{
    float low = (float)(s->values[j] - s->bounds[j]), high = (float)(s->values[j] + s->bounds[j]);
    struct pe_wave wave = {.fh = s->fh[j], .fl = s->fl[j], .ah = 1, .quarter = (int)s->quarter[j]};
    return low == high && low != 0 ? low : (float)pe_wave_decide(&wave, PE_F32, 1);
}

static float finish(const struct pe_wave *wave, const struct phases *s, size_t j)
{
    if (wave->quarter == PE_LINEAR)
        return s->angles[j] * (float)wave->ah;
    float value = nearest(s, j) * (float)wave->ah;
    return wave->quarter & 2 ? 0.0f - value : value; /* 0 - 0 is +0 */
}

void pe_float32_fill(const struct pe_wave *columns, enum pe_dtype dtype, const struct pe_positions *axes, uint64_t row0,
                     size_t n_rows, size_t n_cols, void *dst, size_t stride)
{
    struct phases s = {.angles = {0}};
    for (size_t i = 0; i < n_rows; i++)
        for (size_t at = 0; at < n_cols; at += GROUP) {
            size_t n = n_cols - at < GROUP ? n_cols - at : GROUP;
            struct pe_dd turns = pe_quarter_turns(dd(1));
            for (size_t j = 0; j < n; j++) {
                const struct pe_wave *wave = &(columns + at)[j];
                s.angles[j] = angle(&s, wave, pe_position_at(&axes[wave->axis], row0 + i));
                struct pe_dd f = dd_mul_d(turns, (double)s.angles[j]);
                s.fh[j] = f.hi;
                s.fl[j] = f.lo;
                s.quarter[j] = wave->quarter & 1;
            }
            pe_kernels()->waves(1, s.fh, s.fl, NULL, NULL, s.quarter, false, n, s.values, NULL, s.bounds);
            for (size_t j = 0; j < n; j++)
                pe_store(dtype, dst, i * stride + at + j, (double)finish(&columns[at + j], &s, j));
        }
}
