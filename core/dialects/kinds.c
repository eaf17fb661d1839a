/* The kinds of layers of a model, each with the configuration that the request gives it: of the language model, then of
 * its other parts. A kind whose configuration is refused stays, with the sentence. */
#include "core/dialects/dialects.h"
#include "core/scheme.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- One reading ---- */

static enum pe_status admit(void *caller, double bytes, struct pe_failure *err)
{
    struct pe_explain *ex = caller;
    const struct pe_explain_request *request = ex->request;
    ex->asked = bytes;
    return request->admit ? request->admit(request->caller, ex->bytes + bytes, err) : PE_OK;
}

/* The request's fields, with another model in the place of its own. */
static size_t fields_of(const struct pe_explain *ex, const struct pe_field *model, const char *layer_type,
                        struct pe_field *fields)
{
    size_t n = 0;
    for (size_t i = 0; i < ex->n_own; i++)
        if (!model || !pe_is_among("hf_config|gguf|preset|said", ex->own[i].name))
            fields[n++] = ex->own[i];
    if (model)
        fields[n++] = *model;
    bool names_kind = model || ex->hf || ex->gguf || ex->preset || (ex->said && ex->layer_type);
    if (layer_type && names_kind)
        fields[n++] = (struct pe_field){"layer_type", {.kind = PE_STRING, .string = layer_type}};
    return n;
}

/* At the last position; a model's coordinates of a grid are part of its configuration, and need one. */
static enum pe_status plan_rotation(struct pe_explain *ex, struct pe_field *fields, size_t n, bool on_grid,
                                    struct pe_plan **plan, struct pe_failure *err)
{
    enum { AXES_TRIED = sizeof ex->last / sizeof *ex->last };
    static const char *const outputs[] = {"inv_freq"};
    static const double ones[AXES_TRIED] = {1, 1, 1};
    for (size_t i = 0; i < AXES_TRIED; i++)
        ex->last[i] = (double)ex->length - 1;
    enum pe_status status = PE_OK;
    for (unsigned axes = 1; axes <= AXES_TRIED; axes++) {
        struct pe_failure later;
        struct pe_tensor at = {.dtype = PE_F64, .rank = axes > 1 ? 2 : 1, .shape = {axes, 1}, .data = ex->last};
        struct pe_tensor cell = {.dtype = PE_F64, .rank = 1, .shape = {axes}, .data = ones};
        fields[n] = (struct pe_field){on_grid ? "grid" : "positions",
                                      {.kind = PE_ARRAY, .from_text = true, .array = on_grid ? cell : at}};
        struct pe_request request = {.operation = PE_ENCODE,
                                     .fields = fields,
                                     .n_fields = n + 1,
                                     .dtype = PE_F64,
                                     .outputs = outputs,
                                     .n_outputs = 1,
                                     .caller_fields = ex->request->caller_fields,
                                     .admit = admit,
                                     .caller = ex};
        enum pe_status now = pe_plan_new(&request, plan, axes > 1 ? &later : err);
        status = axes == 1 || !now ? now : status;
        if (now != PE_INVALID)
            break;
    }
    if (!status)
        ex->bytes += ex->asked;
    return status;
}

/* The plan's config, with what multiplies and caps the model's scores. */
static enum pe_status take_config(struct pe_explain *ex, struct pe_reading *reading)
{
    const struct pe_value *config = pe_plan_config(reading->plan);
    struct pe_value *whole = pe_values_room(ex->values, sizeof *whole);
    struct pe_field *fields = pe_values_room(ex->values, (config->object.n + PE_SCORE_FIELDS_MAX) * sizeof *fields);
    if (!whole || !fields)
        return pe_no_memory(ex->err);
    size_t n = config->object.n;
    memcpy(fields, config->object.fields, n * sizeof *fields);
    n += pe_model_score_fields(reading->plan->inheritance, fields + n);
    *whole = pe_object(fields, n);
    reading->config = reading->shown = whole;
    return PE_OK;
}

