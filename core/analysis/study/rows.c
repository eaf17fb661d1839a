/* The rows that most metrics compare: of an encoding by position, [cos | sin] of a rotary scheme by position, or the
 * heads' biases by distance. */
#include "core/analysis/study/study.h"
#include "core/kernels/kernels.h"

#include <stdlib.h>
#include <string.h>

/* ---- Sizes ---- */

static size_t output_of(const struct pe_plan *plan, const char *name)
{
    size_t i = 0;
    while (i < pe_plan_n_outputs(plan) && strcmp(pe_plan_output(plan, i)->name, name) != 0)
        i++;
    return i;
}

static bool has(const struct pe_plan *plan, const char *name)
{
    return output_of(plan, name) < pe_plan_n_outputs(plan);
}

static bool is_family(const struct pe_plan *plan, const char *family)
{
    return strcmp(pe_plan_scheme(plan)->family, family) == 0;
}

/* A bias by distance; not one by pairs of tokens of a window. */
static bool has_distances(const struct pe_plan *plan)
{
    return is_family(plan, "bias") && plan->seq.n_axes == 1 && plan->seq.n_grid == 0 && has(plan, "bias") &&
           plan->scheme->is_pairwise;
}

static size_t count_distances(const struct pe_plan *plan)
{
    return (size_t)(plan->seq.q[0].n > 1 ? plan->seq.k[0].n * 2 : plan->seq.k[0].n);
}

/* The number of biases is an upper bound: those that no query sees have no row. */
void pe_rows_size(const struct pe_plan *plan, size_t *n, size_t *dim)
{
    *n = *dim = 0;
    if (is_family(plan, "absolute") && has(plan, "encoding")) {
        const struct pe_output *output = pe_plan_output(plan, output_of(plan, "encoding"));
        *n = (size_t)plan->seq.k[0].n;
        *dim = (size_t)(output->n_rows * output->row_len / *n);
    } else if (is_family(plan, "rotary")) {
        struct pe_rotation rotation;
        plan->scheme->rotate(plan, &rotation, NULL);
        *n = (size_t)plan->seq.k[0].n;
        *dim = 2 * rotation.n_pairs;
    } else if (has_distances(plan)) {
        *n = count_distances(plan);
        *dim = (size_t)pe_plan_output(plan, output_of(plan, "bias"))->shape[0];
    }
}

/* ---- Values ---- */

/* Fills n elements of an output in pieces, each short enough to ask between them whether the work is wanted. */
static enum pe_status fill_all(const struct pe_plan *plan, size_t output, uint64_t first, size_t n, double *at,
                               struct pe_failure *err)
{
    enum { PIECE = 1 << 17 };
    for (size_t done = 0; done < n; done += PIECE) {
        if (pe_is_cancelled())
            return pe_cancelled(err);
        pe_fill(plan, output, first + done, n - done < PIECE ? n - done : PIECE, at + done);
    }
    return PE_OK;
}

/* [cos | sin] of form pairs. */
static enum pe_status fill_rotary(struct pe_rows *rows, const struct pe_plan *plan, struct pe_failure *err)
{
    size_t half = rows->dim / 2, cos_at = output_of(plan, "cos"), sin_at = output_of(plan, "sin");
    for (size_t i = 0; i < rows->n; i++) {
        if (i % 64 == 0 && pe_is_cancelled())
            return pe_cancelled(err);
        pe_fill(plan, cos_at, i * half, half, rows->at + i * rows->dim);
        pe_fill(plan, sin_at, i * half, half, rows->at + i * rows->dim + half);
    }
    return PE_OK;
}

/* ---- Biases by distance ---- */

struct seen {
    double distance;
    uint64_t query, key;
};

/* Nearest first; at the same distance a key to the left before one to the right. */
static int compare_seen(const void *left, const void *right)
{
    const struct seen *a = left, *b = right;
    double x = fabs(a->distance), y = fabs(b->distance);
    if (x != y)
        return x < y ? -1 : 1;
    if (a->distance != b->distance)
        return a->distance < b->distance ? -1 : 1;
    return a->key < b->key ? -1 : a->key > b->key;
}

/* Keys at δ ≤ 0 as the last query has them, at δ > 0 as the first. */
static size_t list_seen(const struct pe_plan *plan, struct seen *list)
{
    const struct pe_positions *q = &plan->seq.q[0], *k = &plan->seq.k[0];
    size_t n = 0;
    for (uint64_t j = 0; j < k->n; j++) {
        double last = pe_position_at(k, j) - pe_position_at(q, q->n - 1);
        double first = pe_position_at(k, j) - pe_position_at(q, 0);
        if (last <= 0)
            list[n++] = (struct seen){last, q->n - 1, j};
        if (first > 0)
            list[n++] = (struct seen){first, 0, j};
    }
    qsort(list, n, sizeof *list, compare_seen);
    return n;
}

