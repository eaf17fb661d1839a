/* unique: the smallest distance of two rows. Positions whose rows are equal cannot be distinguished.
 *
 *     value = min over i < j of sqrt(sum over c of (r_ic - r_jc)^2)
 *
 * Distances are computed from differences (core/kernels/compare.c), block by block above the diagonal. Rows of a block
 * are in a box, from the smallest to the largest number of each channel, and two rows are at least as far apart as
 * their boxes: a block whose boxes are further apart than the smallest distance found so far is left out. Neighbours of
 * a smooth encoding share a box in all slow channels, so few blocks remain there, beside the diagonal and where all
 * slow waves return together. In the others the sum over channels only grows, so a block is given up once all of its
 * sums are beyond the smallest. Only the smallest of each row i is kept; the witness is then searched again in the
 * first row that has it.
 *
 * Work is stated for all pairs, as no bound on boxes is known before there are rows. Where a rotation turns each row
 * into the next (sinusoids with a cosine for every sine, rotary schemes), it keeps distances, so that all pairs of the
 * same distance in position are equally far apart, and row 0 with each other row has them all: n D. Longer sequences
 * than PE_ANALYSED_POSITIONS_MAX are compared in this way; shorter ones would be too, but for their last bits. */
#include "core/analysis/analysis.h"
#include "core/kernels/kernels.h"

#include <stdlib.h>
#include <string.h>

/* A block of columns j is in panels, chunk by chunk of channels, so that a chunk of a block of either side stays in
 * the second-level cache and a panel of it in the first. The first chunks are short: they decide about most blocks. */
enum { COLUMNS = 128, ROWS = 48, SHORTEST = 32, LONGEST = 256, PANEL = PE_PANEL_BYTES / sizeof(double) };

