/* independence: whether the columns of the encoding are linearly independent, and how nearly they are not.
 *
 *     A = [rows, D] = U S Vᵀ,   value = sigma_D / sigma_1,   rank = number of sigma_i > tolerance * sigma_1
 *
 * with NumPy's tolerance for the rank of a matrix of doubles, max(rows, D) * 2^-52. A column c is apart from the span
 * of all others by
 *
 *     d_c = min over v with v_c = 1 of |A v| = (sum over i of V_ci^2 / sigma_i^2)^(-1/2)
 *
 * and by 0 if a vector that A makes 0 has a part in it: then the squares of its V_ci, over the sigma_i that are
 * counted, do not sum to 1. d_c over the column's length is the sine of its angle to that span: 1 is orthogonal, 0
 * dependent.
 *
 * Waves of different frequencies are independent, but those with wavelengths beyond the number of rows are all nearly
 * constants and straight lines, which doubles soon cannot distinguish. */
#include "core/analysis/analysis.h"
#include "core/kernels/kernels.h"

#include <stdlib.h>
#include <string.h>

enum { DIM_MAX = 2048, NEAREST = 4 };

/* What the sum of a column's V_ci^2 may lack of 1 by rounding, for each column. */
#define LACKING 0x1p-48

struct columns {
    const struct pe_rows *rows;
    double *at;       /* [D, n]: used up */
    double *values;   /* [min(n, D)] */
    double *vectors;  /* [min(n, D), D] */
    double *singular; /* [D]: largest first, 0 beyond the rank */
    double *apart;    /* [D]: d_c over the length of column c */
    double tolerance;
    size_t rank;
};

static int compare_falling(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a < b) - (a > b);
}

/* Where the values are known: how far each column is from the span of the others. */
static void measure(struct columns *c, size_t n_values)
{
    size_t dim = c->rows->dim;
    double largest = 0, *counted = c->at; /* [D]: sum of V_ci^2 of what is counted */
    for (size_t i = 0; i < n_values; i++)
        largest = fmax(largest, c->values[i]);
    memset(counted, 0, dim * sizeof *counted);
    memset(c->apart, 0, dim * sizeof *c->apart);
    memset(c->singular, 0, dim * sizeof *c->singular);
    c->rank = 0;
    for (size_t i = 0; i < n_values && !pe_is_cancelled(); i++) {
        const double *v = c->vectors + i * dim;
        if (!(c->values[i] > c->tolerance * largest))
            continue;
        c->singular[c->rank++] = c->values[i];
        for (size_t j = 0; j < dim; j++) {
            double share = v[j] / c->values[i];
            counted[j] += v[j] * v[j];
            c->apart[j] += share * share;
        }
    }
    for (size_t j = 0; j < dim; j++)
        c->apart[j] = counted[j] > 1 - LACKING * (double)dim ? 1 / sqrt(c->apart[j]) : 0;
    qsort(c->singular, c->rank, sizeof *c->singular, compare_falling);
    /* Over the lengths of the columns, summed row by row. */
    memset(counted, 0, dim * sizeof *counted);
    for (size_t i = 0; i < c->rows->n && (i % 64 || !pe_is_cancelled()); i++)
        for (size_t j = 0; j < dim; j++)
            counted[j] += c->rows->at[i * dim + j] * c->rows->at[i * dim + j];
    for (size_t j = 0; j < dim; j++)
        c->apart[j] = counted[j] > 0 ? fmin(c->apart[j] / sqrt(counted[j]), 1) : 0;
}

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

static size_t count_numbers(size_t n, size_t dim)
{
    return (n > 1 ? n : 1) * dim + least(n, dim) * (dim + 1) + 2 * dim;
}

/* ---- The metric ---- */

static const char *const details[] = {
    "The {columns} columns are linearly independent, the smallest singular value being {value} of the largest; column "
    "{witness.column} is nearest to the span of the others, the sine of its angle to it being {witness.apart}.",
    "In doubles the rank is {rank} of {columns} columns: column {witness.column} is a combination of the others, up to "
    "{tolerance} of the largest singular value.",
    "All columns are 0.",
};
enum { INDEPENDENT, DEPENDENT, ZERO };

/* The columns nearest to the span of the others, nearest first. */
static void put_nearest(const struct columns *c, struct pe_node *out)
{
    size_t dim = c->rows->dim, at[NEAREST] = {0}, n = 0;
    for (size_t j = 0; j < dim; j++) {
        size_t place = n;
        while (place > 0 && c->apart[j] < c->apart[at[place - 1]] * (1 - PE_TIE_OF_EXTREME))
            place--;
        if (place == NEAREST)
            continue;
        n = least(n + 1, NEAREST);
        memmove(at + place + 1, at + place, (n - 1 - place) * sizeof *at);
        at[place] = j;
    }
    struct pe_node *witness = pe_put_object(out, "witness");
    pe_put_integer(witness, "column", (int64_t)at[0]);
    pe_put_real(witness, "apart", c->apart[at[0]]);
    struct pe_node *list = pe_put_list(out, "nearest");
    for (size_t i = 0; i < n; i++) {
        struct pe_node *node = pe_put_object(list, NULL);
        pe_put_integer(node, "column", (int64_t)at[i]);
        pe_put_real(node, "apart", c->apart[at[i]]);
    }
}

