/* step: the distance from a row to the next one. A smooth encoding has small steps of one size.
 *
 *     step[i] = sqrt(sum over c of (r_{i+1,c} - r_ic)^2),   value = max over i of step[i]
 *
 * On a grid the next row is the next along the last axis. A bias has a row for each distance, nearest first, and its
 * step is to the next distance nearer to 0 on the same side. */
#include "core/analysis/analysis.h"

#include <stdlib.h>

/* The row before row i on its side of 0, to which 0 itself belongs; i: there is none. */
static size_t nearer(const struct pe_rows *rows, size_t i)
{
    for (size_t j = i; j-- > 0;)
        if (rows->distance[j] * rows->distance[i] >= 0)
            return j;
    return i;
}

/* Step i is from row before(i) to row i + 1; i + 1: there is none. */
static size_t before(const struct pe_subject *subject, size_t i)
{
    const struct pe_sequence *seq = &subject->plan->seq;
    if (subject->rows.distance)
        return nearer(&subject->rows, i + 1);
    bool begins_line = seq->n_grid && (i + 1) % seq->grid[seq->n_grid - 1] == 0;
    return begins_line ? i + 1 : i;
}

static const char *const details[] = {
    "The largest step between neighbouring rows is {value}, between rows {witness.rows}; the mean is {mean}, the "
    "smallest {min}.",
    "The largest step between neighbouring distances is {value}, between {witness.distances}; the mean is {mean}, "
    "the smallest {min}.",
    "Neighbouring rows do not differ: the largest step is {value}.",
    "No row has a neighbour.",
};
enum { OF_ROWS, OF_DISTANCES, EQUAL, ALONE };

/* kept: the steps that are numbers, n of them. Returns the detail. */
static size_t put_steps(const struct pe_subject *subject, const double *step, const double *kept, size_t n,
                        struct pe_node *out)
{
    const struct pe_rows *rows = &subject->rows;
    if (n == 0) {
        static const char *const names[] = {"value", "witness", "mean", "min"};
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
            pe_put_null(out, names[i]);
        return ALONE;
    }
    double largest = -(double)INFINITY, least = (double)INFINITY;
    for (size_t i = 0; i < n; i++) {
        largest = fmax(largest, kept[i]);
        least = fmin(least, kept[i]);
    }
    size_t at = pe_first_extreme(step, rows->n - 1, 1, rows->largest);
    bool is_noise = largest <= PE_NOISE * rows->largest;
    pe_put_real(out, "value", largest);
    if (is_noise)
        pe_put_null(out, "witness");
    else if (rows->distance)
        pe_put_two_rows(pe_put_object(out, "witness"), rows, at + 1, before(subject, at));
    else
        pe_put_two_rows(pe_put_object(out, "witness"), rows, before(subject, at), at + 1);
    pe_put_real(out, "mean", pe_sum(kept, n) / (double)n);
    pe_put_real(out, "min", least);
    return is_noise ? EQUAL : rows->distance ? OF_DISTANCES : OF_ROWS;
}

static enum pe_status compute(struct pe_analysis *study, struct pe_subject *subject, struct pe_node *out,
                              struct pe_failure *err)
{
    size_t n = subject->rows.n - 1, kept = 0;
    double *tensor = pe_study_tensor(study, subject, "step"), *step = malloc((2 * n + 1) * sizeof *step);
    if (!step)
        return pe_no_memory(err);
    for (size_t i = 0; i + 1 < subject->rows.n && (i % 64 || !pe_is_cancelled()); i++) {
        size_t from = before(subject, i);
        step[i] = from > i ? (double)NAN : pe_rows_apart(&subject->rows, from, i + 1);
    }
    if (pe_was_cancelled()) { /* some steps are not computed */
        free(step);
        return PE_OK;
    }
    for (size_t i = 0; i < n; i++)
        if (!isnan(step[i]))
            step[n + kept++] = step[i];
    for (size_t i = 0; tensor && i < n; i++)
        tensor[i] = step[i];
    pe_put_detail(out, study->request->lang, details[put_steps(subject, step, step + n, kept, out)]);
    free(step);
    return PE_OK;
}

static void cost(const struct pe_analysis *study, const struct pe_subject *subject, struct pe_metric_cost *cost)
{
    (void)study;
    cost->work = (double)subject->n_rows * (double)subject->dim;
    cost->bytes = 2 * (double)subject->n_rows * sizeof(double);
}

static void shape(const struct pe_analysis *study, const struct pe_subject *subject, size_t i, unsigned *rank,
                  uint64_t *shape)
{
    (void)study;
    (void)i;
    *rank = 1;
    shape[0] = subject->n_rows ? subject->n_rows - 1 : 0;
}

static const struct pe_output_row tensors[] = {
    PE_OUTPUT(
        "step", "n-1", 1, PE_F64, false, NULL, "steps",
        "distance of each row to the next; of a bias, of each distance but the first to the next nearer to 0; NaN "
        "where there is none"),
    {.name = NULL},
};

const struct pe_metric pe_metric_step = {
    .info =
        {
            .name = "step",
            .about = {"step", "the distance between neighbouring rows: whether the encoding is smooth"},
            .applies_to = "schemes with rows: absolute, rotary, and biases by distance",
            .work = "n D",
            .tensors = tensors,
            .details = details,
            .n_details = sizeof details / sizeof details[0],
        },
    .needs_rows = true,
    .applies = pe_has_rows,
    .cost = cost,
    .shape = shape,
    .compute = compute,
};
