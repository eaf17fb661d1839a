/* Plans: a request is checked once, here, and everything that determines a value is fixed, so filling cannot fail.
 *
 * Planning has two halves, because a thread that serves many clients must not compute tables for one of them, and yet
 * should refuse a wrong request at once. pe_plan_check does all whose time follows from the bytes that were sent;
 * pe_plan_build what may take any time: a hundred bytes may ask for tables of a hundred milliseconds. Between them the
 * plan knows, from estimates beside the code that does the work (core/request/request.h), which of the two it is. */
#include "core/encode/encode.h"
#include "core/operation.h"
#include "core/sequence/coords/coords.h"
#include "core/waves/waves.h"
#include "core/slice.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- What no row has used ---- */

static size_t gather(const struct pe_param *rows, const char **names, size_t n)
{
    for (; rows->name && n < PE_FIELDS_MAX; rows++)
        names[n++] = rows->name;
    return n;
}

/* The operation whose own fields include this name; NULL: none. */
static const struct pe_operation_info *owner_of(const char *name)
{
    for (enum pe_operation_id id = 0; id < PE_N_OPERATIONS; id++)
        if (pe_operation_at(id)->params && pe_param_find(pe_operation_at(id)->params, name))
            return pe_operation_at(id);
    return NULL;
}

static enum pe_status unknown_field(const struct pe_plan *plan, const struct pe_request *request, const char *name,
                                    struct pe_failure *err)
{
    static const char *const own[] = {"scheme", "preset", "hf_config", "gguf", "said", "layer_type"};
    const char *names[PE_FIELDS_MAX + 1], *scheme = plan->scheme->info.name;
    size_t n = gather(plan->scheme->info.params, names, 0);
    n = gather(pe_sequence_params(), names, n);
    if (plan->scheme->info.is_additive)
        n = gather(pe_absolute_params(), names, n);
    if (plan->operation->info.params)
        n = gather(plan->operation->info.params, names, n);
    for (size_t i = 0; i < sizeof own / sizeof *own && n < PE_FIELDS_MAX; i++)
        names[n++] = own[i];
    for (const struct pe_input_row *row = plan->scheme->info.inputs; row && row->name && n < PE_FIELDS_MAX; row++)
        names[n++] = row->name;
    for (const char *const *p = request->caller_fields; p && *p && n < PE_FIELDS_MAX; p++)
        names[n++] = *p;
    names[n] = NULL;
    const char *nearest = pe_nearest(name, names), *meant = pe_field_meant(name);
    for (size_t i = 0; meant && i < n; i++)
        if (pe_same(names[i], meant))
            return pe_fail_at(err, "", name, "unknown field \"%.64s\"; here: %s", name, meant);
    const struct pe_operation_info *owner = owner_of(name);
    if (owner && owner != &plan->operation->info && !pe_is_among("num_heads|head_dim|dim", name)) {
        pe_fail_at(err, "", name, "unknown field \"%s\"", name);
        return pe_advise(err, PE_ASK_OTHER, owner->name);
    }
    if (nearest && strcmp(nearest, name) != 0)
        return pe_fail_at(err, "", name, "unknown field \"%.64s\"; nearest: \"%s\"", name, nearest);
    if (nearest) /* a tensor that this operation does not accept */
        return pe_fail_at(err, "", name, "\"%s\" is not used by this endpoint", name);
    pe_fail_at(err, "", name, "unknown field \"%.64s\"", name);
    return pe_advise(err, PE_LIST_FIELDS, scheme);
}

/* Is this a field that a model gives for another operation? Such a field may stay unused; the request's own fields
 * may not. */
static bool is_idle(const struct pe_plan *plan, const struct pe_request *request, size_t i)
{
    return i >= plan->inheritance->n_own && owner_of(request->fields[i].name);
}

/* ---- The resolved config ---- */

static size_t count_rows(const struct pe_param *rows)
{
    size_t n = 0;
    while (rows[n].name)
        n++;
    return n;
}

/* ---- The steps of checking ---- */

