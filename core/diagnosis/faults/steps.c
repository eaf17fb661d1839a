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
#include "core/numeric/numeric.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- The number that phases are multiples of ---- */

/* Solving phases: the number x whose multiples they are, modulo whole turns: phase_i = x·w_i + noise (mod 2π).
 *
 * The slowest wave gives x with a large error and without ambiguity, if it has made less than one turn; each faster one
 * is right modulo its own period, and the estimate so far decides which turn. So the error falls from wave to wave down
 * the ladder, as with the hands of a clock, or Fourier sines in phase unwrapping. Where even the slowest wave has
 * turned more than once, each of its possible turns is tried, and the x with the largest mean cosine of what is left
 * wins.
 *
 * The result is a position, a step or a shift of the evidence, found without a search over configurations. */

struct wave {
    double w, phase, weight, gain;
};

struct waves {
    struct wave list[PE_HEAD_DIM_MAX]; /* slowest first */
    size_t n;
    double weight; /* of all */
};

static int by_frequency(const void *a, const void *b)
{
    double x = ((const struct wave *)a)->w, y = ((const struct wave *)b)->w;
    return fabs(x) < fabs(y) ? -1 : fabs(x) > fabs(y);
}

/* Ladders fall, so that they are in order from their end: then sorting takes no time. */
static void sort(struct waves *v)
{
    size_t i = 1;
    while (i < v->n && by_frequency(&v->list[i - 1], &v->list[i]) <= 0)
        i++;
    if (i < v->n)
        qsort(v->list, v->n, sizeof *v->list, by_frequency);
}

/* Expanded tables have every wave twice: both count as one of twice the weight. */
static void join(struct waves *v)
{
    size_t n = 0;
    for (size_t i = 0; i < v->n; i++) {
        struct wave *last = n ? &v->list[n - 1] : NULL;
        v->weight += v->list[i].weight;
        if (last && last->w == v->list[i].w && last->phase == v->list[i].phase)
            last->weight += v->list[i].weight;
        else
            v->list[n++] = v->list[i];
    }
    v->n = n;
}

/* How far each wave moves the estimate for each radian that it is off: the estimate is the mean of what it and all
 * slower waves say, by weight·w². */
static void set_gains(struct waves *v)
{
    double weights = 0;
    for (size_t i = 0; i < v->n; i++) {
        struct wave *a = &v->list[i];
        double weight = a->weight * a->w * a->w;
        weights += weight;
        a->gain = weights > 0 ? weight / (weights * a->w) : 0;
    }
}

/* Refines x by ever faster waves: each wave is right modulo its period, and the estimate so far shows which. */
static double refined(const struct waves *v, double x)
{
    for (size_t i = 0; i < v->n; i++) {
        const struct wave *a = &v->list[i];
        x += a->gain * pe_wrap(a->phase - x * a->w);
    }
    return x;
}

/* The weighted mean cosine of what x leaves; -2 as soon as it is clearly not above `least`. */
static double score_of(const struct waves *v, double x, double least)
{
    double sum = 0, rest = v->weight;
    for (size_t i = 0; i < v->n; i++) {
        const struct wave *a = &v->list[i];
        sum += a->weight * cos(a->phase - x * a->w);
        rest -= a->weight;
        if (sum + rest < (least - 1e-6) * v->weight)
            return -2;
    }
    return sum / (v->weight + 1e-300);
}

