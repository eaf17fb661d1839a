/* Reads positions from a model's config.json: finds the object of the language model and the kind of positions of its
 * model_type. A model_type without a row is refused, unless the request states the scheme.
 *
 * A config.json is the input of a Python class, and its meaning is that class's code: which field has which default,
 * whether null is a value, which fields are read at all. So nothing is guessed from names of fields. Each model_type
 * has a row (core/models/types.txt) that was read from its class in transformers, states how certain that is, and names
 * what the class ignores; fields that change positions in a way that is not read here are refused.
 *
 * Where layers differ in their positions, one answer would be wrong for some of them: the request must name the kind of
 * layer, and the refusal lists them. */
#include "core/models/hf/hf.h"
#include "core/params.h"
#include "core/values.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- Where to read ---- */

enum { NESTING_MAX = 4 };

/* How models that hold several call the language model's object. */
static const char usual_inner[] = "thinker_config|text_config|llm_config|language_config";

static const struct pe_value nothing = {.kind = PE_OBJECT, .object = {NULL, 0}};

/* A class makes what its config leaves out: the object of its language model too. */
static bool make_inner(const struct pe_hf_reader *r, struct pe_hf_place *inner)
{
    if (r->model && r->model->missing)
        return r->model->missing(r, inner);
    *inner = r->config;
    inner->object = &nothing;
    return r->model && r->model->kind == PE_HF_NESTED;
}

/* The type of the inner object: what it states, else what the outer class has there. */
static enum pe_status enter(struct pe_hf_reader *r)
{
    const char *type = NULL;
    const struct pe_hf_model *outer = r->model;
    bool is_flat = r->config.object == r->around.object;
    if (!is_flat && pe_hf_word(&r->config, "model_type", &type, r->err))
        return r->err->status;
    if (outer && outer->without && r->config.object == &nothing) {
        r->model_type = outer->without;
        r->model = pe_hf_row_find(outer->without);
        return PE_OK;
    }
    if (outer && outer->inner_type && strchr(outer->inner_type, '/')) { /* its own class, whatever the object states */
        r->model_type = type ? type : outer->inner_type;
        r->model = pe_hf_row_find(outer->inner_type);
        return PE_OK;
    }
    if (!type && outer && outer->inner_type)
        type = outer->inner_type;
    if (!type)
        return PE_OK; /* as the outer one */
    r->model_type = type;
    r->model = pe_hf_model_find(type);
    return PE_OK;
}

/* A type that is known for a model of its own reads no other model's object. */
static bool holds_another(const struct pe_hf_reader *r) { return !r->model || r->model->kind == PE_HF_NESTED; }

/* The files of DiT and PixArt name a class that diffusers has split since; its loader tells them apart by norm_type
 * (model_loading_utils.py: _CLASS_REMAPPING_DICT). */
static enum pe_status name_of_today(struct pe_hf_reader *r, const char **class)
{
    const char *norm = "";
    if (strcmp(*class, "Transformer2DModel") != 0)
        return PE_OK;
    if (pe_hf_word(&r->config, "norm_type", &norm, r->err))
        return r->err->status;
    *class = strcmp(norm, "ada_norm_single") == 0 ? "PixArtTransformer2DModel"
             : strcmp(norm, "ada_norm_zero") == 0 ? "DiTTransformer2DModel"
                                                  : *class;
    return PE_OK;
}

/* Which model it is: model_type, or in a config of diffusers the name of its class. */
static enum pe_status read_type(struct pe_hf_reader *r)
{
    const char *class = NULL;
    if (pe_hf_word(&r->config, "model_type", &r->model_type, r->err) ||
        pe_hf_word(&r->config, "_class_name", &class, r->err))
        return r->err->status;
    if (class && *r->model_type)
        return pe_fail_at(
            r->err, r->config.at, "_class_name",
            "_class_name is \"%.64s\" and model_type is \"%.64s\"; give one: they are names of two libraries", class,
            r->model_type);
    if (!class)
        return PE_OK;
    r->type_key = "_class_name";
    enum pe_status status = name_of_today(r, &class);
    r->model_type = class;
    return status;
}

/* Names of the one library are none of the other. */
static const struct pe_hf_model *find_of_key(const struct pe_hf_reader *r)
{
    const struct pe_hf_model *model = pe_hf_model_find(r->model_type);
    return model && model->is_class == (strcmp(r->type_key, "_class_name") == 0) ? model : NULL;
}

