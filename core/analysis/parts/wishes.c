/* Four of the five wishes that introductions to positional encodings make of one: unique, linear, generalises,
 * deterministic; the fifth, that it extends to n dimensions, is in wish_dimensions.c.
 *
 * A wish is a question in words, so each function first fixes what is computed. Unique: the two nearest rows differ,
 * and a row is the same when only half of the positions are asked for. Linear: some matrix moves every row by one
 * position (metric `shift`), or a bias depends on the distance alone. Generalises: there are values at eight times the
 * length, and the largest is at most twice that of the length itself. Deterministic: no weights are learned. The answer
 * is yes, no or not defined, with the number that decided it. */
#include "core/analysis/parts/wishes.h"
#include "core/analysis/study/lengths.h"

#include <stdlib.h>

extern const struct pe_metric pe_metric_unique, pe_metric_shift;

/* Numbers read at a time; fewer of a plan that takes long for each. */
enum { BLOCK = 1 << 15, SLOW_BLOCK = 1 << 11 };

/* The position from which other lengths begin: `offset`, or the first of a list that is a run. */
static int64_t offset_of(const struct pe_subject *subject)
{
    const struct pe_plan *plan = subject->plan;
    if (plan->sequence.positions.n && !plan->seq.k[0].list)
        return (int64_t)plan->seq.k[0].start;
    return plan->sequence.offset != PE_UNSET_INT ? plan->sequence.offset : 0;
}

/* A configuration that has no values at those positions is no failure. */
static bool is_undefined(enum pe_status status) { return status == PE_INVALID || status == PE_TOO_LARGE; }

/* ---- unique ---- */

/* The first half of the positions. Where they were given as a length, half the length: a scheme may turn a length into
 * coordinates of its own. */
static void choose_half(const struct pe_subject *subject, struct pe_run *run, double *list)
{
    const struct pe_sequence *seq = &subject->plan->seq;
    for (size_t i = 0; i < run->n; i++)
        list[i] = pe_position_at(&seq->k[0], i);
    if (!pe_field_find(subject->entry->fields, subject->entry->n_fields, "len") &&
        (seq->k[0].list || seq->piece || seq->n_grid))
        run->positions = list;
}

/* Its rows, asked for alone. rows->n = 0: they are not defined. */
static enum pe_status load_half(struct pe_analysis *study, const struct pe_subject *subject, struct pe_rows *rows,
                                struct pe_error *err)
{
    struct pe_run run = {.n = (subject->n + 1) / 2, .offset = offset_of(subject)};
    double *list = malloc(run.n * sizeof *list);
    struct pe_plan *plan = NULL;
    enum pe_status status = list ? PE_OK : pe_no_memory(err);
    if (!status)
        choose_half(subject, &run, list);
    if (!status)
        status = pe_subject_plan_rows(study, subject, &run, &plan, err);
    *rows = (struct pe_rows){.n = 0};
    if (!status)
        status = pe_rows_init(rows, plan, err);
    pe_plan_free(plan);
    free(list);
    return is_undefined(status) ? PE_OK : status;
}

/* Nearest first, to the left before to the right, as distances are listed. */
static bool is_before(double a, double b) { return fabs(a) < fabs(b) || (fabs(a) == fabs(b) && a < b); }

static double apart(const double *a, const double *b, size_t n)
{
    double most = 0;
    for (size_t i = 0; i < n; i++)
        most = fabs(a[i] - b[i]) > most ? fabs(a[i] - b[i]) : most;
    return most;
}

/* The largest change of a row that both have: the same row, or the same distance. */
static double change_of(const struct pe_rows *half, const struct pe_rows *whole)
{
    double most = 0;
    for (size_t i = 0, j = 0; i < half->n && j < whole->n && !pe_was_cancelled(); i++) {
        if (i % 64 == 0)
            pe_is_cancelled();
        while (half->distance && j < whole->n && is_before(whole->distance[j], half->distance[i]))
            j++;
        if (!half->distance || (j < whole->n && whole->distance[j] == half->distance[i]))
            most = fmax(most, apart(half->at + i * half->dim, whole->at + j * whole->dim, half->dim));
        j += !half->distance;
    }
    return most;
}

