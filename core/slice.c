/* Parts of outputs: `slice` with starts, stops and steps on each axis, as in NumPy.
 *
 * Fill functions of schemes write whole outputs by ranges of flat elements, and know nothing of parts. This file maps
 * an element of the part to the whole, in runs as long as the part allows: whole inner axes, then the axis before them
 * if its step is 1. Samples that are a few steps apart on the last axis are filled together with what is between them,
 * since a fill costs more than a few elements that are dropped; beyond SPACED_MAX each has a fill of its own.
 *
 * Invariant: element i of a part is element f(i) of the whole, bit for bit. So ranges, chunks of Zarr and tiles of the
 * page need no code in the schemes.
 *
 * The cost of a part is not its size: one element of every row of attention computes every unit. So the work is
 * estimated here, from the same runs, before anything is computed. */
#include "core/slice.h"
#include "core/operation.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Whole outputs ---- */

/* Writes any elements of a whole output. The operation writes them in one call, or block by block. */

/* Elements first … first+n-1 consist of the end of a row, whole rows and the start of a row. Any of the three may be
 * missing. */
void pe_plan_fill_whole(const struct pe_plan *plan, size_t i, uint64_t first, size_t n, void *dst)
{
    const struct pe_operation *operation = plan->operation;
    const struct pe_output *output = &plan->outputs[i];
    assert(i < plan->n_outputs && first + n <= output->n_rows * output->row_len);
    char *at = dst;
    if (operation->fill) {
        operation->fill(plan, i, first, n, dst);
        return;
    }
    while (n > 0) {
        uint64_t row = first / output->row_len, col = first % output->row_len, left = output->row_len - col;
        struct pe_block b = {.row0 = row, .n_rows = 1, .col0 = col, .n_cols = left < n ? left : n};
        if (col == 0 && n >= output->row_len)
            b.n_rows = n / output->row_len;
        operation->fill_block(plan, i, &b, at);
        size_t done = (size_t)(b.n_rows * b.n_cols);
        first += done;
        n -= done;
        at += done * pe_dtype_size(output->dtype);
    }
}

/* ---- Parts ---- */

/* Up to this step on the last axis, the elements between two samples are computed too and then dropped. */
enum { SPACED_MAX = 64 };

/* The cost of finding elements, in multiply-adds, in addition to computing them: starting a fill, which is the whole
 * cost of a single sample; copying a sample from among others; adding a number to its block; finding the blocks of a
 * row. */
enum { FILL_WORK = 512, COPY_WORK = 16, JOIN_WORK = 8, ROW_WORK = 64 };

/* ---- Cutting ---- */

/* Python's rule: a negative index counts from the end; the result is clamped to 0 … n. */
static uint64_t clamp(int64_t x, uint64_t n)
{
    if (x < 0)
        return (uint64_t)-x > n ? 0 : n - (uint64_t)-x;
    return (uint64_t)x < n ? (uint64_t)x : n;
}

static enum pe_status cut_index(const struct pe_cut *cut, uint64_t n, const char *pointer, const char *output,
                                uint64_t *start, struct pe_failure *err)
{
    int64_t x = cut->start;
    if (x >= 0 ? (uint64_t)x >= n : (uint64_t)-x > n)
        return pe_fail(err, pointer, "the index is %" PRId64 ", this axis of %s has %" PRIu64, x, output, n);
    *start = x < 0 ? n - (uint64_t)-x : (uint64_t)x;
    return PE_OK;
}

static enum pe_status cut_axis(struct pe_part *part, unsigned axis, const struct pe_cut *cut, uint64_t n,
                               const char *pointer, const char *output, struct pe_failure *err)
{
    if (cut->is_index) {
        enum pe_status status = cut_index(cut, n, pointer, output, &part->start[axis], err);
        part->stop[axis] = part->start[axis] + 1;
        part->count[axis] = part->step[axis] = 1;
        part->dropped[axis] = true;
        return status;
    }
    uint64_t start = cut->start == PE_UNSET_INT ? 0 : clamp(cut->start, n);
    uint64_t stop = cut->stop == PE_UNSET_INT ? n : clamp(cut->stop, n), step = (uint64_t)cut->step;
    part->start[axis] = start;
    part->stop[axis] = stop > start ? stop : start;
    part->step[axis] = step;
    part->count[axis] = stop > start ? (stop - start - 1) / step + 1 : 0;
    return PE_OK;
}

