/* Solving phases: the number whose multiples they are, modulo whole turns. */
#include "core/diagnosis/measure/reading.h"

#include <math.h>
#include <stdlib.h>

static int by_frequency(const void *a, const void *b)
{
    double x = **(const double *const *)a, y = **(const double *const *)b;
    return fabs(x) < fabs(y) ? -1 : fabs(x) > fabs(y);
}

struct waves {
    const double *w, *phase, *weight;
    const double **order; /* into w, slowest first */
    size_t n;
};

/* Refines x by ever faster waves: each wave is right modulo its period, and the estimate so far tells which. */
static double refine(const struct waves *v, double x)
{
    double sum = 0, weights = 0;
    for (size_t i = 0; i < v->n; i++) {
        size_t k = (size_t)(v->order[i] - v->w);
        double w = v->w[k], near = x + pe_wrap(v->phase[k] - x * w) / w, weight = v->weight[k] * w * w;
        sum += weight * near;
        weights += weight;
        x = weights > 0 ? sum / weights : x;
        sum = x * weights;
    }
    return x;
}

static double score_of(const struct waves *v, double x)
{
    double sum = 0, weights = 1e-300;
    for (size_t i = 0; i < v->n; i++) {
        size_t k = (size_t)(v->order[i] - v->w);
        sum += v->weight[k] * cos(v->phase[k] - x * v->w[k]);
        weights += v->weight[k];
    }
    return sum / weights;
}

struct pe_solved pe_solve_phases(const double *w, const double *phase, const double *weight, size_t n, double noise,
                                 double most)
{
    const double *order[PE_HEAD_DIM_MAX];
    struct waves v = {w, phase, weight, order, 0};
    struct pe_solved best = {0, -2, (double)INFINITY};
    double information = 0;
    for (size_t k = 0; k < n && v.n < PE_HEAD_DIM_MAX; k++)
        if (fabs(w[k]) > 1e-12 && weight[k] > 0 && isfinite(phase[k])) {
            order[v.n++] = &w[k];
            information += weight[k] * w[k] * w[k];
        }
    if (v.n == 0)
        return best;
    qsort(order, v.n, sizeof *order, by_frequency);
    size_t slow = (size_t)(order[0] - w);
    double period = 2 * PI / fabs(w[slow]);
    int turns = (int)fmin(ceil(most / period), 64);
    for (int turn = 0; turn <= 2 * turns && !pe_is_cancelled(); turn++) {
        int t = turn % 2 ? -(turn + 1) / 2 : turn / 2;
        double x = refine(&v, phase[slow] / w[slow] + t * period), score = score_of(&v, x);
        if (score > best.score + 1e-9)
            best = (struct pe_solved){x, score, 0};
    }
    best.error = noise / sqrt(information);
    return best;
}
