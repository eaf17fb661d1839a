/* The belief: the fields of the request without its tensors, completed by the sizes that the tensors fix. */
#include "core/diagnosis/diagnosis.h"
#include "core/request/operand.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Fields as given ---- */

static bool is_evidence(const struct pe_evidence_kind *kind, const char *name)
{
    for (size_t i = 0; kind->tensors[i]; i++)
        if (pe_same(kind->tensors[i], name))
            return true;
    return kind->input && pe_same(kind->input, name);
}

static void add_scheme(struct pe_belief *b, const char *scheme)
{
    b->asked[b->n_asked++] = (struct pe_field){"scheme", {.kind = PE_STRING, .string = scheme}};
}

static enum pe_status merge(struct pe_diagnosis *d, struct pe_error *err)
{
    struct pe_belief *b = &d->belief;
    struct pe_request request = {.fields = b->asked, .n_fields = b->n_asked};
    b->inheritance = malloc(sizeof *b->inheritance);
    if (!b->inheritance)
        return pe_no_memory(err);
    return pe_inherit(b->inheritance, &request, err);
}

/* Where the tensor stands says nothing about what made it. */
static bool is_run(const char *name)
{
    return pe_is_among("len|offset|positions|grid|lens|tokens|q_len|k_len|q_offset|q_positions|k_positions", name);
}

enum pe_status pe_belief_open(struct pe_diagnosis *d, struct pe_error *err)
{
    struct pe_belief *b = &d->belief;
    bool has_scheme = false;
    enum { ROOM = 8 }; /* for the scheme and sizes */
    if (d->request->n_fields > PE_FIELDS_MAX - ROOM)
        return pe_fail(err, "", "the request has %zu fields; allowed: at most %d", d->request->n_fields,
                       PE_FIELDS_MAX - ROOM);
    for (size_t i = 0; i < d->request->n_fields; i++) {
        const struct pe_field *f = &d->request->fields[i];
        has_scheme |= pe_is_among("scheme|preset|hf_config", f->name);
        if (is_evidence(d->evidence.kind, f->name))
            continue;
        b->is_given |= !is_run(f->name);
        b->asked[b->n_asked++] = *f;
    }
    if (!has_scheme)
        add_scheme(b, d->evidence.kind->scheme);
    return merge(d, err);
}

const struct pe_value *pe_belief_given(const struct pe_diagnosis *d, const char *name)
{
    const struct pe_inheritance *in = d->belief.inheritance;
    const struct pe_param *rows = in->scheme->info.params, *row = pe_param_find(rows, name);
    for (size_t i = 0; i < in->n; i++)
        if (pe_same(in->fields[i].name, name) || (row && pe_param_find(rows, in->fields[i].name) == row))
            return &in->fields[i].value;
    return NULL;
}

void pe_belief_set(struct pe_diagnosis *d, const char *name, struct pe_value value)
{
    struct pe_belief *b = &d->belief;
    if (b->n_asked == PE_FIELDS_MAX || b->inheritance->n == PE_FIELDS_MAX)
        return;
    b->asked[b->n_asked++] = (struct pe_field){name, value};
    b->inheritance->fields[b->inheritance->n++] = (struct pe_field){name, value};
}

enum pe_status pe_belief_fix(struct pe_diagnosis *d, const char *name, uint64_t size, const char *tensor,
                             struct pe_error *err)
{
    const struct pe_value *v = pe_belief_given(d, name);
    double given = !v ? 0 : v->kind == PE_INTEGER ? (double)v->integer : v->kind == PE_REAL ? v->real : -1;
    char pointer[64];
    snprintf(pointer, sizeof pointer, "/%s", name);
    if (!v)
        pe_belief_set(d, name, (struct pe_value){.kind = PE_INTEGER, .integer = (int64_t)size});
    if (v && given != (double)size && given >= 0) /* a value of another kind is refused by the plan */
        return pe_fail(err, pointer, "%s is %.10g, but the shape of %s gives %llu", name, given, tensor,
                       (unsigned long long)size);
    return PE_OK;
}

static bool is_sequence(const char *name)
{
    return pe_param_find(pe_sequence_params(), name) && !pe_param_find(pe_sequence_rules(), name);
}

bool pe_belief_has_sequence(const struct pe_diagnosis *d)
{
    const struct pe_inheritance *in = d->belief.inheritance;
    for (size_t i = 0; i < in->n; i++)
        if (is_sequence(in->fields[i].name) && !pe_is_among("offset|q_offset", in->fields[i].name))
            return true;
    return false;
}

/* ---- The plan ---- */

static void add(struct pe_belief *b, const struct pe_field *field)
{
    for (size_t i = 0; i < b->n_fields; i++)
        if (pe_same(b->fields[i].name, field->name))
            return;
    if (b->n_fields < PE_FIELDS_MAX)
        b->fields[b->n_fields++] = *field;
}

/* A factor that follows from the scaling is not a field of its own, so that other scalings bring theirs. */
static bool is_derived(const struct pe_diagnosis *d, const char *name)
{
    const struct pe_value *scaling = pe_belief_given(d, "scaling");
    if (!pe_same(name, "attention_factor") || pe_belief_given(d, "attention_factor"))
        return false;
    for (size_t i = 0; scaling && scaling->kind == PE_OBJECT && i < scaling->object.n; i++)
        if (pe_same(scaling->object.fields[i].name, "attention_factor"))
            return false;
    return true;
}