static enum pe_status read_fields(struct pe_plan *plan, const struct pe_request *request, bool *taken,
                                  struct pe_failure *err)
{
    const struct pe_operation *operation = plan->operation;
    const struct pe_field *fields = request->fields;
    size_t n = request->n_fields;
    enum pe_status status = operation->open ? operation->open(plan, request, taken, err) : PE_OK;
    if (!status)
        status = pe_params_read(plan->scheme->info.params, plan->config, fields, n, taken, "", err);
    if (!status)
        status = pe_params_read(pe_sequence_params(), &plan->sequence, fields, n, taken, "", err);
    plan->sequence.shard.is_given = pe_request_has(request, "shard");
    if (!status)
        status = pe_weights_init(plan, request, taken, err);
    if (!status && plan->scheme->info.is_additive)
        status = pe_absolute_read(plan, request, taken, err);
    if (!status && operation->read)
        status = operation->read(plan, request, taken, err);
    if (status)
        return status;
    for (size_t i = 0; i < request->n_fields; i++)
        if (!taken[i] && !is_idle(plan, request, i))
            return unknown_field(plan, request, request->fields[i].name, err);
    return PE_OK;
}

static enum pe_status check_axes(const struct pe_plan *plan, struct pe_failure *err)
{
    const struct pe_sequence_fields *f = &plan->sequence;
    const char *pointer = f->grid.n        ? "/grid"
                          : f->segments    ? "/segments"
                          : f->positions.n ? "/positions"
                                           : "/q_positions";
    bool has_axes = plan->seq.n_axes == 1 || plan->scheme->has_axes;
    if (has_axes && f->segments && !pe_param_find(plan->scheme->info.params, "mrope_section"))
        return pe_fail(err, pointer,
                       "segments counts positions as a language model with M-RoPE does, and %s is none; give grid, or "
                       "positions [axes][n]",
                       plan->scheme->info.name);
    if (has_axes)
        return PE_OK;
    if (plan->scheme->is_neutral)
        return pe_fail(err, pointer,
                       "%s gives %u axes, and this configuration has no positions on any (scheme %s); give len, for as "
                       "many rows of zeros",
                       pointer + 1, plan->seq.n_axes, plan->scheme->info.name);
    return pe_fail(err, pointer,
                   "%s gives %u axes, %s has one; give len or positions [n], or, for positions of each row of a batch, "
                   "positions_layout batch",
                   pointer + 1, plan->seq.n_axes, plan->scheme->info.name);
}

static enum pe_status check_positions(const struct pe_plan *plan, uint64_t most, struct pe_failure *err)
{
    uint64_t q = pe_positions_count(plan->seq.q), k = pe_positions_count(plan->seq.k), n = q > k ? q : k;
    if (most == 0 || n <= most)
        return PE_OK;
    pe_fail(err, "", "the sequence has %llu positions; allowed here: at most %llu", (unsigned long long)n,
            (unsigned long long)most);
    return err->status = PE_TOO_LARGE;
}

static enum pe_status count_sequence(struct pe_plan *plan, const struct pe_request *request, struct pe_failure *err)
{
    const struct pe_operation *operation = plan->operation;
    enum pe_status status =
        pe_sequence_init(&plan->seq, &plan->sequence, operation->kind(plan), operation->sizes(plan), err);
    if (!status)
        status = check_positions(plan, request->positions_max, err);
    return status ? status : check_axes(plan, err);
}

static enum pe_status admit(struct pe_plan *plan, const struct pe_cost *cost, struct pe_failure *err)
{
    plan->cost.ns += cost->ns;
    return pe_plan_admit(plan, cost->bytes, err);
}

static enum pe_status admit_request(struct pe_plan *plan, const struct pe_request *request, struct pe_failure *err)
{
    struct pe_cost cost = {0, 0};
    pe_cost_request(&cost, request);
    return admit(plan, &cost, err);
}

/* Runs and grids cost nothing. */
static enum pe_status admit_sequence(struct pe_plan *plan, struct pe_failure *err)
{
    struct pe_cost cost = {0, 0};
    pe_cost_sequence(&cost, &plan->sequence);
    return cost.ns > 0 ? admit(plan, &cost, err) : PE_OK;
}