struct search {
    const struct pe_rows *rows;
    double *panels; /* [chunks, COLUMNS, channels of a chunk] */
    double *block;  /* [ROWS, COLUMNS]: squared distances */
    double *least;  /* [n]: of each row to those after it, squared; infinite where it is not the smallest of all */
    double beyond;  /* what is larger than this is not the smallest, nor tied with it */
    double *boxes;  /* [blocks of ROWS, 2, dim]: least and largest number of each channel */
    double *box;    /* [2, dim]: of the block of columns */
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

/* The box of m rows from i0 on. */
static void bound_rows(const struct pe_rows *rows, size_t i0, size_t m, double *low, double *high)
{
    const double *at = rows->at + i0 * rows->dim;
    memcpy(low, at, rows->dim * sizeof *low);
    memcpy(high, at, rows->dim * sizeof *high);
    for (size_t i = 1; i < m; i++)
        for (size_t c = 0; c < rows->dim; c++) {
            double x = at[i * rows->dim + c];
            low[c] = x < low[c] ? x : low[c];
            high[c] = x > high[c] ? x : high[c];
        }
}

/* Are the boxes of block i0 of rows and of the columns further apart than the smallest distance? Sums round, by less
 * than PE_NOISE. */
static bool is_apart(const struct search *s, size_t i0)
{
    size_t dim = s->rows->dim;
    const double *low = s->boxes + i0 / ROWS * 2 * dim, *high = low + dim;
    double sum = 0, beyond = s->beyond * (1 + PE_NOISE);
    for (size_t c = 0; c < dim && !(sum > beyond); c++) {
        double gap = fmax(fmax(low[c] - s->box[dim + c], s->box[c] - high[c]), 0);
        sum += gap * gap;
    }
    return sum > beyond;
}

static void compare_all(struct search *s)
{
    bool goes_on = true;
    for (size_t i0 = 0; i0 < s->rows->n && !pe_is_cancelled(); i0 += ROWS) {
        double *low = s->boxes + i0 / ROWS * 2 * s->rows->dim;
        bound_rows(s->rows, i0, at_most(s->rows->n - i0, ROWS), low, low + s->rows->dim);
    }
    for (size_t j0 = 0; goes_on && j0 < s->rows->n && !pe_is_cancelled(); j0 += COLUMNS) {
        size_t n = at_most(s->rows->n - j0, COLUMNS);
        const struct pe_rows *rows = s->rows;
        for (size_t x = 0, k; x < rows->dim; x += k) {
            k = chunk_at(rows, x);
            pe_kernels()->pack_f64(rows->at + j0 * rows->dim + x, rows->dim, n, k, s->panels + COLUMNS * x);
        }
        bound_rows(rows, j0, n, s->box, s->box + rows->dim);
        for (size_t i0 = 0; goes_on && i0 < j0 + n; i0 += ROWS)
            goes_on = is_apart(s, i0) || compare(s, i0, at_most(j0 + n - i0, ROWS), j0, n);
    }
}

/* Where a rotation turns each row into the next. */
static void compare_first(struct search *s)
{
    double nearest = (double)INFINITY;
    for (size_t j = 1; j < s->rows->n && (j % 64 || !pe_is_cancelled()); j++)
        nearest = fmin(nearest, pe_rows_apart(s->rows, 0, j));
    s->least[0] = nearest * nearest;
}

static bool is_turned(const struct pe_subject *subject)
{
    return subject->n > PE_ANALYSED_POSITIONS_MAX && pe_is_turned(subject);
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

static void put_result(const struct pe_analysis *study, const struct search *s, struct pe_node *out)
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

/* Numbers of boxes: of the blocks of rows, and of a block of columns. */
static size_t count_boxed(size_t n, size_t dim) { return ((n + ROWS - 1) / ROWS + 1) * 2 * dim; }

/* Fills s->least; close_search afterwards, also after a failure. */
static enum pe_status search(struct search *s, const struct pe_rows *rows, bool by_first, struct pe_failure *err)
{
    *s = (struct search){.rows = rows,
                         .panels = malloc(rows->dim * COLUMNS * sizeof(double)),
                         .block = malloc(ROWS * COLUMNS * sizeof(double)),
                         .least = malloc(rows->n * sizeof(double)),
                         .beyond = (double)INFINITY,
                         .boxes = malloc(count_boxed(rows->n, rows->dim) * sizeof(double))};
    if (!s->panels || !s->block || !s->least || !s->boxes)
        return pe_no_memory(err);
    s->box = s->boxes + count_boxed(rows->n, rows->dim) - 2 * rows->dim;
    for (size_t i = 0; i < rows->n; i++)
        s->least[i] = (double)INFINITY;
    if (by_first)
        compare_first(s);
    else
        compare_all(s);
    return pe_was_cancelled() ? pe_cancelled(err) : PE_OK;
}

static void close_search(struct search *s)
{
    free(s->panels);
    free(s->block);
    free(s->least);
    free(s->boxes);
}

static enum pe_status compute(struct pe_analysis *study, struct pe_subject *subject, struct pe_node *out,
                              struct pe_failure *err)
{
    struct search s;
    enum pe_status status = search(&s, &subject->rows, is_turned(subject), err);
    if (!status)
        put_result(study, &s, out);
    close_search(&s);
    return !status && pe_was_cancelled() ? pe_cancelled(err) : status;
}

enum pe_status pe_unique_of(const struct pe_rows *rows, double *value, struct pe_failure *err)
{
    struct search s;
    enum pe_status status = search(&s, rows, false, err);
    if (!status)
        *value = rows->n < 2 ? (double)NAN : sqrt(pe_kernels()->least_f64(s.least, rows->n - 1));
    close_search(&s);
    return status;
}

static void cost(const struct pe_analysis *study, const struct pe_subject *subject, struct pe_metric_cost *cost)
{
    double n = (double)subject->n_rows, dim = (double)subject->dim;
    (void)study;
    cost->work = is_turned(subject) ? n * dim : n * n * dim / 2;
    cost->bytes =
        (dim * COLUMNS + ROWS * COLUMNS + n + (double)count_boxed(subject->n_rows, subject->dim)) * sizeof(double);
}

const struct pe_metric pe_metric_unique = {
    .info =
        {
            .name = "unique",
            .about = {"unique", "the smallest distance between two rows: 0 if two positions look the same"},
            .applies_to = "schemes with rows: absolute, rotary, and biases by distance",
            .work = "n^2 D / 2; beyond 16384 rows n D where a rotation turns each row into the next",
            .details = details,
            .n_details = sizeof details / sizeof details[0],
        },
    .needs_rows = true,
    .is_of_kernels = true,
    .positions_max = PE_UNPAIRED_POSITIONS_MAX,
    .applies = pe_has_rows,
    .cost = cost,
    .compute = compute,
};
