/* Two rotations compared: are they the same, and how far apart are cos and sin over a model's length?
 *
 *     Δcos = g_A·cos(p·w_A) - g_B·cos(p·w_B), over all pairs and the positions 0 … 4095, then 16384 more evenly up to
 *     the length N, and its last 256.
 *
 * Where the two do not turn the same channels, the channels are compared; one that does not turn has w 0 and factor 1.
 * Differences are rounded to nine decimals: p·w has an error of 2^-53·p·w. */
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

static void add(struct both *both, size_t index, double w_a, double g_a, double w_b, double g_b)
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

static void lay_out(const struct pe_turn *a, const struct pe_turn *b, bool is_permuted, struct both *both)
{
    both->n = 0;
    if (are_paired_alike(a, b, is_permuted)) {
        for (size_t c = 0; c < a->n; c++)
            add(both, c, a->w[c], a->factor, b->w[c], b->factor);
        return;
    }
    int64_t width = a->head_dim > b->head_dim ? a->head_dim : b->head_dim;
    struct pe_turn other = *b;
    other.is_half = is_permuted ? a->is_half : b->is_half;
    for (int64_t i = 0; i < width; i++) {
        size_t c = pair_of(a, i), d = pair_of(&other, i);
        add(both, (size_t)i, c < a->n ? a->w[c] : 0, c < a->n ? a->factor : 1, d < b->n ? b->w[d] : 0,
            d < b->n ? b->factor : 1);
    }
}

static double cos_apart(const struct both *both, size_t i, double p)
{
    return fabs(both->factor[0][i] * cos(p * both->w[0][i]) - both->factor[1][i] * cos(p * both->w[1][i]));
}

static double sin_apart(const struct both *both, size_t i, double p)
{
    return fabs(both->factor[0][i] * sin(p * both->w[0][i]) - both->factor[1][i] * sin(p * both->w[1][i]));
}

/* ---- The largest ---- */

static void look_at(const struct both *both, int64_t p, struct pe_distance *out)
{
    for (size_t i = 0; i < both->n; i++) {
        double c = cos_apart(both, i, (double)p), s = sin_apart(both, i, (double)p);
        if (c > out->cos) {
            out->cos = c;
            out->position = p;
            out->pair = both->index[i];
        }
        out->sin = fmax(out->sin, s);
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
    for (int64_t p = 0; p < fine && !is_left(both); p++)
        look_at(both, p, out);
    for (int64_t p = fine; p < length && !is_left(both); p += step)
        look_at(both, p, out);
    for (int64_t p = length - LAST > fine ? length - LAST : fine; p < length && !is_left(both); p++)
        look_at(both, p, out);
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
            if (cos_apart(both, i, (double)p) > seen || sin_apart(both, i, (double)p) > seen) {
                out->first = p;
                return;
            }
        }
    }
}

static double nine(double x) { return round(x * 1e9) / 1e9; }

bool pe_turn_distance(const struct pe_turn *a, const struct pe_turn *b, bool is_permuted, int64_t length,
                      struct pe_distance *out)
{
    struct both *both = malloc(sizeof *both);
    *out = (struct pe_distance){.first = -1, .first_after = -1, .length = length};
    if (!both)
        return false;
    both->unasked = 0;
    lay_out(a, b, is_permuted, both);
    find_largest(both, length, out);
    find_first(both, length, out);
    out->cos = nine(out->cos);
    out->sin = nine(out->sin);
    free(both);
    return true;
}

/* ---- Each once ---- */

static bool is_same_turn(const struct pe_turn *a, const struct pe_turn *b)
{
    return a->n == b->n && a->factor == b->factor && a->head_dim == b->head_dim && a->offset == b->offset &&
           memcmp(a->w, b->w, a->n * sizeof *a->w) == 0;
}

/* Tools that compute the same numbers share the work, whatever their pairing is, if it is that of the other side; and
 * rotations that are the same at several lengths are measured at the answer's. */
enum pe_status pe_dialect_distance(struct pe_explain *ex, const struct pe_turn *a, const struct pe_turn *b,
                                   bool is_permuted, int64_t length, struct pe_distance *out)
{
    bool is_alike = are_paired_alike(a, b, is_permuted);
    for (size_t i = 0; i < ex->n_measured; i++) {
        const struct pe_measured *m = &ex->measured[i];
        bool has_pairing =
            m->are_paired_alike == is_alike && (is_alike || (m->a.is_half == a->is_half && m->b.is_half == b->is_half));
        if (has_pairing && (m->distance.length == length || m->distance.length == ex->length) &&
            is_same_turn(&m->a, a) && is_same_turn(&m->b, b)) {
            *out = m->distance;
            return PE_OK;
        }
    }
    if (!pe_turn_distance(a, b, is_permuted, length, out))
        return pe_no_memory(ex->err);
    if (ex->n_measured < PE_DIALECT_MEASURED_MAX)
        ex->measured[ex->n_measured++] = (struct pe_measured){*a, *b, is_alike, *out};
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
    if (d->first >= 0)
        pe_put_integer(child, "first", d->first);
    else
        pe_put_null(child, "first");
    if (d->first_after >= 0)
        pe_put_integer(child, "first_after", d->first_after);
    pe_put_integer(child, "length", d->length);
}