static enum pe_status admit_scheme(struct pe_plan *plan, struct pe_failure *err)
{
    struct pe_cost cost = {0, 0};
    plan->scheme->cost(plan, &cost);
    return admit(plan, &cost, err);
}

/* The request as it is planned: with the fields of the model that it names. */
static enum pe_status merge(struct pe_plan *plan, struct pe_failure *err)
{
    plan->merged = plan->asked;
    plan->merged.fields = plan->inheritance->fields;
    plan->merged.n_fields = plan->inheritance->n;
    plan->request = &plan->merged;
    plan->scheme = plan->inheritance->scheme;
    plan->operation = pe_operation_get(plan->merged.operation);
    plan->dtype = plan->merged.dtype == PE_DTYPE_NONE ? PE_F32 : plan->merged.dtype;
    if (!plan->operation->can(plan->scheme))
        return plan->operation->refuse(plan->scheme, err);
    plan->config = calloc(1, plan->scheme->config_bytes);
    return plan->config ? PE_OK : pe_no_memory(err);
}

/* ---- The first half ---- */

static enum pe_status check(struct pe_plan *plan, struct pe_failure *err)
{
    const struct pe_request *request = &plan->merged;
    bool taken[PE_FIELDS_MAX] = {false};
    enum pe_status status = merge(plan, err);
    if (!status)
        status = admit_request(plan, request, err);
    if (!status)
        status = read_fields(plan, request, taken, err);
    if (!status)
        status = admit_sequence(plan, err);
    if (!status) {
        /* Schemes without plan() compute nothing that is rounded. */
        const struct pe_param *row = pe_param_find(plan->scheme->info.params, "arith");
        if (row && plan->scheme->plan)
            plan->arith = (enum pe_arith) * (const int *)((const char *)plan->config + row->offset);
    }
    if (!status)
        status = count_sequence(plan, request, err);
    if (!status && plan->operation->begin)
        status = plan->operation->begin(plan, request, err);
    if (!status && plan->scheme->cost)
        status = admit_scheme(plan, err);
    if (!status)
        plan->cost.ns += plan->operation->ns(plan);
    return status;
}

enum pe_status pe_plan_check(const struct pe_request *request, struct pe_plan **out, struct pe_failure *err)
{
    struct pe_plan *plan = calloc(1, sizeof *plan);
    if (!plan || !(plan->inheritance = malloc(sizeof *plan->inheritance))) {
        free(plan);
        return pe_no_memory(err);
    }
    pe_settle();
    plan->asked = *request;
    enum pe_status status = pe_inherit(plan->inheritance, request, err);
    if (!status && (status = check(plan, err)))
        pe_inherit_blame(plan->inheritance, request, err);
    if (!status && pe_was_cancelled()) /* loops that noticed the cancellation have left incomplete lists */
        status = pe_cancelled(err);
    if (status)
        pe_plan_free(plan);
    else
        *out = plan;
    return status;
}

/* ---- The second half ---- */

