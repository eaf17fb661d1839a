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

void pe_belief_blame(const struct pe_diagnosis *d, struct pe_error *err)
{
    struct pe_request request = {.fields = d->request->fields, .n_fields = d->request->n_fields};
    if (d->belief.inheritance)
        pe_inherit_blame(d->belief.inheritance, &request, err);
}

/* Fields that place the tensor in its sequence: a belief about the rest holds at any place. */
static bool is_run(const char *name)
{
    return pe_is_among("len|offset|positions|grid|lens|tokens|q_len|k_len|q_offset|q_positions|k_positions|"
                       "tensor_layout|positions_layout",
                       name);
}

/* ---- Fields that no plan has ---- */

static const char *word_of(const struct pe_diagnosis *d, const char *name)
{
    for (size_t i = 0; i < d->request->n_fields; i++)
        if (pe_same(d->request->fields[i].name, name))
            return d->request->fields[i].value.kind == PE_STRING ? d->request->fields[i].value.string : "";
    return NULL;
}

static enum pe_status read_tensor_layout(struct pe_diagnosis *d, struct pe_error *err)
{
    const char *word = d->belief.tensor_layout = word_of(d, "tensor_layout");
    size_t i = 0;
    while (word && pe_tensor_layout_words[i] && !pe_same(pe_tensor_layout_words[i], word))
        i++;
    if (word && !pe_tensor_layout_words[i])
        return pe_fail(err, "/tensor_layout", "tensor_layout is \"%s\"; allowed: bhnd, bnhd, nbhd, nhd, flat, bflat",
                       word);
    return PE_OK;
}

/* Positions [batch, n] are positions of batch·n rows to a plan. */
static enum pe_status read_positions(struct pe_diagnosis *d, struct pe_error *err)
{
    struct pe_belief *b = &d->belief;
    const char *word = word_of(d, "positions_layout");
    if (!word || pe_same(word, "axes"))
        return PE_OK;
    if (!pe_same(word, "batch"))
        return pe_fail(err, "/positions_layout", "positions_layout is \"%s\"; allowed: axes, batch", word);
    for (size_t i = 0; i < d->request->n_fields; i++)
        if (pe_same(d->request->fields[i].name, "positions"))
            b->positions = &d->request->fields[i].value;
    if (!b->positions || b->positions->kind != PE_ARRAY || b->positions->array.rank != 2)
        return pe_fail(err, "/positions",
                       "positions_layout batch needs positions of two levels: a list for each row of "
                       "the batch");
    for (size_t i = 0; i < b->n_asked; i++)
        if (pe_same(b->asked[i].name, "positions")) {
            struct pe_tensor *t = &b->asked[i].value.array;
            t->shape[0] *= t->shape[1];
            t->rank = 1;
        }
    return PE_OK;
}

/* They are read from the request, and no other kind of evidence has them. */
static bool is_ours(const struct pe_diagnosis *d, const char *name)
{
    return d->evidence.kind->id == PE_OF_ROTATED && pe_is_among("tensor_layout|positions_layout", name);
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
        if (is_ours(d, f->name))
            continue;
        b->asked[b->n_asked++] = *f;
    }
    if (!has_scheme)
        add_scheme(b, d->evidence.kind->scheme);
    bool is_rotated = d->evidence.kind->id == PE_OF_ROTATED;
    enum pe_status status = is_rotated ? read_tensor_layout(d, err) : PE_OK;
    if (!status && is_rotated)
        status = read_positions(d, err);
    if (!status)
        status = merge(d, err);
    b->n_stated = status ? 0 : b->inheritance->n;
    return status;
}

/* Among the first n fields. */
static const struct pe_value *find_given(const struct pe_inheritance *in, size_t n, const char *name)
{
    const struct pe_param *rows = in->scheme->info.params, *row = pe_param_find(rows, name);
    for (size_t i = 0; i < n; i++)
        if (pe_same(in->fields[i].name, name) || (row && pe_param_find(rows, in->fields[i].name) == row))
            return &in->fields[i].value;
    return NULL;
}

const struct pe_value *pe_belief_given(const struct pe_diagnosis *d, const char *name)
{
    return find_given(d->belief.inheritance, d->belief.inheritance->n, name);
}

bool pe_belief_states(const struct pe_diagnosis *d, const char *name)
{
    const struct pe_value *v = find_given(d->belief.inheritance, d->belief.n_stated, name);
    bool is_share = pe_same(name, "rotary_dim") && pe_belief_states(d, "partial_rotary_factor");
    return (v && v->kind != PE_NULL) || is_share;
}

void pe_belief_set(struct pe_diagnosis *d, const char *name, struct pe_value value)
{
    struct pe_belief *b = &d->belief;
    if (b->n_asked == PE_FIELDS_MAX || b->inheritance->n == PE_FIELDS_MAX)
        return;
    b->asked[b->n_asked++] = (struct pe_field){name, value};
    b->inheritance->fields[b->inheritance->n++] = (struct pe_field){name, value};
}

static void replace_in(struct pe_field *fields, size_t n, const char *name, struct pe_value value)
{
    for (size_t i = 0; i < n; i++)
        if (pe_same(fields[i].name, name))
            fields[i].value = value;
}

void pe_belief_replace(struct pe_diagnosis *d, const char *name, struct pe_value value)
{
    struct pe_belief *b = &d->belief;
    if (!pe_belief_given(d, name))
        pe_belief_set(d, name, value);
    replace_in(b->asked, b->n_asked, name, value);
    replace_in(b->inheritance->fields, b->inheritance->n, name, value);
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

bool pe_belief_is_sequence(const char *name)
{
    return pe_param_find(pe_sequence_params(), name) && !pe_param_find(pe_sequence_rules(), name);
}

bool pe_belief_has_sequence(const struct pe_diagnosis *d)
{
    const struct pe_inheritance *in = d->belief.inheritance;
    for (size_t i = 0; i < in->n; i++)
        if (pe_belief_is_sequence(in->fields[i].name) && !pe_is_among("offset|q_offset", in->fields[i].name))
            return true;
    return false;
}