static const struct pe_slice *slice_of(const struct pe_request *request, const char *output)
{
    for (size_t i = 0; i < request->n_slices; i++)
        if (!request->slices[i].output || strcmp(request->slices[i].output, output) == 0)
            return &request->slices[i];
    return NULL;
}

static void print_pointer(const struct pe_slice *slice, unsigned axis, char *pointer, size_t room)
{
    snprintf(pointer, room, "/slice%s%.40s/%u", slice->output ? "/" : "", slice->output ? slice->output : "", axis);
}

static enum pe_status cut(struct pe_part *part, const struct pe_output *whole, const struct pe_slice *slice,
                          struct pe_failure *err)
{
    char pointer[80];
    part->is_whole = !slice;
    for (unsigned axis = 0; axis < whole->rank; axis++) {
        static const struct pe_cut all = {.start = PE_UNSET_INT, .stop = PE_UNSET_INT, .step = 1};
        const struct pe_cut *c = slice && axis < slice->n_cuts ? &slice->cuts[axis] : &all;
        if (slice)
            print_pointer(slice, axis, pointer, sizeof pointer);
        enum pe_status status = cut_axis(part, axis, c, whole->shape[axis], pointer, whole->name, err);
        if (status)
            return status;
    }
    if (!slice || slice->n_cuts <= whole->rank)
        return PE_OK;
    print_pointer(slice, whole->rank, pointer, sizeof pointer);
    return pe_fail(err, pointer, "slice has %u entries, %s has %u axes", slice->n_cuts, whole->name, whole->rank);
}

/* ---- Their shapes ---- */

static void shape(struct pe_output *answer, const struct pe_output *whole, const struct pe_part *part, bool reduces)
{
    *answer = *whole;
    if (part->is_whole)
        return;
    answer->rank = 0;
    for (unsigned axis = 0; axis < whole->rank; axis++)
        if (!part->dropped[axis])
            answer->shape[answer->rank++] = part->count[axis];
    uint64_t total = 1;
    for (unsigned axis = 0; axis < answer->rank; axis++)
        total *= answer->shape[axis];
    answer->row_len = answer->rank ? answer->shape[answer->rank - 1] : 1;
    answer->n_rows = answer->row_len ? total / answer->row_len : 0;
    answer->unit = answer->period = 0;
    if (reduces || whole->unit)
        pe_reduce_shape(answer, whole, part);
    if (!reduces)
        answer->most = 0;
}

static enum pe_status check_names(const struct pe_plan *plan, const struct pe_request *request, struct pe_failure *err)
{
    for (size_t i = 0; i < request->n_slices; i++) {
        const char *name = request->slices[i].output;
        bool known = !name;
        for (size_t j = 0; name && j < plan->n_outputs; j++)
            known = known || strcmp(plan->outputs[j].name, name) == 0;
        char pointer[PE_POINTER_MAX];
        if (known)
            continue;
        snprintf(pointer, sizeof pointer, "/slice/%.64s", name);
        return pe_fail(err, pointer, "slice names \"%.64s\", which is not among the outputs of this answer", name);
    }
    return PE_OK;
}

static enum pe_status check_reduce(const struct pe_plan *plan, const struct pe_request *request, struct pe_failure *err)
{
    if (request->reduce != PE_REDUCE_SAMPLE && !request->n_slices)
        return pe_fail(err, "/reduce", "reduce sets how slice's step works; it needs a slice");
    for (size_t i = 0; request->reduce == PE_REDUCE_MEAN && i < plan->n_outputs; i++)
        if (!pe_dtype_is_real(plan->outputs[i].dtype) && slice_of(request, plan->outputs[i].name))
            return pe_fail(err, "/reduce", "%s has integers, which have no mean; allowed: sample, min, max, absmax",
                           plan->outputs[i].name);
    return PE_OK;
}

