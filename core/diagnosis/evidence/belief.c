/* The belief: the fields of the request without its tensors, completed by the sizes that the tensors fix. */
#include "core/diagnosis/diagnosis.h"
#include "core/request/request.h"

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

/* What is said of numbers that are typed (typed.c). */
static bool is_of_typed(const struct pe_diagnosis *d, const char *name)
{
    return pe_is_among(d->is_probe ? "of|count|decimals" : "values|decimals", name);
}

static void add_scheme(struct pe_belief *b, const char *scheme)
{
    b->asked[b->n_asked++] = (struct pe_field){"scheme", {.kind = PE_STRING, .string = scheme}};
}

static enum pe_status inherit(struct pe_diagnosis *d, struct pe_failure *err)
{
    struct pe_belief *b = &d->belief;
    struct pe_request request = {.operation = d->evidence.kind->operation, .fields = b->asked, .n_fields = b->n_asked};
    return pe_inherit(b->inheritance, &request, err);
}

/* A model that adds its positions to embeddings has them in q and k already: their scores are those of no positions,
 * with the model's scale and cap. */
static enum pe_status leave_positions(struct pe_diagnosis *d, struct pe_failure *err)
{
    struct pe_belief *b = &d->belief;
    struct pe_model_scores *scores = &b->inheritance->model.scores;
    struct pe_field inherited[PE_SCORE_FIELDS_MAX];
    size_t n = 0, n_scores = pe_model_score_fields(b->inheritance, inherited), n_notes = scores->n_notes;
    if (pe_model_check_scores(b->inheritance, err))
        return err->status;
    for (size_t i = 0; i < b->n_asked; i++)
        if (!pe_is_among("hf_config|gguf|preset|layer_type", b->asked[i].name))
            b->asked[n++] = b->asked[i];
    b->asked[n++] = (struct pe_field){"scheme", {.kind = PE_STRING, .string = "none"}};
    for (size_t i = 0; i < n_scores; i++)
        b->asked[n++] = inherited[i];
    b->n_asked = n;
    enum pe_status status = inherit(d, err);
    scores->n_notes = n_notes;
    return status;
}

static enum pe_status merge(struct pe_diagnosis *d, struct pe_failure *err)
{
    struct pe_belief *b = &d->belief;
    b->inheritance = malloc(sizeof *b->inheritance);
    if (!b->inheritance)
        return pe_no_memory(err);
    enum pe_status status = inherit(d, err);
    if (status || d->evidence.kind->id != PE_OF_MAPS)
        return status;
    const struct pe_scheme *scheme = b->inheritance->scheme;
    bool names_model = false;
    for (size_t i = 0; i < b->n_asked; i++)
        names_model |= pe_is_among("hf_config|gguf|preset", b->asked[i].name);
    return names_model && scheme->info.is_additive && !scheme->is_neutral ? leave_positions(d, err) : PE_OK;
}

/* A size that the plan refuses and that no field states: it follows from the shape of the tensor, which is blamed. */
static void blame_shape(const struct pe_diagnosis *d, struct pe_failure *err)
{
    const struct pe_inheritance *in = d->belief.inheritance;
    const char *tensor = pe_evidence_name(&d->evidence, 0), *refused = err->pointer + (*err->pointer == '/');
    for (size_t i = d->belief.n_stated; i < in->n; i++) {
        const struct pe_field *f = &in->fields[i];
        if (f->value.kind != PE_INTEGER || !pe_same(f->name, refused))
            continue;
        if (err->leave_at)
            err->detail[err->leave_at] = '\0';
        size_t used = strlen(err->detail);
        snprintf(err->detail + used, sizeof err->detail - used, pe_text("; %s follows from the shape of %s"), f->name,
                 tensor);
        snprintf(err->pointer, sizeof err->pointer, "/%s", tensor);
        return;
    }
}

void pe_belief_blame(const struct pe_diagnosis *d, struct pe_failure *err)
{
    struct pe_request request = {.fields = d->request->fields, .n_fields = d->request->n_fields};
    if (d->belief.inheritance) {
        blame_shape(d, err);
        pe_inherit_blame(d->belief.inheritance, &request, err);
    }
    if (d->belief.ids.kind == PE_ARRAY && pe_same(err->pointer, "/positions"))
        snprintf(err->pointer, sizeof err->pointer, "/position_ids");
}

