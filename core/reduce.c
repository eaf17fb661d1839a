/* Reduces blocks of an output to one number each (mean, largest, smallest), for pictures and summaries of maps that are
 * too large to send.
 *
 * Each number of the answer combines the numbers of its block in row-major order, whichever other numbers are requested
 * with it: so slices of a reduced answer have the same bytes as the whole. Neighbouring numbers of the answer are
 * computed together, so that each row of the whole output is computed once: attention computes a unit of many rows for
 * any part of it.
 *
 * How many are computed together depends on what the scheme calls a unit and on the room for partial results; room is
 * borrowed from the plan by an atomic exchange, or is on the stack if none is free, which is slower and never waits.
 * Values that are not finite are counted apart: a hidden entry of -inf must neither swallow its block nor vanish from a
 * block of hidden entries. */
#include "core/slice.h"
#include "core/kernels/kernels.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Partial results of the blocks: [n] each. */
struct tallies {
    double *values;
    double *counts; /* 0: nothing; 1: nothing finite, the value is the first number; 1 + n: n finite numbers */
};

enum {
    TALLIES = PE_SCRATCH_BYTES / (2 * sizeof(double)), /* on the stack of a fill */
    PIECE = 1024                                       /* numbers of the whole output that are filled at a time */
};

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* ---- Shapes ---- */

uint64_t pe_reduce_block(const struct pe_part *part, unsigned rank)
{
    uint64_t n = 1;
    for (unsigned axis = 0; axis < rank; axis++) {
        uint64_t most = part->stop[axis] - part->start[axis], step = part->step[axis];
        if (__builtin_mul_overflow(n, step < most || most == 0 ? step : most, &n))
            return UINT64_MAX;
    }
    return n;
}

/* The axis along which rows are computed together, and how many: a unit has this many steps of the axis, with all
 * axes after it. Without units, rows are computed one by one. */
static unsigned unit_axis(const struct pe_output *whole, uint64_t *n_rows)
{
    unsigned axis = whole->rank - 1;
    uint64_t stride = 1;
    *n_rows = 1;
    if (!whole->unit)
        return axis ? axis - 1 : 0;
    for (uint64_t next = whole->shape[axis]; axis > 0 && next <= whole->unit; next *= whole->shape[axis]) {
        if (axis < whole->rank - 1 && next == whole->unit) /* this axis has only one unit */
            break;
        stride = next;
        axis--;
    }
    *n_rows = whole->unit / stride;
    return axis;
}

/* Counts the numbers of the answer along this axis of the whole output and all axes after it. */
static uint64_t count_from(const struct pe_part *part, unsigned rank, unsigned axis)
{
    uint64_t n = 1;
    for (; axis < rank; axis++)
        n *= part->count[axis];
    return n;
}

/* Numbers of the answer that share each row of the whole. */
static uint64_t row_of_answer(const struct pe_output *whole, const struct pe_part *part)
{
    uint64_t n_rows;
    return whole->rank > 1 ? count_from(part, whole->rank, unit_axis(whole, &n_rows) + 1) : 1;
}

/* Numbers of the answer that share a unit: some rows of the answer. */
static uint64_t unit_of_answer(const struct pe_output *whole, const struct pe_part *part)
{
    uint64_t n_rows;
    unsigned axis = unit_axis(whole, &n_rows);
    uint64_t together = (n_rows - 1) / part->step[axis] + 1;
    return row_of_answer(whole, part) * least(together, part->count[axis]);
}

/* How many numbers should be reduced at a time, so that nothing is computed twice. The rows of a unit may come one
 * after the other, unless a block has rows of several units. */
static uint64_t wanted(const struct pe_output *whole, const struct pe_part *part)
{
    uint64_t n_rows;
    unsigned axis = unit_axis(whole, &n_rows);
    bool is_thick = axis > 0 && pe_reduce_block(part, axis) > 1;
    return is_thick ? unit_of_answer(whole, part) : row_of_answer(whole, part);
}

void pe_reduce_shape(struct pe_output *answer, const struct pe_output *whole, const struct pe_part *part)
{
    uint64_t n_rows, block = pe_reduce_block(part, whole->rank);
    answer->most = block < PE_REDUCE_PIECE ? PE_REDUCE_PIECE / block : 1;
    answer->unit = answer->period = 0;
    if (whole->rank == 0)
        return;
    unsigned axis = unit_axis(whole, &n_rows);
    uint64_t row = row_of_answer(whole, part);
    if (row > PE_TALLIES_MAX || (row > TALLIES && !whole->unit)) { /* computing parts of rows costs no more */
        answer->most = answer->most > TALLIES ? answer->most : TALLIES;
        return;
    }
    uint64_t unit = unit_of_answer(whole, part);
    answer->unit = unit <= PE_TALLIES_MAX ? unit : row;
    answer->period = count_from(part, whole->rank, axis);
}