static enum pe_status take_rotation(struct pe_explain *ex, struct pe_reading *reading)
{
    const struct pe_output *output = pe_plan_output(reading->plan, 0);
    size_t n = (size_t)(output->n_rows * output->row_len);
    double *w = pe_values_room(ex->values, (n + 1) * sizeof *w);
    if (!w)
        return pe_no_memory(ex->err);
    pe_fill(reading->plan, 0, 0, n, w);
    if (take_config(ex, reading))
        return ex->err->status;
    reading->turn = (struct pe_turn){.w = w,
                                     .n = n,
                                     .factor = pe_config_number(reading->config, "attention_factor", 1),
                                     .head_dim = (int64_t)pe_config_number(reading->config, "head_dim", 2 * (double)n),
                                     .offset = (int64_t)pe_config_number(reading->config, "rotary_offset", 0),
                                     .is_half = pe_same(pe_config_word(reading->config, "layout"), "half")};
    return PE_OK;
}

/* fields has room for two more. */
static enum pe_status read_one(struct pe_explain *ex, struct pe_field *fields, size_t n, struct pe_reading *reading,
                               struct pe_failure *err)
{
    struct pe_request request = {.operation = PE_ENCODE, .fields = fields, .n_fields = n};
    *reading = (struct pe_reading){.config = NULL};
    *err = (struct pe_failure){.status = PE_OK};
    enum pe_status status = pe_inherit_whole(ex->buffer, &request, err);
    if (status)
        return status;
    bool on_grid = pe_field_find(ex->buffer->fields, ex->buffer->n, "coords") != NULL;
    const struct pe_value *style = pe_field_find(ex->buffer->fields, ex->buffer->n, "position_style");
    reading->style = style && style->kind == PE_STRING ? style->string : "";
    status = pe_inherit(ex->buffer, &request, err);
    if (status)
        return status;
    reading->scores = pe_values_room(ex->values, sizeof *reading->scores);
    if (!reading->scores)
        return pe_no_memory(err);
    *reading->scores = ex->buffer->model.scores;
    if (pe_same(ex->buffer->scheme->info.name, "rope")) {
        status = plan_rotation(ex, fields, n, on_grid, &reading->plan, err);
        return status ? status : take_rotation(ex, reading);
    }
    request.caller_fields = ex->request->caller_fields;
    status = pe_config_new(&request, &reading->whole, err);
    if (!status)
        reading->config = reading->shown = pe_config_value(reading->whole);
    return status;
}

/* A refusal is a part of the answer; after any other failure the reading holds nothing. */
static enum pe_status settle(struct pe_explain *ex, enum pe_status status, const struct pe_failure *err,
                             struct pe_reading *reading)
{
    if (status && status != PE_INVALID) {
        pe_reading_drop(reading);
        *ex->err = *err;
        return ex->err->status = status;
    }
    if (status) {
        snprintf(reading->refused, sizeof reading->refused, "%s", err->detail);
        reading->lacks_bytes = err->needs != PE_NO_NEEDS;
    }
    return PE_OK;
}

enum pe_status pe_dialect_read(struct pe_explain *ex, const struct pe_field *model, const char *layer_type,
                               struct pe_reading *reading)
{
    struct pe_field fields[PE_FIELDS_MAX + 4];
    struct pe_failure err;
    size_t n = fields_of(ex, model, layer_type, fields);
    return settle(ex, read_one(ex, fields, n, reading, &err), &err, reading);
}

enum pe_status pe_dialect_read_at(struct pe_explain *ex, int64_t length, const struct pe_field *model,
                                  const char *layer_type, struct pe_reading *reading)
{
    int64_t whole = ex->length;
    ex->length = length;
    enum pe_status status = pe_dialect_read(ex, model, layer_type, reading);
    ex->length = whole;
    return status;
}

/* The members of v that are the same in a and b, which are v at two lengths. */
static struct pe_value members_of_both(struct pe_values *values, const struct pe_value *v, const struct pe_value *a,
                                       const struct pe_value *b)
{
    struct pe_field *fields = pe_values_room(values, (v->object.n + 1) * sizeof *fields);
    size_t n = 0;
    for (size_t i = 0; fields && i < v->object.n; i++) {
        struct pe_field field = v->object.fields[i];
        const struct pe_value x = pe_config_at(a, field.name), y = pe_config_at(b, field.name);
        if (x.kind == PE_OBJECT && y.kind == PE_OBJECT)
            field.value = members_of_both(values, &field.value, &x, &y);
        else if (!pe_value_same(&x, &y))
            continue;
        fields[n++] = field;
    }
    return pe_object(fields, n);
}

