/* properties: how many of the five wishes of introductions to positional encodings an encoding fulfils: unique, linear,
 * generalises, deterministic, n-dimensional.
 *
 * A wish is a question in words, so each function first fixes what is computed. Unique: the two nearest rows differ,
 * and a row is the same when only half of the positions are asked for. Linear: some matrix moves every row by one
 * position (metric `shift`), or a bias depends on the distance alone. Generalises: there are values at eight times the
 * length, and the largest is at most twice that of the length itself. Deterministic: no weights are learned. The answer
 * is yes, no or not defined, with the number that decided it.
 *
 * On a grid, half and eight times as many positions are those of its first axis; linear asks for a matrix for one step
 * along each axis, fitted to three quarters of the cells and judged on the others, and is not defined where it is not
 * found and the grid has too few cells to fix it; n-dimensional is asked of the grid's own rows. */
#include "core/analysis/analysis.h"
#include "core/kernels/kernels.h"

#include <stdlib.h>

struct wish {
    double value; /* NaN: null */
    bool holds;
    double length_change; /* only of `unique` */
};

struct span {
    double least, most;
};

/* Each needs the rows of the subject. */
typedef enum pe_status wish_fn(struct pe_analysis *study, struct pe_subject *subject, struct wish *wish,
                               struct pe_failure *err);

extern const struct pe_metric pe_metric_unique, pe_metric_shift;

/* Numbers read at a time; fewer of a plan that takes long for each. */
enum { BLOCK = 1 << 15, SLOW_BLOCK = 1 << 11 };

static bool is_grid(const struct pe_subject *subject)
{
    const struct pe_sequence *seq = &subject->plan->seq;
    uint64_t n = 1;
    for (unsigned axis = 0; axis < seq->n_grid; axis++)
        n *= seq->grid[axis];
    return seq->n_axes > 1 && seq->n_grid == seq->n_axes && n == subject->n_rows && subject->family <= PE_ROTARY;
}

/* Its grid with another first axis. */
static struct pe_run grid_run(const struct pe_subject *subject, uint64_t first, double sizes[PE_AXES_MAX])
{
    const struct pe_sequence *seq = &subject->plan->seq;
    for (unsigned axis = 0; axis < seq->n_grid; axis++)
        sizes[axis] = (double)(axis ? seq->grid[axis] : first);
    return (struct pe_run){.n = subject->n / seq->grid[0] * first, .grid = sizes, .n_grid = seq->n_grid};
}

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