/* Fields that place the tensor in its sequence: a belief about the rest holds at any place. */
static bool is_run(const char *name)
{
    return pe_is_among(
        "len|offset|positions|grid|lens|tokens|q_len|k_len|q_offset|q_positions|k_positions|"
        "tensor_layout|positions_layout|attention_mask|padding|pad_position|cu_seqlens|shard|position_ids",
        name);
}

bool pe_belief_is_no_part(const struct pe_diagnosis *d, const char *name)
{
    return is_evidence(d->evidence.kind, name) || is_run(name) || pe_is_among("form|decimals|scheme", name);
}

/* ---- Fields that no plan has ---- */

static const struct pe_value *field(const struct pe_diagnosis *d, const char *name)
{
    return pe_field_find(d->request->fields, d->request->n_fields, name);
}

static const char *word_of(const struct pe_diagnosis *d, const char *name)
{
    const struct pe_value *v = field(d, name);
    return v ? v->kind == PE_STRING ? v->string : "" : NULL;
}

static enum pe_status read_tensor_layout(struct pe_diagnosis *d, struct pe_failure *err)
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

/* [batch][axes][n] as [axes][batch][n]. */
static enum pe_status turn_positions(struct pe_diagnosis *d, struct pe_failure *err)
{
    struct pe_belief *b = &d->belief;
    const struct pe_tensor t = b->positions->array;
    const uint64_t n_batches = t.shape[0], n_axes = t.shape[1], n = t.shape[2], count = n_batches * n_axes * n;
    if (pe_diagnosis_admit(d, (double)count * sizeof(double), err))
        return err->status;
    double *x = b->padded[0] = malloc(count * sizeof *x);
    if (!x)
        return pe_no_memory(err);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t axis = i / n / n_batches, row = i / n % n_batches;
        x[i] = pe_element(t.dtype, t.data, (row * n_axes + axis) * n + i % n);
        if (pe_is_cancelled_at(i))
            return pe_cancelled(err);
    }
    b->by_batch = (struct pe_value){.kind = PE_ARRAY, .array = {PE_F64, 3, {n_axes, n_batches, n}, x}};
    b->positions = &b->by_batch;
    return PE_OK;
}

/* Positions of a batch are positions of batch·n rows to a plan. */
static enum pe_status read_positions(struct pe_diagnosis *d, struct pe_failure *err)
{
    struct pe_belief *b = &d->belief;
    const char *word = b->ids_layout ? b->ids_layout : word_of(d, "positions_layout");
    const struct pe_value *given = b->ids.kind == PE_ARRAY ? &b->ids : field(d, "positions");
    size_t layout = 0;
    if (!word || pe_same(word, "axes"))
        return PE_OK;
    while (pe_positions_layout_words[layout] && !pe_same(pe_positions_layout_words[layout], word))
        layout++;
    if (!pe_positions_layout_words[layout])
        return pe_fail(err, "/positions_layout",
                       "positions_layout is \"%s\"; allowed: axes, batch, batch_axes, axes_batch", word);
    if (layout == PE_BY_BATCH && (!given || given->kind != PE_ARRAY || given->array.rank != 2))
        return pe_fail(err, "/positions",
                       "positions_layout batch needs positions of two levels: a list for each row of "
                       "the batch");
    if (!given || given->kind != PE_ARRAY || given->array.rank != (layout == PE_BY_BATCH ? 2 : 3))
        return pe_fail(err, "/positions", "positions_layout %s needs positions of three levels", word);
    b->positions = given;
    enum pe_status status = layout == PE_BY_BATCH_AXES ? turn_positions(d, err) : PE_OK;
    for (size_t i = 0; !status && i < b->n_asked; i++)
        if (pe_same(b->asked[i].name, "positions"))
            b->asked[i].value = pe_flat_positions(b->positions);
    return status;
}