/* Multimodal configs keep the language model in an object of its own. Here r->model may be NULL. */
static enum pe_status descend(struct pe_hf_reader *r)
{
    enum pe_status status = read_type(r);
    r->model = find_of_key(r);
    for (int depth = 0; !status && depth < NESTING_MAX && holds_another(r); depth++) {
        struct pe_hf_place inner;
        const char *names = r->model && r->model->inner ? r->model->inner : usual_inner;
        status = pe_hf_object(&r->config, names, &inner, r->err);
        if (status || (!inner.object && !make_inner(r, &inner)))
            return status;
        r->around = r->config;
        r->config = inner;
        r->is_nested = true;
        status = enter(r);
    }
    return status;
}

/* ---- Types without a row ---- */

#define HOW_TO_TELL                                                                                                    \
    "to state it yourself, send the scheme beside hf_config, as in \"scheme\":\"rope\",\"layout\":\"half\""

static enum pe_status unknown_type(const struct pe_hf_reader *r)
{
    char pointer[PE_POINTER_MAX], nearest[192];
    pe_pointer_join(pointer, sizeof pointer, r->config.at, "model_type");
    pe_hf_nearest_types(r->model_type, nearest, sizeof nearest);
    if (!r->model && pe_hf_model_find(r->model_type))
        return pe_fail_at(r->err, r->config.at, r->type_key, "\"%.64s\" is no %s but a %s; write it so", r->model_type,
                          r->type_key, strcmp(r->type_key, "model_type") == 0 ? "_class_name" : "model_type");
    if (strcmp(r->type_key, "_class_name") == 0)
        return pe_hf_refuse_class(&r->config, r->model_type, r->err);
    if (r->model)
        return pe_fail(
            r->err, pointer,
            "model_type \"%.64s\" holds another model: its object %s needs a known model_type of its own, at "
            "most %d objects deep",
            r->model_type, r->model->inner, NESTING_MAX);
    if (!*r->model_type && pe_hf_is_timm(&r->config))
        return pe_hf_refuse_timm(&r->config, r->err);
    if (!*r->model_type)
        return pe_fail(r->err, pointer,
                       "model_type is missing, which defines what the other fields mean; " HOW_TO_TELL);
    return pe_fail(r->err, pointer, "model_type \"%.64s\" is not known here%s%s; " HOW_TO_TELL, r->model_type,
                   *nearest ? pe_text("; nearest: ") : "", nearest);
}

static enum pe_status other_positions(const struct pe_hf_reader *r)
{
    if (r->model->send)
        return pe_fail_at(r->err, r->config.at, r->type_key,
                          "%s \"%.64s\" is not read here; its positions are %s. In place of hf_config send %s",
                          r->type_key, r->model_type, pe_text(r->model->positions), pe_text(r->model->send));
    return pe_fail_at(r->err, r->config.at, r->type_key, "%s \"%.64s\" has positions that no scheme here gives: %s",
                      r->type_key, r->model_type, pe_text(r->model->positions));
}

/* What a request can say of a type that has no row. */
static const struct pe_field told_shift[] = {{"freq_shift", {.kind = PE_REAL, .real = 0}}};
static const struct pe_hf_model told[] = {
    {.types = "rope", .kind = PE_HF_ROPE},
    {.types = "learned", .kind = PE_HF_LEARNED},
    {.types = "sinusoidal", .kind = PE_HF_SINUSOIDAL, .gives = {told_shift, 1}},
    {.types = "alibi", .kind = PE_HF_ALIBI},
    {.types = "t5", .kind = PE_HF_BUCKETS},
    {.types = "none", .kind = PE_HF_NONE},
};

static const struct pe_hf_model *told_row(const char *scheme)
{
    for (size_t i = 0; i < sizeof told / sizeof *told; i++)
        if (strcmp(told[i].types, scheme) == 0)
            return &told[i];
    return NULL;
}

static enum pe_status read_as_told(struct pe_hf_reader *r, const struct pe_hf_asked *asked)
{
    r->scheme_is_given = true;
    r->says_channels = asked->has_channels;
    r->model = told_row(asked->scheme);
    if (!r->model)
        return pe_fail(r->err, "/scheme",
                       "scheme is \"%.40s\" beside a config of unknown model_type; such a config is read as one of: "
                       "rope, learned, sinusoidal, alibi, t5, none",
                       asked->scheme);
    bool has_layout = asked->has_layout || pe_hf_says(&r->config, PE_HF_LAYOUT_FLAGS);
    if (!has_layout && (r->model->kind == PE_HF_ROPE || r->model->kind == PE_HF_SINUSOIDAL))
        return pe_fail(r->err, "/layout",
                       "layout is missing: model_type \"%.64s\" is not known here; send \"half\" or \"interleaved\"",
                       r->model_type);
    return PE_OK;
}

