/* shift: is the row k positions on a linear function of the row, the same for all positions? This lets attention
 * learn to look k positions away (Vaswani et al. 2017, section 3.5).
 *
 *     value = max over i, c of |r_{i+k} - M r_i|
 *
 * Sinusoids and rotations have an exact M. Otherwise M is fitted to the pairs of even i, and judged by those of odd i:
 * M = (X⁺ Y)ᵀ, where the rows of X are r_i, those of Y r_{i+k}. */
#include "core/analysis/parts/shift.h"

#include <stdio.h>
#include <stdlib.h>

enum { FITTED_DIM_MAX = 2048 };

/* ---- The result ---- */

static const char *const details[] = {
    "A matrix moves every row exactly: the largest residual is {value}.",
    "A fitted matrix moves every row: the largest residual on rows that it was not fitted to is {value}.",
    "No matrix moves every row: with the best fit, row {witness.row} misses by {value} for k = {witness.k}.",
    "The exact matrix leaves a residual of {value}, at row {witness.row} for k = {witness.k}.",
    "There are too few rows to judge.",
};
enum { EXACT, FITTED, NO_MATRIX, ROUNDED, TOO_FEW };

static int64_t shift_at(const struct pe_analysis *study, size_t i)
{
    return study->fields.k.n ? (int64_t)pe_real_at(&study->fields.k, i) : 1;
}

/* Without `k`, 1; a single row has no neighbour. */
static size_t count_shifts(const struct pe_analysis *study, const struct pe_subject *subject)
{
    return study->fields.k.n ? study->fields.k.n : subject->n_rows > 1;
}

static void put_witness(const struct pe_rows *rows, const struct pe_shift *found, int64_t k, struct pe_node *node)
{
    if (!(found->value > PE_NOISE * rows->largest)) {
        pe_put_null(node, "witness");
        return;
    }
    struct pe_node *witness = pe_put_object(node, "witness");
    pe_put_integer(witness, "k", k);
    pe_put_integer(witness, "row", (int64_t)found->row);
    pe_put_integer(witness, "column", (int64_t)found->column);
}

static void put_number(struct pe_node *node, const char *name, double x)
{
    if (isnan(x))
        pe_put_null(node, name);
    else
        pe_put_real(node, name, x);
}

static void put_one(const struct pe_rows *rows, const struct pe_shift *found, int64_t k, struct pe_node *node)
{
    pe_put_integer(node, "k", k);
    put_number(node, "value", found->value);
    put_number(node, "relative", rows->largest > 0 || isnan(found->value) ? found->value / rows->largest : 0);
    put_witness(rows, found, k, node);
}

/* The smallest k whose residual is the largest of all, ties within a rounding counting as equal. */
static size_t find_worst(const struct pe_shift *found, size_t n, double largest)
{
    size_t worst = 0;
    double value = (double)NAN;
    for (size_t i = 0; i < n; i++)
        value = fmax(value, found[i].value);
    while (worst + 1 < n && !(found[worst].value >= value - pe_tie(value, largest)))
        worst++;
    return worst;
}

static void put(const struct pe_analysis *study, const struct pe_shift_search *s, const struct pe_shift *found,
                size_t n, struct pe_node *out)
{
    struct pe_shift none = {(double)NAN, 0, 0};
    size_t worst = find_worst(found, n, s->rows->largest);
    const struct pe_shift *it = n ? &found[worst] : &none;
    put_number(out, "value", it->value);
    put_witness(s->rows, it, shift_at(study, worst), out);
    pe_put_string(out, "method", s->is_exact ? "exact" : "fit");
    struct pe_node *list = pe_put_list(out, "by_k");
    for (size_t i = 0; i < n; i++)
        put_one(s->rows, &found[i], shift_at(study, i), pe_put_object(list, NULL));
    bool is_noise = !(it->value > PE_NOISE * s->rows->largest);
    pe_put_detail(out, study->request->lang,
                  details[isnan(it->value) ? TOO_FEW
                          : is_noise       ? (s->is_exact ? EXACT : FITTED)
                          : s->is_exact    ? ROUNDED
                                           : NO_MATRIX]);
}

/* ---- The metric ---- */

