/* unique: the smallest distance of two rows. Positions whose rows are equal cannot be told apart.
 *
 *     value = min over i < j of sqrt(sum over c of (r_ic - r_jc)^2)
 *
 * All pairs are computed from differences (core/kernels/compare.c), block by block above the diagonal. Only the
 * smallest of each row i is kept; the witness is then searched again in the first row that has it. */
#include "core/analysis/internal.h"
#include "core/kernels/kernels.h"

#include <stdlib.h>

/* A block of columns j stands in panels, chunk by chunk of channels, so that a chunk of a block of either side stays in
 * the second-level cache and a panel of it in the first. */
enum { COLUMNS = 128, ROWS = 96, CHUNK = 256 };

struct search {
    const struct pe_rows *rows;
    double *panels; /* [dim / CHUNK, COLUMNS, CHUNK] */
    double *block;  /* [ROWS, COLUMNS]: squared distances */
    double *least;  /* [n]: of each row to those after it, squared */
};

static size_t at_most(size_t n, size_t most) { return n < most ? n : most; }

static void pack(const struct search *s, size_t j0, size_t n)
{
    const struct pe_rows *rows = s->rows;
    for (size_t x = 0; x < rows->dim; x += CHUNK)
        pe_kernels()->pack_f64(rows->at + j0 * rows->dim + x, rows->dim, n, at_most(rows->dim - x, CHUNK),
                               s->panels + COLUMNS * x);
}

/* Squared distances of m rows from i0 on to the n packed ones from j0 on; false: cancelled. */
static bool compare(struct search *s, size_t i0, size_t m, size_t j0, size_t n)
{
    const struct pe_rows *rows = s->rows;
    for (size_t x = 0; x < rows->dim && !pe_is_cancelled(); x += CHUNK)
        pe_kernels()->apart_f64(m, n, at_most(rows->dim - x, CHUNK), rows->at + i0 * rows->dim + x, rows->dim,
                                s->panels + COLUMNS * x, x > 0, s->block, COLUMNS);
    for (size_t i = i0; i < i0 + m; i++) {
        size_t from = i + 1 > j0 ? i + 1 - j0 : 0; /* only j > i */
        double here = pe_kernels()->least_f64(s->block + (i - i0) * COLUMNS + at_most(from, n), n - at_most(from, n));
        s->least[i] = here < s->least[i] ? here : s->least[i];
    }
    return !pe_was_cancelled();
}

static void compare_all(struct search *s)
{
    bool goes_on = true;
    for (size_t j0 = 0; goes_on && j0 < s->rows->n; j0 += COLUMNS) {
        size_t n = at_most(s->rows->n - j0, COLUMNS);
        pack(s, j0, n);
        for (size_t i0 = 0; goes_on && i0 < j0 + n; i0 += ROWS)
            goes_on = compare(s, i0, at_most(j0 + n - i0, ROWS), j0, n);
    }
}

/* ---- The witness ---- */

static double distance(const struct pe_rows *rows, size_t i, size_t j)
{
    const double *a = rows->at + i * rows->dim, *b = rows->at + j * rows->dim;
    double sum = 0;
    for (size_t x = 0; x < rows->dim; x++)
        sum += (a[x] - b[x]) * (a[x] - b[x]);
    return sqrt(sum);
}

/* The first j > i at most that far, else the nearest: this sum may round otherwise than the kernel's. */
static size_t find_partner(const struct pe_rows *rows, size_t i, double bound)
{
    size_t nearest = i + 1;
    double least = INFINITY;
    for (size_t j = i + 1; j < rows->n && !pe_was_cancelled(); j++) {
        double d = distance(rows, i, j);
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

static const struct pe_text details[] = {
    {"The nearest two rows, {witness.rows}, are {value} apart.", "距离最近的两行为 {witness.rows}，相距 {value}。"},
    {"The nearest two distances, {witness.distances}, have biases that are {value} apart.",
     "偏置最接近的两个距离为 {witness.distances}，其偏置相距 {value}。"},
    {"There is only one row, so there is nothing to compare.", "只有一行，无从比较。"},
};
enum { OF_ROWS, OF_DISTANCES, ALONE };

static void put(const struct pe_analysis *study, const struct search *s, struct pe_node *out)
{
    const struct pe_rows *rows = s->rows;
    if (rows->n < 2) {
        pe_put_null(out, "value");
        pe_put_null(out, "witness");
        pe_put_detail(out, study->request->lang, &details[ALONE]);
        return;
    }
    for (size_t i = 0; i + 1 < rows->n; i++)
        s->least[i] = sqrt(s->least[i]);
    size_t i = pe_first_extreme(s->least, rows->n - 1, -1, rows->largest);
    double value = pe_kernels()->least_f64(s->least, rows->n - 1);
    size_t j = find_partner(rows, i, value + pe_tie(value, rows->largest));
    pe_put_real(out, "value", value);
    pe_put_two_rows(pe_put_object(out, "witness"), rows, i, j);
    pe_put_detail(out, study->request->lang, &details[rows->distance ? OF_DISTANCES : OF_ROWS]);
}

static enum pe_status compute(struct pe_analysis *study, struct pe_subject *subject, struct pe_node *out,
                              struct pe_error *err)
{
    const struct pe_rows *rows = &subject->rows;
    size_t chunks = (rows->dim + CHUNK - 1) / CHUNK;
    struct search s = {.rows = rows,
                       .panels = malloc(chunks * CHUNK * COLUMNS * sizeof(double)),
                       .block = malloc(ROWS * COLUMNS * sizeof(double)),
                       .least = malloc(rows->n * sizeof(double))};
    enum pe_status status = s.panels && s.block && s.least ? PE_OK : pe_no_memory(err);
    for (size_t i = 0; !status && i < rows->n; i++)
        s.least[i] = INFINITY;
    if (!status)
        compare_all(&s);
    if (!status && !pe_was_cancelled())
        put(study, &s, out);
    free(s.panels);
    free(s.block);
    free(s.least);
    return !status && pe_was_cancelled() ? pe_cancelled(err) : status;
}

static bool applies(const struct pe_analysis *study, const struct pe_subject *subject)
{
    (void)study;
    return subject->n_rows > 0;
}

static void cost(const struct pe_analysis *study, const struct pe_subject *subject, struct pe_metric_cost *cost)
{
    double n = (double)subject->n_rows, dim = (double)subject->dim;
    (void)study;
    cost->work = n * n * dim / 2;
    cost->bytes = ((dim + CHUNK) * COLUMNS + ROWS * COLUMNS + n) * sizeof(double);
}

const struct pe_metric pe_metric_unique;
const struct pe_metric pe_metric_unique = {
    .info =
        {
            .name = "unique",
            .about = {"unique", "唯一性", "the smallest distance between two rows: 0 if two positions look the same",
                      "任意两行之间的最小距离；为 0 表示有两个位置无法区分"},
            .applies_to = {"schemes with rows: absolute, rotary, and biases by distance",
                           "有行的方案：绝对、旋转以及按距离的偏置"},
            .work = "n^2 D / 2",
            .details = details,
            .n_details = sizeof details / sizeof details[0],
        },
    .needs_rows = true,
    .applies = applies,
    .cost = cost,
    .compute = compute,
};