/* Of a model of several parts: that which the layer_type names. */
static enum pe_status choose_part(struct pe_hf_reader *r)
{
    const char *parts = r->model->layers;
    char first[64], name[128], spelled[96];
    pe_hf_spell(parts, spelled, sizeof spelled);
    snprintf(first, sizeof first, "%.*s", (int)strcspn(parts, "|"), parts);
    const char *part = r->layer_type ? r->layer_type : first;
    if (!pe_is_among(parts, part))
        return pe_fail(r->err, "/layer_type", "layer_type is \"%.40s\"; %s \"%.64s\" has the parts %s", part,
                       r->type_key, r->model_type, spelled);
    snprintf(name, sizeof name, "%.*s/%.40s", (int)strcspn(r->model->types, "|"), r->model->types, part);
    r->model = pe_hf_row_find(name);
    r->layer_type = NULL;
    return r->model ? PE_OK : pe_fail(r->err, "/layer_type", "%s has no row", name);
}

/* Conditions ask whether a flag is true, or false: another kind of value would count as none. */
static enum pe_status check_flags(const struct pe_hf_reader *r, const char *conditions)
{
    struct pe_hf_place place = r->config;
    place.marks = NULL; /* whether they are read is seen where they are asked for */
    for (const char *p = conditions; p; p = strchr(p, '|') ? strchr(p, '|') + 1 : NULL) {
        char name[64], word[64];
        bool ignored;
        size_t n = strcspn(p, "=|"), n_word = strcspn(p + n, "|");
        snprintf(name, sizeof name, "%.*s", (int)n, p);
        snprintf(word, sizeof word, "%.*s", n_word ? (int)n_word - 1 : 0, p + n + 1);
        bool is_flag = pe_is_among("true|false", word);
        if (is_flag && pe_hf_flag(&place, name, &ignored, r->err))
            return r->err->status;
    }
    return PE_OK;
}

static enum pe_status find_model(struct pe_hf_reader *r, const struct pe_hf_asked *asked)
{
    if (r->model && r->model->kind == PE_HF_PARTS && choose_part(r))
        return r->err->status;
    bool is_other = r->model && r->model->kind == PE_HF_OTHER;
    bool has_row = r->model && !is_other && r->model->kind != PE_HF_NESTED;
    r->class = r->model;
    if (!has_row && asked->scheme)
        return read_as_told(r, asked);
    if (!has_row)
        return is_other ? other_positions(r) : unknown_type(r);
    r->config.defaults = &r->model->fields;
    r->config.row = r->model;
    if (check_flags(r, r->model->refuses) || check_flags(r, r->model->rope_if) || check_flags(r, pe_hf_stack_flags(r)))
        return r->err->status;
    return PE_OK;
}

/* ---- Which kind ---- */

static enum pe_status (*const kinds[])(struct pe_hf_reader *) = {
#define KIND(ID, name, read, text) [PE_HF_##ID] = read,
#define TRAIT(member, name, text, source)
#include "core/models/hf/list.h"
#undef KIND
#undef TRAIT
};

/* In BERT's family a word chooses the kind: Jina's ALiBi, ESM's RoPE, or distances with a table for keys. */
enum pe_status pe_hf_learned_or_other(struct pe_hf_reader *r)
{
    const char *type = "absolute";
    enum pe_status status = pe_hf_word(&r->config, "position_embedding_type", &type, r->err);
    if (status || strcmp(type, "absolute") == 0)
        return status ? status : pe_hf_learned(r);
    if (!r->scheme_is_given && !pe_hf_has_default(r->model, "position_embedding_type"))
        return pe_hf_wrong_value(&r->config, "position_embedding_type",
                                 "absolute, or none at all: not every version of this type's code reads it", r->err);
    if (pe_is_among("rotary|rope", type))
        return pe_hf_rope(r);
    if (strcmp(type, "alibi") == 0)
        return pe_hf_alibi(r);
    if (pe_is_among("relative_key|relative_key_query", type))
        return pe_hf_relative_key(r, type);
    return pe_hf_wrong_value(&r->config, "position_embedding_type",
                             "absolute, rotary, alibi, relative_key, relative_key_query", r->err);
}

