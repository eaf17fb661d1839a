/* Computes rows that depend on the row before them, from any thread and in any order.
 *
 * A plan is immutable to its callers and a fill may neither fail nor allocate, so all memory is allocated with the
 * plan:
 *
 * - Walkers: a row, the number of it, and scratch for a step. A fill borrows one, walks it to the rows it wants and
 *   leaves it where it came to; the next fill takes the free walker that is nearest before its first row, so rows asked
 *   for in order cost one step each. A walker is borrowed by an exchange on `busy`, never by waiting for a certain one.
 * - Kept rows: every stride-th row has a place, written once by the first walker that passes and then read by all. The
 *   stride is 1 where all rows fit PE_STEPS_KEPT_MAX: each row is then made once, and walkers that are behind catch up
 *   by reading what those ahead have kept.
 *
 * A row has the same bits whichever thread computed it, so timing never affects an answer. */
#include "core/schemes/absolute/absolute.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum kept_state { EMPTY, BEING_WRITTEN, READY };

struct walker {
    atomic_bool busy;
    atomic_uint_fast64_t hint; /* a copy of `at`; threads that have not borrowed the walker read it to choose one */
    uint64_t at;               /* the number of its current row; NOWHERE: none yet */
    double *row, *scratch;
};

#define NOWHERE UINT64_MAX

struct pe_stepping {
    struct pe_steps steps;
    uint64_t stride, n_kept;
    double *kept;         /* [n_kept, dim]: rows 0, stride, 2·stride, … */
    atomic_uchar *states; /* [n_kept] of enum kept_state */
    double *room;         /* of the walkers */
    struct walker walkers[PE_STEPS_WALKERS];
};

/* ---- Making ---- */

static enum pe_status check_work(struct pe_plan *plan, const struct pe_steps *steps, double stride, double extra,
                                 struct pe_failure *err)
{
    /* The number of steps for the rows in their order: up to the last row, and after each step back, from a stored row.
     */
    double last = pe_positions_last(plan->seq.k), turns = 0;
    for (uint64_t i = 1; plan->seq.k->list && i < pe_positions_count(plan->seq.k); i++)
        turns += plan->seq.k->list[i] < plan->seq.k->list[i - 1];
    double n = last + (stride > 1 ? turns * stride : 0), work = n * steps->cost;
    plan->pace = work + extra > PE_LIGHT_WORK ? PE_HEAVY : PE_QUICK;
    plan->work = work + extra;
    if (work <= PE_STEPS_WORK_MAX)
        return PE_OK;
    pe_fail(
        err, pe_whole_pointer(plan),
        "the rows up to position %.0f take %.3g steps of %.3g multiply-adds each; allowed: %.3g multiply-adds, here "
        "%.0f steps",
        pe_positions_last(plan->seq.k), n, steps->cost, PE_STEPS_WORK_MAX, floor(PE_STEPS_WORK_MAX / steps->cost));
    return err->status = PE_TOO_LARGE;
}

void pe_stepping_room(struct pe_cost *cost, const struct pe_plan *plan, double dim, double scratch)
{
    double n = fmax(pe_positions_last(plan->seq.k) + 1, 1), row = dim * sizeof(double);
    double kept = fmin(n, fmax(floor((double)PE_STEPS_KEPT_MAX / row), 1));
    double bytes = kept * (row + 1) + PE_STEPS_WALKERS * (dim + scratch) * sizeof(double);
    pe_cost_add(cost, sizeof(struct pe_stepping) + bytes, bytes * PE_NS_BYTE);
}

static bool alloc(struct pe_stepping *s)
{
    size_t one = s->steps.dim + s->steps.scratch;
    s->kept = calloc((size_t)s->n_kept, s->steps.dim * sizeof *s->kept);
    s->states = calloc((size_t)s->n_kept, sizeof *s->states);
    s->room = calloc(PE_STEPS_WALKERS, one * sizeof *s->room);
    if (!s->kept || !s->states || !s->room)
        return false;
    for (size_t i = 0; i < PE_STEPS_WALKERS; i++) {
        struct walker *w = &s->walkers[i];
        w->row = s->room + i * one;
        w->scratch = w->row + s->steps.dim;
        w->at = NOWHERE;
        atomic_init(&w->hint, NOWHERE);
    }
    atomic_init(&s->states[0], READY); /* row 0 is written before any fill */
    return true;
}