enum { HEADS_BETWEEN_ASKING = 64 }; /* a single bias may take some microseconds */

/* The biases of all heads at one distance; false: the key is not seen. */
static bool fill_distance(const struct pe_plan *plan, const struct seen *seen, size_t dim, double *at)
{
    size_t output = output_of(plan, "bias");
    uint64_t q_len = plan->seq.q[0].n, k_len = plan->seq.k[0].n;
    bool is_seen = true;
    for (size_t h = 0; h < dim; h++) {
        if (h % HEADS_BETWEEN_ASKING == HEADS_BETWEEN_ASKING - 1 && pe_is_cancelled())
            return false;
        pe_fill(plan, output, (h * q_len + seen->query) * k_len + seen->key, 1, &at[h]);
        if (pe_was_cancelled())
            return false;
        is_seen = is_seen && at[h] != -(double)INFINITY;
    }
    return is_seen;
}

static enum pe_status fill_distances(struct pe_rows *rows, const struct pe_plan *plan, struct pe_failure *err)
{
    struct seen *list = malloc(rows->n * sizeof *list);
    if (!list)
        return pe_no_memory(err);
    size_t n = list_seen(plan, list), kept = 0;
    for (size_t i = 0; i < n && !pe_was_cancelled(); i++) {
        if (i % 64 == 0)
            pe_is_cancelled();
        if (kept > 0 && rows->distance[kept - 1] == list[i].distance)
            continue;
        rows->distance[kept] = list[i].distance;
        kept += fill_distance(plan, &list[i], rows->dim, rows->at + kept * rows->dim);
    }
    free(list);
    rows->n = kept;
    return pe_was_cancelled() ? pe_cancelled(err) : PE_OK;
}

/* ---- The whole ---- */

static double largest_of(const double *x, size_t n)
{
    enum { PIECE = 1 << 17 };
    double largest = 0;
    for (size_t i = 0; i < n && (i % PIECE || !pe_is_cancelled()); i++)
        largest = fabs(x[i]) > largest ? fabs(x[i]) : largest;
    return largest;
}

static enum pe_status fill_rows(struct pe_rows *rows, const struct pe_plan *plan, struct pe_failure *err)
{
    if (rows->distance)
        return fill_distances(rows, plan, err);
    if (is_family(plan, "rotary"))
        return fill_rotary(rows, plan, err);
    /* Channels first, [dim, n], becomes [n, dim]. */
    size_t output = output_of(plan, "encoding");
    if (!pe_absolute_channels_first(plan))
        return fill_all(plan, output, 0, rows->n * rows->dim, rows->at, err);
    double *channel = malloc(rows->n * sizeof *channel);
    enum pe_status status = channel ? PE_OK : pe_no_memory(err);
    for (size_t c = 0; !status && c < rows->dim; c++) {
        status = fill_all(plan, output, c * rows->n, rows->n, channel, err);
        for (size_t i = 0; i < rows->n; i++)
            rows->at[i * rows->dim + c] = channel[i];
    }
    free(channel);
    return status;
}

/* Sent tables may have numbers that no property is defined for. */
static enum pe_status check_finite(const struct pe_rows *rows, struct pe_failure *err)
{
    enum { PIECE = 1 << 17 };
    for (size_t i = 0; i < rows->n * rows->dim && (i % PIECE || !pe_is_cancelled()); i++)
        if (!isfinite(rows->at[i]))
            return pe_fail(err, "", "the encoding is %g at row %zu, column %zu; an analysis needs finite numbers",
                           rows->at[i], i / rows->dim, i % rows->dim);
    return PE_OK;
}

enum pe_status pe_rows_init(struct pe_rows *rows, const struct pe_plan *plan, struct pe_failure *err)
{
    *rows = (struct pe_rows){0};
    pe_rows_size(plan, &rows->n, &rows->dim);
    rows->at = malloc((rows->n * rows->dim + 1) * sizeof *rows->at);
    rows->distance = has_distances(plan) ? malloc((rows->n + 1) * sizeof *rows->distance) : NULL;
    bool fine = rows->at && (rows->distance || !has_distances(plan));
    enum pe_status status = fine ? fill_rows(rows, plan, err) : pe_no_memory(err);
    rows->largest = status ? 0 : largest_of(rows->at, rows->n * rows->dim);
    if (!status)
        status = check_finite(rows, err);
    if (!status && pe_was_cancelled())
        status = pe_cancelled(err);
    if (status)
        pe_rows_drop(rows);
    return status;
}

