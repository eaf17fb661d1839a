/* Steps: the phase from row to row of each wave, and the rows where positions jump.
 *
 * Measured from one row to the next, a phase has the error of two numbers; measured over L rows it has the same error
 * in L steps, but its turns are unknown. So lags are doubled: each gives the turns of the next, as long as the rows in
 * between agree (are coherent). It is how a frequency is read from a sampled tone, to about 1/L of the noise (Tretter
 * 1985, IEEE Trans. IT 31, has the bound for the linear regression of phases).
 *
 * Packed sequences and padding break the rows into runs. The usual step is the median about the mean direction, which a
 * few jumps do not move; a row whose step is unlike it begins another run, and only pairs of rows of one run are
 * compared. */
#include "core/diagnosis/diagnosis.h"

#include <math.h>
#include <stdlib.h>

/* The standard error of a phase: of the numbers, and of angles that may have been computed in f32. */
static double noise_of(const struct pe_reading *r, double step)
{
    return r->noise + fmin(0x1p-24 * r->farthest * fabs(step), 0.05);
}

struct sum {
    double re, im, weight;
};

/* hypot() guards against overflow, which floats do not need, and takes ten times as long. */
static double magnitude(struct sum s) { return sqrt(s.re * s.re + s.im * s.im); }

/* z[i + lag]·conj z[i], weighted. */
static struct sum product(const struct pe_reading *r, size_t k, size_t i, size_t lag)
{
    size_t from = k * r->n + i, to = from + lag;
    double a = (double)r->re[from], b = (double)r->im[from], c = (double)r->re[to], e = (double)r->im[to];
    double both = sqrt((double)r->weight[from] * (double)r->weight[to]);
    return (struct sum){both * (c * a + e * b), both * (e * a - c * b), both};
}

/* ---- Where positions jump ---- */

static int by_value(const void *a, const void *b)
{
    return *(const double *)a < *(const double *)b ? -1 : *(const double *)a > *(const double *)b;
}

/* The usual phase from row to row: the median about the mean direction. */
static double usual_step(const struct pe_reading *r, size_t k, double *room)
{
    struct sum all = {0, 0, 0};
    size_t n = 0, apart = (r->n - 1) / PE_LAG_ROWS + 1;
    for (size_t i = 0; i + 1 < r->n; i += apart) {
        struct sum p = product(r, k, i, 1);
        all.re += p.re;
        all.im += p.im;
    }
    double mean = atan2(all.im, all.re);
    for (size_t i = 0; i + 1 < r->n; i += apart) {
        struct sum p = product(r, k, i, 1);
        if (p.weight > 0)
            room[n++] = pe_wrap(atan2(p.im, p.re) - mean);
    }
    qsort(room, n, sizeof *room, by_value);
    return n ? mean + room[n / 2] : 0;
}

/* The usual step of a wave as a complex number of magnitude 1. */
struct usual {
    double cosine, sine;
};

/* piece[i]: how many jumps there are before row i. A step is a jump where it is unlike the usual one. */
static void find_pieces(struct pe_reading *r, const struct usual *usual)
{
    enum { BETWEEN = 1 << 14 }; /* products between two questions whether to go on */
    double limit = 1e-3 + 200 * r->noise * r->noise;
    size_t rows = BETWEEN / r->n_waves + 1;
    for (size_t i = 0; i + 1 < r->n && (i % rows || !pe_is_cancelled()); i++) {
        double off = 0, weight = 1e-300;
        for (size_t k = 0; k < r->n_waves; k++) {
            struct sum p = product(r, k, i, 1);
            double size = magnitude(p);
            off += size - (p.re * usual[k].cosine + p.im * usual[k].sine);
            weight += size;
        }
        r->piece[i + 1] = r->piece[i] + (off > limit * weight);
    }
}

/* ---- Steps, refined over lags ---- */

/* Over every apart-th row. */
static struct sum lagged(const struct pe_reading *r, size_t k, size_t lag, size_t apart)
{
    struct sum s = {0, 0, 0};
    for (size_t i = 0; i + lag < r->n; i += apart) {
        if (r->piece[i] != r->piece[i + lag])
            continue;
        struct sum p = product(r, k, i, lag);
        s.re += p.re;
        s.im += p.im;
        s.weight += magnitude(p);
    }
    return s;
}

static bool is_coherent(struct sum s) { return s.weight > 0 && magnitude(s) >= 0.7 * s.weight; }

static void refine(struct pe_reading *r, size_t k, size_t lag, struct sum s)
{
    double phase = atan2(s.im, s.re), rows = fmin(s.weight / r->mean_weight[k], (double)r->n);
    r->step[k] = lag == 1 ? phase : r->step[k] + pe_wrap(phase - (double)lag * r->step[k]) / (double)lag;
    r->error[k] = 2 * noise_of(r, r->step[k]) / ((double)lag * sqrt(rows * fmin(r->mean_weight[k], 1)));
}

/* The step follows from the longest lag that is coherent; shorter ones only show how many turns it has, for which some
 * rows are enough. */
static void measure_step(struct pe_reading *r, size_t k)
{
    double total = 0;
    size_t longest = 0;
    for (size_t i = 0; i < r->n; i++)
        total += (double)r->weight[k * r->n + i];
    r->mean_weight[k] = total / (double)r->n;
    r->step[k] = r->error[k] = (double)NAN;
    for (size_t lag = 1; lag < r->n && r->mean_weight[k] > 0 && !pe_is_cancelled(); lag *= 2) {
        struct sum s = lagged(r, k, lag, (r->n - lag - 1) / PE_LAG_ROWS + 1);
        if (!is_coherent(s))
            break;
        refine(r, k, lag, s);
        longest = lag;
    }
    if (longest && r->n > PE_LAG_ROWS)
        refine(r, k, longest, lagged(r, k, longest, 1));
}

/* room: [PE_LAG_ROWS + 2]. */
static void measure_all(struct pe_reading *r, struct usual *usual, double *room)
{
    for (size_t k = 0; k < r->n_waves && !pe_is_cancelled(); k++) {
        double step = r->n > 1 ? usual_step(r, k, room) : 0;
        usual[k] = (struct usual){cos(step), sin(step)};
    }
    if (!pe_was_cancelled())
        find_pieces(r, usual);
    for (size_t k = 0; k < r->n_waves && !pe_was_cancelled(); k++)
        measure_step(r, k);
}

bool pe_reading_steps(struct pe_reading *r)
{
    struct usual *usual = malloc(r->n_waves * sizeof *usual + (PE_LAG_ROWS + 2) * sizeof(double));
    if (usual)
        measure_all(r, usual, (double *)(void *)(usual + r->n_waves));
    *r->no_memory |= !usual;
    free(usual);
    return !*r->no_memory && !pe_was_cancelled();
}
