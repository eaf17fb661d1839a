/* The stated cost of planning: the parts that all schemes share.
 *
 * A request of a hundred bytes may ask for tables that take a tenth of a second, or for gigabytes. Before anything is
 * computed or allocated, the caller must know which thread may build the plan and whether there is memory for it. So
 * each part of planning states its cost, struct pe_cost {bytes, ns}, in a few additions from sizes that are known by
 * then: a scheme in its cost(), an operation in its ns(), request, sequence and weights here.
 *
 * Time is stated once, by pe_plan_check, and chooses the thread alone: up to PE_READY_NS_MAX an event loop may build
 * the plan itself, above it a worker does. A wrong time makes others wait; it never changes an answer. Bytes are asked
 * for step by step (pe_plan_admit), and the caller may refuse each step.
 *
 * Both are upper bounds, rather too high than too low, in constants of a slow machine (PE_NS_… in request.h). What
 * keeps them honest is tests/core/request/test_cost.c: it plans every scheme with every operation at the ends of its
 * parameters' ranges, counts the bytes in the allocator and the time by the thread's clock, and fails if either is
 * above what was stated. A change of what planning does changes the cost beside it, or that test fails. */
#include "core/request/request.h"
#include "core/scheme.h"

#include <math.h>
#include <string.h>

enum pe_status pe_plan_admit(struct pe_plan *plan, double bytes, struct pe_failure *err)
{
    const struct pe_request *request = plan->request;
    plan->cost.bytes += bytes;
    return request->admit ? request->admit(request->caller, plan->cost.bytes, err) : PE_OK;
}

void pe_cost_nothing(const struct pe_plan *plan, struct pe_cost *cost) { (void)plan, (void)cost; }

/* ---- Tables ---- */

/* Bytes: the description of a column, its entries in tables for runs and for lists, and with several axes a second
 * description with its place. Time: two sines and two cosines. */
enum { BYTES_OF_COLUMN = 2 * 48 + 80 + 40 + 8, NS_OF_COLUMN = 150 };

/* Steps to both sides of an anchor as floats, by a recurrence. */
enum { BYTES_AROUND = 544, NS_AROUND = 300 };

void pe_cost_waves(struct pe_cost *cost, double n) { pe_cost_each(cost, n + 16, BYTES_OF_COLUMN, NS_OF_COLUMN); }

void pe_cost_waves_of(struct pe_cost *cost, double n, enum pe_dtype dtype)
{
    pe_cost_waves(cost, n);
    if (pe_wave_has_around(dtype))
        pe_cost_each(cost, n, BYTES_AROUND, NS_AROUND);
}

/* One exponential for 16 frequencies, because the others are products (wave_value.c); under arith float32, one for
 * each. */
void pe_cost_ladder(struct pe_cost *cost, double n, bool float32)
{
    pe_cost_each(cost, n + 4, sizeof(struct pe_dd), float32 ? PE_NS_DD : PE_NS_DD / 8);
}

/* ---- Weights ---- */

double pe_cost_of_weight(const struct pe_plan *plan, size_t id)
{
    return pe_weights_sent(plan, id) ? PE_NS_SENT : pe_weights_seedable(plan) ? PE_NS_SEEDED : 0;
}

void pe_cost_weights(struct pe_cost *cost, const struct pe_plan *plan, size_t id, double n)
{
    double ns = pe_cost_of_weight(plan, id);
    if (ns > 0)
        pe_cost_each(cost, n, sizeof(double), ns);
}

/* ---- The request ---- */

/* A plan, its inheritance and config, names and shapes of outputs. */
enum { BYTES_OF_PLAN = 80 << 10, NS_OF_PLAN = 100000 };

void pe_cost_request(struct pe_cost *cost, const struct pe_request *request)
{
    pe_cost_add(cost, BYTES_OF_PLAN, NS_OF_PLAN);
    for (size_t i = 0; i < request->n_fields; i++)
        if (request->fields[i].value.kind == PE_ARRAY) {
            /* Numbers from JSON text become a tensor of floats before use; a list without dtype is a parameter, which
             * is checked and printed again. */
            const struct pe_value *v = &request->fields[i].value;
            uint64_t n = 0;
            pe_shape_count(v->array.shape, v->array.rank, &n);
            if (v->array.rank > 1)
                pe_cost_each(cost, v->from_text ? (double)n : 0, sizeof(float), 2 * PE_NS_SENT);
            else
                pe_cost_each(cost, (double)n, 0, PE_NS_VISIT);
        }
}