void pe_rows_drop(struct pe_rows *rows)
{
    pe_free_large(rows->at, rows->n * rows->dim * sizeof *rows->at);
    free(rows->distance);
    *rows = (struct pe_rows){0};
}

/* The plan of the entry gives the rows, unless its outputs are others: a rotary form, or x combined. */
enum pe_status pe_subject_load(struct pe_analysis *study, struct pe_subject *subject, struct pe_failure *err)
{
    static const char *const outputs[][2] = {
        [PE_ABSOLUTE] = {"encoding"}, [PE_ROTARY] = {"cos", "sin"}, [PE_BIAS] = {"bias"}};
    static const struct pe_field pairs = {"form", {.kind = PE_STRING, .string = "pairs"}};
    struct pe_plan *plan;
    bool is_rotary = subject->family == PE_ROTARY;
    if (!is_rotary && has(subject->plan, outputs[subject->family][0]))
        return pe_rows_init(&subject->rows, subject->plan, err);
    struct pe_variant variant = {.operation = PE_ENCODE,
                                 .dtype = PE_F64,
                                 .overrides = &pairs,
                                 .n_overrides = is_rotary,
                                 .outputs = outputs[subject->family],
                                 .n_outputs = is_rotary ? 2 : 1};
    enum pe_status status = pe_subject_plan(study, subject, &variant, &plan, err);
    if (status)
        return status;
    status = pe_rows_init(&subject->rows, plan, err);
    pe_plan_free(plan);
    return status;
}

/* ---- For metrics ---- */

enum { ROUNDED = 256 }; /* numbers at a time */

size_t pe_first_extreme(const double *x, size_t n, int sign, double largest)
{
    double extreme = -(double)INFINITY;
    for (size_t i = 0; i < n; i++)
        extreme = sign * x[i] > extreme ? sign * x[i] : extreme;
    for (size_t i = 0; i < n; i++)
        if (sign * x[i] >= extreme - pe_tie(extreme, largest))
            return i;
    return 0;
}

/* By way of floats, which are wrong only where one of them is a midpoint of the narrower type: then one by one. */
static void round_some(enum pe_dtype dtype, const double *x, size_t n, double *rounded)
{
    float floats[ROUNDED];
    uint16_t narrowed[ROUNDED];
    const struct pe_narrow_type *type = pe_narrow_type(dtype);
    for (size_t i = 0; i < n; i++)
        floats[i] = (float)x[i];
    if (type && type->has_middle(floats, n)) {
        pe_convert(dtype, narrowed, PE_F64, x, n);
        pe_convert(PE_F64, rounded, dtype, narrowed, n);
        return;
    }
    if (type) {
        type->narrow(floats, n, narrowed);
        type->widen(narrowed, n, floats);
    }
    for (size_t i = 0; i < n; i++)
        rounded[i] = (double)floats[i];
}

void pe_round_all(enum pe_dtype dtype, const double *x, size_t n, double *rounded)
{
    for (size_t i = 0; dtype != PE_F64 && i < n; i += ROUNDED)
        round_some(dtype, x + i, n - i < ROUNDED ? n - i : ROUNDED, rounded + i);
    if (dtype == PE_F64)
        memcpy(rounded, x, n * sizeof *x);
}

double pe_sum(const double *x, size_t n)
{
    enum { STRAIGHT = 128 };
    if (n > STRAIGHT)
        return pe_sum(x, n / 2) + pe_sum(x + n / 2, n - n / 2);
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += x[i];
    return sum;
}

/* A distance is an integer unless positions are fractional. */
static void put_place(struct pe_node *node, const char *name, const struct pe_rows *rows, size_t i)
{
    double x = rows->distance ? rows->distance[i] : (double)i;
    if (x == floor(x))
        pe_put_integer(node, name, (int64_t)x);
    else
        pe_put_real(node, name, x);
}

void pe_put_row(struct pe_node *node, const struct pe_rows *rows, size_t i)
{
    put_place(node, rows->distance ? "distance" : "row", rows, i);
}

void pe_put_two_rows(struct pe_node *node, const struct pe_rows *rows, size_t i, size_t j)
{
    struct pe_node *list = pe_put_list(node, rows->distance ? "distances" : "rows");
    put_place(list, NULL, rows, i);
    put_place(list, NULL, rows, j);
}

double pe_rows_apart(const struct pe_rows *rows, size_t i, size_t j)
{
    const double *a = rows->at + i * rows->dim, *b = rows->at + j * rows->dim;
    double sum = 0;
    for (size_t c = 0; c < rows->dim; c++)
        sum += (a[c] - b[c]) * (a[c] - b[c]);
    return sqrt(sum);
}
