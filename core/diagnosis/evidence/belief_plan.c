/* The belief as a plan: its fields without those that only state how the tensor holds its rows, and the tensor's shape
 * beside what they give. */
#include "core/diagnosis/diagnosis.h"
#include "core/request/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Its resolved fields ---- */

static void add_field(struct pe_belief *b, const struct pe_field *field)
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

/* A number that a word denotes follows the sequence (xPos' centre), so under other positions it is another: the word
 * is kept. */
static bool is_word_of(const struct pe_diagnosis *d, const struct pe_field *field)
{
    const struct pe_value *given = pe_belief_given(d, field->name);
    return field->value.kind == PE_REAL && given && given->kind == PE_STRING;
}

/* The mask, with what its positions depend on. */
static void add_mask(struct pe_diagnosis *d)
{
    struct pe_belief *b = &d->belief;
    const struct pe_padding *p = &b->padding;
    const char *word = pe_padding_words[p->is_counted ? PE_PADDING_COUNTED : PE_PADDING_SKIPPED];
    const struct pe_value mask = {.kind = PE_ARRAY, .array = p->mask->array};
    add_field(b, &(struct pe_field){"attention_mask", mask});
    add_field(b, &(struct pe_field){"padding", {.kind = PE_STRING, .string = word}});
    add_field(b, &(struct pe_field){"pad_position", {.kind = PE_INTEGER, .integer = (int64_t)p->pad_position}});
    if (p->offset != 0)
        add_field(b, &(struct pe_field){"offset", {.kind = PE_INTEGER, .integer = (int64_t)p->offset}});
}

/* The resolved parameters, then what the configuration does not have: the sequence, weights. */
static void flatten(struct pe_diagnosis *d)
{
    struct pe_belief *b = &d->belief;
    const struct pe_inheritance *in = b->inheritance;
    const struct pe_value *config = pe_plan_config(b->plan);
    bool is_map = d->evidence.kind->id == PE_OF_MAPS;
    for (size_t i = 0; i < config->object.n; i++)
        if (is_word_of(d, &config->object.fields[i]))
            add_field(b, &(struct pe_field){config->object.fields[i].name,
                                            *pe_belief_given(d, config->object.fields[i].name)});
        else if (!is_derived(d, config->object.fields[i].name))
            add_field(b, &config->object.fields[i]);
    for (size_t i = 0; i < in->n; i++) {
        const char *name = in->fields[i].name;
        bool is_parameter = pe_param_find(in->scheme->info.params, name) || pe_param_find(pe_sequence_rules(), name);
        bool is_of_mask = b->has_mask && !is_map && pe_belief_is_sequence(name);
        if (!is_parameter && !is_of_mask && (i < in->n_own || pe_belief_is_sequence(name)))
            add_field(b, &in->fields[i]);
    }
    for (size_t i = 0; i < b->n_asked; i++)
        if (pe_belief_is_sequence(b->asked[i].name) && (!b->has_mask || is_map))
            add_field(b, &b->asked[i]);
    if (b->has_mask && !is_map)
        add_mask(d);
    if (b->tensor_layout)
        add_field(b, &(struct pe_field){"tensor_layout", {.kind = PE_STRING, .string = b->tensor_layout}});
    if (b->query_scale.is_given)
        add_field(b, &(struct pe_field){"query_scale", pe_query_scale_value(&b->query_scale)});
    if (b->positions && !b->has_mask)
        add_field(b, &(struct pe_field){"positions_layout", {.kind = PE_STRING, .string = pe_layout_of(b->positions)}});
    for (size_t i = 0; b->positions && !b->has_mask && i < b->n_fields; i++)
        if (pe_same(b->fields[i].name, "positions"))
            b->fields[i].value = *b->positions;
}

const char *pe_layout_of(const struct pe_value *by_batch)
{
    return pe_positions_layout_words[by_batch->array.rank == 2 ? PE_BY_BATCH : PE_BY_AXES_BATCH];
}

/* The sequence's field, for errors. */
static const char *way_of(const struct pe_diagnosis *d)
{
    if (d->belief.has_mask)
        return "attention_mask";
    for (size_t i = 0; i < d->belief.inheritance->n; i++) {
        const char *name = d->belief.inheritance->fields[i].name;
        if (pe_belief_is_sequence(name) && !pe_is_among("offset|q_offset", name))
            return name;
    }
    return "len";
}

