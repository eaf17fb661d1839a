/* Solving phases: the number x whose multiples they are, modulo whole turns: phase_i = x·w_i + noise (mod 2π).
 *
 * The slowest wave gives x with a large error and without ambiguity, if it has made less than one turn; each faster one
 * is right modulo its own period, and the estimate so far decides which turn. So the error falls from wave to wave down
 * the ladder, as with the hands of a clock, or Fourier sines in phase unwrapping. Where even the slowest wave has
 * turned more than once, each of its possible turns is tried, and the x with the largest mean cosine of what is left
 * wins.
 *
 * The result is a position, a step or a shift of the evidence, found without a search over configurations. */
#include "core/diagnosis/diagnosis.h"

#include <math.h>
#include <stdlib.h>

struct wave {
    double w, phase, weight;
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

/* Refines x by ever faster waves: each wave is right modulo its period, and the estimate so far shows which. */
static double refine(const struct waves *v, double x)
{
    double sum = 0, weights = 0;
    for (size_t i = 0; i < v->n; i++) {
        const struct wave *a = &v->list[i];
        double near = x + pe_wrap(a->phase - x * a->w) / a->w, weight = a->weight * a->w * a->w;
        sum += weight * near;
        weights += weight;
        x = weights > 0 ? sum / weights : x;
        sum = x * weights;
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
            v.list[v.n++] = (struct wave){w[k], phase[k], weight[k]};
            information += weight[k] * w[k] * w[k];
        }
    if (v.n == 0)
        return best;
    sort(&v);
    join(&v);
    double slow = v.list[0].w, period = 2 * PI / fabs(slow);
    int turns = (int)fmin(ceil(most / period), 64);
    for (int turn = 0; turn <= 2 * turns && !pe_is_cancelled(); turn++) {
        int t = turn % 2 ? -(turn + 1) / 2 : turn / 2;
        double x = refine(&v, v.list[0].phase / slow + t * period), score = score_of(&v, x, best.score);
        if (score > best.score + 1e-9)
            best = (struct pe_solved){x, score, 0};
    }
    best.error = noise / sqrt(information);
    return best;
}
