/* Two rotations compared: are they the same, and how far apart are cos and sin over a model's length?
 *
 *     Δcos = g_A·cos(p·w_A) - g_B·cos(p·w_B), over all pairs and the positions 0 … 4095, then 16384 more evenly up to
 *     the length N, and its last 256.
 *
 * Where the two do not turn the same channels, the channels are compared; one that does not turn has w 0 and factor 1.
 * Differences are rounded to nine decimals: p·w has an error of 2^-53·p·w. What this may cost is known before, and two
 * rotations are compared once in a request. */
#define _GNU_SOURCE /* sincos */
#include "core/dialects/dialects.h"

#include <stdlib.h>
#include <string.h>

/* ---- The same? ---- */

bool pe_is_near(double a, double b) { return a == b || fabs(a - b) <= 0x1p-22 * fmax(fabs(a), fabs(b)); }

static bool are_paired_alike(const struct pe_turn *a, const struct pe_turn *b, bool is_permuted)
{
    return a->n == b->n && a->head_dim == b->head_dim && a->offset == b->offset &&
           (is_permuted || a->is_half == b->is_half);
}

bool pe_turn_same(const struct pe_turn *a, const struct pe_turn *b, bool is_permuted)
{
    if (!are_paired_alike(a, b, is_permuted) || (a->n && !pe_is_near(a->factor, b->factor)))
        return false;
    for (size_t c = 0; c < a->n; c++)
        if (!pe_is_near(a->w[c], b->w[c]))
            return false;
    return true;
}

/* ---- Side by side ---- */

enum { HEAD_MAX = 4096, FINE = 4096, COARSE = 16384, LAST = 256 };
static const double seen = 0.01;

/* Pairs or channels that differ. */
struct both {
    double w[2][HEAD_MAX], factor[2][HEAD_MAX];
    struct point {
        double cos, sin;
    } now[2][HEAD_MAX], step[2][HEAD_MAX]; /* at a position, and what leads to the next */
    double error;                          /* of the differences of now */
    size_t index[HEAD_MAX], n;
    struct begin {
        double p; /* the first position where the pair can differ visibly */
        size_t i;
    } begins[HEAD_MAX];
    uint64_t unasked; /* numbers since the client was asked for */
};

/* Asks about every 5 ms. */
static bool is_left(struct both *both)
{
    both->unasked += both->n + 1;
    if (both->unasked < 1 << 16)
        return pe_was_cancelled();
    both->unasked = 0;
    return pe_is_cancelled();
}

static void add_pair(struct both *both, size_t index, double w_a, double g_a, double w_b, double g_b)
{
    if ((w_a == w_b && g_a == g_b) || both->n == HEAD_MAX)
        return;
    both->w[0][both->n] = w_a;
    both->w[1][both->n] = w_b;
    both->factor[0][both->n] = g_a;
    both->factor[1][both->n] = g_b;
    both->index[both->n++] = index;
}

/* The pair of a channel; n: it does not turn. */
static size_t pair_of(const struct pe_turn *turn, int64_t channel)
{
    int64_t c = channel - turn->offset, n = (int64_t)turn->n;
    if (c < 0 || c >= 2 * n)
        return turn->n;
    return (size_t)(turn->is_half ? c % n : c / 2);
}

static void lay_out(const struct pe_turn *a, const struct pe_turn *b, struct both *both)
{
    both->n = 0;
    if (are_paired_alike(a, b, false)) {
        for (size_t c = 0; c < a->n; c++)
            add_pair(both, c, a->w[c], a->factor, b->w[c], b->factor);
        return;
    }
    int64_t width = a->head_dim > b->head_dim ? a->head_dim : b->head_dim;
    for (int64_t i = 0; i < width; i++) {
        size_t c = pair_of(a, i), d = pair_of(b, i);
        add_pair(both, (size_t)i, c < a->n ? a->w[c] : 0, c < a->n ? a->factor : 1, d < b->n ? b->w[d] : 0,
                 d < b->n ? b->factor : 1);
    }
}

/* |Δcos| and |Δsin| of a pair. */
struct apart {
    double cos, sin;
};

static struct apart apart_at(const struct both *both, size_t i, double p)
{
    double s[2], c[2];
    for (int k = 0; k < 2; k++)
        sincos(p * both->w[k][i], &s[k], &c[k]);
    return (struct apart){fabs(both->factor[0][i] * c[0] - both->factor[1][i] * c[1]),
                          fabs(both->factor[0][i] * s[0] - both->factor[1][i] * s[1])};
}

/* ---- The largest ---- */

/* Most pairs at most positions are far below the largest difference. So the positions of a run are turned from one to
 * the next, a complex product each, and only what comes near the largest is computed from its angle. */
enum { RUN = 64 };

