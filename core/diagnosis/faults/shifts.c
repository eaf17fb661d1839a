/* Strides and shifts: what the phases say of positions and frequencies. */
#include "core/diagnosis/diagnosis.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

struct pe_solved pe_stride_at(const struct pe_reading *r, const double *w)
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

struct sum {
    double re, im;
};

/* The sum of a wave over rows, each turned back by its place. */
static struct sum turned_back(const struct pe_reading *r, size_t k, double w, const double *place, size_t first,
                              size_t n)
{
    struct sum s = {0, 0};
    size_t apart = n > SHIFT_ROWS ? n / SHIFT_ROWS : 1;
    for (size_t i = first; i < first + n; i += apart) {
        size_t at = k * r->n + i;
        double angle = n > 1 ? place[i] * w : 0, c = cos(angle), e = sin(angle), u = (double)r->weight[at];
        s.re += u * ((double)r->re[at] * c + (double)r->im[at] * e);
        s.im += u * ((double)r->im[at] * c - (double)r->re[at] * e);
    }
    return s;
}

static struct pe_solved shift(const struct pe_reading *r, const double *w, const double *place, size_t first, size_t n)
{
    struct pe_solved none = {0, -2, (double)INFINITY};
    double *phase = malloc(2 * r->n_waves * sizeof *phase), *weight = phase ? phase + r->n_waves : NULL;
    for (size_t k = 0; phase && k < r->n_waves; k++) {
        struct sum s = turned_back(r, k, w[k], place, first, n);
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

struct pe_solved pe_shift_at(const struct pe_reading *r, const double *w, const double *place, size_t first, size_t n)
{
    if (n > 1)
        return shift(r, w, place, first, n);
    struct pe_solved *row = kept_row(r, w, first);
    if (row->error < 0)
        *row = shift(r, w, place, first, n);
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
    struct pe_solved s = w ? pe_stride_at(r, w) : none;
    free(w);
    return s;
}

struct pe_solved pe_measured_shift(const struct pe_reading *r, const struct pe_model *m, const double *place,
                                   size_t first, size_t n)
{
    struct pe_solved none = {0, -2, (double)INFINITY};
    double *w = frequencies(r, m);
    struct pe_solved s = w ? pe_shift_at(r, w, place, first, n) : none;
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

bool pe_is_still(const struct pe_reading *r)
{
    bool is_known = false;
    for (size_t k = 0; k < r->n_waves; k++) {
        is_known |= isfinite(r->step[k]);
        if (isfinite(r->step[k]) && fabs(r->step[k]) > 8 * r->error[k])
            return false;
    }
    return is_known;
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
