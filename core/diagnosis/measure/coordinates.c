/* The coordinates of a row, from the phases of its pairs, at known frequencies.
 *
 * The slowest pair of an axis shows x over many units, but not sharply; each faster one is known modulo a turn and
 * sharper. So they are taken in turn, slowest first: each moves x by what remains of its phase, by as much as its error
 * and that of x so far allow (a Kalman filter of one number). The first x is the believed one, so of all x with these
 * phases the one nearest to it is found; then 0. A slow pair of few bits may be wrong by a turn, so the three slowest
 * take turns as the first. A row is accepted if every pair agrees with it in the end. */
#include "core/diagnosis/measure/profile.h"

#include <stdlib.h>

enum { STARTS = 3, ROWS_BETWEEN = 32, ROW_WORK = 12, PHASE_WORK = 20 };

#define ANGLE_LOSS 0x1p-22 /* what float32 code usually loses of an angle */

/* The pairs of one axis, slowest first. */
struct pairs {
    size_t at[PE_WAVES_READ], n;
    double w[PE_WAVES_READ];
};

static void sort_pairs(const struct pe_profile *p, unsigned axis, struct pairs *out)
{
    out->n = 0;
    for (size_t k = 0; k < p->n_pairs; k++) {
        if (p->axis[k] != axis || !(fabs(p->w[k]) > 0) || !isfinite(p->w[k]))
            continue;
        size_t i = out->n++;
        for (; i > 0 && fabs(out->w[i - 1]) > fabs(p->w[k]); i--) {
            out->w[i] = out->w[i - 1];
            out->at[i] = out->at[i - 1];
        }
        out->w[i] = p->w[k];
        out->at[i] = k;
    }
}

struct solved {
    double x, variance;
};

static struct solved filter(const struct pairs *pairs, const double *phase, const double *noise, double near,
                            size_t first)
{
    struct solved s = {near, (double)INFINITY};
    for (size_t j = 0; j < pairs->n; j++) {
        size_t k = j < pairs->n - first ? j + first : j - (pairs->n - first);
        double w = pairs->w[k], e = noise[k] + fabs(near * w) * ANGLE_LOSS + 1e-12;
        double gain = isinf(s.variance) ? 1 / w : s.variance * w / (s.variance * w * w + e * e);
        s.variance = isinf(s.variance) ? e * e / (w * w) : (1 - gain * w) * s.variance;
        s.x += gain * pe_wrap(phase[k] - s.x * w);
    }
    return s;
}

static bool agree(const struct pairs *pairs, const double *phase, const double *noise, double x)
{
    for (size_t k = 0; k < pairs->n; k++)
        if (fabs(pe_wrap(phase[k] - x * pairs->w[k])) >
            3 * noise[k] + fabs(x * pairs->w[k]) * PE_ANGLE_LOSS_MOST + 1e-9)
            return false;
    return true;
}

/* false: its pairs agree on no coordinate. */
static bool solve_row(const struct pairs *pairs, const double *phase, const double *noise, double believed, double *x,
                      double *error, double *work)
{
    for (int from_zero = 0; from_zero < 2; from_zero++)
        for (size_t first = 0; first < STARTS && first < pairs->n; first++) {
            struct solved s = filter(pairs, phase, noise, from_zero ? 0 : believed, first);
            *work += ROW_WORK * (double)pairs->n;
            if (!agree(pairs, phase, noise, s.x))
                continue;
            *x = s.x;
            *error = 6 * sqrt(s.variance) + fabs(s.x) * PE_ANGLE_LOSS_MOST + 1e-9;
            return true;
        }
    return false;
}

/* Phases and their noise. false: a number of the row is not known, as those of padding are. */
static bool read_phases(const struct pe_sheet *s, const struct pairs *pairs, size_t row, double *phase, double *noise)
{
    for (size_t k = 0; k < pairs->n; k++) {
        size_t at = pairs->at[k] * s->n_rows + row;
        phase[k] = atan2((double)s->im[at], (double)s->re[at]);
        noise[k] = s->noise / sqrt(fmin(1, (double)s->weight[at]));
        if (!(s->weight[at] > 0) || (s->re[at] == 0 && s->im[at] == 0))
            return false;
    }
    return true;
}

/* Of one axis; adds up rows that do not agree in `misses`. false: most do not, or no client waits any more. */
static bool measure_axis(const struct pe_sheet *s, const struct pe_profile *believed, unsigned axis,
                         struct pe_profile *found, unsigned char *missed, double *work)
{
    enum { FEW = 32 };
    struct pairs pairs;
    double phase[PE_WAVES_READ], noise[PE_WAVES_READ];
    size_t misses = 0;
    sort_pairs(believed, axis, &pairs);
    for (size_t i = 0; i < s->n_rows; i++) {
        size_t at = axis * s->n_rows + i;
        found->x[at] = believed->x[at];
        found->x_error[at] = (double)INFINITY;
        *work += PHASE_WORK * (double)pairs.n;
        if (i % ROWS_BETWEEN == 0 && pe_is_cancelled())
            return false;
        if (pairs.n == 0 || !read_phases(s, &pairs, i, phase, noise) ||
            solve_row(&pairs, phase, noise, believed->x[at], &found->x[at], &found->x_error[at], work))
            continue;
        missed[i] = 1;
        if (++misses > FEW && 2 * misses > i)
            return false;
    }
    return true;
}

size_t pe_measure_coordinates(const struct pe_sheet *s, const struct pe_profile *believed, struct pe_profile *found,
                              double *work)
{
    unsigned char *missed = calloc(s->n_rows + 1, 1);
    size_t n = 0;
    bool goes_on = missed;
    for (unsigned a = 0; goes_on && a < believed->n_axes; a++)
        goes_on = measure_axis(s, believed, a, found, missed, work);
    for (size_t i = 0; goes_on && i < s->n_rows; i++)
        n += !missed[i];
    free(missed);
    for (size_t k = 0; k < believed->n_pairs; k++) {
        found->w[k] = believed->w[k];
        found->axis[k] = believed->axis[k];
    }
    return n;
}
