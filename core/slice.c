/* Parts of outputs. The core's fills know whole outputs only; here elements of a part are found in them, in runs as
 * long as the part allows. */
#include "core/slice.h"
#include "core/fill_whole.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Steps of the last axis up to which what stands between two samples is made with them. */
enum { SPACED_MAX = 64 };

/* ---- Cutting ---- */

/* Python's: counted from the end where negative, then within 0 … n. */
static uint64_t clamp(int64_t x, uint64_t n)
{
    if (x < 0)
        return (uint64_t)-x > n ? 0 : n - (uint64_t)-x;
    return (uint64_t)x < n ? (uint64_t)x : n;
}

static enum pe_status cut_index(const struct pe_cut *cut, uint64_t n, const char *pointer, const char *output,
                                uint64_t *start, struct pe_error *err)
{
    int64_t x = cut->start;
    if (x >= 0 ? (uint64_t)x >= n : (uint64_t)-x > n)
        return pe_fail(err, pointer, "the index is %" PRId64 ", this axis of %s has %" PRIu64, x, output, n);
    *start = x < 0 ? n - (uint64_t)-x : (uint64_t)x;
    return PE_OK;
}

static enum pe_status cut_axis(struct pe_part *part, unsigned axis, const struct pe_cut *cut, uint64_t n,
                               const char *pointer, const char *output, struct pe_error *err)
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
                          struct pe_error *err)
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

/* Numbers that one element of the answer is made of, where steps are reduced. */
static uint64_t block_size(const struct pe_part *part, unsigned rank)
{
    uint64_t n = 1;
    for (unsigned axis = 0; axis < rank; axis++) {
        uint64_t most = part->stop[axis] - part->start[axis], step = part->step[axis];
        if (__builtin_mul_overflow(n, step < most || most == 0 ? step : most, &n))
            return UINT64_MAX;
    }
    return n;
}

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
    uint64_t block = reduces ? block_size(part, whole->rank) : 1;
    answer->most = reduces ? (block < PE_REDUCE_PIECE ? PE_REDUCE_PIECE / block : 1) : 0;
}

static enum pe_status check_names(const struct pe_plan *plan, const struct pe_request *request, struct pe_error *err)
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

static enum pe_status check_reduce(const struct pe_plan *plan, const struct pe_request *request, struct pe_error *err)
{
    if (request->reduce != PE_REDUCE_SAMPLE && !request->n_slices)
        return pe_fail(err, "/reduce", "reduce is what slice's step does; it needs a slice");
    for (size_t i = 0; request->reduce == PE_REDUCE_MEAN && i < plan->n_outputs; i++)
        if (!pe_dtype_is_real(plan->outputs[i].dtype) && slice_of(request, plan->outputs[i].name))
            return pe_fail(err, "/reduce", "%s has integers, which have no mean; allowed: sample, min, max, absmax",
                           plan->outputs[i].name);
    return PE_OK;
}

/* The pace of who waits for the answer; each element takes as long as before. */
static void set_heavy(struct pe_plan *plan)
{
    if (plan->pace == PE_SLOW && plan->element_work == 0)
        plan->element_work = PE_SLOW_WORK;
    plan->pace = PE_HEAVY;
}

enum pe_status pe_slices_init(struct pe_plan *plan, const struct pe_request *request, struct pe_error *err)
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
            return status; /* the axes behind the wrong one are not cut */
        shape(&plan->answers[i], &plan->outputs[i], &plan->parts[i], plan->reduce != PE_REDUCE_SAMPLE);
        uint64_t block = block_size(&plan->parts[i], plan->outputs[i].rank);
        uint64_t n = plan->answers[i].n_rows * plan->answers[i].row_len;
        if (plan->reduce != PE_REDUCE_SAMPLE && (double)block * (double)n > PE_LIGHT_WORK)
            set_heavy(plan);
    }
    return PE_OK;
}