static void put_result(struct pe_analysis *study, const struct pe_subject *subject, const struct columns *c,
                       struct pe_node *out)
{
    size_t dim = c->rows->dim;
    double largest = c->singular[0], ratio = largest > 0 ? c->singular[dim - 1] / largest : 0;
    double *singular = pe_study_tensor(study, subject, "singular"), *apart = pe_study_tensor(study, subject, "apart");
    if (singular)
        memcpy(singular, c->singular, dim * sizeof *singular);
    if (apart)
        memcpy(apart, c->apart, dim * sizeof *apart);
    pe_put_real(out, "value", ratio);
    put_nearest(c, out);
    pe_put_integer(out, "columns", (int64_t)dim);
    pe_put_integer(out, "rank", (int64_t)c->rank);
    pe_put_real(out, "tolerance", c->tolerance);
    pe_put_real(out, "largest", largest);
    pe_put_real_or_null(out, "condition", ratio > 0 ? 1 / ratio : (double)NAN);
    pe_put_detail(out, study->request->lang, details[ratio > 0 ? INDEPENDENT : largest > 0 ? DEPENDENT : ZERO]);
}

static enum pe_status compute(struct pe_analysis *study, struct pe_subject *subject, struct pe_node *out,
                              struct pe_failure *err)
{
    const struct pe_rows *rows = &subject->rows;
    size_t n = rows->n, dim = rows->dim, numbers = count_numbers(n, dim), n_values = 0;
    double *room = malloc(numbers * sizeof *room);
    if (!room)
        return pe_no_memory(err);
    struct columns c = {.rows = rows, .at = room, .tolerance = (double)(n > dim ? n : dim) * 0x1p-52};
    c.values = c.at + (n > 1 ? n : 1) * dim;
    c.vectors = c.values + least(n, dim);
    c.singular = c.vectors + least(n, dim) * dim;
    c.apart = c.singular + dim;
    for (size_t i = 0; i < n && (i % 64 || !pe_is_cancelled()); i++)
        for (size_t j = 0; j < dim; j++)
            c.at[j * n + i] = rows->at[i * dim + j];
    enum pe_status status =
        pe_was_cancelled() ? pe_cancelled(err) : pe_singular_values(n, dim, c.at, c.values, c.vectors, &n_values, err);
    if (!status)
        measure(&c, n_values);
    if (!status && !pe_was_cancelled())
        put_result(study, subject, &c, out);
    pe_free_large(room, numbers * sizeof *room);
    return status;
}

/* ---- The row ---- */

static bool applies(const struct pe_analysis *study, const struct pe_subject *subject)
{
    (void)study;
    return subject->n_rows > 0 && subject->dim <= DIM_MAX;
}

static void cost(const struct pe_analysis *study, const struct pe_subject *subject, struct pe_metric_cost *cost)
{
    double n = (double)subject->n_rows, dim = (double)subject->dim, rank = fmin(n, dim);
    (void)study;
    cost->work = n * dim * dim + 20 * rank * rank * rank;
    cost->bytes = (double)count_numbers(subject->n_rows, subject->dim) * sizeof(double) +
                  pe_least_squares_bytes(subject->n_rows, subject->dim);
}

static void shape(const struct pe_analysis *study, const struct pe_subject *subject, size_t i, unsigned *rank,
                  uint64_t *shape)
{
    (void)study;
    (void)i;
    *rank = 1;
    shape[0] = subject->dim;
}

static const struct pe_output_row tensors[] = {
    PE_OUTPUT("singular", "D", 1, PE_F64, false, NULL, "singular values",
              "of the table of rows, largest first; 0 beyond its rank"),
    PE_OUTPUT("apart", "D", 1, PE_F64, false, NULL, "independence of columns",
              "the sine of each column's angle to the span of all others"),
    {.name = NULL},
};

const struct pe_metric pe_metric_independence = {
    .info =
        {
            .name = "independence",
            .about = {"independent columns", "rank of the table of rows, its singular values, and the columns nearest "
                                             "to a combination of the others; only where it is named"},
            .applies_to = "schemes with rows of up to 2048 columns: absolute, rotary, and biases by distance",
            .work = "n D^2 + 20 r^3, r the smaller of D and n",
            .tensors = tensors,
            .details = details,
            .n_details = sizeof details / sizeof details[0],
            .is_named_only = true,
        },
    .needs_rows = true,
    .is_of_kernels = true,
    .applies = applies,
    .cost = cost,
    .shape = shape,
    .compute = compute,
};
