/* unique: the smallest distance of two rows. Positions whose rows are equal cannot be distinguished.
 *
 *     value = min over i < j of sqrt(sum over c of (r_ic - r_jc)^2)
 *
 * Distances are computed from differences (core/kernels/compare.c), block by block above the diagonal. The sum over
 * channels only grows, so a block is given up once all of its sums are beyond the smallest found so far. Only the
 * smallest of each row i is kept; the witness is then searched again in the first row that has it. */
#include "core/analysis/analysis.h"
#include "core/kernels/kernels.h"

#include <stdlib.h>

/* A block of columns j is in panels, chunk by chunk of channels, so that a chunk of a block of either side stays in
 * the second-level cache and a panel of it in the first. The first chunks are short: they decide about most blocks. */
enum { COLUMNS = 128, ROWS = 48, SHORTEST = 32, LONGEST = 256, PANEL = PE_PANEL_BYTES / sizeof(double) };

struct search {
    const struct pe_rows *rows;
    double *panels; /* [chunks, COLUMNS, channels of a chunk] */
    double *block;  /* [ROWS, COLUMNS]: squared distances */
    double *least;  /* [n]: of each row to those after it, squared; infinite where it is not the smallest of all */
    double beyond;  /* what is larger than this is not the smallest, nor tied with it */
};

static size_t at_most(size_t n, size_t most) { return n < most ? n : most; }

static size_t chunk_at(const struct pe_rows *rows, size_t x)
{
    return at_most(rows->dim - x, x < SHORTEST ? SHORTEST : at_most(x, LONGEST));
}

/* Keeps the smallest of row i0 + i, of the block's columns from j0 on: only j > i0 + i. */
static void keep_least(struct search *s, size_t i, size_t i0, size_t j0, size_t n)
{
    size_t from = i0 + i + 1 > j0 ? at_most(i0 + i + 1 - j0, n) : 0;
    double here = pe_kernels()->least_f64(s->block + i * COLUMNS + from, n - from);
    if (here >= s->least[i0 + i])
        return;
    double apart = sqrt(here), bound = apart + 2 * pe_tie(apart, s->rows->largest);
    s->least[i0 + i] = here;
    s->beyond = fmin(s->beyond, bound * bound);
}

static bool is_beyond(const struct search *s, size_t m, size_t skip, size_t n)
{
    for (size_t i = 0; i < m; i++)
        if (!(pe_kernels()->least_f64(s->block + i * COLUMNS + skip, n - skip) > s->beyond))
            return false;
    return true;
}

/* Squared distances of m rows from i0 on to the n packed ones from j0 on; panels before the diagonal are skipped.
 * False: cancelled. */
static bool compare(struct search *s, size_t i0, size_t m, size_t j0, size_t n)
{
    const struct pe_rows *rows = s->rows;
    size_t skip = i0 > j0 ? (i0 - j0) / PANEL * PANEL : 0;
    for (size_t x = 0, k; x < rows->dim && !pe_is_cancelled(); x += k) {
        k = chunk_at(rows, x);
        pe_kernels()->apart_f64(m, n - skip, k, rows->at + i0 * rows->dim + x, rows->dim,
                                s->panels + COLUMNS * x + skip * k, x > 0, s->block + skip, COLUMNS);
        if (x + k < rows->dim && is_beyond(s, m, skip, n))
            return !pe_was_cancelled();
    }
    if (pe_was_cancelled())
        return false; /* the block may not be computed */
    for (size_t i = 0; i < m; i++)
        keep_least(s, i, i0, j0, n);
    return true;
}

static void compare_all(struct search *s)
{
    bool goes_on = true;
    for (size_t j0 = 0; goes_on && j0 < s->rows->n; j0 += COLUMNS) {
        size_t n = at_most(s->rows->n - j0, COLUMNS);
        const struct pe_rows *rows = s->rows;
        for (size_t x = 0, k; x < rows->dim; x += k) {
            k = chunk_at(rows, x);
            pe_kernels()->pack_f64(rows->at + j0 * rows->dim + x, rows->dim, n, k, s->panels + COLUMNS * x);
        }
        for (size_t i0 = 0; goes_on && i0 < j0 + n; i0 += ROWS)
            goes_on = compare(s, i0, at_most(j0 + n - i0, ROWS), j0, n);
    }
}

/* ---- The witness ---- */

