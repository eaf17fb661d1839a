/* Heads, rows or columns that are those believed, in another order; and memory that was read with its axes in another
 * one. A slice (all numbers of one head, row or column) is found by its sum under random weights, the same for every
 * slice, and then compared number by number. */
#include "core/diagnosis/diagnosis.h"
#include "core/diagnosis/measure/changed.h"

#include <stdio.h>

enum axis { HEADS, ROWS, COLUMNS, N_AXES };

/* Number i of slice k of an axis: flat, in the order of the tensors' rows. */
struct slices {
    size_t n, length, inner, outer_step, step; /* number i of slice k is at i/inner·outer_step + k·step + i%inner */
};

static struct slices slices_of(const struct pe_numbers *s, enum axis axis)
{
    size_t heads = s->sizes.head, rows = s->sizes.row, cols = s->n_cols,
           n = axis == HEADS  ? heads
               : axis == ROWS ? rows
                              : cols;
    size_t step = axis == HEADS ? rows * cols : axis == ROWS ? cols : 1;
    return (struct slices){n, s->n / n, step, n * step, step};
}

static size_t at(const struct slices *a, size_t k, size_t i)
{
    return i / a->inner * a->outer_step + k * a->step + i % a->inner;
}

static double weight(size_t i) { return (double)((uint32_t)(i + 1) * 2654435761u >> 8) * 0x1p-24 - 0.5; }

static double sum_of(const struct slices *a, const double *x, size_t k, double *largest)
{
    double sum = 0;
    for (size_t i = 0; i < a->length; i++) {
        double y = x[at(a, k, i)];
        sum += isnan(y) ? 0 : y * weight(i);
        *largest = isnan(y) ? *largest : fmax(*largest, fabs(y));
    }
    return sum;
}

static bool is_slice(const struct pe_numbers *s, const struct slices *a, size_t found, size_t believed)
{
    for (size_t i = 0; i < a->length; i++) {
        double x = s->found[at(a, found, i)], y = s->believed[at(a, believed, i)];
        if (fabs(x - y) > s->near || isnan(x) != isnan(y))
            return false;
    }
    return true;
}

/* ---- The rule of an order ---- */

/* Number i of the order under a rule with a parameter. */
static size_t rolled(size_t i, size_t n, size_t by) { return (i + by) % n; }
static size_t reversed(size_t i, size_t n, size_t by) { return (void)by, n - 1 - i; }
static size_t exchanged(size_t i, size_t n, size_t by) { return (void)n, i ^ by; }
static size_t transposed(size_t i, size_t n, size_t by) { return i % by * (n / by) + i / by; }

typedef size_t rule(size_t i, size_t n, size_t by);
static rule *const rules[] = {reversed, rolled, exchanged, transposed};

static void state_rule(rule *of, size_t n, size_t by, char *text)
{
    if (of == reversed)
        snprintf(text, PE_CHANGED_TEXT, "%zu-i", n - 1);
    else if (of == rolled)
        snprintf(text, PE_CHANGED_TEXT, "(i + %zu) mod %zu", by, n);
    else if (of == exchanged)
        snprintf(text, PE_CHANGED_TEXT, "i xor %zu", by);
    else
        snprintf(text, PE_CHANGED_TEXT, "%zu*(i mod %zu) + i div %zu", n / by, by, by);
}

static bool has_rule(const uint32_t *order, size_t n, rule *of, size_t by)
{
    size_t i = 0;
    while (i < n && of(i, n, by) == order[i])
        i++;
    return i == n;
}