struct pe_solved pe_solve_phases(const double *w, const double *phase, const double *weight, size_t n, double noise,
                                 double most)
{
    struct waves v;
    struct pe_solved best = {0, -2, (double)INFINITY};
    double information = 0;
    v.n = 0;
    v.weight = 0;
    for (size_t k = n; k-- > 0 && v.n < PE_HEAD_DIM_MAX;)
        if (fabs(w[k]) > 1e-12 && weight[k] > 0 && isfinite(phase[k])) {
            v.list[v.n++] = (struct wave){w[k], phase[k], weight[k], 0};
            information += weight[k] * w[k] * w[k];
        }
    if (v.n == 0)
        return best;
    sort(&v);
    join(&v);
    set_gains(&v);
    double slow = v.list[0].w, period = 2 * PI / fabs(slow);
    int turns = (int)fmin(ceil(most / period), 64);
    for (int turn = 0; turn <= 2 * turns && !pe_is_cancelled(); turn++) {
        int t = turn % 2 ? -(turn + 1) / 2 : turn / 2;
        double x = refined(&v, v.list[0].phase / slow + t * period), score = score_of(&v, x, best.score);
        if (score > best.score + 1e-9)
            best = (struct pe_solved){x, score, 0};
    }
    best.error = noise / sqrt(information);
    return best;
}

/* ---- The phase from row to row ---- */

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
    qsort(room, n, sizeof *room, pe_rising);
    return n ? mean + room[n / 2] : 0;
}

/* The usual step of a wave as a complex number of magnitude 1. */
struct usual {
    double cosine, sine;
};

/* Has row i no waves, as padding? */
static bool is_empty(const struct pe_reading *r, size_t i)
{
    for (size_t k = 0; k < r->n_waves; k++)
        if (r->weight[k * r->n + i] > 0)
            return false;
    return true;
}

/* piece[i]: how many jumps there are before row i. A step is a jump where it is unlike the usual one, and nothing is
 * known of the step over padding. */
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
        r->piece[i + 1] = r->piece[i] + (off > limit * weight || is_empty(r, i) != is_empty(r, i + 1));
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

/* ---- Strides and shifts ---- */

/* Strides and shifts: what the phases say of positions and frequencies. */

enum { SHIFT_ROWS = 96 };
/* Of a number turned back, a sine and a cosine; of a wave for each turn of the slowest that may solve the phases. */
enum { TURN_WORK = 160, SOLVE_WORK = 120 };

/* Solves, and counts the turns that pe_solve_phases tries. */
static struct pe_solved solve(const struct pe_reading *r, const double *w, const double *phase, const double *weight,
                              double most)
{
    enum { TURNS_MAX = 64 };
    double slowest = (double)INFINITY;
    for (size_t k = 0; k < r->n_waves; k++)
        if (fabs(w[k]) > 1e-12 && weight[k] > 0)
            slowest = fmin(slowest, fabs(w[k]));
    double turns = 1 + 2 * fmin(ceil(most * slowest / (2 * PI)), TURNS_MAX);
    *r->work += (double)r->n_waves * SOLVE_WORK * turns;
    return pe_solve_phases(w, phase, weight, r->n_waves, r->noise, most);
}

static struct pe_solved stride_at(const struct pe_reading *r, const double *w)
{
    struct pe_solved none = {0, -2, (double)INFINITY};
    double *weight = malloc(r->n_waves * sizeof *weight), largest = 0;
    for (size_t k = 0; weight && k < r->n_waves; k++) {
        weight[k] = isfinite(r->step[k]) ? 1 / (r->error[k] * r->error[k] + 1e-30) : 0;
        largest = fmax(largest, weight[k]);
    }
    for (size_t k = 0; weight && k < r->n_waves && largest > 0; k++)
        weight[k] /= largest;
    *r->no_memory |= !weight;
    struct pe_solved s = weight ? solve(r, w, r->step, weight, 64) : none;
    double information = 0; /* steps are known better than phases */
    for (size_t k = 0; weight && k < r->n_waves; k++)
        information += weight[k] * w[k] * w[k] * largest;
    s.error = weight && information > 0 ? 1 / sqrt(information) : s.error;
    free(weight);
    return s;
}

struct vector {
    double re, im;
};