/* seq_len and what it decides differ at another length, unless they were given. */
static enum pe_status leave_out_lengths(struct pe_explain *ex, const struct pe_field *model, const char *layer_type,
                                        struct pe_reading *reading)
{
    struct pe_reading within = {.config = NULL}, beyond = {.config = NULL};
    int64_t border = pe_dialect_border(reading->config);
    enum pe_status status = pe_dialect_read_at(ex, border, model, layer_type, &within);
    if (!status)
        status = pe_dialect_read_at(ex, border + 2, model, layer_type, &beyond);
    if (!status && within.config && beyond.config) {
        struct pe_value shown = members_of_both(ex->values, reading->config, within.config, beyond.config);
        reading->shown = shown.object.fields ? pe_values_keep(ex->values, shown) : NULL;
        status = reading->shown ? PE_OK : pe_no_memory(ex->err);
    }
    pe_reading_drop(&within);
    pe_reading_drop(&beyond);
    return status;
}

enum pe_status pe_dialect_read_shown(struct pe_explain *ex, const struct pe_field *model, const char *layer_type,
                                     struct pe_reading *reading)
{
    enum pe_status status = pe_dialect_read(ex, model, layer_type, reading);
    return status || !pe_dialect_border(reading->config) ? status : leave_out_lengths(ex, model, layer_type, reading);
}

enum pe_status pe_dialect_read_fields(struct pe_explain *ex, const struct pe_field *given, size_t n,
                                      struct pe_reading *reading)
{
    struct pe_field fields[PE_FIELDS_MAX + 4];
    struct pe_failure err;
    memcpy(fields, given, n * sizeof *fields);
    return settle(ex, read_one(ex, fields, n, reading, &err), &err, reading);
}

enum pe_status pe_dialect_read_refused(struct pe_explain *ex, size_t k)
{
    struct pe_field fields[PE_FIELDS_MAX + 4];
    struct pe_reading reading;
    size_t n = fields_of(ex, NULL, ex->kinds[k].layer_type, fields);
    enum pe_status status = read_one(ex, fields, n, &reading, ex->err);
    pe_reading_drop(&reading);
    return status;
}

struct pe_stated_kind pe_dialect_state(const struct pe_dialect_kind *kind, const struct pe_reading *reading)
{
    return (struct pe_stated_kind){.layer_type = kind->layer_type,
                                   .layers = kind->layers,
                                   .n_layers = kind->n_layers,
                                   .config = reading->config,
                                   .w = reading->turn.w,
                                   .n = reading->turn.n};
}

void pe_reading_drop(struct pe_reading *reading)
{
    pe_plan_free(reading->plan);
    pe_config_free(reading->whole);
    *reading = (struct pe_reading){.config = NULL};
}

/* ---- Kinds of the language model ---- */

/* Adds a kind of the model, that of the request or another one, and reads it. */
static enum pe_status add_kind(struct pe_explain *ex, const struct pe_field *model, const char *layer_type,
                               const char *part)
{
    if (ex->n_kinds == PE_DIALECT_KINDS_MAX)
        return pe_fail(ex->err, "/layer_type", "the model has more than %d kinds of layers; name one type",
                       PE_DIALECT_KINDS_MAX);
    struct pe_dialect_kind *kind = &ex->kinds[ex->n_kinds++];
    *kind = (struct pe_dialect_kind){.part = part};
    snprintf(kind->layer_type, sizeof kind->layer_type, "%s", layer_type ? layer_type : PE_HF_FULL);
    return pe_dialect_read_shown(ex, model, layer_type, &kind->own);
}

/* Only kinds of attention are listed. Other layers become a kind of their own where a request names them. */
static bool is_listed(const struct pe_hf_layers *layers, const char *name)
{
    for (size_t k = 0; k < layers->n_kinds; k++)
        if (pe_same(layers->kinds[k], name))
            return true;
    return false;
}

static enum pe_status add_listed(struct pe_explain *ex, const struct pe_hf_layers *layers)
{
    bool is_known = !ex->layer_type || is_listed(layers, ex->layer_type);
    for (size_t k = 0; k < layers->n_kinds; k++) {
        if (is_known && ex->layer_type && !pe_same(ex->layer_type, layers->kinds[k]))
            continue;
        const char *name = is_known ? layers->kinds[k] : ex->layer_type;
        if (add_kind(ex, NULL, name, pe_dialect_is_class(ex) ? PE_DIALECT_GENERATOR : "text") ||
            pe_dialect_list_layers(ex, layers, &ex->kinds[ex->n_kinds - 1]))
            return ex->err->status;
        if (!is_known)
            break;
    }
    return PE_OK;
}