/* The first j > i at most that far, else the nearest: this sum may round otherwise than the kernel's. */
static size_t find_partner(const struct pe_rows *rows, size_t i, double bound)
{
    size_t nearest = i + 1;
    double least = (double)INFINITY;
    for (size_t j = i + 1; j < rows->n && !pe_was_cancelled(); j++) {
        double d = pe_rows_apart(rows, i, j);
        if (j % 64 == 0)
            pe_is_cancelled();
        if (d <= bound)
            return j;
        if (d < least) {
            least = d;
            nearest = j;
        }
    }
    return nearest;
}

/* ---- The metric ---- */

static const char *const details[] = {
    "The nearest two rows, {witness.rows}, are {value} apart.",
    "The nearest two distances, {witness.distances}, have biases that are {value} apart.",
    "There is only one row, so there is nothing to compare.",
};
enum { OF_ROWS, OF_DISTANCES, ALONE };

static void put(const struct pe_analysis *study, const struct search *s, struct pe_node *out)
{
    const struct pe_rows *rows = s->rows;
    if (rows->n < 2) {
        pe_put_null(out, "value");
        pe_put_null(out, "witness");
        pe_put_detail(out, study->request->lang, details[ALONE]);
        return;
    }
    for (size_t i = 0; i + 1 < rows->n; i++)
        s->least[i] = sqrt(s->least[i]);
    size_t i = pe_first_extreme(s->least, rows->n - 1, -1, rows->largest);
    double value = pe_kernels()->least_f64(s->least, rows->n - 1);
    size_t j = find_partner(rows, i, value + pe_tie(value, rows->largest));
    pe_put_real(out, "value", value);
    pe_put_two_rows(pe_put_object(out, "witness"), rows, i, j);
    pe_put_detail(out, study->request->lang, details[rows->distance ? OF_DISTANCES : OF_ROWS]);
}

/* Fills s->least; close_search afterwards, also after a failure. */
static enum pe_status search(struct search *s, const struct pe_rows *rows, struct pe_failure *err)
{
    *s = (struct search){.rows = rows,
                         .panels = malloc(rows->dim * COLUMNS * sizeof(double)),
                         .block = malloc(ROWS * COLUMNS * sizeof(double)),
                         .least = malloc(rows->n * sizeof(double)),
                         .beyond = (double)INFINITY};
    if (!s->panels || !s->block || !s->least)
        return pe_no_memory(err);
    for (size_t i = 0; i < rows->n; i++)
        s->least[i] = (double)INFINITY;
    compare_all(s);
    return pe_was_cancelled() ? pe_cancelled(err) : PE_OK;
}

static void close_search(struct search *s)
{
    free(s->panels);
    free(s->block);
    free(s->least);
}

static enum pe_status compute(struct pe_analysis *study, struct pe_subject *subject, struct pe_node *out,
                              struct pe_failure *err)
{
    struct search s;
    enum pe_status status = search(&s, &subject->rows, err);
    if (!status)
        put(study, &s, out);
    close_search(&s);
    return !status && pe_was_cancelled() ? pe_cancelled(err) : status;
}

enum pe_status pe_unique_of(const struct pe_rows *rows, double *value, struct pe_failure *err)
{
    struct search s;
    enum pe_status status = search(&s, rows, err);
    if (!status)
        *value = rows->n < 2 ? (double)NAN : sqrt(pe_kernels()->least_f64(s.least, rows->n - 1));
    close_search(&s);
    return status;
}

static void cost(const struct pe_analysis *study, const struct pe_subject *subject, struct pe_metric_cost *cost)
{
    double n = (double)subject->n_rows, dim = (double)subject->dim;
    (void)study;
    cost->work = n * n * dim / 2;
    cost->bytes = (dim * COLUMNS + ROWS * COLUMNS + n) * sizeof(double);
}

const struct pe_metric pe_metric_unique = {
    .info =
        {
            .name = "unique",
            .about = {"unique", "the smallest distance between two rows: 0 if two positions look the same"},
            .applies_to = "schemes with rows: absolute, rotary, and biases by distance",
            .work = "n^2 D / 2",
            .details = details,
            .n_details = sizeof details / sizeof details[0],
        },
    .needs_rows = true,
    .is_of_kernels = true,
    .applies = pe_has_rows,
    .cost = cost,
    .compute = compute,
};