/* Has the rotated tensor, its axes seen so, a row for each position of the belief? */
static bool has_places(const struct pe_diagnosis *d, const struct pe_operand *axes)
{
    const struct pe_tensor *t = d->belief.positions ? &d->belief.positions->array : NULL;
    if (t)
        return t->shape[t->rank - 2] == axes->n_batches && t->shape[t->rank - 1] == axes->n;
    return d->belief.plan->seq.k->n == axes->n;
}

/* The same axes, those of length 1 left out. */
static bool are_same_axes(const struct pe_tensor *t, const struct pe_output *o)
{
    unsigned i = 0, j = 0;
    for (;; i++, j++) {
        while (i < t->rank && t->shape[i] == 1)
            i++;
        while (j < o->rank && o->shape[j] == 1)
            j++;
        if (i == t->rank || j == o->rank || t->shape[i] != o->shape[j])
            return i == t->rank && j == o->rank;
    }
}

/* A map has the sizes that its queries and keys give. */
static enum pe_status check_map(struct pe_diagnosis *d, const struct pe_output *o, struct pe_failure *err)
{
    unsigned char order[PE_RANK_MAX];
    const struct pe_tensor *t = &d->evidence.tensors[0];
    const char *name = d->evidence.kind->tensors[0];
    char pointer[24] = "/", found[96], needed[96];
    if (are_same_axes(t, o) && t->shape[t->rank - 1] == o->row_len)
        return PE_OK;
    if (pe_order_of(t, o->shape, o->rank, order))
        return pe_evidence_move(d, order, err);
    pe_shape_print(t->shape, t->rank, found, sizeof found);
    pe_shape_print(o->shape, o->rank, needed, sizeof needed);
    return pe_fail(err, strncat(pointer, name, sizeof pointer - 2), "%s has the shape %s; q and k give %s", name, found,
                   needed);
}

/* Does output t of the belief's plan have as many numbers as the evidence? */
static enum pe_status check_shape(struct pe_diagnosis *d, struct pe_failure *err)
{
    const struct pe_evidence *e = &d->evidence;
    const struct pe_output *o = pe_plan_output(d->belief.plan, 0);
    bool rotated = e->kind->id == PE_OF_ROTATED, ladder = e->kind->id == PE_OF_LADDER;
    const struct pe_tensor *sent = pe_evidence_sent(e);
    uint64_t n = d->belief.plan->seq.k->n, rows = rotated ? n : o->n_rows, len = rotated ? e->row_len : o->row_len;
    uint64_t found = e->n_rows;
    char pointer[48], shape[96], expected[96];
    if (rotated)
        found = has_places(d, &e->axes) ? rows : 0;
    else if (!d->belief.positions && pe_evidence_is_shared(e))
        found = pe_evidence_has_rows(e, rows) ? rows : found;
    if (e->kind->id == PE_OF_MAPS)
        return check_map(d, o, err);
    if (ladder && !d->belief.inheritance->scheme->rotate) /* an encoding's columns are not its frequencies */
        return PE_OK;
    if ((rows == found || ladder) && len == e->row_len)
        return PE_OK;
    pe_shape_print(sent->shape, sent->rank, shape, sizeof shape);
    const struct pe_tensor *t = d->belief.positions ? &d->belief.positions->array : NULL;
    if (t)
        pe_shape_print((uint64_t[]){t->shape[t->rank - 2], t->shape[t->rank - 1], len}, 3, expected, sizeof expected);
    else
        pe_shape_print(rotated ? (uint64_t[]){n, len} : o->shape, rotated ? 2 : o->rank, expected, sizeof expected);
    snprintf(pointer, sizeof pointer, "/%s", way_of(d));
    return pe_fail(err, rows != found ? pointer : "", "%s has the shape %s; the configuration and %s give %s",
                   e->kind->tensors[0], shape, pointer + 1, expected);
}

/* Patches merged by another size give another number of ids, and tables may be transposed: these are mistakes to find,
 * not to refuse. */