static enum pe_status check_members(const struct pe_explain *ex, const struct pe_value *object, const char *pointer)
{
    size_t n = object && object->kind == PE_OBJECT ? object->object.n : 0;
    if (n <= PE_CONFIG_MEMBERS_MAX)
        return PE_OK;
    return pe_fail(ex->err, pointer, "the config has %zu members; allowed: at most %d", n, PE_CONFIG_MEMBERS_MAX);
}

/* A model_type that is not known is refused; what contradicts itself in a known one is not. */
static enum pe_status add_of_hf(struct pe_explain *ex)
{
    if (check_members(ex, ex->hf, "/hf_config"))
        return ex->err->status;
    struct pe_model_fields *fields = malloc(sizeof *fields);
    struct pe_hf_asked asked = pe_hf_asked_of(ex->own, ex->n_own);
    struct pe_failure err;
    ex->marks = calloc(1, sizeof *ex->marks);
    if (!fields || !ex->marks) {
        free(fields);
        return pe_no_memory(ex->err);
    }
    enum pe_status status = pe_hf_config_read_marked(ex->hf, &asked, fields, ex->marks, &err);
    free(fields);
    if (status == PE_NO_MEMORY || ex->marks->no_memory)
        return pe_no_memory(ex->err);
    if (status && ex->marks->layers.n_kinds == 0)
        return *ex->err = err, status;
    asked.layer_type = ex->marks->layers.are_stacks ? ex->marks->layers.kinds[0] : NULL;
    if (pe_hf_language(ex->hf, &asked, &ex->language, ex->err))
        return ex->err->status;
    return check_members(ex, ex->language.place.object, ex->language.place.at);
}

static enum pe_status add_of_preset(struct pe_explain *ex)
{
    for (size_t i = 0; i < ex->preset->n_layers; i++) {
        const char *name = ex->preset->layers[i].layer_type;
        name = name ? name : PE_HF_FULL;
        if (ex->layer_type && !pe_same(ex->layer_type, name))
            continue;
        if (add_kind(ex, NULL, name, pe_same(name, PE_HF_INDEXER) ? PE_HF_INDEXER : "text"))
            return ex->err->status;
    }
    if (ex->n_kinds)
        return PE_OK;
    /* An unknown layer type: the refusal names those that there are. */
    struct pe_field fields[PE_FIELDS_MAX + 4];
    struct pe_request request = {.fields = fields, .n_fields = fields_of(ex, NULL, ex->layer_type, fields)};
    return pe_inherit(ex->buffer, &request, ex->err);
}

/* ---- The length ---- */

/* Of the model, where it states one. */
static int64_t stated_length(struct pe_explain *ex)
{
    if (ex->gguf)
        return ex->outline->length;
    if (ex->hf) {
        const struct pe_field *field = pe_hf_find(&ex->language.place, PE_HF_LENGTH);
        return field && field->value.kind == PE_INTEGER ? field->value.integer : 0;
    }
    const struct pe_value *scaling = pe_field_find(ex->own, ex->n_own, "scaling");
    for (size_t i = 0; ex->preset && !scaling && i < ex->preset->n_layers; i++)
        scaling = pe_field_find(ex->preset->layers[i].fields, ex->preset->layers[i].n_fields, "scaling");
    double length = pe_config_number(scaling, "max_position_embeddings", 0);
    return length >= 1 && length <= 0x1p31 ? (int64_t)length : 0;
}

static void set_length(struct pe_explain *ex)
{
    int64_t stated = stated_length(ex);
    ex->model_length = stated > 0 && stated <= INT64_C(2147483648) ? stated : 0;
    ex->is_length_asked = ex->length > 0;
    if (ex->is_length_asked)
        return;
    ex->is_length_assumed = !ex->model_length;
    ex->length = ex->is_length_assumed ? PE_DIALECT_LENGTH : ex->model_length;
}

/* ---- Other parts ---- */