struct pe_value pe_flat_positions(const struct pe_value *by_batch)
{
    struct pe_value flat = *by_batch;
    struct pe_tensor *t = &flat.array;
    unsigned last = t->rank - 2;
    t->shape[last] *= t->shape[last + 1];
    t->rank--;
    return flat;
}

/* ---- position_ids beside the evidence ---- */

static uint64_t length_of(const struct pe_value *list)
{
    return list && list->kind == PE_ARRAY ? list->array.shape[0] : 0;
}

/* Has the believed scheme n axes? Then ids of two levels are a list for each, as M-RoPE has them. */
static bool has_axes(const struct pe_diagnosis *d, uint64_t n)
{
    enum { OF_TIME_AND_PLACE = 3, OF_A_PLACE = 2 };
    struct pe_failure ignored;
    struct pe_request request = {
        .operation = d->evidence.kind->operation, .fields = d->belief.asked, .n_fields = d->belief.n_asked};
    struct pe_inheritance *in = malloc(sizeof *in);
    bool has = false;
    if (in && !pe_inherit(in, &request, &ignored)) {
        uint64_t widths = length_of(pe_field_find(in->fields, in->n, "axes_dim"));
        bool has_sections = pe_field_find(in->fields, in->n, "mrope_section") != NULL;
        bool has_places = pe_field_find(in->fields, in->n, "channels") != NULL;
        has = n == (widths ? widths : has_sections ? OF_TIME_AND_PLACE : has_places ? OF_A_PLACE : 0);
    }
    free(in);
    return has;
}

/* [n], [1, n]; [batch, n], or [axes, n] where the scheme has so many; [axes, batch, n]. */
static enum pe_status level_ids(struct pe_diagnosis *d, struct pe_failure *err)
{
    struct pe_belief *b = &d->belief;
    struct pe_tensor *t = &b->ids.array;
    char shape[96];
    while (t->rank > 1 && t->shape[0] == 1) {
        t->rank--;
        memmove(t->shape, t->shape + 1, t->rank * sizeof *t->shape);
    }
    if (t->rank > 3) {
        pe_shape_print(t->shape, t->rank, shape, sizeof shape);
        return pe_fail(err, "/position_ids",
                       "position_ids has the shape %s; needed: [n], [batch, n] or [axes, batch, n]", shape);
    }
    if (t->rank == 3)
        b->ids_layout = pe_positions_layout_words[PE_BY_AXES_BATCH];
    else if (t->rank == 2 && !has_axes(d, t->shape[0]))
        b->ids_layout = pe_positions_layout_words[PE_BY_BATCH];
    return PE_OK;
}

/* Beside another kind they are the belief's positions, as the model's forward takes them. */
static enum pe_status read_ids(struct pe_diagnosis *d, struct pe_failure *err)
{
    struct pe_belief *b = &d->belief;
    const struct pe_value *ids = d->evidence.kind->id == PE_OF_IDS ? NULL : field(d, "position_ids");
    if (!ids)
        return PE_OK;
    if (field(d, "positions"))
        return pe_fail(err, "/position_ids",
                       "position_ids are the positions of the tensor; leave them or positions out");
    if (ids->kind != PE_ARRAY)
        return pe_fail(err, "/position_ids", "position_ids is not a tensor; send nested lists of numbers");
    b->ids = *ids;
    enum pe_status status = field(d, "positions_layout") ? PE_OK : level_ids(d, err);
    b->asked[b->n_asked++] = (struct pe_field){"positions", b->ids};
    if (b->ids_layout && d->evidence.kind->id == PE_OF_MAPS) /* whose plans know levels */
        b->asked[b->n_asked++] = (struct pe_field){"positions_layout", {.kind = PE_STRING, .string = b->ids_layout}};
    return status;
}

/* ---- A padded batch ---- */

static enum pe_status check_beside_mask(const struct pe_belief *b, struct pe_failure *err)
{
    for (size_t i = 0; i < b->n_asked; i++) {
        const struct pe_field *f = &b->asked[i];
        if (pe_belief_is_sequence(f->name) && !pe_is_among("len|offset|attention_mask|padding|pad_position", f->name))
            return pe_fail(err, "/attention_mask", "attention_mask gives the positions; leave it or %s out",
                           b->ids.kind == PE_ARRAY ? "position_ids" : f->name);
        if (pe_same(f->name, "len") && f->value.kind == PE_INTEGER && (uint64_t)f->value.integer != b->padding.n)
            return pe_fail(err, "/len", "len is %lld, but attention_mask has %llu columns", (long long)f->value.integer,
                           (unsigned long long)b->padding.n);
    }
    return PE_OK;
}