static enum pe_status read_kind(struct pe_hf_reader *r)
{
    enum pe_status status = kinds[r->model->kind](r);
    if (r->model->remark)
        snprintf(pe_hf_note(r), PE_DETAIL_MAX, "%s", pe_text(r->model->remark));
    return !status && r->model->then ? r->model->then(r) : status;
}

static void note_model(struct pe_hf_marks *marks, const struct pe_hf_reader *r)
{
    if (!marks)
        return;
    marks->model_type = r->model_type;
    marks->scheme_is_given = r->scheme_is_given;
    marks->certainty = r->model->certainty;
}

/* Fields that change positions in a way that is not read here. */
static enum pe_status check_refused(const struct pe_hf_reader *r)
{
    const char *condition = r->model->refuses, *needs = r->model->needs;
    if (needs && !pe_hf_says(&r->config, needs))
        return pe_fail(r->err, r->config.at, "%.*s is missing, and versions of transformers differ in its default",
                       (int)strcspn(needs, "|"), needs);
    while (condition && !pe_hf_holds(&r->config, condition)) {
        const char *bar = strchr(condition, '|');
        condition = bar ? bar + 1 : NULL;
    }
    if (!condition)
        return PE_OK;
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(condition, "=|"), condition);
    return pe_fail_at(r->err, r->config.at, name,
                      "%s changes the positions of %s \"%.64s\" in a way that is not read here", name, r->type_key,
                      r->model_type);
}

static enum pe_status read_layers(struct pe_hf_reader *r)
{
    bool has_positions = true;
    if (check_refused(r) || pe_hf_layer_check(r, &has_positions) || (has_positions ? read_kind(r) : pe_hf_nothing(r)))
        return r->err->status;
    return pe_hf_scores(r);
}

enum pe_status pe_hf_config_read(const struct pe_value *config, const struct pe_hf_asked *asked,
                                 struct pe_model_fields *out, struct pe_failure *err)
{
    return pe_hf_config_read_marked(config, asked, out, NULL, err);
}

static struct pe_hf_reader reader_of(const struct pe_value *config, const struct pe_hf_asked *asked,
                                     struct pe_model_fields *out, struct pe_hf_marks *marks, struct pe_failure *err)
{
    struct pe_hf_reader r = {.layer_type = asked->layer_type,
                             .fps = asked->fps,
                             .model_type = "",
                             .type_key = "model_type",
                             .out = out,
                             .err = err};
    r.config = (struct pe_hf_place){.object = config, .at = "/hf_config", .marks = marks};
    r.around = r.config;
    return r;
}

enum pe_status pe_hf_language(const struct pe_value *config, const struct pe_hf_asked *asked,
                              struct pe_hf_language *out, struct pe_failure *err)
{
    struct pe_hf_reader r = reader_of(config, asked, NULL, NULL, err);
    if (descend(&r) || find_model(&r, asked))
        return err->status;
    *out = (struct pe_hf_language){r.config, r.model, r.model_type};
    return PE_OK;
}

/* Reads the layers of one type. */
static enum pe_status read_one(const struct pe_value *config, const struct pe_hf_asked *asked,
                               struct pe_model_fields *out, struct pe_hf_marks *marks, struct pe_failure *err)
{
    struct pe_hf_reader r = reader_of(config, asked, out, marks, err);
    pe_model_fields_clear(out);
    pe_hf_mark_seen(marks, config, r.config.at);
    if (descend(&r) || find_model(&r, asked))
        return err->status;
    note_model(marks, &r);
    if (read_layers(&r))
        return err->status;
    return r.fps ? pe_fail(err, "/fps",
                           "fps is not used by %s \"%.64s\", whose frames have the positions 0, 1, …; axis_scale and "
                           "axis_divisor state another clock, as [24,1,1] and [fps,1,1]",
                           r.type_key, r.model_type)
                 : PE_OK;
}

/* ---- A layer must be named where layers differ ---- */

/* Which kinds of layers there are; none where the config will be refused anyway. */
static enum pe_status list_layers(const struct pe_value *config, const struct pe_hf_asked *asked,
                                  struct pe_model_fields *out, struct pe_hf_marks *marks, struct pe_hf_layers *layers,
                                  struct pe_failure *err)
{
    struct pe_failure ignored;
    struct pe_hf_reader r = reader_of(config, asked, out, marks, &ignored);
    layers->n_kinds = layers->n_others = 0;
    layers->are_certain = false;
    if (descend(&r))
        return PE_OK;
    bool has_parts = r.model && r.model->kind == PE_HF_PARTS;
    if (!has_parts && find_model(&r, asked))
        return PE_OK;
    r.err = err;
    return pe_hf_list_layers(&r, layers);
}