/* The tower's config with the model_type of a tower: Qwen2-VL's own states that of the whole model, "qwen2_vl". */
static enum pe_status name_tower(struct pe_explain *ex, const char *part, const struct pe_value *config,
                                 struct pe_value *out)
{
    const struct pe_value *type = pe_stated(config, "model_type");
    const struct pe_hf_model *row = type && type->kind == PE_STRING ? pe_hf_model_find(type->string) : NULL;
    char name[96];
    *out = *config;
    if (!row || row->kind != PE_HF_NESTED)
        return PE_OK;
    snprintf(name, sizeof name, "%.60s_%s", type->string, part);
    if (!pe_hf_model_find(name))
        return PE_OK;
    struct pe_field *fields = pe_values_room(ex->values, config->object.n * sizeof *fields);
    char *kept = pe_values_room(ex->values, strlen(name) + 1);
    if (!fields || !kept)
        return pe_no_memory(ex->err);
    memcpy(fields, config->object.fields, config->object.n * sizeof *fields);
    for (size_t i = 0; i < config->object.n; i++)
        if (&config->object.fields[i].value == type)
            fields[i].value = pe_word(strcpy(kept, name));
    out->object.fields = fields;
    return PE_OK;
}

/* A tower has a config of its own, with a model_type of its own. */
static enum pe_status add_part(struct pe_explain *ex, const char *name, const char *part)
{
    const struct pe_value *config = pe_stated(ex->hf, name);
    if (!config || config->kind != PE_OBJECT)
        return PE_OK;
    struct pe_field model = {.name = "hf_config"};
    return name_tower(ex, part, config, &model.value) ? ex->err->status : add_kind(ex, &model, NULL, part);
}

/* Of sparse attention, with heads of its own, whose width the config states. */
static enum pe_status add_indexer(struct pe_explain *ex)
{
    struct pe_hf_asked asked = pe_hf_asked_of(ex->own, ex->n_own);
    if (!pe_hf_says(&ex->language.place, "index_head_dim") || !pe_hf_indexer_row(ex->hf, &asked))
        return PE_OK;
    return add_kind(ex, NULL, PE_HF_INDEXER, PE_HF_INDEXER);
}

enum pe_status pe_dialect_kinds(struct pe_explain *ex)
{
    enum pe_status status = PE_OK;
    if (ex->hf)
        status = add_of_hf(ex);
    if (ex->gguf && !status) {
        ex->outline = pe_values_room(ex->values, sizeof *ex->outline);
        status = ex->outline ? pe_gguf_outline(ex->gguf, ex->outline, ex->err) : pe_no_memory(ex->err);
    }
    if (status)
        return status;
    set_length(ex);
    if (ex->hf || ex->gguf)
        status = add_listed(ex, ex->hf ? &ex->marks->layers : &ex->outline->layers);
    else if (ex->preset)
        status = add_of_preset(ex);
    else
        status = add_kind(ex, NULL, ex->said ? ex->layer_type : NULL, "text");
    ex->n_text = ex->n_kinds;
    while (ex->n_text > 1 && pe_same(ex->kinds[ex->n_text - 1].part, PE_HF_INDEXER))
        ex->n_text--;
    if (status || !ex->hf || ex->layer_type)
        return status;
    bool fails = add_indexer(ex) || add_part(ex, "vision_config", "vision") || add_part(ex, "audio_config", "audio");
    return fails ? ex->err->status : PE_OK;
}

void pe_dialect_kinds_drop(struct pe_explain *ex)
{
    for (size_t i = 0; i < ex->n_kinds; i++)
        pe_reading_drop(&ex->kinds[i].own);
    for (size_t i = 0; i < ex->n_alone; i++)
        pe_reading_drop(ex->alone[i]);
    if (ex->marks)
        free(ex->marks->read);
    free(ex->marks);
}

/* ---- As an answer has them ---- */

/* What a field of a kind's configuration is of, if a request of /encode does not take it: of embeddings, or of
 * attention. NULL: it does. */
static const char *beside_config(const struct pe_scheme_info *scheme, const char *name)
{
    const struct pe_param *attention = pe_operation_at(PE_ATTEND)->params;
    if (pe_absolute_needs_x(scheme, name))
        return "with_x";
    return !pe_param_find(scheme->params, name) && pe_param_find(attention, name) ? "with_attention" : NULL;
}

void pe_dialect_put_config(const struct pe_value *config, struct pe_node *whole, struct pe_node *node)
{
    const struct pe_scheme_info *scheme = pe_scheme_find(pe_config_word(config, "scheme"));
    for (size_t i = 0; i < config->object.n; i++) {
        const struct pe_field *field = &config->object.fields[i];
        const char *beside = scheme ? beside_config(scheme, field->name) : NULL;
        if (beside && !node)
            continue;
        struct pe_node *other = beside ? pe_node_child(node, beside) : whole;
        pe_put_value(other ? other : pe_put_object(node, beside), field->name, &field->value);
    }
}