/* ---- Room ---- */

struct pe_tallies {
    size_t n; /* size of each room */
    atomic_bool busy[PE_TALLIES_ROOMS];
    double *rooms; /* [PE_TALLIES_ROOMS, 2, n]; pages that are never written take no memory */
};

/* Does a part of a row cost as much as the row? */
static bool is_dear(const struct pe_plan *plan, size_t i) { return plan->outputs[i].unit || plan->work > 0; }

static bool is_reduced(const struct pe_plan *plan, size_t i)
{
    return plan->parts && !plan->parts[i].is_whole && plan->reduce != PE_REDUCE_SAMPLE && plan->outputs[i].rank > 0;
}

enum pe_status pe_tallies_init(struct pe_plan *plan, struct pe_failure *err)
{
    uint64_t n = 0;
    for (size_t i = 0; i < plan->n_outputs; i++) {
        uint64_t more = is_reduced(plan, i) && is_dear(plan, i) ? wanted(&plan->outputs[i], &plan->parts[i]) : 0;
        n = more > n ? least(more, PE_TALLIES_MAX) : n;
    }
    if (n <= TALLIES)
        return PE_OK;
    plan->tallies = calloc(1, sizeof *plan->tallies);
    if (plan->tallies)
        plan->tallies->rooms = malloc(PE_TALLIES_ROOMS * 2 * (size_t)n * sizeof(double));
    if (!plan->tallies || !plan->tallies->rooms)
        return pe_no_memory(err);
    plan->tallies->n = (size_t)n;
    return PE_OK;
}

void pe_tallies_drop(struct pe_plan *plan)
{
    if (plan->tallies)
        free(plan->tallies->rooms);
    free(plan->tallies);
}

double pe_tallies_bytes(const struct pe_plan *plan)
{
    return plan->tallies ? PE_TALLIES_ROOMS * 2 * (double)plan->tallies->n * sizeof(double) : 0;
}

double pe_reduce_passes(const struct pe_plan *plan, size_t i)
{
    if (!is_reduced(plan, i) || !is_dear(plan, i))
        return 1;
    size_t room = plan->tallies ? plan->tallies->n : TALLIES;
    return fmax(1, ceil((double)wanted(&plan->outputs[i], &plan->parts[i]) / (double)room));
}

/* Returns NULL if no room is free or there are none. The caller then uses the stack, which is slower but needs no
 * waiting. */
static double *borrow(struct pe_tallies *tallies, size_t *which)
{
    for (*which = 0; tallies && *which < PE_TALLIES_ROOMS; ++*which)
        if (!atomic_exchange_explicit(&tallies->busy[*which], true, memory_order_acquire))
            return tallies->rooms + *which * 2 * tallies->n;
    return NULL;
}

/* ---- Joining ---- */

PE_INLINED double joined(enum pe_reduce how, double value, double x, bool is_first)
{
    switch (how) {
    case PE_REDUCE_MIN: return is_first || x < value ? x : value;
    case PE_REDUCE_MAX: return is_first || x > value ? x : value;
    case PE_REDUCE_ABSMAX: return is_first || fabs(x) > fabs(value) ? x : value;
    default: return (is_first ? 0 : value) + x;
    }
}

/* Each number belongs to a tally of its own. */
PE_INLINED void join_each(enum pe_reduce how, struct tallies t, const double *x, size_t n)
{
    for (size_t j = 0; j < n; j++) {
        bool is_first = t.counts[j] <= 1;
        t.values[j] = joined(how, t.values[j], x[j], is_first);
        t.counts[j] = is_first ? 2 : t.counts[j] + 1;
    }
}

/* All numbers belong to one tally. */
PE_INLINED void join_all(enum pe_reduce how, struct tallies t, const double *x, size_t n)
{
    double value = joined(how, *t.values, *x, *t.counts <= 1);
    for (size_t j = 1; j < n; j++)
        value = joined(how, value, x[j], false);
    *t.values = value;
    *t.counts = (*t.counts <= 1 ? 1 : *t.counts) + (double)n;
}