/* A few steps apart, what stands between the samples is made with them (fill_spaced). */
double pe_slice_elements(const struct pe_plan *plan, size_t i)
{
    const struct pe_output *answer = plan->answers ? &plan->answers[i] : &plan->outputs[i];
    double n = (double)answer->n_rows * (double)answer->row_len;
    if (!plan->parts || plan->parts[i].is_whole)
        return n;
    const struct pe_part *part = &plan->parts[i];
    unsigned rank = plan->outputs[i].rank;
    if (plan->reduce != PE_REDUCE_SAMPLE)
        return n * (double)block_size(part, rank);
    uint64_t step = rank && part->count[rank - 1] > 1 ? part->step[rank - 1] : 1;
    return n * (double)(step <= SPACED_MAX ? step : 1);
}

void pe_slices_drop(struct pe_plan *plan)
{
    free(plan->parts);
    free(plan->answers);
}

/* ---- Finding elements ---- */

/* One element of a part: its index on each axis of the whole, counted in steps. */
struct place {
    uint64_t at[PE_RANK_MAX];
};

static struct place place_of(const struct pe_part *part, unsigned rank, uint64_t element)
{
    struct place p = {{0}};
    for (unsigned axis = rank; axis-- > 0; element /= part->count[axis])
        p.at[axis] = element % part->count[axis];
    return p;
}

/* Where it stands in the whole, counted flat. */
static uint64_t flat(const struct pe_part *part, const struct pe_output *whole, const struct place *p)
{
    uint64_t at = 0;
    for (unsigned axis = 0; axis < whole->rank; axis++)
        at = at * whole->shape[axis] + part->start[axis] + p->at[axis] * part->step[axis];
    return at;
}

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* ---- Samples ---- */

/* How many elements from this place on stand side by side in the whole too: those of the axes at the end that are
 * whole, and of the one before them if it has no steps. */
static uint64_t run_at(const struct pe_part *part, const struct pe_output *whole, const struct place *p)
{
    uint64_t run = 1, passed = 0; /* passed: elements of the run's axes before the place */
    for (unsigned axis = whole->rank; axis-- > 0;) {
        if (part->step[axis] > 1 && part->count[axis] > 1)
            break;
        passed += p->at[axis] * run;
        run *= part->count[axis];
        if (part->count[axis] != whole->shape[axis])
            break;
    }
    return run - passed;
}

enum { SPAN = PE_SCRATCH_BYTES / sizeof(double) };

/* Elements of the last axis, a few steps apart: filled with what stands between them. */
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

static void fill_samples(const struct pe_plan *plan, size_t i, uint64_t first, size_t n, char *dst)
{
    const struct pe_part *part = &plan->parts[i];
    const struct pe_output *whole = &plan->outputs[i];
    size_t size = pe_dtype_size(whole->dtype), done;
    unsigned last = whole->rank ? whole->rank - 1 : 0;
    for (size_t at = 0; at < n && !pe_is_cancelled(); at += done) {
        struct place p = place_of(part, whole->rank, first + at);
        uint64_t from = flat(part, whole, &p), run = least(run_at(part, whole, &p), n - at);
        bool spaced = whole->rank && part->step[last] > 1 && part->step[last] <= SPACED_MAX && part->count[last] > 1;
        done = (size_t)run;
        if (spaced)
            done = fill_spaced(plan, i, from, part->step[last], least(part->count[last] - p.at[last], n - at),
                               dst + at * size);
        else
            pe_plan_fill_whole(plan, i, from, done, dst + at * size);
    }
}

/* ---- Blocks ---- */

/* Elements of the last axis that are reduced together. */
enum { GROUP = 256, PIECE = 1024 };

struct group {
    double value[GROUP], first[GROUP];
    uint64_t n_finite[GROUP];
    bool begun[GROUP];
};

static void join(enum pe_reduce how, struct group *g, size_t j, double x)
{
    if (!g->begun[j])
        g->first[j] = x;
    g->begun[j] = true;
    if (!isfinite(x))
        return;
    bool is_first = g->n_finite[j]++ == 0;
    switch (how) {
    case PE_REDUCE_MEAN: g->value[j] += x; break;
    case PE_REDUCE_MIN: g->value[j] = is_first || x < g->value[j] ? x : g->value[j]; break;
    case PE_REDUCE_MAX: g->value[j] = is_first || x > g->value[j] ? x : g->value[j]; break;
    case PE_REDUCE_ABSMAX: g->value[j] = is_first || fabs(x) > fabs(g->value[j]) ? x : g->value[j]; break;
    case PE_REDUCE_SAMPLE: break;
    }
}