enum pe_status pe_wish_unique(struct pe_analysis *study, struct pe_subject *subject, struct pe_wish *wish,
                              struct pe_error *err)
{
    const struct pe_rows *rows = &subject->rows;
    struct pe_rows half;
    *wish = (struct pe_wish){.length_change = (double)NAN};
    enum pe_status status = pe_unique_of(rows, &wish->value, err);
    if (status)
        return status;
    status = load_half(study, subject, &half, err);
    if (status)
        return status;
    if (half.n && half.dim == rows->dim)
        wish->length_change = change_of(&half, rows);
    pe_rows_drop(&half);
    wish->holds = wish->value > 1e-6 * rows->largest && wish->length_change <= 1e-12 * rows->largest;
    return PE_OK;
}

/* ---- linear ---- */

static size_t bias_of(const struct pe_plan *plan)
{
    size_t i = 0;
    while (!pe_same(pe_plan_output(plan, i)->name, "bias"))
        i++;
    return i;
}

/* How much a bias changes from (q, k) to (q + 1, k + 1), where both are seen. */
static double moved(const double *here, const double *next, size_t n)
{
    double most = 0;
    for (size_t i = 0; i + 1 < n; i++) {
        double change = fabs(next[i + 1] - here[i]);
        most = change > most && change < (double)INFINITY ? change : most;
    }
    return most;
}

/* Row by row; Toeplitz maps do not change at all. */
static enum pe_status move_map(const struct pe_plan *plan, double *most, struct pe_error *err)
{
    size_t output = bias_of(plan), n = (size_t)plan->seq.k[0].n, queries = (size_t)plan->seq.q[0].n;
    uint64_t rows = pe_plan_output(plan, output)->n_rows;
    *most = 0;
    if (pe_fill_line(plan, output, 0, 0, 0, NULL))
        return PE_OK;
    double *two = malloc(2 * n * sizeof *two);
    if (!two)
        return pe_no_memory(err);
    for (uint64_t row = 0; row < rows && !pe_is_cancelled(); row++) {
        pe_fill(plan, output, row * n, n, two + row % 2 * n);
        if (row % queries)
            *most = fmax(*most, moved(two + (row + 1) % 2 * n, two + row % 2 * n, n));
    }
    free(two);
    return PE_OK;
}

/* Relative to S; a scheme of zeros moves by nothing. */
enum pe_status pe_wish_linear(struct pe_analysis *study, struct pe_subject *subject, struct pe_wish *wish,
                              struct pe_error *err)
{
    double value = (double)NAN, largest = subject->rows.largest;
    enum pe_status status = PE_OK;
    if (subject->family == PE_BIAS)
        status = move_map(subject->plan, &value, err);
    else if (pe_metric_shift.applies(study, subject))
        status = pe_shift_of(subject, 1, &value, err);
    if (largest > 0)
        value /= largest;
    *wish = (struct pe_wish){.value = value, .holds = value < 1e-6};
    return status;
}

/* ---- generalises ---- */

static double largest_of(double largest, const double *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (fabs(x[i]) > largest && fabs(x[i]) < (double)INFINITY)
            largest = fabs(x[i]);
    return largest;
}

/* The largest of n elements of an output. */
static double largest_in(const struct pe_plan *plan, size_t output, uint64_t first, uint64_t n, double *block)
{
    double largest = 0;
    size_t some;
    for (uint64_t done = 0; done < n && !pe_is_cancelled(); done += some) {
        uint64_t most = pe_plan_output(plan, output)->most, room = pe_plan_pace(plan) == PE_QUICK ? BLOCK : SLOW_BLOCK;
        room = most && most < room ? most : room;
        some = (size_t)(n - done < room ? n - done : room);
        pe_fill(plan, output, first + done, some, block);
        largest = largest_of(largest, block, some);
    }
    return largest;
}

/* S of a plan that pe_subject_plan_rows has made on a run, without its rows in memory. A bias by distance: what the
 * last query sees, and what the first sees after itself. */