/* The positions by both rules, of which the belief has one. */
static enum pe_status set_padded(struct pe_diagnosis *d, struct pe_failure *err)
{
    struct pe_belief *b = &d->belief;
    const uint64_t n = b->padding.n_batches * b->padding.n;
    if (pe_diagnosis_admit(d, 2 * (double)n * sizeof(double), err))
        return err->status;
    for (size_t i = 0; i < 2; i++) {
        b->padded[i] = malloc(n * sizeof **b->padded);
        if (!b->padded[i])
            return pe_no_memory(err);
        pe_padding_positions(&b->padding, i == PE_PADDING_COUNTED, false, b->padded[i]);
    }
    d->evidence.padding = &b->padding;
    if (d->evidence.kind->id == PE_OF_MAPS) /* whose plans know masks */
        return PE_OK;
    double *believed = b->padded[b->padding.is_counted];
    struct pe_tensor flat = {PE_F64, 1, {n}, believed},
                     by_row = {PE_F64, 2, {b->padding.n_batches, b->padding.n}, believed};
    b->by_batch = (struct pe_value){.kind = PE_ARRAY, .array = by_row};
    if (b->padding_fields.attention_mask.array.rank == 2)
        b->positions = &b->by_batch;
    b->asked[b->n_asked++] = (struct pe_field){"positions", {.kind = PE_ARRAY, .array = flat}};
    return PE_OK;
}

/* Removes len and offset from the fields, where the positions replace them. */
static void take_run(struct pe_belief *b, bool are_kept)
{
    size_t n = 0;
    for (size_t i = 0; i < b->n_asked; i++) {
        if (pe_same(b->asked[i].name, "offset") && b->asked[i].value.kind == PE_INTEGER)
            b->padding.offset = (double)b->asked[i].value.integer;
        if (are_kept || !pe_is_among("len|offset", b->asked[i].name))
            b->asked[n++] = b->asked[i];
    }
    b->n_asked = n;
}

static enum pe_status read_mask(struct pe_diagnosis *d, struct pe_failure *err)
{
    struct pe_belief *b = &d->belief;
    bool taken[PE_FIELDS_MAX] = {false};
    enum pe_status status = pe_params_read(pe_padding_params(), &b->padding_fields, d->request->fields,
                                           d->request->n_fields, taken, "", err);
    b->has_mask = b->padding_fields.attention_mask.n > 0;
    if (status || !b->has_mask)
        return status;
    if (word_of(d, "positions_layout"))
        return pe_fail(err, "/positions_layout", "positions_layout is not used here: it needs positions");
    status = pe_padding_read(&b->padding, &b->padding_fields, err);
    if (!status)
        status = check_beside_mask(b, err);
    if (status)
        return status;
    take_run(b, d->evidence.kind->id == PE_OF_MAPS);
    return set_padded(d, err);
}

/* A scale of queries, the request's or the model's: a request that encodes has none, so it is read here. Keys are not
 * scaled. */
static const struct pe_param query_rows[] = {{.name = "query_scale",
                                              .type = PE_T_OBJECT,
                                              .offset = offsetof(struct pe_belief, query_scale),
                                              .fields = pe_query_scale_params},
                                             {.name = NULL}};

static enum pe_status read_query_scale(struct pe_diagnosis *d, struct pe_failure *err)
{
    bool taken[PE_FIELDS_MAX] = {false};
    struct pe_field scores[PE_SCORE_FIELDS_MAX];
    const struct pe_field *fields = field(d, "query_scale") ? d->request->fields : scores;
    size_t n = fields == scores ? pe_model_score_fields(d->belief.inheritance, scores) : d->request->n_fields;
    enum pe_status status = pe_params_read(query_rows, &d->belief, fields, n, taken, "", err);
    return status ? status : pe_query_scale_read(&d->belief.query_scale, fields, n, err);
}