static void state_order(const uint32_t *order, size_t n, struct pe_changed *out)
{
    bool is_any = false;
    snprintf(out->rule, sizeof out->rule, "order[i]");
    for (size_t r = 0; r < sizeof rules / sizeof *rules; r++)
        for (size_t by = 1; by < n && !is_any; by++) {
            is_any = (rules[r] != transposed || n % by == 0) && has_rule(order, n, rules[r], by);
            if (is_any)
                state_rule(rules[r], n, by, out->rule);
        }
    out->n_order = n < PE_CHANGED_ORDER_MAX ? n : PE_CHANGED_ORDER_MAX;
    for (size_t i = 0; i < out->n_order; i++)
        out->order[i] = order[i];
}

/* ---- One axis ---- */

/* Each slice found is a believed one that no other is; those in their own place keep it. room: [2n]. */
static bool is_moved(struct pe_numbers *s, enum axis axis, uint32_t *room, struct pe_changed *out)
{
    struct slices a = slices_of(s, axis);
    uint32_t *order = room, *is_used = room + a.n;
    double sums[PE_HEAD_DIM_MAX], largest = 0;
    size_t n_moved = 0, most = sizeof sums / sizeof *sums;
    if (a.n < 2 || a.n > most || 2 * a.n > s->n)
        return false;
    for (size_t k = 0; k < a.n; k++) {
        sums[k] = sum_of(&a, s->believed, k, &largest);
        is_used[k] = 0;
    }
    double near = s->near * (double)a.length;
    for (size_t k = 0; k < a.n; k++) {
        double sum = sum_of(&a, s->found, k, &largest);
        size_t j = fabs(sum - sums[k]) <= near && !is_used[k] && is_slice(s, &a, k, k) ? k : 0;
        while (j < a.n && (is_used[j] || fabs(sum - sums[j]) > near || !is_slice(s, &a, k, j)))
            j++;
        if (j == a.n || pe_is_cancelled())
            return false;
        is_used[j] = 1;
        order[k] = (uint32_t)j;
        n_moved += j != k;
    }
    s->work += 4 * (double)s->n;
    if (!n_moved)
        return false;
    out->change = PE_CHANGED_HEADS + (enum pe_changed_how)axis;
    state_order(order, a.n, out);
    return true;
}

/* ---- All axes ---- */

/* The memory of [heads, rows, columns], or of one head, is that of another order of these. */
static bool is_read_otherwise(struct pe_numbers *s, struct pe_changed *out)
{
    static const unsigned char orders[][N_AXES] = {{0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    static const char names[] = "hnd";
    const size_t sizes[N_AXES] = {s->sizes.head, s->sizes.row, s->n_cols};
    const size_t steps[N_AXES] = {sizes[1] * sizes[2], sizes[2], 1}, each = sizes[0] * steps[0];
    for (size_t o = 0; o < sizeof orders / sizeof *orders; o++) {
        const unsigned char *order = orders[o];
        bool holds = true, is_other = false;
        for (size_t i = 0; holds && i < s->n; i++) {
            size_t last = sizes[order[2]], middle = sizes[order[1]], k = i % each;
            size_t from = i / each * each + k % last * steps[order[2]] + k / last % middle * steps[order[1]] +
                          k / last / middle * steps[order[0]];
            holds =
                !(fabs(s->found[i] - s->believed[from]) > s->near) && isnan(s->found[i]) == isnan(s->believed[from]);
            is_other |= from != i && fabs(s->believed[i] - s->believed[from]) > s->near;
        }
        if (!holds || !is_other)
            continue;
        out->change = PE_CHANGED_AXES;
        for (unsigned a = 0, n = 0; a < N_AXES; a++)
            if (sizes[order[a]] > 1)
                out->rule[n++] = names[order[a]];
        for (unsigned a = 0, n = 0; a < N_AXES; a++)
            if (sizes[a] > 1)
                out->first[n++] = names[a];
        return true;
    }
    return false;
}

bool pe_changed_order(struct pe_numbers *s, uint32_t *room, struct pe_changed *out)
{
    for (enum axis axis = HEADS; axis < N_AXES; axis++)
        if (is_moved(s, axis, room, out))
            return true;
    return is_read_otherwise(s, out);
}
