/* The frequency of a pair, from its phases at known coordinates.
 *
 * Rows of equal coordinates are one point. Neighbours whose distance is the smallest gap give a first frequency, known
 * modulo a turn in that gap: the alias nearest to the believed one. Then lags of 2, 4, 8, … points make it sharper,
 * each only where the error so far cannot lose a turn. A common phase is free, so an offset of all rows changes
 * nothing. */
#include "core/diagnosis/measure/profile.h"

#include <stdlib.h>

enum { POINT_WORK = 30 };

/* The points of one axis: distinct coordinates, in order, and the sums of a wave there. */
struct points {
    size_t n, *place; /* place [n_rows]: the point of each row */
    double *x, *phase, *re, *im;
    double *weight; /* [n]: at most 1; a phase is as uncertain as the noise over its root */
    double gap;
};

struct sorted {
    double x;
    size_t row;
};

static int by_x(const void *a, const void *b)
{
    const struct sorted *p = a, *q = b;
    return p->x < q->x ? -1 : p->x > q->x;
}

static void find_points(const struct pe_profile *at, unsigned axis, struct sorted *room, struct points *points)
{
    for (size_t i = 0; i < at->n_rows; i++)
        room[i] = (struct sorted){at->x[axis * at->n_rows + i], i};
    qsort(room, at->n_rows, sizeof *room, by_x);
    points->n = 0;
    points->gap = (double)INFINITY;
    for (size_t i = 0; i < at->n_rows; i++) {
        if (i == 0 || room[i].x - points->x[points->n - 1] > 1e-9 * (1 + fabs(room[i].x))) {
            if (i > 0)
                points->gap = fmin(points->gap, room[i].x - points->x[points->n - 1]);
            points->x[points->n++] = room[i].x;
        }
        points->place[room[i].row] = points->n - 1;
    }
}

static void add_up(const struct pe_sheet *s, size_t pair, struct points *p)
{
    for (size_t j = 0; j < p->n; j++)
        p->re[j] = p->im[j] = p->weight[j] = 0;
    for (size_t i = 0; i < s->n_rows; i++) {
        size_t at = pair * s->n_rows + i, j = p->place[i];
        double length = hypot((double)s->re[at], (double)s->im[at]), weight = fmin((double)s->weight[at], 1);
        if (!(weight > 0) || !(length > 0))
            continue;
        p->re[j] += weight * (double)s->re[at] / length;
        p->im[j] += weight * (double)s->im[at] / length;
        p->weight[j] = fmin(p->weight[j] + weight, 1);
    }
    for (size_t j = 0; j < p->n; j++)
        p->phase[j] = p->re[j] == 0 && p->im[j] == 0 ? (double)NAN : atan2(p->im[j], p->re[j]);
}

struct slope {
    double w, error;
};

/* Moves w by what remains at one lag. false: nothing shows there. */
static bool refine(const struct points *p, size_t lag, double most, double noise, struct slope *s)
{
    double sum = 0, weight = 0;
    for (size_t j = lag; j < p->n; j++) {
        double dx = p->x[j] - p->x[j - lag], turn = p->phase[j] - p->phase[j - lag];
        if (isnan(turn) || dx * s->error >= 0.7 || dx > most)
            continue;
        double share = fmin(p->weight[j], p->weight[j - lag]);
        sum += share * dx * pe_wrap(turn - dx * s->w);
        weight += share * dx * dx;
    }
    if (!(weight > 0))
        return false;
    s->w += sum / weight;
    s->error = fmin(s->error, 2 * noise * sqrt((double)lag / weight));
    return true;
}

static struct slope measure_pair(const struct points *p, double near, double noise)
{
    struct slope s = {near, 0};
    if (p->n < 2 || !refine(p, 1, 1.0001 * p->gap, noise, &s))
        return (struct slope){near, (double)INFINITY};
    s.error = 2 * noise / p->gap;
    for (size_t lag = 1; lag < p->n; lag *= 2)
        refine(p, lag, (double)INFINITY, noise, &s);
    return s;
}

/* Do all points have the phases of this frequency, but for a common one? */
static bool turns_evenly(const struct points *p, double w, double noise)
{
    double re = 0, im = 0;
    for (size_t j = 0; j < p->n; j++)
        if (!isnan(p->phase[j])) {
            re += p->weight[j] * cos(p->phase[j] - p->x[j] * w);
            im += p->weight[j] * sin(p->phase[j] - p->x[j] * w);
        }
    double common = atan2(im, re);
    for (size_t j = 0; j < p->n; j++)
        if (!isnan(p->phase[j]) && fabs(pe_wrap(p->phase[j] - p->x[j] * w - common)) >
                                       4 * noise / sqrt(p->weight[j]) + fabs(p->x[j] * w) * PE_ANGLE_LOSS_MOST + 1e-9)
            return false;
    return true;
}

size_t pe_measure_frequencies(const struct pe_sheet *s, const struct pe_profile *at, struct pe_profile *found,
                              double *work)
{
    size_t n = s->n_rows, n_even = 0;
    struct sorted *room = malloc(n * sizeof *room);
    double *numbers = malloc(5 * n * sizeof *numbers);
    size_t *place = malloc(n * sizeof *place);
    bool goes_on = room && numbers && place;
    struct points p = {0, place, numbers, numbers + n, numbers + 2 * n, numbers + 3 * n, numbers + 4 * n, 0};
    for (unsigned a = 0; goes_on && a < at->n_axes; a++) {
        find_points(at, a, room, &p);
        for (size_t k = 0; goes_on && k < at->n_pairs; k++) {
            if (at->axis[k] != a)
                continue;
            add_up(s, k, &p);
            struct slope slope = measure_pair(&p, at->w[k], s->noise);
            found->w[k] = slope.w;
            found->axis[k] = at->axis[k];
            bool is_even = isfinite(slope.error) && turns_evenly(&p, slope.w, s->noise);
            found->w_error[k] = is_even ? slope.error : (double)INFINITY;
            n_even += is_even;
            *work += POINT_WORK * (double)n + POINT_WORK * (double)p.n * log2((double)p.n + 1);
            goes_on = !pe_is_cancelled() && (is_even || at->n_axes > 1);
        }
    }
    free(room);
    free(numbers);
    free(place);
    return goes_on ? n_even : 0;
}