static void set_points(const struct both *both, double p, struct point points[2][HEAD_MAX])
{
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < both->n; i++)
            sincos(p * both->w[k][i], &points[k][i].sin, &points[k][i].cos);
}

/* Of the products of a run, and of angles up to the length. */
static double error_of(const struct both *both, int64_t length)
{
    double error = 0;
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < both->n; i++)
            error = fmax(error, fabs(both->factor[k][i]) * (1e-12 + 0x1p-50 * (double)length * fabs(both->w[k][i])));
    return 2 * error;
}

static void turn_on(struct point *point, const struct point *step)
{
    *point = (struct point){point->cos * step->cos - point->sin * step->sin,
                            point->sin * step->cos + point->cos * step->sin};
}

static void look_closely(const struct both *both, size_t i, int64_t p, struct pe_distance *out)
{
    struct apart apart = apart_at(both, i, (double)p);
    if (apart.cos > out->cos) {
        out->cos = apart.cos;
        out->position = p;
        out->pair = both->index[i];
    }
    out->sin = fmax(out->sin, apart.sin);
}

static void look_at(struct both *both, int64_t p, struct pe_distance *out)
{
    for (size_t i = 0; i < both->n; i++) {
        struct point *a = &both->now[0][i], *b = &both->now[1][i];
        double c = fabs(both->factor[0][i] * a->cos - both->factor[1][i] * b->cos) + both->error;
        double s = fabs(both->factor[0][i] * a->sin - both->factor[1][i] * b->sin) + both->error;
        if (!(c <= out->cos && s <= out->sin))
            look_closely(both, i, p, out);
        turn_on(a, &both->step[0][i]);
        turn_on(b, &both->step[1][i]);
    }
}

static void look_along(struct both *both, int64_t from, int64_t to, int64_t step, struct pe_distance *out)
{
    if (from < to)
        set_points(both, (double)step, both->step);
    for (int64_t p = from, i = 0; p < to && !is_left(both); p += step, i++) {
        if (i % RUN == 0)
            set_points(both, (double)p, both->now);
        look_at(both, p, out);
    }
}

enum { WORK_MAX = 1 << 23 };

/* Of more than some 400 pairs fewer positions are looked at. */
static void find_largest(struct both *both, int64_t length, struct pe_distance *out)
{
    int64_t most = WORK_MAX / (int64_t)(both->n ? both->n : 1) - LAST, all = FINE + COARSE;
    int64_t fine_most = most < all ? FINE * most / all : FINE, coarse_most = most < all ? most - fine_most : COARSE;
    int64_t fine = length < fine_most ? length : fine_most;
    int64_t step = length > fine ? (length - fine + coarse_most - 1) / coarse_most : 1;
    both->error = error_of(both, length);
    look_along(both, 0, fine, 1, out);
    look_along(both, fine, length, step, out);
    look_along(both, length - LAST > fine ? length - LAST : fine, length, 1, out);
}

/* ---- The first ---- */

enum { TRIED_MAX = 1 << 20 };

/* |Δcos| and |Δsin| are at most |g_A - g_B| + max(g)·p·|w_A - w_B|. */
static double reach(const struct both *both, size_t i, double p)
{
    double g_a = both->factor[0][i], g_b = both->factor[1][i];
    return fabs(g_a - g_b) + fmax(g_a, g_b) * p * fabs(both->w[0][i] - both->w[1][i]);
}

static int compare_begins(const void *a, const void *b)
{
    double p = ((const struct begin *)a)->p, q = ((const struct begin *)b)->p;
    return (p > q) - (p < q);
}

static void list_begins(struct both *both, int64_t length)
{
    for (size_t i = 0; i < both->n; i++) {
        double apart = fabs(both->factor[0][i] - both->factor[1][i]);
        double speed = fmax(both->factor[0][i], both->factor[1][i]) * fabs(both->w[0][i] - both->w[1][i]);
        both->begins[i].p = apart > seen ? 0 : speed > 0 ? floor((seen - apart) / speed) : (double)length;
        both->begins[i].i = i;
    }
    qsort(both->begins, both->n, sizeof *both->begins, compare_begins);
}

/* From the position on at which a pair can differ, which no pair can before. */
static void find_first(struct both *both, int64_t length, struct pe_distance *out)
{
    size_t n = 0;
    list_begins(both, length);
    double begin = both->n ? fmin(both->begins[0].p, (double)length) : (double)length;
    int64_t start = (int64_t)begin, work = 0;
    for (int64_t p = start; p < length && !is_left(both); p++) {
        if (p - start >= TRIED_MAX || work > WORK_MAX) {
            out->first_after = p;
            return;
        }
        while (n < both->n && both->begins[n].p <= (double)p)
            n++;
        for (size_t k = 0; k < n; k++) {
            size_t i = both->begins[k].i;
            if (reach(both, i, (double)p) < seen)
                continue;
            work++;
            struct apart apart = apart_at(both, i, (double)p);
            if (apart.cos > seen || apart.sin > seen) {
                out->first = p;
                return;
            }
        }
    }
}