struct all_kinds {
    const struct pe_value *config;
    struct pe_hf_asked asked;
    const struct pe_hf_layers *layers;
    struct pe_failure *err;
};

static enum pe_status read_kind_of(void *reader, size_t k, struct pe_model_fields *out)
{
    struct all_kinds *all = reader;
    all->asked.layer_type = all->layers->kinds[k];
    return read_one(all->config, &all->asked, out, NULL, all->err);
}

static enum pe_status compare_kinds(const struct pe_value *config, const struct pe_hf_asked *asked,
                                    struct pe_model_fields *out, const struct pe_hf_layers *layers,
                                    struct pe_failure *err)
{
    struct all_kinds all = {config, *asked, layers, err};
    struct pe_hf_reader r = reader_of(config, asked, out, NULL, err);
    if (descend(&r))
        return err->status;
    return pe_hf_compare_kinds(layers, r.model_type, asked->layer_type, read_kind_of, &all, out, err);
}

/* Where the layers of a config are of one kind, or of several whose positions are the same, no layer_type is needed. */
static enum pe_status name_kind(const struct pe_value *config, struct pe_hf_asked *asked, struct pe_model_fields *out,
                                const struct pe_hf_layers *layers, struct pe_failure *err)
{
    if (layers->n_kinds == 0)
        return PE_OK;
    if (asked->layer_type)
        return !layers->are_certain || pe_hf_has_kind(layers, asked->layer_type)
                   ? PE_OK
                   : compare_kinds(config, asked, out, layers, err);
    if (layers->n_kinds > 1 && compare_kinds(config, asked, out, layers, err))
        return err->status;
    const char *named = pe_hf_default_kind(layers);
    asked->layer_type = strcmp(named, PE_HF_FULL) == 0 ? NULL : named;
    return PE_OK;
}

/* ---- The indexer of sparse attention, a part with heads of its own ---- */

const struct pe_hf_model *pe_hf_indexer_row(const struct pe_value *config, const struct pe_hf_asked *asked)
{
    struct pe_failure ignored;
    struct pe_hf_language language = {.row = NULL};
    bool has =
        config->kind == PE_OBJECT && !asked->scheme && pe_hf_language(config, asked, &language, &ignored) == PE_OK;
    return has && language.row->indexer ? language.row : NULL;
}

static struct pe_field *find_put(struct pe_model_fields *out, const char *name)
{
    for (size_t i = 0; i < out->n; i++)
        if (strcmp(out->fields[i].name, name) == 0)
            return &out->fields[i];
    pe_hf_put(out, name, (struct pe_value){.kind = PE_NULL});
    return &out->fields[out->n - 1];
}

/* Its scores have no magnitude of YaRN's: what mscale and mscale_all_dim leave of cos and sin stays as a number. */
static void leave_magnitudes(struct pe_model_fields *out)
{
    struct pe_value *scaling = &find_put(out, "scaling")->value;
    double s = 1, of[2] = {0, 0};
    size_t n = 0;
    bool has_any = false;
    for (size_t i = 0; scaling->kind == PE_OBJECT && i < scaling->object.n; i++) {
        struct pe_field field = scaling->object.fields[i];
        bool is_scale = strcmp(field.name, "mscale") == 0, is_all = strcmp(field.name, "mscale_all_dim") == 0;
        if (strcmp(field.name, "factor") == 0)
            s = pe_value_number(&field.value);
        if (is_scale || is_all)
            of[is_all] = pe_value_number(&field.value);
        else
            out->scaling[n++] = field;
        has_any |= is_scale || is_all;
    }
    if (has_any)
        out->scaling[n++] = (struct pe_field){
            "attention_factor", {.kind = PE_REAL, .real = (1 + 0.1 * of[0] * log(s)) / (1 + 0.1 * of[1] * log(s))}};
    if (scaling->kind == PE_OBJECT)
        scaling->object.fields = out->scaling, scaling->object.n = n;
    else
        out->n--;
}

/* Of attention's positions: as many channels turn by the same frequencies, the first or the last of a head of its own
 * width, in its own pairs; its scores have no scale of the model's. */