static void stepping_free(struct pe_stepping *s)
{
    if (!s)
        return;
    free(s->kept);
    free(s->states);
    free(s->room);
    free(s);
}

/* Makes *stepping for the plan's positions, which must be whole numbers from 0 on, or refuses if they are too far down.
 * It only allocates: no row is computed before a fill needs it, and the caller writes row 0 to `kept` before. Sets the
 * plan's pace; extra: work of a first fill, in multiply-adds. */
static enum pe_status stepping_new(struct pe_plan *plan, const struct pe_steps *steps, double extra,
                                   struct pe_stepping **stepping, struct pe_failure *err)
{
    enum pe_status status = pe_whole_check(plan, err);
    if (status)
        return status;
    uint64_t n = (uint64_t)pe_positions_last(plan->seq.k) + 1;
    uint64_t room = PE_STEPS_KEPT_MAX / (steps->dim * sizeof(double)), stride = (n + room - 1) / room;
    status = check_work(plan, steps, (double)stride, extra, err);
    if (status)
        return status;
    struct pe_stepping *s = calloc(1, sizeof *s);
    if (!s)
        return pe_no_memory(err);
    s->steps = *steps;
    s->stride = stride;
    s->n_kept = (n + stride - 1) / stride;
    if (!alloc(s)) {
        stepping_free(s);
        return pe_no_memory(err);
    }
    *stepping = s;
    return PE_OK;
}

/* ---- Kept rows ---- */

static bool is_kept(struct pe_stepping *s, uint64_t i)
{
    return atomic_load_explicit(&s->states[i], memory_order_acquire) == READY;
}

/* One walker stores the row; others that pass meanwhile continue without storing it. */
static void keep(struct pe_stepping *s, const struct walker *w)
{
    uint64_t i = w->at / s->stride;
    unsigned char empty = EMPTY;
    if (!atomic_compare_exchange_strong_explicit(&s->states[i], &empty, BEING_WRITTEN, memory_order_relaxed,
                                                 memory_order_relaxed))
        return;
    memcpy(s->kept + i * s->steps.dim, w->row, s->steps.dim * sizeof *w->row);
    atomic_store_explicit(&s->states[i], READY, memory_order_release);
}

static void jump(struct pe_stepping *s, struct walker *w, uint64_t i)
{
    memcpy(w->row, s->kept + i * s->steps.dim, s->steps.dim * sizeof *w->row);
    w->at = i * s->stride;
}

/* Moves the walker to the last stored row not beyond k, unless it is already between that row and k. */
static void jump_near(struct pe_stepping *s, struct walker *w, uint64_t k)
{
    uint64_t least = w->at <= k ? w->at / s->stride + 1 : 0, i = k / s->stride + 1;
    while (i-- > least)
        if (is_kept(s, i)) {
            jump(s, w, i);
            return;
        }
}

/* ---- Walking ---- */

static void walk(struct pe_stepping *s, struct walker *w, uint64_t k)
{
    if (w->at == k)
        return;
    jump_near(s, w, k);
    while (w->at < k) {
        uint64_t next = w->at / s->stride + 1;           /* index of the next stored row */
        if (next * s->stride <= k && is_kept(s, next)) { /* another thread is ahead */
            jump(s, w, next);
            continue;
        }
        if (!pe_is_cancelled())
            s->steps.step(s->steps.context, w->at, w->row, w->scratch);
        if (pe_was_cancelled()) { /* the step may be incomplete, so this row is not valid */
            w->at = NOWHERE;
            return;
        }
        if (++w->at % s->stride == 0)
            keep(s, w);
    }
}

