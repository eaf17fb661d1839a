/* Plans: a request is checked once, here, and everything that decides a number is decided; filling cannot fail. */
#include "core/attention/attention.h"
#include "core/encode/outputs.h"
#include "core/waves/float32.h"
#include "core/rotate/rotate.h"
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

static enum pe_status unknown_field(const struct pe_plan *plan, const struct pe_request *request, const char *name,
                                    struct pe_error *err)
{
    static const char *const own[] = {"scheme", "preset", "hf_config", "layer_type"};
    const char *names[PE_FIELDS_MAX + 1], *scheme = plan->scheme->info.name;
    size_t n = gather(plan->scheme->info.params, names, 0);
    n = gather(pe_sequence_params(), names, n);
    if (plan->scheme->info.is_additive)
        n = gather(pe_absolute_params(), names, n);
    if (plan->operation == PE_ATTEND)
        n = gather(pe_attention_params(), names, n);
    for (size_t i = 0; i < sizeof own / sizeof *own && n < PE_FIELDS_MAX; i++)
        names[n++] = own[i];
    for (const struct pe_input_row *row = plan->scheme->info.inputs; row && row->name && n < PE_FIELDS_MAX; row++)
        names[n++] = row->name;
    for (const char *const *p = request->caller_fields; p && *p && n < PE_FIELDS_MAX; p++)
        names[n++] = *p;
    names[n] = NULL;
    char pointer[PE_POINTER_MAX];
    pe_pointer_join(pointer, sizeof pointer, "", name);
    const char *nearest = pe_nearest(name, names);
    if (plan->operation != PE_ATTEND && !pe_is_among("num_heads|head_dim|dim", name) &&
        pe_param_find(pe_attention_params(), name))
        return pe_fail(err, pointer, "unknown field \"%s\" to this endpoint; POST /attention takes it", name);
    if (nearest && strcmp(nearest, name) != 0)
        return pe_fail(err, pointer, "unknown field \"%.64s\"; nearest: \"%s\"", name, nearest);
    if (nearest) /* a tensor this operation does not take */
        return pe_fail(err, pointer, "\"%s\" is not used by this endpoint", name);
    return pe_fail(err, pointer, "unknown field \"%.64s\"; GET /schemes/%s lists the fields of %s", name, scheme,
                   scheme);
}

/* What a model says of attention, which other operations have no use for. The request's own fields must be used. */
static bool is_idle(const struct pe_plan *plan, const struct pe_request *request, size_t i)
{
    return i >= plan->inheritance->n_own && pe_param_find(pe_attention_params(), request->fields[i].name);
}

static enum pe_status check_all_taken(const struct pe_plan *plan, const struct pe_request *request, const bool *taken,
                                      struct pe_error *err)
{
    for (size_t i = 0; i < request->n_fields; i++)
        if (!taken[i] && !is_idle(plan, request, i))
            return unknown_field(plan, request, request->fields[i].name, err);
    return PE_OK;
}

/* ---- The resolved config ---- */

static size_t count_rows(const struct pe_param *rows)
{
    size_t n = 0;
    while (rows[n].name)
        n++;
    return n;
}

/* scheme, its parameters, how it meets x, and the rules of its sequence; posted again with the sequence it is the same
 * request. */
static enum pe_status print_config(struct pe_plan *plan, struct pe_error *err)
{
    const struct pe_param *rows = plan->scheme->info.params, *rules = pe_sequence_rules();
    size_t top = 1 + count_rows(rows) + count_rows(rules) + PE_ABSOLUTE_FIELDS_MAX + PE_ATTENTION_FIELDS_MAX;
    struct pe_field *fields = malloc((top + pe_params_count(rows)) * sizeof *fields);
    if (!fields)
        return pe_no_memory(err);
    struct pe_field *nested = fields + top; /* objects' fields stand behind the top level's */
    fields[0] = (struct pe_field){"scheme", {.kind = PE_STRING, .string = plan->scheme->info.name}};
    size_t n = 1 + pe_params_print(rows, plan->config, fields + 1, &nested);
    n += pe_absolute_print(plan, fields + n);
    n += plan->attention ? pe_attention_print(plan, fields + n) : 0;
    n += pe_params_print(rules, &plan->sequence, fields + n, &nested);
    plan->resolved_fields = fields;
    plan->resolved = (struct pe_value){.kind = PE_OBJECT, .object = {fields, n}};
    return PE_OK;
}