/* The sum of a wave over rows, each turned back by its position. */
static struct vector turned_back(const struct pe_reading *r, size_t k, double w, const double *position, size_t first,
                                 size_t n)
{
    struct vector s = {0, 0};
    size_t apart = n > SHIFT_ROWS ? n / SHIFT_ROWS : 1;
    for (size_t i = first; i < first + n; i += apart) {
        size_t at = k * r->n + i;
        double angle = n > 1 ? position[i] * w : 0, c = cos(angle), e = sin(angle), u = (double)r->weight[at];
        s.re += u * ((double)r->re[at] * c + (double)r->im[at] * e);
        s.im += u * ((double)r->im[at] * c - (double)r->re[at] * e);
    }
    return s;
}

static struct pe_solved shift(const struct pe_reading *r, const double *w, const double *position, size_t first,
                              size_t n)
{
    struct pe_solved none = {0, -2, (double)INFINITY};
    double *phase = malloc(2 * r->n_waves * sizeof *phase), *weight = phase ? phase + r->n_waves : NULL;
    for (size_t k = 0; phase && k < r->n_waves; k++) {
        struct vector s = turned_back(r, k, w[k], position, first, n);
        phase[k] = atan2(s.im, s.re);
        weight[k] = hypot(s.re, s.im);
    }
    *r->no_memory |= !phase;
    *r->work += (double)r->n_waves * TURN_WORK * fmin((double)n, 2 * SHIFT_ROWS);
    double most = n > 1 ? PE_POSITION_MAX : 0x1p17; /* a single row is not known well enough to count many turns */
    struct pe_solved s = phase ? solve(r, w, phase, weight, most) : none;
    free(phase);
    return s;
}

/* What single rows show at these frequencies is kept until others are asked for: several faults read every row. */
static struct pe_solved *kept_row(const struct pe_reading *r, const double *w, size_t i)
{
    size_t bytes = r->n_waves * sizeof *w;
    *r->work += (double)r->n_waves;
    if (memcmp(r->w_of_rows, w, bytes) != 0) {
        memcpy(r->w_of_rows, w, bytes);
        for (size_t j = 0; j < r->n; j++)
            r->rows[j].error = -1;
        *r->work += (double)r->n;
    }
    return &r->rows[i];
}

struct pe_solved pe_shift_at(const struct pe_reading *r, const double *w, const double *position, size_t first,
                             size_t n)
{
    if (n > 1)
        return shift(r, w, position, first, n);
    struct pe_solved *row = kept_row(r, w, first);
    if (row->error < 0)
        *row = shift(r, w, position, first, n);
    return *row;
}

static double *frequencies(const struct pe_reading *r, const struct pe_model *m)
{
    double *w = malloc(r->n_waves * sizeof *w);
    *r->no_memory |= !w;
    if (w)
        pe_wave_frequencies(m, r->n_waves, w);
    return w;
}

struct pe_solved pe_measured_stride(const struct pe_reading *r, const struct pe_model *m)
{
    struct pe_solved none = {0, -2, (double)INFINITY};
    double *w = frequencies(r, m);
    struct pe_solved s = w ? stride_at(r, w) : none;
    free(w);
    return s;
}

struct pe_solved pe_measured_shift(const struct pe_reading *r, const struct pe_model *m, const double *position,
                                   size_t first, size_t n)
{
    struct pe_solved none = {0, -2, (double)INFINITY};
    double *w = frequencies(r, m);
    struct pe_solved s = w ? pe_shift_at(r, w, position, first, n) : none;
    free(w);
    return s;
}

bool pe_is_uneven(const struct pe_reading *r)
{
    bool has_waves = false;
    for (size_t k = 0; k < r->n_waves && r->n > 1; k++) {
        if (isfinite(r->step[k]))
            return false;
        has_waves |= r->mean_weight[k] > 0;
    }
    return has_waves;
}

bool pe_agrees(const struct pe_reading *r, const double *w, double stride, double relative)
{
    for (size_t k = 0; k < r->n_waves; k++) {
        double tolerance = 8 * r->error[k] + relative * (fabs(stride * w[k]) + 1e-4 * (relative > 1e-5));
        if (isfinite(r->step[k]) && fabs(pe_wrap(r->step[k] - stride * w[k])) > tolerance)
            return false;
    }
    return true;
}