/* The resolved parameters, then what the configuration does not have: the sequence, weights. */
static void flatten(struct pe_diagnosis *d)
{
    struct pe_belief *b = &d->belief;
    const struct pe_inheritance *in = b->inheritance;
    const struct pe_value *config = pe_plan_config(b->plan);
    for (size_t i = 0; i < config->object.n; i++)
        if (!is_derived(d, config->object.fields[i].name))
            add(b, &config->object.fields[i]);
    for (size_t i = 0; i < in->n; i++) {
        const char *name = in->fields[i].name;
        bool is_parameter = pe_param_find(in->scheme->info.params, name) || pe_param_find(pe_sequence_rules(), name);
        if (!is_parameter && (i < in->n_own || is_sequence(name)))
            add(b, &in->fields[i]);
    }
    for (size_t i = 0; i < b->n_asked; i++)
        if (is_sequence(b->asked[i].name))
            add(b, &b->asked[i]);
}

/* The sequence's field, for errors. */
static const char *way_of(const struct pe_diagnosis *d)
{
    for (size_t i = 0; i < d->belief.inheritance->n; i++) {
        const char *name = d->belief.inheritance->fields[i].name;
        if (is_sequence(name) && !pe_is_among("offset|q_offset", name))
            return name;
    }
    return "len";
}

/* Does output t of the belief's plan have as many numbers as the evidence? */
static enum pe_status check_shape(const struct pe_diagnosis *d, struct pe_error *err)
{
    const struct pe_evidence *e = &d->evidence;
    const struct pe_output *o = pe_plan_output(d->belief.plan, 0);
    bool rotated = e->kind->id == PE_OF_ROTATED;
    uint64_t n = d->belief.plan->seq.k->n, rows = rotated ? n : o->n_rows, len = rotated ? e->row_len : o->row_len;
    uint64_t found = rotated ? e->tensors[0].shape[e->tensors[0].rank - 2] : e->n_rows;
    char pointer[48], shape[96], expected[96];
    if (rows == found && len == e->row_len)
        return PE_OK;
    pe_shape_print(e->tensors[0].shape, e->tensors[0].rank, shape, sizeof shape);
    pe_shape_print(rotated ? (uint64_t[]){n, len} : o->shape, rotated ? 2 : o->rank, expected, sizeof expected);
    snprintf(pointer, sizeof pointer, "/%s", way_of(d));
    return pe_fail(err, rows != found ? pointer : "", "%s has the shape %s; the configuration and %s give %s",
                   e->kind->tensors[0], shape, pointer + 1, expected);
}

/* Patches merged by another size give another number of ids, and tables may be transposed: these are mistakes to find,
 * not to refuse. */
static bool may_misfit(const struct pe_diagnosis *d)
{
    const struct pe_output *o = pe_plan_output(d->belief.plan, 0);
    const struct pe_tensor *t = &d->evidence.tensors[0];
    if (d->evidence.is_turned)
        return o->row_len == t->shape[t->rank - 2] &&
               o->n_rows * o->row_len == d->evidence.n_rows * d->evidence.row_len;
    return d->evidence.kind->id == PE_OF_IDS && pe_belief_given(d, "segments") && o->n_rows == d->evidence.n_rows;
}

static enum pe_status admit_plan(void *caller, const struct pe_cost *cost, struct pe_error *err)
{
    struct pe_diagnosis *d = caller;
    struct pe_cost all = {d->bytes + 4 * cost->bytes, cost->ns}; /* this plan, and those of three hypotheses */
    return d->request->admit ? d->request->admit(d->request->caller, &all, err) : PE_OK;
}

static enum pe_status plan_given(struct pe_diagnosis *d, struct pe_error *err)
{
    struct pe_belief *b = &d->belief;
    const char *const *outputs = d->evidence.kind->outputs;
    struct pe_request request = {.operation = PE_ENCODE,
                                 .fields = b->asked,
                                 .n_fields = b->n_asked,
                                 .dtype = PE_F64,
                                 .outputs = outputs,
                                 .caller_fields = d->request->caller_fields,
                                 .admit = admit_plan,
                                 .caller = d,
                                 .positions_max = PE_DIAGNOSED_POSITIONS_MAX};
    while (outputs[request.n_outputs])
        request.n_outputs++;
    return pe_plan_new(&request, &b->plan, err);
}

enum pe_status pe_belief_plan(struct pe_diagnosis *d, struct pe_error *err)
{
    struct pe_edit none;
    struct pe_belief *b = &d->belief;
    enum pe_status status = plan_given(d, err);
    if (!status)
        status = check_shape(d, err);
    if (status == PE_INVALID && b->plan && may_misfit(d)) {
        b->is_misfit = true;
        status = PE_OK;
    }
    if (status)
        return status;
    b->n = b->is_misfit && !d->evidence.is_turned ? d->evidence.row_len : b->plan->seq.k->n;
    flatten(d);
    pe_edit_init(&none);
    return pe_model_new(d, &none, &b->model, err);
}

void pe_belief_drop(struct pe_diagnosis *d)
{
    pe_model_free(d->belief.model);
    pe_plan_free(d->belief.plan);
    free(d->belief.inheritance);
}