/* ---- The steps of making ---- */

static enum pe_status read_fields(struct pe_plan *plan, const struct pe_request *request, bool *taken,
                                  struct pe_error *err)
{
    const struct pe_field *fields = request->fields;
    size_t n = request->n_fields;
    enum pe_status status = request->operation == PE_ATTEND ? pe_attention_open(plan, request, taken, err) : PE_OK;
    if (!status)
        status = pe_params_read(plan->scheme->info.params, plan->config, fields, n, taken, "", err);
    if (!status)
        status = pe_params_read(pe_sequence_params(), &plan->sequence, fields, n, taken, "", err);
    if (!status)
        status = pe_weights_init(plan, request, taken, err);
    if (!status && plan->scheme->info.is_additive)
        status = pe_absolute_read(plan, request, taken, err);
    if (!status && request->operation == PE_ROTATE)
        status = pe_rotator_read(plan, request, taken, err);
    if (!status && request->operation == PE_ATTEND)
        status = pe_attention_read(plan, request, taken, err);
    return status ? status : check_all_taken(plan, request, taken, err);
}

static enum pe_status check_axes(const struct pe_plan *plan, struct pe_error *err)
{
    const struct pe_sequence_fields *f = &plan->sequence;
    const char *pointer = f->grid.n        ? "/grid"
                          : f->segments    ? "/segments"
                          : f->positions.n ? "/positions"
                                           : "/q_positions";
    if (plan->seq.n_axes == 1 || plan->scheme->has_axes)
        return PE_OK;
    return pe_fail(err, pointer, "%s gives %u axes, %s has one; give len or positions [n]", pointer + 1,
                   plan->seq.n_axes, plan->scheme->info.name);
}

static bool has_two_sequences(const struct pe_plan *plan)
{
    if (plan->attention && plan->scheme->info.is_additive)
        return pe_attention_has_two_sequences(plan);
    return plan->scheme->is_pairwise || plan->operation != PE_ENCODE;
}

static enum pe_status resolve_sequence(struct pe_plan *plan, struct pe_error *err)
{
    struct pe_sequence_sizes sizes = {.k = pe_absolute_n(plan), .k_tensor = "x"};
    if (plan->rotator)
        sizes = pe_rotator_sizes(plan);
    if (plan->attention)
        sizes = pe_attention_sizes(plan);
    enum pe_sequence_kind kind = has_two_sequences(plan) ? PE_TWO_SEQUENCES : PE_ONE_SEQUENCE;
    enum pe_status status = pe_sequence_init(&plan->seq, &plan->sequence, kind, sizes, err);
    if (!status)
        status = check_axes(plan, err);
    return status;
}

/* What the operation must know before the scheme plans. */
static enum pe_status begin(struct pe_plan *plan, const struct pe_request *request, struct pe_error *err)
{
    if (plan->attention)
        return pe_attention_begin(plan, request, err);
    if (!plan->rotator)
        plan->dtype = pe_absolute_dtype(plan, request->dtype);
    return PE_OK;
}

static enum pe_status init_outputs(struct pe_plan *plan, const struct pe_request *request, struct pe_error *err)
{
    if (plan->attention)
        return pe_attention_init(plan, request, err);
    return plan->rotator ? pe_rotator_init(plan, request, err) : pe_outputs_init(plan, request, err);
}

static enum pe_status admit_request(struct pe_plan *plan, const struct pe_request *request, struct pe_error *err)
{
    struct pe_cost cost = {0, 0};
    pe_cost_request(&cost, request);
    return pe_plan_admit(plan, &cost, err);
}