enum pe_status pe_slices_init(struct pe_plan *plan, const struct pe_request *request, struct pe_failure *err)
{
    enum pe_status status = check_reduce(plan, request, err);
    if (!status)
        status = check_names(plan, request, err);
    if (status || !request->n_slices)
        return status;
    plan->reduce = request->reduce;
    plan->parts = calloc(plan->n_outputs, sizeof *plan->parts);
    plan->answers = calloc(plan->n_outputs, sizeof *plan->answers);
    if (!plan->parts || !plan->answers)
        return pe_no_memory(err);
    for (size_t i = 0; i < plan->n_outputs; i++) {
        status = cut(&plan->parts[i], &plan->outputs[i], slice_of(request, plan->outputs[i].name), err);
        if (status)
            return status; /* the axes after the wrong one have no range yet */
        shape(&plan->answers[i], &plan->outputs[i], &plan->parts[i], plan->reduce != PE_REDUCE_SAMPLE);
        uint64_t block = pe_reduce_block(&plan->parts[i], plan->outputs[i].rank);
        uint64_t n = plan->answers[i].n_rows * plan->answers[i].row_len;
        if (plan->reduce != PE_REDUCE_SAMPLE && (double)block * (double)n > PE_LIGHT_WORK) {
            /* Sets the pace to heavy because of how long the client waits; the cost of one element does not change. */
            if (plan->pace == PE_SLOW && plan->element_work == 0)
                plan->element_work = PE_SLOW_WORK;
            plan->pace = PE_HEAVY;
        }
    }
    return pe_tallies_init(plan, err);
}

void pe_slices_drop(struct pe_plan *plan)
{
    pe_tallies_drop(plan);
    free(plan->parts);
    free(plan->answers);
}

/* ---- Finding elements ---- */

void pe_part_place(const struct pe_part *part, unsigned rank, uint64_t element, uint64_t *place)
{
    for (unsigned axis = rank; axis-- > 0; element /= part->count[axis])
        place[axis] = element % part->count[axis];
}

/* The flat index, in the whole output, of a place in the part. */
static uint64_t flat(const struct pe_part *part, const struct pe_output *whole, const uint64_t *place)
{
    uint64_t at = 0;
    for (unsigned axis = 0; axis < whole->rank; axis++)
        at = at * whole->shape[axis] + part->start[axis] + place[axis] * part->step[axis];
    return at;
}

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* ---- Samples ---- */

/* How many elements from this place on are contiguous in the whole output too: those of the whole axes at the end,
 * and of the axis before them if its step is 1. */
static uint64_t run_at(const struct pe_part *part, const struct pe_output *whole, const uint64_t *place)
{
    uint64_t run = 1, passed = 0; /* passed: elements of the run's axes before the place */
    for (unsigned axis = whole->rank; axis-- > 0;) {
        if (part->step[axis] > 1 && part->count[axis] > 1)
            break;
        passed += place[axis] * run;
        run *= part->count[axis];
        if (part->count[axis] != whole->shape[axis])
            break;
    }
    return run - passed;
}

enum { SPAN = PE_SCRATCH_BYTES / sizeof(double) };

/* Elements of the last axis, a few steps apart: filled together with the elements between them. */
static size_t fill_spaced(const struct pe_plan *plan, size_t i, uint64_t at, uint64_t step, uint64_t n, char *dst)
{
    _Alignas(64) char span[PE_SCRATCH_BYTES];
    size_t size = pe_dtype_size(plan->outputs[i].dtype);
    uint64_t m = least(n, (SPAN - 1) / step + 1);
    pe_plan_fill_whole(plan, i, at, (size_t)((m - 1) * step + 1), span);
    for (uint64_t j = 0; j < m; j++)
        memcpy(dst + j * size, span + j * step * size, size);
    return (size_t)m;
}

/* Are the samples at most SPACED_MAX apart on the last axis? */
static bool is_spaced(const struct pe_output *whole, const struct pe_part *part)
{
    unsigned last = whole->rank ? whole->rank - 1 : 0;
    return whole->rank && part->step[last] > 1 && part->step[last] <= SPACED_MAX && part->count[last] > 1;
}