static bool may_misfit(const struct pe_diagnosis *d)
{
    struct pe_operand axes;
    for (size_t i = 0; d->evidence.kind->id == PE_OF_ROTATED && pe_tensor_layout_words[i]; i++)
        if (pe_evidence_axes(&d->evidence, pe_tensor_layout_words[i], &axes) && has_places(d, &axes))
            return true;
    const struct pe_output *o = pe_plan_output(d->belief.plan, 0);
    const struct pe_tensor *t = &d->evidence.tensors[0];
    if (d->evidence.is_turned)
        return o->row_len == t->shape[t->rank - 2] &&
               (o->n_rows == t->shape[t->rank - 1] ||
                o->n_rows * o->row_len == d->evidence.n_rows * d->evidence.row_len);
    return d->evidence.kind->id == PE_OF_IDS && pe_belief_given(d, "segments") && o->n_rows == d->evidence.n_rows;
}

static enum pe_status admit_plan(void *caller, double bytes, struct pe_failure *err)
{
    struct pe_diagnosis *d = caller;
    double all = d->bytes + 4 * bytes; /* this plan, and those of three hypotheses */
    return d->request->admit ? d->request->admit(d->request->caller, all, err) : PE_OK;
}

static enum pe_status plan_given(struct pe_diagnosis *d, struct pe_plan **plan, struct pe_failure *err)
{
    struct pe_belief *b = &d->belief;
    const char *const *outputs = d->evidence.kind->outputs;
    struct pe_request request = {.operation = d->evidence.kind->operation,
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
    return pe_plan_new(&request, plan, err);
}

struct pe_plan *pe_belief_try(struct pe_diagnosis *d, uint64_t n)
{
    struct pe_belief *b = &d->belief;
    struct pe_plan *plan = NULL;
    struct pe_failure ignored;
    size_t n_asked = b->n_asked;
    if (!pe_belief_has_sequence(d))
        b->asked[b->n_asked++] = (struct pe_field){"len", {.kind = PE_INTEGER, .integer = (int64_t)n}};
    enum pe_status status = plan_given(d, &plan, &ignored);
    b->n_asked = n_asked;
    return status ? NULL : plan;
}

/* Tables over a grid, [height, width, columns], are rows of one sequence. */
static void fold_grid(struct pe_diagnosis *d)
{
    struct pe_evidence *e = &d->evidence;
    bool are_tables = e->kind->id == PE_OF_TABLES || e->kind->id == PE_OF_ANGLES;
    if (are_tables && !e->is_turned && e->tensors[0].rank > 2 && pe_plan_output(d->belief.plan, 0)->n_rows == e->n_rows)
        pe_evidence_fold(e, 2, (uint64_t[]){e->n_rows, e->row_len});
}

/* The same for a tensor with more rows or fewer. */
static enum pe_status plan_other_size(struct pe_diagnosis *d, struct pe_failure *err)
{
    struct pe_plan *other = NULL;
    enum pe_status status = pe_sizes_mend(d, d->belief.plan, err);
    if (!status)
        status = plan_given(d, &other, err);
    if (status)
        return status;
    pe_plan_free(d->belief.plan);
    d->belief.plan = other;
    status = check_shape(d, err);
    return status == PE_INVALID && d->evidence.n_sizes < PE_SIZES_MAX ? plan_other_size(d, err) : status;
}

enum pe_status pe_belief_plan(struct pe_diagnosis *d, struct pe_failure *err)
{
    struct pe_edit none;
    struct pe_belief *b = &d->belief;
    enum pe_status status = plan_given(d, &b->plan, err);
    if (!status)
        fold_grid(d);
    if (!status)
        status = check_shape(d, err);
    if (status == PE_INVALID && b->plan && may_misfit(d)) {
        b->is_misfit = true;
        status = PE_OK;
    }
    if (status == PE_INVALID && b->plan)
        status = plan_other_size(d, err);
    if (status)
        return status;
    bool is_of_ids = d->evidence.kind->id == PE_OF_IDS;
    b->n = b->is_misfit && is_of_ids ? d->evidence.row_len : b->plan->seq.k->n;
    flatten(d);
    pe_edit_init(&none);
    status = pe_model_new(d, &none, &b->model, err);
    return status ? status : pe_sizes_place(d, err);
}

void pe_belief_drop(struct pe_diagnosis *d)
{
    pe_model_free(d->belief.model);
    pe_plan_free(d->belief.plan);
    free(d->belief.inheritance);
    free(d->belief.padded[0]);
    free(d->belief.padded[1]);
}