/* ---- The sequence ---- */

static void add_list(struct pe_cost *cost, const struct pe_reals *list)
{
    if (list->n)
        pe_cost_each(cost, (double)list->n, list->array.dtype == PE_F64 ? 0 : sizeof(double), PE_NS_VISIT);
}

static double sum(const struct pe_reals *list)
{
    double total = 0;
    for (uint64_t i = 0; i < list->n && !pe_is_cancelled_at(i); i++)
        total += pe_real_at(list, i);
    return total;
}

static double product(const struct pe_tensor *array)
{
    double total = 1;
    uint64_t n = 0;
    pe_shape_count(array->shape, array->rank, &n);
    for (uint64_t i = 0; i < n && i < PE_AXES_MAX; i++)
        total *= fmax(pe_element(array->dtype, array->data, i), 1);
    return total;
}

/* An upper bound on the tokens: lengths, and patches of a grid before merging. */
static double tokens_of(const struct pe_value *segment)
{
    double total = 16;
    for (size_t i = 0; segment->kind == PE_OBJECT && i < segment->object.n; i++) {
        const struct pe_value *v = &segment->object.fields[i].value;
        total += v->kind == PE_ARRAY     ? product(&v->array)
                 : v->kind == PE_INTEGER ? fmax((double)v->integer, 0)
                 : v->kind == PE_REAL    ? fmax(v->real, 0)
                                         : 0;
    }
    return total;
}

static double tokens_in(const struct pe_value *segments)
{
    double total = 0;
    for (size_t i = 0; segments->kind == PE_LIST && i < segments->list.n; i++)
        total += tokens_of(&segments->list.items[i]);
    return fmin(total, PE_LISTED_POSITIONS_MAX);
}

/* Coordinates of the axes of a grid, one list of doubles. */
static double listed_in(const struct pe_value *coords)
{
    double total = 0;
    uint64_t n = 0;
    if (coords->kind == PE_ARRAY && pe_shape_count(coords->array.shape, coords->array.rank, &n))
        total = (double)n;
    for (size_t i = 0; coords->kind == PE_LIST && i < coords->list.n && i < PE_AXES_MAX; i++)
        total += listed_in(&coords->list.items[i]);
    return fmin(total, PE_LISTED_POSITIONS_MAX);
}

enum { NS_OF_SEGMENT = 2000, BYTES_OF_SEGMENT = 64 };

void pe_cost_sequence(struct pe_cost *cost, const struct pe_sequence_fields *f)
{
    add_list(cost, &f->positions);
    add_list(cost, &f->q_positions);
    add_list(cost, &f->k_positions);
    add_list(cost, &f->cu_seqlens);
    if (f->positions_layout == PE_BY_BATCH_AXES)
        pe_cost_each(cost, (double)f->positions.n, sizeof(double), PE_NS_VISIT);
    if (f->padded.attention_mask.n) /* and once more, where queries have the last of them */
        pe_cost_each(cost, (double)f->padded.attention_mask.n, 2 * sizeof(double), 2 * PE_NS_PLACE + PE_NS_VISIT);
    if (f->shard.is_given && pe_given(f->len))
        pe_cost_each(cost, fmin((double)f->len, PE_LISTED_POSITIONS_MAX), sizeof(double), PE_NS_PLACE + PE_NS_VISIT);
    if (f->cu_seqlens.n)
        pe_cost_each(cost, fmin(pe_real_at(&f->cu_seqlens, f->cu_seqlens.n - 1), PE_LISTED_POSITIONS_MAX),
                     sizeof(double) + sizeof(uint32_t), PE_NS_PLACE + PE_NS_VISIT);
    if (f->lens.n)
        pe_cost_each(cost, fmin(sum(&f->lens), PE_LISTED_POSITIONS_MAX), sizeof(double) + sizeof(uint32_t),
                     PE_NS_PLACE + PE_NS_VISIT);
    if (f->grid_coords)
        pe_cost_each(cost, listed_in(f->grid_coords), sizeof(double), PE_NS_PLACE + PE_NS_VISIT);
    if (!f->segments)
        return;
    pe_cost_each(cost, tokens_in(f->segments), PE_SEGMENT_AXES_MAX * sizeof(double),
                 PE_SEGMENT_AXES_MAX * (PE_NS_PLACE + 2 * PE_NS_VISIT));
    if (f->segments->kind == PE_LIST)
        pe_cost_each(cost, (double)f->segments->list.n, BYTES_OF_SEGMENT, NS_OF_SEGMENT);
}