static void fill_samples(const struct pe_plan *plan, size_t i, uint64_t first, size_t n, char *dst)
{
    const struct pe_part *part = &plan->parts[i];
    const struct pe_output *whole = &plan->outputs[i];
    size_t size = pe_dtype_size(whole->dtype), done;
    unsigned last = whole->rank ? whole->rank - 1 : 0;
    for (size_t at = 0; at < n && !pe_is_cancelled(); at += done) {
        uint64_t place[PE_RANK_MAX];
        pe_part_place(part, whole->rank, first + at, place);
        uint64_t from = flat(part, whole, place), run = least(run_at(part, whole, place), n - at);
        done = (size_t)run;
        if (is_spaced(whole, part))
            done = fill_spaced(plan, i, from, part->step[last], least(part->count[last] - place[last], n - at),
                               dst + at * size);
        else
            pe_plan_fill_whole(plan, i, from, done, dst + at * size);
    }
}

/* ---- All ---- */

/* The work of n samples: the fills for each row of samples or part of it, and the elements that these fills compute,
 * which are single samples or everything between them. */
static double samples_work(const struct pe_output *whole, const struct pe_part *part, double n, double each)
{
    static const uint64_t start[PE_RANK_MAX];
    unsigned last = whole->rank ? whole->rank - 1 : 0;
    if (!is_spaced(whole, part))
        return n * each + n / (double)run_at(part, whole, start) * FILL_WORK;
    double step = (double)part->step[last], row = (double)part->count[last];
    return n * (step * each + COPY_WORK) + n / row * ceil(row * step / SPAN) * FILL_WORK;
}

double pe_slice_work(const struct pe_plan *plan, size_t i, double each)
{
    const struct pe_output *answer = plan->answers ? &plan->answers[i] : &plan->outputs[i];
    double n = (double)answer->n_rows * (double)answer->row_len;
    if (!plan->parts || plan->parts[i].is_whole || n == 0)
        return n * each;
    const struct pe_part *part = &plan->parts[i];
    if (plan->reduce == PE_REDUCE_SAMPLE || plan->outputs[i].rank == 0)
        return samples_work(&plan->outputs[i], part, n, each);
    unsigned last = plan->outputs[i].rank - 1;
    double width = (double)(part->stop[last] - part->start[last]);
    return n * (double)pe_reduce_block(part, plan->outputs[i].rank) * (each + JOIN_WORK + ROW_WORK / width);
}

void pe_slice_fill(const struct pe_plan *plan, size_t i, uint64_t first, size_t n, void *dst)
{
    if (plan->parts[i].is_whole)
        pe_plan_fill_whole(plan, i, first, n, dst);
    else if (plan->reduce == PE_REDUCE_SAMPLE || plan->outputs[i].rank == 0)
        fill_samples(plan, i, first, n, dst);
    else
        pe_reduce_fill(plan, i, first, n, dst);
}

/* ---- A plan's outputs: whole, sliced, or the line of a Toeplitz output ---- */

void pe_fill(const struct pe_plan *plan, size_t i, uint64_t first, size_t n, void *dst)
{
    if (plan->parts)
        pe_slice_fill(plan, i, first, n, dst);
    else
        pe_plan_fill_whole(plan, i, first, n, dst);
}

bool pe_fill_line(const struct pe_plan *plan, size_t i, uint64_t matrix, uint64_t first, size_t n, void *dst)
{
    assert(i < plan->n_outputs);
    if (!plan->operation->line || (plan->parts && !plan->parts[i].is_whole))
        return false;
    return plan->operation->line(plan, i, matrix, first, n, dst);
}

/* ---- The estimated cost of filling a plan's outputs ---- */

/* Multiply-adds that take as long as computing one element: a few nanoseconds (quick), or microseconds (slow). */
static const double element_work[] = {[PE_QUICK] = 4, [PE_SLOW] = PE_SLOW_WORK, [PE_HEAVY] = 4};

double pe_plan_each(const struct pe_plan *plan)
{
    return plan->element_work > 0 ? plan->element_work : element_work[plan->pace];
}

double pe_plan_work(const struct pe_plan *plan)
{
    double work = plan->work, each = pe_plan_each(plan), passes = 1;
    for (size_t i = 0; i < plan->n_outputs; i++) {
        work += pe_slice_work(plan, i, plan->operation->is_counted_whole ? 0 : each);
        passes = fmax(passes, pe_reduce_passes(plan, i));
    }
    return work * passes;
}

double pe_plan_bytes(const struct pe_plan *plan)
{
    return (plan->operation->bytes ? plan->operation->bytes(plan) : 0) + pe_tallies_bytes(plan);
}