static double nine(double x) { return round(x * 1e9) / 1e9; }

static bool find_distance(const struct pe_turn *a, const struct pe_turn *b, struct pe_distance *out)
{
    struct both *both = malloc(sizeof *both);
    if (!both)
        return false;
    both->unasked = 0;
    lay_out(a, b, both);
    find_largest(both, out->length, out);
    find_first(both, out->length, out);
    out->cos = nine(out->cos);
    out->sin = nine(out->sin);
    free(both);
    return true;
}

/* ---- Each two once ---- */

/* A pair at a position costs as much as so many multiply-adds; and a kind that is read and planned once more. */
enum { NUMBER_WORK = 128, READING_WORK = 1 << 22 };

/* Of each of the two searches the widest head, or the most that it looks at. */
static double measuring_work(int64_t length)
{
    double largest = fmin((double)length, FINE + COARSE + LAST), first = fmin((double)length, TRIED_MAX);
    return NUMBER_WORK * (fmin(HEAD_MAX * largest, WORK_MAX) + fmin(HEAD_MAX * first, WORK_MAX + HEAD_MAX));
}

enum pe_status pe_dialect_admit(const struct pe_explain *ex, double n)
{
    double work = n * (READING_WORK + measuring_work(ex->length)), most = ex->request->max_work;
    if (work <= most)
        return PE_OK;
    pe_fail(ex->err, "", "the comparison with other tools needs up to %.3g multiply-adds; allowed: at most %.3g", work,
            most);
    ex->err->status = PE_TOO_LARGE;
    return pe_advise(ex->err, PE_RAISE_ANALYSIS, NULL);
}

static bool is_same(const struct pe_turn *a, const struct pe_turn *b)
{
    return are_paired_alike(a, b, false) && a->factor == b->factor && memcmp(a->w, b->w, a->n * sizeof *a->w) == 0;
}

static bool is_known(const struct pe_explain *ex, const struct pe_measured *m, const struct pe_turn *a,
                     const struct pe_turn *b, int64_t length)
{
    return (m->distance.length == length || m->distance.length == ex->length) && is_same(&m->ours, a) &&
           is_same(&m->theirs, b);
}

enum pe_status pe_dialect_measure(struct pe_explain *ex, const struct pe_turn *a, const struct pe_turn *b,
                                  bool is_permuted, int64_t length, struct pe_distance *out)
{
    struct pe_turn other = *b;
    struct pe_measured *m = ex->measured;
    other.is_half = is_permuted ? a->is_half : b->is_half;
    while (m && !is_known(ex, m, a, &other, length))
        m = m->next;
    if (!m) {
        m = pe_values_room(ex->values, sizeof *m);
        if (!m)
            return pe_no_memory(ex->err);
        *m = (struct pe_measured){.ours = *a,
                                  .theirs = other,
                                  .distance = {.first = -1, .first_after = -1, .length = length},
                                  .next = ex->measured};
        if (!find_distance(a, &other, &m->distance))
            return pe_no_memory(ex->err);
        ex->measured = m;
    }
    *out = m->distance;
    return PE_OK;
}

const struct pe_member pe_distance_members[] = {
    {.name = "max_abs_cos", .types = "number", .summary = "the largest difference of cosines, with their factors"},
    {.name = "max_abs_sin", .types = "number", .summary = "the same of sines"},
    {.name = "position", .types = "integer", .summary = "where the cosines differ most"},
    {.name = "pair", .types = "integer", .summary = "in which pair; a channel, where other channels are rotated"},
    {.name = "first", .types = "integer|null", .summary = "the first position with a difference above 0.01"},
    {.name = "first_after", .types = "integer", .summary = "up to where it was sought", .is_optional = true},
    {.name = "length", .types = "integer", .summary = "positions that count"},
    {.name = NULL},
};

void pe_put_distance(struct pe_node *node, const char *name, const struct pe_distance *d)
{
    if (!d) {
        pe_put_null(node, name);
        return;
    }
    struct pe_node *child = pe_put_object(node, name);
    pe_put_real(child, "max_abs_cos", d->cos);
    pe_put_real(child, "max_abs_sin", d->sin);
    pe_put_integer(child, "position", d->position);
    pe_put_integer(child, "pair", (int64_t)d->pair);
    pe_put_count_or_null(child, "first", d->first);
    if (d->first_after >= 0)
        pe_put_integer(child, "first_after", d->first_after);
    pe_put_integer(child, "length", d->length);
}