static enum pe_status read_indexer(const struct pe_value *config, const struct pe_hf_asked *asked,
                                   const struct pe_hf_model *row, struct pe_model_fields *out,
                                   struct pe_hf_marks *marks, struct pe_failure *err)
{
    struct pe_hf_language language;
    struct pe_hf_asked main = *asked;
    int64_t width = 128;
    bool is_last = pe_is_among(row->indexer, "last"), is_half = pe_is_among(row->indexer, "half");
    main.layer_type = is_last ? "compressed_sparse_attention" : NULL;
    if (read_one(config, &main, out, marks, err) || pe_hf_language(config, &main, &language, err))
        return err->status;
    language.place.row = NULL; /* every name is read */
    language.place.marks = marks;
    bool is_interleaved = true;
    const struct pe_field *flag = is_half || is_last ? NULL : pe_hf_find(&language.place, "indexer_rope_interleave");
    if (pe_hf_integer(&language.place, "index_head_dim", &width, err) ||
        (flag && pe_hf_flag(&language.place, flag->name, &is_interleaved, err)))
        return err->status;
    size_t n = 0;
    for (size_t i = 0; i < out->n; i++)
        if (!pe_is_among("softmax_scale|softcap|query_scale", out->fields[i].name))
            out->fields[n++] = out->fields[i];
    out->n = n;
    struct pe_value rotary = find_put(out, "rotary_dim")->value;
    int64_t n_turned = rotary.kind == PE_INTEGER ? rotary.integer : width;
    find_put(out, "rotary_dim")->value = (struct pe_value){.kind = PE_INTEGER, .integer = n_turned};
    find_put(out, "head_dim")->value = (struct pe_value){.kind = PE_INTEGER, .integer = width};
    find_put(out, "rotary_offset")->value =
        (struct pe_value){.kind = PE_INTEGER, .integer = is_last && width > n_turned ? width - n_turned : 0};
    find_put(out, "layout")->value =
        (struct pe_value){.kind = PE_STRING, .string = is_half || !is_interleaved ? "half" : "interleaved"};
    leave_magnitudes(out);
    out->scores = (struct pe_model_scores){.n_notes = 0};
    if (!is_half && !is_last && !flag)
        snprintf(
            out->scores.notes[out->scores.n_notes++], PE_DETAIL_MAX, "%s",
            pe_text("The indexer turns neighbours, as the class does; vLLM turns halves where the config.json has no "
                    "indexer_rope_interleave."));
    if (marks)
        marks->layer_type = PE_HF_INDEXER;
    return PE_OK;
}

enum pe_status pe_hf_config_read_marked(const struct pe_value *config, const struct pe_hf_asked *asked,
                                        struct pe_model_fields *out, struct pe_hf_marks *marks, struct pe_failure *err)
{
    struct pe_hf_layers here, *layers = marks ? &marks->layers : &here;
    struct pe_hf_asked named = *asked;
    pe_model_fields_clear(out);
    if (config->kind != PE_OBJECT)
        return pe_fail(err, "/hf_config", "hf_config is not an object; allowed: a model's config.json as an object");
    if (asked->layer_type && strcmp(asked->layer_type, PE_HF_INDEXER) == 0) {
        const struct pe_hf_model *row = pe_hf_indexer_row(config, asked);
        if (row)
            return read_indexer(config, asked, row, out, marks, err);
    }
    enum pe_status status = list_layers(config, asked, out, NULL, layers, err);
    if (!status)
        status = name_kind(config, &named, out, layers, err);
    if (!status)
        status = read_one(config, &named, out, marks, err);
    if (!status && marks) {
        status = list_layers(config, &named, out, marks, layers, err);
        marks->layer_type = asked->layer_type;
    }
    if (status && strcmp(err->pointer, "/layer_type") == 0 && layers->n_kinds)
        pe_hf_name_kinds(layers, err);
    return status;
}

static const char *word_of(const struct pe_field *fields, size_t n, const char *name)
{
    const struct pe_value *value = pe_field_find(fields, n, name);
    return value && value->kind == PE_STRING ? value->string : NULL;
}

struct pe_hf_asked pe_hf_asked_of(const struct pe_field *fields, size_t n)
{
    return (struct pe_hf_asked){.layer_type = word_of(fields, n, "layer_type"),
                                .scheme = word_of(fields, n, "scheme"),
                                .fps = pe_field_find(fields, n, "fps"),
                                .has_layout = word_of(fields, n, "layout") != NULL,
                                .has_channels = word_of(fields, n, "channels") != NULL};
}