static const char of_masks[] = "attention_mask|padding|pad_position";

static bool is_operand(const char *name)
{
    return pe_same(name, pe_operand_names[PE_QUERIES]) || pe_same(name, pe_operand_names[PE_KEYS]);
}

/* Has the evidence a row for each position, which may be those of a batch? */
static bool has_rows(const struct pe_diagnosis *d)
{
    enum pe_evidence_id id = d->evidence.kind->id;
    return id == PE_OF_ROTATED || id == PE_OF_TABLES || id == PE_OF_ENCODING || id == PE_OF_ANGLES;
}

/* They are read from the request: plans of rows have one list of positions. */
static bool is_ours(const struct pe_diagnosis *d, const char *name)
{
    return (d->evidence.kind->id == PE_OF_ROTATED && pe_is_among("tensor_layout|query_scale", name)) ||
           (has_rows(d) && (pe_same(name, "positions_layout") || pe_is_among(of_masks, name)));
}

/* Rows of a batch before the channels are one list of rows. */
static void fold_batch(struct pe_diagnosis *d)
{
    struct pe_evidence *e = &d->evidence;
    const struct pe_tensor *t = &e->tensors[0], *p = d->belief.positions ? &d->belief.positions->array : NULL;
    uint64_t n = 1;
    if (!p || e->kind->id == PE_OF_ROTATED || t->rank < 3)
        return;
    for (unsigned a = 0; a + 1 < t->rank; a++)
        n *= t->shape[a];
    if (n == p->shape[p->rank - 2] * p->shape[p->rank - 1])
        pe_evidence_fold(e, 2, (uint64_t[]){n, t->shape[t->rank - 1]});
}

enum pe_status pe_belief_open(struct pe_diagnosis *d, struct pe_failure *err)
{
    struct pe_belief *b = &d->belief;
    bool has_scheme = false, is_map = d->evidence.kind->id == PE_OF_MAPS;
    enum { ROOM = 8 }; /* for the scheme and sizes */
    if (d->request->n_fields > PE_FIELDS_MAX - ROOM)
        return pe_fail(err, "", "the request has %zu fields; allowed: at most %d", d->request->n_fields,
                       PE_FIELDS_MAX - ROOM);
    for (size_t i = 0; i < d->request->n_fields; i++) {
        const struct pe_field *f = &d->request->fields[i];
        has_scheme |= pe_is_among("scheme|preset|hf_config|gguf", f->name);
        if (d->evidence.is_typed ? is_of_typed(d, f->name)
                                 : is_evidence(d->evidence.kind, f->name) || pe_same(f->name, "decimals"))
            continue;
        b->is_given |= !is_run(f->name) && !(is_map && is_operand(f->name));
        if (is_ours(d, f->name) || pe_same(f->name, "position_ids"))
            continue;
        b->asked[b->n_asked++] = *f;
    }
    if (!has_scheme)
        add_scheme(b, d->evidence.kind->scheme);
    bool is_rotated = d->evidence.kind->id == PE_OF_ROTATED;
    enum pe_status status = is_rotated ? read_tensor_layout(d, err) : PE_OK;
    if (!status)
        status = read_ids(d, err);
    if (!status && (has_rows(d) || is_map))
        status = read_mask(d, err);
    if (!status && has_rows(d) && !b->has_mask)
        status = read_positions(d, err);
    if (!status)
        fold_batch(d);
    if (!status)
        status = merge(d, err);
    if (!status && is_rotated)
        status = read_query_scale(d, err);
    b->n_stated = b->inheritance ? b->inheritance->n : 0;
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
    if (!pe_field_find(b->asked, b->n_asked, name) && b->n_asked < PE_FIELDS_MAX) /* its model has it */
        b->asked[b->n_asked++] = (struct pe_field){name, value};
    replace_in(b->asked, b->n_asked, name, value);
    replace_in(b->inheritance->fields, b->inheritance->n, name, value);
}

enum pe_status pe_belief_fix(struct pe_diagnosis *d, const char *name, uint64_t size, const char *tensor,
                             struct pe_failure *err)
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