static double largest_of_plan(const struct pe_plan *plan, bool is_bias, double *block)
{
    double largest = 0;
    for (size_t i = 0; i < pe_plan_n_outputs(plan); i++) {
        const struct pe_output *output = pe_plan_output(plan, i);
        uint64_t n = plan->seq.k[0].n, heads = is_bias ? output->shape[0] : 0;
        if (!is_bias)
            largest = fmax(largest, largest_in(plan, i, 0, output->n_rows * output->row_len, block));
        for (uint64_t h = 0; h < heads; h++) {
            largest = fmax(largest, largest_in(plan, i, (h * n + n - 1) * n, n, block));
            largest = fmax(largest, largest_in(plan, i, h * n * n + 1, n - 1, block));
        }
    }
    return largest;
}

enum { LONGER = 8 };

enum pe_status pe_wish_generalises(struct pe_analysis *study, struct pe_subject *subject, struct pe_wish *wish,
                                   struct pe_error *err)
{
    struct pe_run run = {.n = LONGER * subject->n, .offset = offset_of(subject)};
    double near = subject->rows.largest, *block = NULL;
    struct pe_plan *plan = NULL;
    enum pe_status status = pe_subject_plan_rows(study, subject, &run, &plan, err);
    *wish = (struct pe_wish){.value = (double)NAN};
    if (status)
        return is_undefined(status) ? PE_OK : status;
    block = malloc(BLOCK * sizeof *block);
    if (!block)
        status = pe_no_memory(err);
    else
        wish->value = near > 0 ? largest_of_plan(plan, subject->family == PE_BIAS, block) / near : 1;
    wish->holds = block && (subject->family == PE_BIAS || wish->value <= 2);
    free(block);
    pe_plan_free(plan);
    return status;
}

/* ---- deterministic ---- */

/* The numbers of all weights. Random directions of Fourier features are drawn once and not learned. */
static double count_learned(const struct pe_plan *plan)
{
    const struct pe_input_row *inputs = plan->scheme->info.inputs;
    double n = 0;
    for (size_t id = 0; inputs && inputs[id].name; id++) {
        const struct pe_tensor *tensor = &plan->weights[id].tensor;
        double size = tensor->rank && !inputs[id].is_operand ? 1 : 0;
        for (unsigned axis = 0; axis < tensor->rank; axis++)
            size *= (double)tensor->shape[axis];
        n += size;
    }
    return pe_same(plan->scheme->info.name, "fourier") ? 0 : n;
}

enum pe_status pe_wish_deterministic(struct pe_analysis *study, struct pe_subject *subject, struct pe_wish *wish,
                                     struct pe_error *err)
{
    (void)study;
    (void)err;
    double n = count_learned(subject->plan);
    *wish = (struct pe_wish){.value = n, .holds = n == 0};
    return PE_OK;
}

/* ---- The cost ---- */

static void add(const struct pe_metric *metric, const struct pe_analysis *study, const struct pe_subject *subject,
                struct pe_metric_cost *all)
{
    struct pe_metric_cost cost = {0, 0};
    if (!metric->applies(study, subject))
        return;
    metric->cost(study, subject, &cost);
    all->work += cost.work;
    all->bytes = fmax(all->bytes, cost.bytes);
}

static double map_work(const struct pe_subject *subject)
{
    const struct pe_plan *plan = subject->plan;
    if (subject->family != PE_BIAS || pe_fill_line(plan, bias_of(plan), 0, 0, 0, NULL))
        return 0;
    return pe_output_work(plan, bias_of(plan));
}

/* A plan of so many positions and its rows. */
static double run_work(const struct pe_subject *subject, double n)
{
    double numbers = (double)subject->n_rows / (double)subject->n * n * (double)subject->dim;
    return pe_planning_work(subject) + pe_numbers_work(subject, numbers) +
           pe_reach_work(subject, (double)offset_of(subject) + n);
}

void pe_wishes_cost(const struct pe_analysis *study, const struct pe_subject *subject, struct pe_metric_cost *cost)
{
    double numbers = (double)subject->n_rows * (double)subject->dim;
    add(&pe_metric_unique, study, subject, cost);
    add(&pe_metric_shift, study, subject, cost);
    cost->work += (LONGER + 1) * numbers + map_work(subject);
    cost->work += run_work(subject, (double)subject->n / 2) + run_work(subject, LONGER * (double)subject->n);
    cost->bytes = fmax(cost->bytes, numbers / 2 * sizeof(double) + (double)subject->n * 8 * sizeof(double));
    cost->bytes = fmax(cost->bytes, BLOCK * sizeof(double));
}