/* Adds n finite numbers of a row. Each tally has `step` of them; the first tally has already received `skipped`. */
PE_INLINED void join_finite(enum pe_reduce how, struct tallies t, uint64_t skipped, uint64_t step, const double *x,
                            size_t n)
{
    if (step == 1) {
        join_each(how, t, x, n);
        return;
    }
    for (size_t m = (size_t)least(step - skipped, n); n > 0; x += m, n -= m, m = (size_t)least(step, n)) {
        join_all(how, t, x, m);
        t.values++;
        t.counts++;
    }
}

/* Adding one to an exponent of all ones carries into the sign bit, so a loop without branches can test all numbers. */
static bool are_finite(const double *x, size_t n)
{
    const uint64_t exponent = 0x7ffULL << 52, one = 1ULL << 52;
    uint64_t seen = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        seen |= (bits & exponent) + one;
    }
    return !(seen >> 63);
}

/* Adds n numbers of a row; the first is number col of the first tally. */
static void join(enum pe_reduce how, struct tallies t, uint64_t col, uint64_t step, const double *x, size_t n)
{
    uint64_t skipped = col % step;
    t.values += col / step;
    t.counts += col / step;
    if (!are_finite(x, n)) {
        /* Some numbers are not finite: those are ignored, except that the first number of a block is remembered. */
        for (size_t i = 0; i < n; i++) {
            size_t j = (size_t)((skipped + i) / step);
            bool has_one = t.counts[j] > 0, is_first = t.counts[j] <= 1;
            if (isfinite(x[i])) {
                t.values[j] = joined(how, t.values[j], x[i], is_first);
                t.counts[j] = is_first ? 2 : t.counts[j] + 1;
            } else if (!has_one) {
                t.values[j] = x[i];
                t.counts[j] = 1;
            }
        }
        return;
    }
    switch (how) {
    case PE_REDUCE_MEAN: join_finite(PE_REDUCE_MEAN, t, skipped, step, x, n); break;
    case PE_REDUCE_MIN: join_finite(PE_REDUCE_MIN, t, skipped, step, x, n); break;
    case PE_REDUCE_MAX: join_finite(PE_REDUCE_MAX, t, skipped, step, x, n); break;
    case PE_REDUCE_ABSMAX: join_finite(PE_REDUCE_ABSMAX, t, skipped, step, x, n); break;
    case PE_REDUCE_SAMPLE: break;
    }
}

/* A block without finite numbers keeps its first value, so a hidden entry (-inf) stays hidden. */
static double result(enum pe_reduce how, struct tallies t, size_t j)
{
    if (t.counts[j] <= 1)
        return t.values[j];
    if (how == PE_REDUCE_ABSMAX)
        return fabs(t.values[j]);
    return how == PE_REDUCE_MEAN ? t.values[j] / (t.counts[j] - 1) : t.values[j];
}

/* ---- The numbers of the whole ---- */

/* The blocks of some numbers of the answer: a box in the whole output, read row by row. */
struct box {
    const struct pe_plan *plan;
    size_t i;
    const struct pe_output *whole;
    const struct pe_part *part;
    unsigned tail; /* the box has some steps of this axis, one step of each axis before it, and all steps of each axis
                      after it */
    uint64_t n_steps;
    uint64_t first[PE_RANK_MAX], end[PE_RANK_MAX], at[PE_RANK_MAX], stride[PE_RANK_MAX];
    uint64_t weight[PE_RANK_MAX]; /* numbers of the answer per step of each axis */
    unsigned run;                 /* the axes after it are whole, so its rows are contiguous */
    uint64_t from;                /* index of the first buffered number in the whole output */
    size_t n;                     /* how many numbers are buffered */
    double raw[PIECE], numbers[PIECE];
};

/* Opens the box at a place. tail and n_steps must be set. */
static void open_box(struct box *b, const uint64_t *place)
{
    uint64_t stride = 1, weight = 1;
    for (unsigned axis = b->whole->rank; axis-- > 0;) {
        const struct pe_part *p = b->part;
        uint64_t n_steps = axis > b->tail ? p->count[axis] : axis == b->tail ? b->n_steps : 1;
        b->first[axis] = b->at[axis] = p->start[axis] + place[axis] * p->step[axis];
        b->end[axis] = least(b->first[axis] + n_steps * p->step[axis], p->stop[axis]);
        b->stride[axis] = stride;
        b->weight[axis] = axis >= b->tail ? weight : 0;
        stride *= b->whole->shape[axis];
        weight *= p->count[axis];
    }
    b->n = 0;
    b->run = b->whole->rank - 1;
    while (b->run > 0 && b->first[b->run] == 0 && b->end[b->run] == b->whole->shape[b->run])
        b->run--;
}