/* Runs and grids take nothing. */
static enum pe_status admit_sequence(struct pe_plan *plan, struct pe_error *err)
{
    struct pe_cost cost = {0, 0};
    pe_cost_sequence(&cost, &plan->sequence);
    return cost.ns > 0 ? pe_plan_admit(plan, &cost, err) : PE_OK;
}

static enum pe_status admit_scheme(struct pe_plan *plan, struct pe_error *err)
{
    struct pe_cost cost = {0, 0};
    plan->scheme->cost(plan, &cost);
    return pe_plan_admit(plan, &cost, err);
}

static enum pe_status resolve(struct pe_plan *plan, const struct pe_request *request, struct pe_error *err)
{
    bool taken[PE_FIELDS_MAX] = {false};
    enum pe_status status = admit_request(plan, request, err);
    if (!status)
        status = read_fields(plan, request, taken, err);
    if (!status)
        status = admit_sequence(plan, err);
    if (!status)
        status = resolve_sequence(plan, err);
    if (!status)
        status = begin(plan, request, err);
    if (!status && plan->scheme->cost)
        status = admit_scheme(plan, err);
    if (!status && plan->scheme->plan)
        status = plan->scheme->plan(plan, err);
    if (plan->arith == PE_ARITH_FLOAT32 && plan->pace == PE_QUICK)
        plan->pace = PE_SLOW; /* the frameworks' roundings one by one: thirty times as long as an exact value */
    if (!status)
        status = pe_weights_check(plan, err);
    if (!status && plan->absolute)
        status = pe_absolute_check(plan, err);
    if (!status)
        status = init_outputs(plan, request, err);
    if (!status)
        status = pe_slices_init(plan, request, err);
    return status ? status : print_config(plan, err);
}

static enum pe_status check_operation(const struct pe_scheme *scheme, enum pe_operation operation, struct pe_error *err)
{
    if (scheme->info.operations & 1U << operation)
        return PE_OK;
    if (operation == PE_ENCODE)
        return pe_fail(err, "/scheme", "the term of %s depends on content; POST /attention computes it",
                       scheme->info.name);
    return pe_fail(err, "/scheme", "scheme \"%s\" cannot rotate; schemes of the rotary family can, as \"rope\"",
                   scheme->info.name);
}

/* A plan whose request has been merged with the model it names. */
static enum pe_status plan_merged(struct pe_plan *plan, const struct pe_request *request, struct pe_error *err)
{
    struct pe_request merged = *request;
    merged.fields = plan->inheritance->fields;
    merged.n_fields = plan->inheritance->n;
    plan->request = &merged;
    plan->scheme = plan->inheritance->scheme;
    plan->operation = request->operation;
    plan->dtype = request->dtype == PE_DTYPE_NONE ? PE_F32 : request->dtype;
    enum pe_status status = check_operation(plan->scheme, plan->operation, err);
    if (!status && !(plan->config = calloc(1, plan->scheme->config_bytes)))
        status = pe_no_memory(err);
    if (!status)
        status = resolve(plan, &merged, err);
    plan->request = NULL;
    return status;
}

enum pe_status pe_plan_new(const struct pe_request *request, struct pe_plan **out, struct pe_error *err)
{
    struct pe_plan *plan = calloc(1, sizeof *plan);
    if (plan)
        plan->inheritance = malloc(sizeof *plan->inheritance);
    enum pe_status status = plan && plan->inheritance ? pe_inherit(plan->inheritance, request, err) : pe_no_memory(err);
    if (!status)
        status = plan_merged(plan, request, err);
    if (!status && pe_was_cancelled()) { /* loops that were told so have left things half made */
        pe_fail(err, "", "given up: nobody waits for the answer any more");
        status = err->status = PE_CANCELLED;
    }
    if (status)
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
    pe_rotator_drop(plan);
    pe_attention_drop(plan);
    if (plan->scheme && plan->scheme->drop)
        plan->scheme->drop(plan);
    pe_weights_drop(plan);
    pe_absolute_drop(plan);
    pe_sequence_drop(&plan->seq);
    free(plan->resolved_fields);
    free(plan->config);
    free(plan->inheritance);
    free(plan);
}

/* ---- What a plan says ---- */

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