/* One line of the whole, n elements from `from` on, of which each `step` belong to an element of the group. */
static void join_line(const struct pe_plan *plan, size_t i, uint64_t from, uint64_t n, uint64_t step, struct group *g)
{
    double raw[PIECE], x[PIECE];
    enum pe_dtype dtype = plan->outputs[i].dtype;
    for (uint64_t at = 0, m; at < n && !pe_is_cancelled(); at += m) {
        m = least(n - at, PIECE);
        pe_plan_fill_whole(plan, i, from + at, (size_t)m, raw);
        pe_convert(PE_F64, x, dtype, raw, (size_t)m);
        for (uint64_t j = 0; j < m; j++)
            join(plan->reduce, g, (size_t)((at + j) / step), x[j]);
    }
}

/* A block that has nothing finite keeps its first value: what is hidden stays hidden. */
static double result(enum pe_reduce how, const struct group *g, size_t j)
{
    if (g->n_finite[j] == 0)
        return g->first[j];
    if (how == PE_REDUCE_ABSMAX)
        return fabs(g->value[j]);
    return how == PE_REDUCE_MEAN ? g->value[j] / (double)g->n_finite[j] : g->value[j];
}

/* n elements side by side on the last axis, from place p on. */
static void fill_group(const struct pe_plan *plan, size_t i, const struct place *p, uint64_t n, void *dst)
{
    const struct pe_part *part = &plan->parts[i];
    const struct pe_output *whole = &plan->outputs[i];
    unsigned last = whole->rank - 1;
    struct group g = {.begun = {false}};
    uint64_t first[PE_RANK_MAX], end[PE_RANK_MAX], at[PE_RANK_MAX]; /* of the block, in the whole */
    for (unsigned axis = 0; axis < whole->rank; axis++) {
        first[axis] = at[axis] = part->start[axis] + p->at[axis] * part->step[axis];
        uint64_t n_blocks = axis == last ? n : 1;
        end[axis] = least(first[axis] + n_blocks * part->step[axis], part->stop[axis]);
    }
    for (bool more = true; more && !pe_was_cancelled();) {
        uint64_t from = 0;
        for (unsigned axis = 0; axis < whole->rank; axis++)
            from = from * whole->shape[axis] + at[axis];
        join_line(plan, i, from, end[last] - first[last], part->step[last], &g);
        more = false;
        for (unsigned axis = last; axis-- > 0 && !more;) {
            more = ++at[axis] < end[axis];
            at[axis] = more ? at[axis] : first[axis];
        }
    }
    for (size_t j = 0; j < n; j++)
        pe_store(whole->dtype, dst, j, result(plan->reduce, &g, j));
}

static void fill_blocks(const struct pe_plan *plan, size_t i, uint64_t first, size_t n, char *dst)
{
    const struct pe_part *part = &plan->parts[i];
    const struct pe_output *whole = &plan->outputs[i];
    size_t size = pe_dtype_size(whole->dtype);
    uint64_t row = part->count[whole->rank - 1];
    for (uint64_t at = 0, m; at < n && !pe_was_cancelled(); at += m) {
        struct place p = place_of(part, whole->rank, first + at);
        m = least(least(n - at, row - p.at[whole->rank - 1]), GROUP);
        fill_group(plan, i, &p, m, dst + at * size);
    }
}

void pe_slice_fill(const struct pe_plan *plan, size_t i, uint64_t first, size_t n, void *dst)
{
    if (plan->parts[i].is_whole)
        pe_plan_fill_whole(plan, i, first, n, dst);
    else if (plan->reduce == PE_REDUCE_SAMPLE || plan->outputs[i].rank == 0)
        fill_samples(plan, i, first, n, dst);
    else
        fill_blocks(plan, i, first, n, dst);
}
