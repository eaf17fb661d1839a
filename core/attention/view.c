/* Finds the keys that a query sees: a range of keys without the padding in it. */
#include "core/attention/attention.h"
#include "core/encode/encode.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Masks compare positions if each token has its own, else indices in the sequence (aligned bottom-right), e.g. with
 * several axes or class tokens without a position. */
static bool are_runs(const struct pe_plan *plan)
{
    const struct pe_attention *t = plan->attention;
    return t->by_place || plan->seq.piece || (!plan->seq.q->list && !plan->seq.k->list);
}

/* The place of query i if key 0 is at 0. In packed sequences places are indices too. */
static double place(const struct pe_plan *plan, size_t i)
{
    const struct pe_attention *t = plan->attention;
    if (t->by_place || plan->seq.piece)
        return (double)i + (double)t->k_len - (double)t->q_len;
    return (double)i + (plan->seq.q->start - plan->seq.k->start);
}

static size_t clamp(double x, size_t low, size_t high)
{
    return x <= (double)low ? low : x >= (double)high ? high : (size_t)x;
}

/* The keys with q - k < reach_left, k - q ≤ reach_right and, if causal, k ≤ q are first ≤ key < end. All values are
 * integers. */
static void view_of_run(const struct pe_plan *plan, size_t i, struct pe_view *view)
{
    const struct pe_attention *t = plan->attention;
    double q = place(plan, i);
    size_t low = 0, high = t->k_len;
    if (plan->seq.piece) {
        low = t->piece_first[plan->seq.piece[i]];
        high = t->piece_first[plan->seq.piece[i] + 1];
    }
    double end = q + 1 + fmin(t->mask.reach_right, t->mask.causal ? 0 : (double)INFINITY);
    view->first = clamp(q - t->mask.reach_left + 1, low, high);
    view->end = clamp(end, view->first, high);
}

void pe_view_row(const struct pe_plan *plan, size_t batch, size_t i, uint8_t *scratch, struct pe_view *view)
{
    const struct pe_attention *t = plan->attention;
    const struct pe_mask *mask = &t->mask;
    const uint8_t *seen = mask->seen ? mask->seen + batch % mask->n_masks * t->k_len : NULL;
    *view = (struct pe_view){.end = t->k_len, .seen = seen};
    if (are_runs(plan))
        view_of_run(plan, i, view);
    else if (!pe_mask_is_far(mask)) {
        size_t n = plan->attention->k_len;
        double q = pe_position_at(plan->seq.q, i);
        for (size_t j = 0; j < n; j++)
            scratch[j] =
                (!seen || seen[j]) && pe_mask_reaches(&plan->attention->mask, pe_position_at(plan->seq.k, j) - q);
        *view = (struct pe_view){.end = n, .seen = scratch};
    }
    view->is_empty =
        view->first == view->end || (view->seen && !memchr(view->seen + view->first, 1, view->end - view->first));
}

/* ---- How many see nothing ---- */

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* For listed positions: does query q see a key? Finds the first key with q - k < reach_left and checks the other
 * limits for it. */
static bool list_sees(const struct pe_mask *mask, const double *sorted, size_t n, double q)
{
    size_t low = 0, high = n; /* the first key with q - k < reach_left */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (q - sorted[middle] < mask->reach_left)
            high = middle;
        else
            low = middle + 1;
    }
    return low < n && pe_mask_reaches(mask, sorted[low] - q);
}

static uint64_t count_list(const struct pe_plan *plan, size_t batch, double *sorted)
{
    const struct pe_attention *t = plan->attention;
    const uint8_t *mask = t->mask.seen ? t->mask.seen + batch % t->mask.n_masks * t->k_len : NULL;
    size_t n = 0;
    uint64_t empty = 0;
    for (size_t j = 0; j < t->k_len; j++)
        if (!mask || mask[j])
            sorted[n++] = pe_position_at(plan->seq.k, j);
    qsort(sorted, n, sizeof *sorted, compare);
    for (size_t i = 0; i < t->q_len; i++)
        empty += !list_sees(&t->mask, sorted, n, pe_position_at(plan->seq.q, i));
    return empty;
}

/* For runs: the number of seen keys before each key gives the number of seen keys in any range. */
static uint64_t count_runs(const struct pe_plan *plan, size_t batch, double *before)
{
    const struct pe_attention *t = plan->attention;
    const uint8_t *mask = t->mask.seen ? t->mask.seen + batch % t->mask.n_masks * t->k_len : NULL;
    uint64_t empty = 0;
    before[0] = 0;
    for (size_t j = 0; j < t->k_len; j++)
        before[j + 1] = before[j] + (!mask || mask[j]);
    for (size_t i = 0; i < t->q_len; i++) {
        struct pe_view view;
        view_of_run(plan, i, &view);
        empty += before[view.first] == before[view.end];
    }
    return empty;
}

/* Rows of the batch that may see other keys than the rest. */
static uint64_t n_views(const struct pe_plan *plan)
{
    const struct pe_attention *t = plan->attention;
    uint64_t n_batches = pe_sequence_n_batches(&plan->seq), n_masks = t->mask.seen ? t->mask.n_masks : 1;
    return !are_runs(plan) && n_batches > n_masks ? n_batches : n_masks;
}

/* Keys of runs are counted; lists are sorted and searched for each query. */
double pe_view_ns(const struct pe_plan *plan)
{
    const struct pe_attention *t = plan->attention;
    double n = (double)t->k_len + (double)t->q_len, masks = (double)n_views(plan);
    bool is_run = !plan->seq.is_counted && are_runs(plan);
    return masks * n * (is_run ? 20 : 20 * (1 + log2((double)t->k_len + 1)));
}

enum pe_status pe_view_count_empty(struct pe_plan *plan, struct pe_failure *err)
{
    struct pe_attention *t = plan->attention;
    if (pe_plan_admit(plan, 2 * ((double)t->k_len + 1) * sizeof(double), err))
        return err->status;
    double *scratch = malloc((t->k_len + 1) * sizeof *scratch);
    if (!scratch)
        return pe_no_memory(err);
    uint64_t n_different = n_views(plan), empty = 0;
    for (uint64_t batch = 0; batch < n_different; batch++) {
        struct pe_plan room;
        empty += (are_runs(plan) ? count_runs : count_list)(pe_plan_of_batch(plan, batch, &room), batch, scratch);
    }
    t->empty_rows = empty * (t->n_batches / n_different) * t->n_heads;
    free(scratch);
    return PE_OK;
}