/* The best walker is shortly before row k; then one without a row; then any other. */
static uint64_t distance(uint64_t at, uint64_t k) { return at == NOWHERE ? NOWHERE - 1 : at <= k ? k - at : NOWHERE; }

static struct walker *nearest_free(struct pe_stepping *s, uint64_t k)
{
    struct walker *best = NULL;
    uint64_t least = 0;
    for (size_t i = 0; i < PE_STEPS_WALKERS; i++) {
        struct walker *w = &s->walkers[i];
        uint64_t far = distance(atomic_load_explicit(&w->hint, memory_order_relaxed), k);
        if (atomic_load_explicit(&w->busy, memory_order_relaxed) || (best && far >= least))
            continue;
        best = w;
        least = far;
    }
    return best;
}

/* Repeats only if another thread takes the chosen walker first; waits while other threads have all walkers. */
static struct walker *borrow(struct pe_stepping *s, uint64_t k)
{
    for (;;) {
        struct walker *w = nearest_free(s, k);
        if (w && !atomic_exchange_explicit(&w->busy, true, memory_order_acquire))
            return w;
        if (!w)
            pe_wait();
    }
}

/* Any number of threads may call it; beyond PE_STEPS_WALKERS at once, a thread may wait for another. */
static void stepping_fill(struct pe_stepping *s, const struct pe_positions *positions, enum pe_dtype dtype,
                          const struct pe_block *b, void *dst)
{
    if (b->n_rows == 0)
        return;
    struct walker *w = borrow(s, (uint64_t)pe_position_at(positions, b->row0));
    size_t at = 0, n = (size_t)b->n_cols;
    for (uint64_t i = 0; i < b->n_rows && !pe_was_cancelled(); i++, at += n) {
        walk(s, w, (uint64_t)pe_position_at(positions, b->row0 + i));
        for (size_t j = 0; j < n; j++)
            pe_store(dtype, dst, at + j, w->row[b->col0 + j]);
    }
    atomic_store_explicit(&w->hint, w->at, memory_order_relaxed);
    atomic_store_explicit(&w->busy, false, memory_order_release);
}

/* ---- Of a network ---- */

enum pe_status pe_recurrence_open(struct pe_plan *plan, const struct pe_network_form *form, struct pe_steps steps,
                                  double evaluations, struct pe_failure *err)
{
    struct pe_recurrence *r = plan->tables;
    enum pe_status status = pe_weights_need(plan, 0, err);
    if (!status)
        status = pe_network_new(plan, form, &r->network, err);
    if (status)
        return status;
    steps.dim = r->dim = form->widths[0];
    steps.scratch += pe_network_scratch(r->network);
    steps.cost = evaluations * (pe_network_cost(r->network) + steps.cost) + 64;
    steps.context = r;
    r->rounds = plan->arith == PE_ARITH_FLOAT32;
    status = stepping_new(plan, &steps, pe_network_made(r->network), &r->stepping, err);
    if (!status)
        pe_weights_read(&plan->weights[0], 0, r->dim, r->stepping->kept);
    return status;
}

void pe_recurrence_drop(struct pe_plan *plan)
{
    struct pe_recurrence *r = plan->tables;
    stepping_free(r->stepping);
    pe_network_free(r->network);
}

double *pe_recurrence_row(const struct pe_plan *plan, uint64_t k)
{
    struct pe_recurrence *r = plan->tables;
    struct pe_positions at = {.n = 1, .start = (double)k};
    struct pe_block row = {.n_rows = 1, .n_cols = r->dim};
    double *out = malloc((r->dim + r->stepping->steps.scratch) * sizeof *out);
    if (out) {
        pe_network_load(r->network, false);
        stepping_fill(r->stepping, &at, PE_F64, &row, out);
    }
    return out;
}

void pe_recurrence_fill(const struct pe_plan *plan, const struct pe_output *output, size_t id, const struct pe_block *b,
                        void *dst)
{
    struct pe_recurrence *r = plan->tables;
    (void)id;
    pe_network_load(r->network, true);
    stepping_fill(r->stepping, plan->seq.k, output->dtype, b, dst);
}