/* Its rows, asked for alone. rows->n = 0: they are not defined. */
static enum pe_status load_half(struct pe_analysis *study, const struct pe_subject *subject, struct pe_rows *rows,
                                struct pe_failure *err)
{
    double sizes[PE_AXES_MAX];
    struct pe_run run = is_grid(subject) ? grid_run(subject, (subject->plan->seq.grid[0] + 1) / 2, sizes)
                                         : (struct pe_run){.n = (subject->n + 1) / 2, .offset = offset_of(subject)};
    double *list = malloc(run.n * sizeof *list);
    struct pe_plan *plan = NULL;
    enum pe_status status = list ? PE_OK : pe_no_memory(err);
    if (!status && !run.grid) {
        /* The first half of the positions. Where they were given as a length, half the length: a scheme may turn a
         * length into coordinates of its own. */
        const struct pe_sequence *seq = &subject->plan->seq;
        for (size_t i = 0; i < run.n; i++)
            list[i] = pe_position_at(&seq->k[0], i);
        if (!pe_field_find(subject->entry->fields, subject->entry->n_fields, "len") &&
            (seq->k[0].list || seq->piece || seq->n_grid))
            run.positions = list;
    }
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

/* Rows differ, and do not depend on the length of the sequence. */
static enum pe_status wish_unique(struct pe_analysis *study, struct pe_subject *subject, struct wish *wish,
                                  struct pe_failure *err)
{
    const struct pe_rows *rows = &subject->rows;
    struct pe_rows half;
    *wish = (struct wish){.length_change = (double)NAN};
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
static enum pe_status move_map(const struct pe_plan *plan, double *most, struct pe_failure *err)
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

/* The cell one step along an axis from cell i; 0: there is none. Cells in row-major order. */
static size_t next_cell(const struct pe_sequence *seq, unsigned axis, size_t i)
{
    size_t stride = 1;
    for (unsigned a = axis + 1; a < seq->n_grid; a++)
        stride *= (size_t)seq->grid[a];
    return i / stride % seq->grid[axis] + 1 < seq->grid[axis] ? i + stride : 0;
}

/* One of four cells, in a pattern without gaps along any axis. */
static bool is_judged(const struct pe_sequence *seq, size_t i)
{
    size_t sum = 0;
    for (unsigned axis = seq->n_grid; axis-- > 0; i /= (size_t)seq->grid[axis])
        sum += (axis + 1) * (i % (size_t)seq->grid[axis]);
    return sum % 4 == 0;
}

enum { FITTED_DIM_MAX = 2048 };
#define FIT_CUT 1e-12
#define STEP_HOLDS 1e-6 /* of the largest number */

/* The largest residual, on the judged cells, of the matrix that moves the others by one along this axis. NaN: there are
 * none. is_open: it is large, and fewer cells were fitted than the matrix has columns. a, b: by columns, of at most all
 * cells; m: [dim, dim], x by rows. */
static enum pe_status fit_axis(const struct pe_subject *subject, unsigned axis, double *a, double *b, double *m,
                               double *value, bool *is_open, struct pe_failure *err)
{
    const struct pe_sequence *seq = &subject->plan->seq;
    const struct pe_rows *rows = &subject->rows;
    size_t dim = rows->dim, n_fitted = 0, at = 0, next;
    double most = (double)NAN;
    for (size_t i = 0; i < rows->n; i++)
        n_fitted += next_cell(seq, axis, i) && !is_judged(seq, i);
    if (!n_fitted)
        return PE_OK;
    for (size_t i = 0; i < rows->n && (i % 64 || !pe_is_cancelled()); i++)
        if ((next = next_cell(seq, axis, i)) && !is_judged(seq, i)) {
            for (size_t c = 0; c < dim; c++) {
                a[c * n_fitted + at] = rows->at[i * dim + c];
                b[c * n_fitted + at] = rows->at[next * dim + c];
            }
            at++;
        }
    enum pe_status status = pe_least_squares(n_fitted, dim, dim, a, b, FIT_CUT, m, err);
    for (size_t i = 0; !status && i < rows->n && (i % 16 || !pe_is_cancelled()); i++)
        for (size_t c = 0; c < dim && (next = next_cell(seq, axis, i)) && is_judged(seq, i); c++)
            most = fmax(most,
                        fabs(rows->at[next * dim + c] - pe_kernels()->dot_f64(m + c * dim, rows->at + i * dim, dim)));
    *value = fmax(*value, most);
    *is_open |= n_fitted < dim && most > STEP_HOLDS * rows->largest;
    return status;
}

static enum pe_status fit_axes(const struct pe_subject *subject, double *value, struct pe_failure *err)
{
    size_t dim = subject->rows.dim, n = subject->rows.n;
    bool is_open = false;
    enum pe_status status = PE_OK;
    if (dim > FITTED_DIM_MAX)
        return PE_OK;
    double *a = malloc((2 * n + dim) * dim * sizeof *a);
    if (!a)
        return pe_no_memory(err);
    for (unsigned axis = 0; !status && axis < subject->plan->seq.n_grid && !pe_was_cancelled(); axis++)
        status = fit_axis(subject, axis, a, a + n * dim, a + 2 * n * dim, value, &is_open, err);
    pe_free_large(a, (2 * n + dim) * dim * sizeof *a);
    *value = is_open ? (double)NAN : *value;
    return status;
}

/* The next row is a linear function of a row; a bias depends on distances only. Relative to S; a scheme of zeros moves
 * by nothing. */
static enum pe_status wish_linear(struct pe_analysis *study, struct pe_subject *subject, struct wish *wish,
                                  struct pe_failure *err)
{
    double value = (double)NAN, largest = subject->rows.largest;
    enum pe_status status = PE_OK;
    if (subject->family == PE_BIAS)
        status = move_map(subject->plan, &value, err);
    else if (is_grid(subject))
        status = fit_axes(subject, &value, err);
    else if (pe_metric_shift.applies(study, subject))
        status = pe_shift_of(subject, 1, &value, err);
    if (largest > 0)
        value /= largest;
    *wish = (struct wish){.value = value, .holds = value < STEP_HOLDS};
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

/* Defined at eight times the length, and no larger than twice. */
static enum pe_status wish_generalises(struct pe_analysis *study, struct pe_subject *subject, struct wish *wish,
                                       struct pe_failure *err)
{
    double sizes[PE_AXES_MAX];
    struct pe_run run = is_grid(subject) ? grid_run(subject, LONGER * subject->plan->seq.grid[0], sizes)
                                         : (struct pe_run){.n = LONGER * subject->n, .offset = offset_of(subject)};
    double near = subject->rows.largest, *block = NULL;
    struct pe_plan *plan = NULL;
    enum pe_status status = pe_subject_plan_rows(study, subject, &run, &plan, err);
    *wish = (struct wish){.value = (double)NAN};
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

/* Nothing is learned. */
static enum pe_status wish_deterministic(struct pe_analysis *study, struct pe_subject *subject, struct wish *wish,
                                         struct pe_failure *err)
{
    (void)study;
    (void)err;
    double n = count_learned(subject->plan);
    *wish = (struct wish){.value = n, .holds = n == 0};
    return PE_OK;
}

/* ---- The cost ---- */

static void add_cost(const struct pe_metric *metric, const struct pe_analysis *study, const struct pe_subject *subject,
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

/* Work and memory of all of them. */
static void wishes_cost(const struct pe_analysis *study, const struct pe_subject *subject, struct pe_metric_cost *cost)
{
    double numbers = (double)subject->n_rows * (double)subject->dim;
    add_cost(&pe_metric_unique, study, subject, cost);
    add_cost(&pe_metric_shift, study, subject, cost);
    cost->work += (LONGER + 1) * numbers + map_work(subject);
    cost->work += run_work(subject, (double)subject->n / 2) + run_work(subject, LONGER * (double)subject->n);
    cost->bytes = fmax(cost->bytes, numbers / 2 * sizeof(double) + (double)subject->n * 8 * sizeof(double));
    cost->bytes = fmax(cost->bytes, BLOCK * sizeof(double));
    if (is_grid(subject)) {
        double n = (double)subject->n, dim = (double)subject->dim, rank = fmin(n, dim);
        cost->work += n * n * dim + subject->plan->seq.n_grid * (n * dim * dim + 4 * rank * rank * dim);
        cost->bytes = fmax(cost->bytes, (2 * n + dim) * dim * sizeof(double) +
                                            pe_least_squares_bytes(subject->n_rows, subject->dim));
        cost->bytes = fmax(cost->bytes, n * (1 << PE_AXES_MAX) * sizeof(struct span));
    }
}

/* ---- n_dimensional: do products of rows of a grid depend on the differences of coordinates only? ---- */

enum { SIDE = 8, LEAST_WIDTH = 8 };

/* Rows of the scheme's plain form on a grid of 8 by 8, with the width, base and layout of the subject. */
static size_t put_fields(const struct pe_subject *subject, struct pe_field *fields)
{
    static const double grid[] = {SIDE, SIDE};
    const struct pe_value *config = pe_plan_config(subject->plan);
    bool is_rotary = subject->family == PE_ROTARY;
    size_t n = 0;
    fields[n++] = (struct pe_field){"scheme", {.kind = PE_STRING, .string = pe_plan_scheme(subject->plan)->name}};
    fields[n++] =
        (struct pe_field){is_rotary ? "head_dim" : "dim", {.kind = PE_INTEGER, .integer = (int64_t)subject->dim}};
    fields[n++] = (struct pe_field){"grid", {.kind = PE_ARRAY, .array = {PE_F64, 1, {2}, grid}}};
    if (is_rotary)
        fields[n++] = (struct pe_field){"form", {.kind = PE_STRING, .string = "pairs"}};
    for (size_t i = 0; i < config->object.n; i++)
        if (pe_is_among("base|layout", config->object.fields[i].name))
            fields[n++] = config->object.fields[i];
    return n;
}

static enum pe_status load_grid(const struct pe_subject *subject, struct pe_rows *rows, struct pe_failure *err)
{
    struct pe_field fields[6];
    struct pe_plan *plan;
    struct pe_request request = {.operation = PE_ENCODE, .fields = fields, .dtype = PE_F64};
    request.n_fields = put_fields(subject, fields);
    enum pe_status status = pe_plan_new(&request, &plan, err);
    if (status)
        return status;
    status = pe_rows_init(rows, plan, err);
    pe_plan_free(plan);
    return status;
}

static double product(const struct pe_rows *rows, size_t i, size_t j)
{
    double sum = 0;
    for (size_t c = 0; c < rows->dim; c++)
        sum += rows->at[i * rows->dim + c] * rows->at[j * rows->dim + c];
    return sum;
}

/* The number of the difference of coordinates of cells i and j. */
static size_t difference_of(const uint64_t *grid, unsigned n_grid, size_t i, size_t j)
{
    size_t number = 0, base = 1;
    for (unsigned axis = n_grid; axis-- > 0; i /= (size_t)grid[axis], j /= (size_t)grid[axis]) {
        size_t n = (size_t)grid[axis];
        number += (n + i % n - j % n) * base;
        base *= 2 * n;
    }
    return number;
}

/* The largest spread at one difference, over the largest product. */
static enum pe_status spread_of(const struct pe_rows *rows, const uint64_t *grid, unsigned n_grid, double *value,
                                struct pe_failure *err)
{
    size_t n_spans = rows->n << n_grid;
    struct span *spans = malloc(n_spans * sizeof *spans);
    double spread = 0, largest = 0;
    if (!spans)
        return pe_no_memory(err);
    for (size_t k = 0; k < n_spans; k++)
        spans[k] = (struct span){(double)INFINITY, -(double)INFINITY};
    for (size_t i = 0; i < rows->n && !pe_was_cancelled(); i++)
        for (size_t j = 0; j < rows->n && (j % 64 || !pe_is_cancelled()); j++) {
            double p = product(rows, i, j);
            struct span *span = &spans[difference_of(grid, n_grid, i, j)];
            *span = (struct span){fmin(span->least, p), fmax(span->most, p)};
            spread = fmax(spread, span->most - span->least);
            largest = fmax(largest, fabs(p));
        }
    free(spans);
    *value = largest > 0 ? spread / largest : 0;
    return PE_OK;
}

static enum pe_status wish_n_dimensional(struct pe_analysis *study, struct pe_subject *subject, struct wish *wish,
                                         struct pe_failure *err)
{
    static const uint64_t eight[] = {SIDE, SIDE};
    const char *name = pe_plan_scheme(subject->plan)->name;
    const struct pe_sequence *seq = &subject->plan->seq;
    bool is_free = pe_is_among("learned|fourier", name);
    struct pe_rows rows;
    (void)study;
    *wish = (struct wish){.value = (double)NAN, .holds = is_free};
    if (is_grid(subject)) {
        enum pe_status found = spread_of(&subject->rows, seq->grid, seq->n_grid, &wish->value, err);
        wish->holds = is_free || wish->value < 1e-9;
        return found;
    }
    if (!pe_is_among("sinusoidal|rope", name) || subject->dim < LEAST_WIDTH)
        return PE_OK;
    enum pe_status status = load_grid(subject, &rows, err);
    if (status) /* a width that does not divide by two axes */
        return status == PE_INVALID ? PE_OK : status;
    status = spread_of(&rows, eight, 2, &wish->value, err);
    wish->holds = wish->value < 1e-9;
    pe_rows_drop(&rows);
    return status;
}

/* ---- The metric ---- */

static const struct {
    const char *name;
    wish_fn *compute;
} wishes[] = {
    {"unique", wish_unique},
    {"linear", wish_linear},
    {"generalises", wish_generalises},
    {"deterministic", wish_deterministic},
    {"n_dimensional", wish_n_dimensional},
};
enum { N_WISHES = sizeof wishes / sizeof wishes[0] };

static void put_wish(struct pe_node *list, size_t i, const struct wish *wish)
{
    struct pe_node *out = pe_put_object(list, wishes[i].name);
    if (wishes[i].compute == wish_deterministic)
        pe_put_integer(out, "value", (int64_t)wish->value);
    else
        pe_put_real_or_null(out, "value", wish->value);
    if (wishes[i].compute == wish_unique)
        pe_put_real_or_null(out, "length_change", wish->length_change);
    pe_put_boolean(out, "holds", wish->holds);
}

static const char *const details[] = {
    "{value} of the five wishes hold: {fulfilled}.",
    "None of the five wishes holds: {value}.",
};

static enum pe_status compute(struct pe_analysis *study, struct pe_subject *subject, struct pe_node *out,
                              struct pe_failure *err)
{
    struct wish found[N_WISHES];
    enum pe_status status = PE_OK;
    for (size_t i = 0; !status && i < N_WISHES && !pe_was_cancelled(); i++)
        status = wishes[i].compute(study, subject, &found[i], err);
    if (!status && !pe_was_cancelled()) {
        int64_t n = 0;
        for (size_t i = 0; i < N_WISHES; i++)
            n += found[i].holds;
        pe_put_integer(out, "value", n);
        pe_put_null(out, "witness");
        struct pe_node *names = pe_put_list(out, "fulfilled");
        for (size_t i = 0; i < N_WISHES; i++)
            if (found[i].holds)
                pe_put_string(names, NULL, wishes[i].name);
        struct pe_node *list = pe_put_object(out, "wishes");
        for (size_t i = 0; i < N_WISHES; i++)
            put_wish(list, i, &found[i]);
        pe_put_detail(out, study->request->lang, details[n == 0]);
    }
    return status;
}

static bool applies(const struct pe_analysis *study, const struct pe_subject *subject)
{
    (void)study;
    return subject->n_rows > 0 && (subject->plan->seq.n_axes == 1 || is_grid(subject));
}

const struct pe_metric pe_metric_properties = {
    .info =
        {
            .name = "properties",
            .about = {"five wishes",
                      "unique, linear in shifts, generalises to longer sequences, deterministic, n-dimensional"},
            .applies_to = "schemes with rows on one axis: absolute, rotary, and biases by distance; absolute and "
                          "rotary ones on grids",
            .work = "that of unique and of shift, and 9 n D; on grids n^2 D and for each axis n D^2 more",
            .details = details,
            .n_details = sizeof details / sizeof details[0],
        },
    .needs_rows = true,
    .is_of_kernels = true,
    .applies = applies,
    .cost = wishes_cost,
    .compute = compute,
};