static enum pe_status find_all(struct pe_analysis *study, const struct pe_subject *subject, struct pe_shift_search *s,
                               struct pe_shift *found, size_t n, struct pe_error *err)
{
    double *tensor = pe_study_tensor(study, subject, "shift_matrix");
    enum pe_status status = PE_OK;
    for (size_t i = 0; !status && i < n && !pe_was_cancelled(); i++) {
        status = pe_shift_find(s, shift_at(study, i), &found[i], err);
        if (!status && tensor)
            pe_shift_write(s, tensor + i * s->rows->dim * s->rows->dim);
    }
    return status;
}

static enum pe_status compute(struct pe_analysis *study, struct pe_subject *subject, struct pe_node *out,
                              struct pe_error *err)
{
    struct pe_shift_search s;
    size_t n = count_shifts(study, subject);
    struct pe_shift *found = malloc((n + 1) * sizeof *found);
    enum pe_status status = pe_shift_open(&s, subject, err);
    if (!status && !found)
        status = pe_no_memory(err);
    if (!status)
        status = find_all(study, subject, &s, found, n, err);
    if (!status && !pe_was_cancelled())
        put(study, &s, found, n, out);
    pe_shift_close(&s);
    free(found);
    return status;
}

/* ---- The row ---- */

static bool applies(const struct pe_analysis *study, const struct pe_subject *subject)
{
    (void)study;
    return subject->is_run && subject->n_rows > 0 && subject->family <= PE_ROTARY &&
           (subject->dim <= FITTED_DIM_MAX || pe_addition_has(subject));
}

static enum pe_status check(const struct pe_analysis *study, const struct pe_subject *subject, struct pe_error *err)
{
    if (study->fields.k.n > subject->n)
        return pe_fail(err, "/k", "k has %llu distances, and the sequence %llu positions; allowed: each distance once",
                       (unsigned long long)study->fields.k.n, (unsigned long long)subject->n);
    for (size_t i = 0; i < study->fields.k.n; i++) {
        double k = pe_real_at(&study->fields.k, i);
        char pointer[32];
        snprintf(pointer, sizeof pointer, "/k/%zu", i);
        if (k != floor(k))
            return pe_fail(err, pointer, "k has %.17g; allowed: integers", k);
        if (k >= (double)subject->n)
            return pe_fail(err, pointer, "k has %.0f, and the sequence %llu positions; allowed: at most %llu", k,
                           (unsigned long long)subject->n, (unsigned long long)subject->n - 1);
    }
    return PE_OK;
}

static void cost(const struct pe_analysis *study, const struct pe_subject *subject, struct pe_metric_cost *cost)
{
    double n = (double)subject->n_rows, dim = (double)subject->dim, shifts = (double)count_shifts(study, subject);
    double rank = fmin(dim, ceil(n / 2)); /* at most: a fit has n/2 pairs of rows */
    cost->work = shifts * (pe_addition_has(subject) ? 2 * n * dim : n * dim * dim + 4 * rank * rank * dim);
    cost->bytes =
        pe_shift_bytes(subject) + shifts * (sizeof(struct pe_shift) + 1024); /* an object of the answer for each */
}

static void shape(const struct pe_analysis *study, const struct pe_subject *subject, size_t i, unsigned *rank,
                  uint64_t *shape)
{
    (void)i;
    *rank = 3;
    shape[0] = count_shifts(study, subject);
    shape[1] = shape[2] = subject->dim;
}

static const struct pe_output_row tensors[] = {
    PE_OUTPUT("shift_matrix", "k,D,D", 1, PE_F64, true, NULL, "shift matrices",
              "the matrix for each k: row i+k of the encoding is the matrix times row i"),
    {.name = NULL},
};

const struct pe_metric pe_metric_shift;
const struct pe_metric pe_metric_shift = {
    .info =
        {
            .name = "shift",
            .about = {"linear shift", "whether one matrix turns every row into the row k positions on"},
            .applies_to = "absolute and rotary schemes at consecutive positions of one axis; without an exact matrix, "
                          "up to 2048 columns",
            .params = "k",
            .work = "n D^2 + 4 r^2 D for each k, r the smaller of D and n/2; with an exact matrix 2 n D",
            .tensors = tensors,
            .details = details,
            .n_details = sizeof details / sizeof details[0],
        },
    .needs_rows = true,
    .is_of_kernels = true,
    .applies = applies,
    .check = check,
    .cost = cost,
    .shape = shape,
    .compute = compute,
};