/* The end of the contiguous rows that this row belongs to. */
static uint64_t run_end(const struct box *b)
{
    uint64_t flat = b->end[b->run] * b->stride[b->run];
    for (unsigned axis = 0; axis < b->run; axis++)
        flat += b->at[axis] * b->stride[axis];
    return flat;
}

/* pe_convert would check the dtype for each element. */
static void widen(enum pe_dtype dtype, const double *raw, double *numbers, size_t n)
{
    const float *floats = (const float *)(const void *)raw;
    if (dtype != PE_F32) {
        pe_convert(PE_F64, numbers, dtype, raw, n);
        return;
    }
    for (size_t i = 0; i < n; i++)
        numbers[i] = (double)floats[i];
}

/* The numbers of the whole output from index `flat` on, and how many are buffered there. NULL: the work was
 * cancelled. */
static const double *numbers_at(struct box *b, uint64_t flat, size_t *n)
{
    if (flat < b->from || flat - b->from >= b->n) {
        if (pe_is_cancelled())
            return NULL;
        b->from = flat;
        b->n = (size_t)least(run_end(b) - flat, PIECE);
        pe_plan_fill_whole(b->plan, b->i, flat, b->n, b->raw);
        widen(b->whole->dtype, b->raw, b->numbers, b->n);
    }
    *n = b->n - (size_t)(flat - b->from);
    return b->numbers + (flat - b->from);
}

static bool next_row(struct box *b)
{
    for (unsigned axis = b->whole->rank - 1; axis-- > 0;) {
        if (++b->at[axis] < b->end[axis])
            return true;
        b->at[axis] = b->first[axis];
    }
    return false;
}

/* One row of the box; it may take several pieces. */
static void join_row(struct box *b, struct tallies t)
{
    unsigned last = b->whole->rank - 1;
    uint64_t flat = 0, answer = 0, width = b->end[last] - b->first[last];
    for (unsigned axis = 0; axis < last; axis++) {
        flat += b->at[axis] * b->stride[axis];
        if (b->weight[axis])
            answer += (b->at[axis] - b->first[axis]) / b->part->step[axis] * b->weight[axis];
    }
    t.values += answer;
    t.counts += answer;
    for (uint64_t col = 0; col < width;) {
        size_t n;
        const double *x = numbers_at(b, flat + b->first[last] + col, &n);
        if (!x)
            return;
        n = (size_t)least(n, width - col);
        join(b->plan->reduce, t, col, b->part->step[last], x, n);
        col += n;
    }
}

/* ---- The numbers of the answer ---- */

/* Chooses as many of the next n numbers of the answer as form a box: a part of a row, or rows, or rows of several
 * axes. Returns how many. */
static uint64_t choose_box(struct box *b, const uint64_t *place, uint64_t n)
{
    const uint64_t *count = b->part->count;
    uint64_t behind = 1; /* numbers in one step of the tail */
    b->tail = b->whole->rank - 1;
    b->n_steps = least(count[b->tail] - place[b->tail], n);
    while (b->tail > 0 && b->n_steps == count[b->tail] && 2 * behind * b->n_steps <= n) {
        behind *= b->n_steps;
        b->tail--;
        b->n_steps = least(count[b->tail] - place[b->tail], n / behind);
    }
    return behind * b->n_steps;
}

void pe_reduce_fill(const struct pe_plan *plan, size_t i, uint64_t first, size_t n, char *dst)
{
    double stack[2 * TALLIES];
    struct box b = {.plan = plan, .i = i, .whole = &plan->outputs[i], .part = &plan->parts[i]};
    size_t which;
    double *borrowed = borrow(plan->tallies, &which);
    size_t most = borrowed ? plan->tallies->n : TALLIES;
    struct tallies t = {borrowed ? borrowed : stack, (borrowed ? borrowed : stack) + most};
    for (size_t at = 0, m; at < n && !pe_was_cancelled(); at += m) {
        uint64_t place[PE_RANK_MAX];
        pe_part_place(b.part, b.whole->rank, first + at, place);
        m = (size_t)choose_box(&b, place, least(n - at, most));
        /* Computes n numbers of the answer; the tallies have room for n. */
        open_box(&b, place);
        memset(t.values, 0, m * sizeof *t.values);
        memset(t.counts, 0, m * sizeof *t.counts);
        do
            join_row(&b, t);
        while (!pe_was_cancelled() && next_row(&b));
        for (size_t j = 0; j < m; j++)
            pe_store(b.whole->dtype, dst, at + j, result(b.plan->reduce, t, j));
    }
    if (borrowed)
        atomic_store_explicit(&plan->tallies->busy[which], false, memory_order_release);
}