static enum pe_status build(struct pe_plan *plan, struct pe_failure *err)
{
    const struct pe_request *request = &plan->merged;
    enum pe_status status = pe_sequence_lay_out(&plan->seq, &plan->sequence, err);
    if (!status && plan->scheme->tables_bytes && !(plan->tables = calloc(1, plan->scheme->tables_bytes)))
        status = pe_no_memory(err);
    if (!status && plan->scheme->plan)
        status = plan->scheme->plan(plan, err);
    if (plan->arith != PE_ARITH_EXACT && plan->pace == PE_QUICK)
        plan->pace = PE_SLOW; /* each rounding of the frameworks is repeated: thirty times an exact value's time */
    if (!status)
        status = pe_weights_check(plan, err);
    if (!status && plan->absolute)
        status = pe_absolute_check(plan, err);
    if (!status)
        status = plan->operation->init(plan, request, err);
    if (!status)
        status = pe_slices_init(plan, request, err);
    if (status)
        return status;
    /* The config has the scheme, its parameters, how it is combined with x, and the rules of its sequence. Together
     * with the sequence, it can be sent again as the same request. */
    const struct pe_param *rows = plan->scheme->info.params, *rules = pe_sequence_rules();
    const struct pe_operation *operation = plan->operation;
    size_t top = 1 + count_rows(rows) + count_rows(rules) + PE_ABSOLUTE_FIELDS_MAX + operation->n_printed_max;
    struct pe_field *fields = malloc((top + pe_params_count(rows)) * sizeof *fields);
    if (!fields)
        return pe_no_memory(err);
    struct pe_field *nested = fields + top; /* fields of nested objects come after those of the top level */
    fields[0] = (struct pe_field){"scheme", {.kind = PE_STRING, .string = plan->scheme->info.name}};
    size_t n = 1 + pe_params_print(rows, plan->config, fields + 1, &nested);
    n += pe_absolute_print(plan, fields + n);
    n += operation->print ? operation->print(plan, fields + n) : 0;
    n += pe_params_print(rules, &plan->sequence, fields + n, &nested);
    plan->resolved_fields = fields;
    plan->resolved = (struct pe_value){.kind = PE_OBJECT, .object = {fields, n}};
    return PE_OK;
}

enum pe_status pe_plan_build(struct pe_plan *plan, struct pe_failure *err)
{
    assert(plan->request && "a plan is built once");
    enum pe_status status = build(plan, err);
    plan->request = NULL;
    if (status)
        pe_inherit_blame(plan->inheritance, &plan->asked, err);
    else if (pe_was_cancelled()) /* and here incomplete tables */
        status = pe_cancelled(err);
    return status;
}

enum pe_builder pe_plan_builder(const struct pe_plan *plan)
{
    return plan->cost.ns <= PE_READY_NS_MAX ? PE_READY : PE_WORKER;
}

/* ---- Both ---- */

enum pe_status pe_plan_new(const struct pe_request *request, struct pe_plan **out, struct pe_failure *err)
{
    struct pe_plan *plan = NULL;
    enum pe_status status = pe_plan_check(request, &plan, err);
    if (status)
        return status;
    if ((status = pe_plan_build(plan, err)))
        pe_plan_free(plan);
    else
        *out = plan;
    return status;
}

void pe_plan_free(struct pe_plan *plan)
{
    if (!plan)
        return;
    pe_slices_drop(plan);
    pe_outputs_drop(plan);
    if (plan->operation && plan->operation->drop)
        plan->operation->drop(plan);
    if (plan->tables && plan->scheme->drop)
        plan->scheme->drop(plan);
    free(plan->tables);
    pe_weights_drop(plan);
    pe_absolute_drop(plan);
    pe_sequence_drop(&plan->seq);
    free(plan->resolved_fields);
    free(plan->config);
    free(plan->inheritance);
    free(plan->asked_block);
    free(plan);
}

/* ---- What a plan reports ---- */

const struct pe_scheme_info *pe_plan_scheme(const struct pe_plan *plan) { return &plan->scheme->info; }

const struct pe_preset *pe_plan_preset(const struct pe_plan *plan) { return plan->inheritance->preset; }

size_t pe_plan_n_outputs(const struct pe_plan *plan) { return plan->n_outputs; }

const struct pe_output *pe_plan_output(const struct pe_plan *plan, size_t i)
{
    assert(i < plan->n_outputs);
    return plan->answers ? &plan->answers[i] : &plan->outputs[i];
}

enum pe_pace pe_plan_pace(const struct pe_plan *plan) { return plan->pace; }

const struct pe_value *pe_plan_config(const struct pe_plan *plan) { return &plan->resolved; }

/* ---- Coordinates ---- */

double pe_coordinate(const struct pe_plan *plan, unsigned axis, uint64_t i)
{
    const struct pe_positions *p = &plan->seq.k[axis];
    return plan->scheme->coords ? pe_coords_at(plan->scheme->coords(plan), p, axis, i) : pe_position_at(p, i);
}

double pe_coordinate_unit(const struct pe_plan *plan, unsigned axis)
{
    return plan->scheme->coords ? plan->scheme->coords(plan)->unit[axis].hi : 1;
}
