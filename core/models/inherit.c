/* Merging a request with the model it names: a preset, a stored preset, a pasted config.json, the keys of a GGUF file,
 * or the words of another tool.
 *
 * A model has more fields than one request uses, and a request may override any of them. So a field of the model counts
 * unless the request has the same parameter under any of its names, or one that excludes it, or its condition does not
 * hold in this request (rules for segments, without segments). What remains is validated as if the request had sent it.
 *
 * The hard part is blame: an error about an inherited field must point to what the client wrote, `/preset` or a place
 * in `/hf_config` or `/gguf`, and must not advise to leave out what the client did not send. */
#include "core/models/gguf/gguf.h"
#include "core/models/hf/hf.h"
#include "core/models/models.h"
#include "core/scheme.h"
#include "core/schemes/scalings/scaling.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Which scheme ---- */

/* Half of an error's detail; the other half is for the sentence before it. */
enum { NAMES_MAX = PE_DETAIL_MAX / 2, SCHEMES_MAX = 64 };

/* The scheme is missing (name is NULL) or none has this name: either way all names are listed. */
static enum pe_status no_such_scheme(const char *name, struct pe_failure *err)
{
    const char *names[SCHEMES_MAX];
    char list[NAMES_MAX];
    size_t n = 0;
    for (; n < pe_n_schemes() && n < SCHEMES_MAX - 1; n++)
        names[n] = pe_scheme_at(n)->name;
    names[n] = NULL;
    /* "none, integer, ..." */
    size_t used = 0;
    list[0] = '\0';
    for (size_t i = 0; names[i] && used < NAMES_MAX; i++)
        used += (size_t)snprintf(list + used, NAMES_MAX - used, "%s%s", i ? ", " : "", names[i]);
    if (!name)
        return pe_fail(err, "/scheme", "the scheme is missing; give a preset, or one of: %s", list);
    if (pe_scaling_find(name))
        return pe_fail(
            err, "/scheme",
            "\"%.64s\" is no scheme but a scaling of rope; here: scheme rope with scaling {\"type\":\"%.64s\"}", name,
            name);
    const char *nearest = pe_nearest(name, names);
    if (!nearest)
        return pe_fail(err, "/scheme", "unknown scheme \"%.64s\"; one of: %s", name, list);
    return pe_fail(err, "/scheme", "unknown scheme \"%.64s\"; nearest: \"%s\"; one of: %s", name, nearest, list);
}

/* ---- Fields by name ---- */

static enum pe_status word_of(const struct pe_request *request, const char *name, const char **word,
                              struct pe_failure *err)
{
    char pointer[32];
    const struct pe_value *v = pe_field_find(request->fields, request->n_fields, name);
    *word = v && v->kind == PE_STRING ? v->string : NULL;
    if (!v || *word)
        return PE_OK;
    snprintf(pointer, sizeof pointer, "/%s", name);
    return pe_fail(err, pointer, "%s is not a string; write a name", name);
}

/* ---- What the model states ---- */

/* The requested layer type, else the first. */
static enum pe_status find_layer(const struct pe_preset *preset, const char *layer_type,
                                 const struct pe_preset_layer **layer, struct pe_failure *err)
{
    char known[256] = "";
    *layer = preset->layers;
    for (size_t i = 0; layer_type && i < preset->n_layers; i++) {
        const char *name = preset->layers[i].layer_type;
        *layer = &preset->layers[i];
        name = name ? name : "full_attention"; /* all layers are alike */
        if (pe_same(name, layer_type))
            return PE_OK;
        if (strlen(known) + strlen(name) + 3 < sizeof known)
            strcat(strcat(known, *known ? ", " : ""), name);
    }
    if (!layer_type)
        return PE_OK;
    return pe_fail(err, "/layer_type", "%s has no layers of type \"%.64s\"; it has: %s", preset->name, layer_type,
                   known);
}

struct model {
    const struct pe_field *fields;
    size_t n;
    struct pe_said_over *over; /* room for words on top of it */
};

static void set(struct model *model, const struct pe_field *fields, size_t n)
{
    model->fields = fields;
    model->n = n;
}

static enum pe_status read_preset(struct pe_inheritance *in, const struct pe_value *named, const char *layer_type,
                                  struct model *model, struct pe_failure *err)
{
    const struct pe_preset_layer *layer;
    struct pe_preset_name name;
    enum pe_status status = PE_OK;
    if (named->kind == PE_PRESET)
        in->preset = named->preset;
    else if (!(status = pe_preset_name(named->string, &name, err)))
        in->preset = name.preset;
    if (!status)
        status = find_layer(in->preset, layer_type, &layer, err);
    if (!status)
        set(model, layer->fields, layer->n_fields);
    return status;
}

/* The length that the model states; 0: none. */
static int64_t length_of(const struct pe_value *hf, const struct pe_value *gguf, const struct pe_hf_asked *asked)
{
    struct pe_failure err;
    struct pe_hf_language language;
    struct pe_gguf_outline *outline = gguf ? malloc(sizeof *outline) : NULL;
    int64_t length = 0;
    if (outline && !pe_gguf_outline(gguf, outline, &err))
        length = outline->length;
    free(outline);
    if (hf && !pe_hf_language(hf, asked, &language, &err)) {
        const struct pe_field *field = pe_hf_find(&language.place, PE_HF_LENGTH);
        length = field && field->value.kind == PE_INTEGER ? field->value.integer : 0;
    }
    return length > 0 && length <= INT64_C(1) << 40 ? length : 0;
}

/* The model_type of the language model; "": not known. */
static const char *type_of(const struct pe_inheritance *in, const struct pe_value *hf)
{
    struct pe_failure err;
    struct pe_hf_language language;
    struct pe_hf_asked asked = pe_hf_asked_of(NULL, 0);
    const struct pe_value *type =
        in->preset ? pe_field_find(in->preset->config.fields, in->preset->config.n, "model_type") : NULL;
    if (hf && !pe_hf_language(hf, &asked, &language, &err))
        return language.model_type;
    return type && type->kind == PE_STRING ? type->string : "";
}

/* What the words of a tool make of the model. */
static enum pe_status put_over(struct pe_inheritance *in, const struct pe_request *request, const struct pe_value *said,
                               const char *layer_type, int64_t length, struct model *model, struct pe_failure *err)
{
    struct pe_said_over *over = model->over;
    const struct pe_value *hf = pe_field_find(request->fields, request->n_fields, "hf_config");
    over->model_type = type_of(in, hf);
    over->has_parts = pe_model_has_parts(hf, in->preset);
    over->layer_type = layer_type;
    over->said = said;
    over->model = model->fields;
    over->n_model = model->n;
    over->length = length;
    over->beside = request->fields;
    over->n_beside = request->n_fields;
    enum pe_status status = pe_said_over(over, err);
    if (status)
        return status;
    /* The words' own storage ends: an object scaling of theirs moves into that of the model's, which it replaces. */
    size_t n = over->own->n < PE_MODEL_FIELDS_MAX ? over->own->n : PE_MODEL_FIELDS_MAX - 1;
    for (size_t i = 0; i < n; i++)
        in->words[i] = over->own->fields[i].name;
    in->words[n] = NULL;
    for (size_t i = 0; i < over->n; i++)
        if (over->fields[i].value.kind == PE_OBJECT && over->fields[i].value.object.fields == over->own->scaling) {
            memcpy(in->model.scaling, over->own->scaling, sizeof in->model.scaling);
            over->fields[i].value.object.fields = in->model.scaling;
        }
    set(model, over->fields, over->n);
    return PE_OK;
}

static enum pe_status read_model(struct pe_inheritance *in, const struct pe_request *request, struct model *model,
                                 struct pe_failure *err)
{
    const char *word, *layer_type;
    const struct pe_value *hf = pe_field_find(request->fields, request->n_fields, "hf_config");
    const struct pe_value *gguf = pe_field_find(request->fields, request->n_fields, "gguf");
    const struct pe_value *said = pe_field_find(request->fields, request->n_fields, "said");
    const struct pe_value *preset = pe_field_find(request->fields, request->n_fields, "preset");
    enum pe_status status = preset && preset->kind == PE_PRESET ? PE_OK : word_of(request, "preset", &word, err);
    if (!status)
        status = word_of(request, "layer_type", &layer_type, err);
    if (status)
        return status;
    if (preset && hf)
        return pe_fail(err, "/preset", "preset and hf_config exclude each other; give one");
    if (gguf && (preset || hf))
        return pe_fail(err, "/gguf", "gguf and %s exclude each other; give one", preset ? "preset" : "hf_config");
    bool is_over = said && (preset || hf || gguf);
    if (is_over && said->kind != PE_OBJECT)
        is_over = false;
    if (said && !is_over &&
        (status = pe_said_read(said, layer_type, request->fields, request->n_fields, &in->model, err)))
        return status;
    if (layer_type && !preset && !hf && !gguf && !said)
        return pe_fail(err, "/layer_type", "layer_type is not used here: it needs preset, hf_config or gguf");
    if (!hf && pe_field_find(request->fields, request->n_fields, "fps"))
        return pe_fail(err, "/fps",
                       "fps is not used here: it needs hf_config of a class that counts in seconds. Elsewhere "
                       "axis_scale and axis_divisor state the clock of an axis, as [24,1,1] and [fps,1,1]");
    struct pe_hf_asked asked = pe_hf_asked_of(request->fields, request->n_fields);
    if (preset)
        status = read_preset(in, preset, layer_type, model, err);
    if (hf)
        status = pe_hf_config_read(hf, &asked, &in->model, err);
    if (gguf)
        status = pe_gguf_read(gguf, layer_type, &in->model, err);
    if ((hf || gguf || said) && !preset && !status)
        set(model, in->model.fields, in->model.n);
    if (is_over && !status)
        status = put_over(in, request, said, layer_type, length_of(hf, gguf, &asked), model, err);
    return status;
}

static enum pe_status choose_scheme(struct pe_inheritance *in, const struct pe_request *request,
                                    const struct model *model, struct pe_failure *err)
{
    const char *own;
    const struct pe_value *inherited = pe_field_find(model->fields, model->n, "scheme");
    enum pe_status status = word_of(request, "scheme", &own, err);
    if (status)
        return status;
    if (!own && !inherited)
        return no_such_scheme(NULL, err);
    in->scheme = pe_scheme_get(own ? own : inherited->string);
    if (!in->scheme)
        return no_such_scheme(own ? own : inherited->string, err);
    if (own && inherited && in->scheme != pe_scheme_get(inherited->string))
        return pe_fail(err, "/scheme", "scheme is \"%s\", the model named has \"%s\"; leave scheme out", own,
                       inherited->string);
    return PE_OK;
}

/* ---- Merging ---- */

static const char *const model_names[] = {"scheme", "preset", "hf_config", "gguf", "said", "layer_type", "fps", NULL};

static bool is_model_name(const char *name)
{
    for (size_t i = 0; model_names[i]; i++)
        if (pe_same(name, model_names[i]))
            return true;
    return false;
}

/* Has the request the same parameter, under any of its names, or one that excludes it? */
static bool is_overridden(const struct pe_inheritance *in, const char *name)
{
    const struct pe_param *rows = in->scheme->info.params, *row = pe_param_find(rows, name);
    for (size_t i = 0; i < in->n_own; i++) {
        const struct pe_param *own = pe_param_find(rows, in->fields[i].name);
        if (pe_same(in->fields[i].name, name))
            return true;
        if (own && row &&
            (own == row || pe_is_among(own->excludes, row->name) || pe_is_among(row->excludes, own->name)))
            return true;
    }
    return false;
}

/* Would the condition "form=a|b" hold? The word comes from the request, else from the model, else from the default. */
static bool condition_holds(const struct pe_inheritance *in, const struct model *model, const char *when)
{
    char name[64];
    size_t n = strcspn(when, "=");
    snprintf(name, sizeof name, "%.*s", (int)n, when);
    const struct pe_param *row = pe_param_find(in->scheme->info.params, name);
    const struct pe_value *v = pe_field_find(in->fields, in->n_own, name);
    v = v ? v : pe_field_find(model->fields, model->n, name);
    if (v)
        return v->kind == PE_STRING && pe_is_among(when + n + 1, v->string);
    return row && pe_is_among(when + n + 1, row->fallback >= 0 ? row->words[(int)row->fallback] : ""); /* "": unset */
}

/* Is a grid in merge order, by the request's field, else by the model's? */
static bool merges(const struct pe_inheritance *in, const struct model *model)
{
    const struct pe_value *own = pe_field_find(in->fields, in->n_own, "order");
    const struct pe_value *order = own ? own : pe_field_find(model->fields, model->n, "order");
    return order && order->kind == PE_STRING && pe_same(order->string, "merge");
}

/* Is this a field that gives the positions themselves, rather than a rule for counting them? */
static bool is_of_sequence(const char *name)
{
    return pe_param_find(pe_sequence_params(), name) && !pe_param_find(pe_sequence_rules(), name);
}

static bool gives_sequence(const struct pe_inheritance *in)
{
    for (size_t i = 0; i < in->n_own; i++)
        if (is_of_sequence(in->fields[i].name))
            return true;
    return false;
}

/* Does the model's style place images by what is around them? */
static bool is_placed(const struct model *model)
{
    const struct pe_value *v = pe_field_find(model->fields, model->n, "position_style");
    for (int i = 0; v && v->kind == PE_STRING && pe_position_styles[i]; i++)
        if (pe_same(pe_position_styles[i], v->string))
            return pe_position_style_is_placed((enum pe_position_style)i);
    return false;
}

/* A model has more fields than one request uses: rules of segments and grids are dropped if the request has none,
 * and so is the model's window (Swin's grid) if the request has its own sequence. */
static bool is_used(const struct pe_inheritance *in, const struct model *model, const char *name)
{
    const struct pe_param *row = pe_param_find(in->scheme->info.params, name);
    bool of_coords = pe_is_among("coords|ref_grid|crop_end", name);
    if (row && of_coords && !pe_field_find(in->fields, in->n_own, "grid"))
        return false;
    if (row)
        return !row->when || condition_holds(in, model, row->when);
    if (is_of_sequence(name))
        return !gives_sequence(in);
    if (!pe_param_find(pe_sequence_rules(), name))
        return true;
    bool of_grids = pe_same(name, "order") || pe_same(name, "spatial_merge_size");
    bool segments = pe_field_find(in->fields, in->n_own, "segments"),
         grid = pe_field_find(in->fields, in->n_own, "grid");
    if (pe_same(name, "order"))
        return grid;
    if (pe_same(name, "position_style") && grid && is_placed(model)) /* to be refused: a grid alone is no image of it */
        return !pe_field_find(in->fields, in->n_own, name);
    if (of_grids)
        return segments || (grid && merges(in, model));
    return segments && !pe_field_find(in->fields, in->n_own, "position_style"); /* another style has other rules */
}

/* Has the scheme, or the sequence, a parameter of this name? */
static bool is_parameter(const struct pe_inheritance *in, const char *name)
{
    return pe_param_find(in->scheme->info.params, name) || pe_param_find(pe_sequence_params(), name);
}

/* A rule that goes by a length of its own: a request's seq_len could be either. */
static bool goes_by_length(const struct pe_request *request, const struct model *model)
{
    const struct pe_value *own = pe_field_find(request->fields, request->n_fields, "scaling");
    const struct pe_value *scaling = own ? own : pe_field_find(model->fields, model->n, "scaling");
    const struct pe_value *type =
        scaling && scaling->kind == PE_OBJECT ? pe_field_find(scaling->object.fields, scaling->object.n, "type") : NULL;
    return type && type->kind == PE_STRING && pe_is_among("dynamic|longrope|su", type->string);
}

/* A word of others is read as ours where it can mean nothing else: the scheme has ours, no field of that name, and the
 * request has not both. */
static const char *name_meant(const struct pe_inheritance *in, const struct pe_request *request,
                              const struct model *model, const char *name)
{
    const char *meant = pe_field_meant(name);
    bool is_meant = meant && !is_parameter(in, name) && is_parameter(in, meant) &&
                    !pe_field_find(request->fields, request->n_fields, meant);
    for (size_t i = 0; is_meant && i < request->n_fields; i++) {
        const char *other = request->fields[i].name, *its = pe_field_meant(other);
        is_meant = pe_same(other, name) || !its || !pe_same(its, meant); /* heads beside n_heads */
    }
    return is_meant && !(pe_same(name, "seq_len") && goes_by_length(request, model)) ? meant : name;
}

static enum pe_status inherit(struct pe_inheritance *in, const struct pe_request *request, bool whole,
                              struct pe_failure *err)
{
    struct pe_model_fields own;
    struct pe_said_over over = {.own = &own};
    struct model model = {NULL, 0, &over};
    in->n = in->n_own = in->n_inherited = 0; /* the rest, 30 KiB, is not cleared, because it is written before use */
    in->scheme = NULL;
    in->preset = NULL;
    pe_model_fields_clear(&in->model);
    in->words[0] = NULL;
    if (request->n_fields > PE_FIELDS_MAX)
        return pe_fail(err, "", "the request has %zu fields; allowed: at most %d", request->n_fields, PE_FIELDS_MAX);
    enum pe_status status = read_model(in, request, &model, err);
    if (!status)
        status = choose_scheme(in, request, &model, err);
    if (status)
        return status;
    for (size_t i = 0; i < request->n_fields; i++)
        if (!is_model_name(request->fields[i].name)) {
            in->fields[in->n] = request->fields[i];
            in->fields[in->n++].name = name_meant(in, request, &model, request->fields[i].name);
        }
    in->n_own = in->n;
    if (in->n_own + model.n > PE_FIELDS_MAX)
        return pe_fail(err, "", "the request has %zu fields; allowed: at most %zu beside a model's", in->n_own,
                       PE_FIELDS_MAX - model.n);
    for (size_t i = 0; i < model.n; i++) {
        const char *name = model.fields[i].name;
        if (!is_model_name(name) && !is_overridden(in, name) && (whole || is_used(in, &model, name)))
            in->fields[in->n++] = model.fields[i];
    }
    in->n_inherited = in->n - in->n_own;
    return PE_OK;
}

enum pe_status pe_inherit(struct pe_inheritance *in, const struct pe_request *request, struct pe_failure *err)
{
    return inherit(in, request, false, err);
}

enum pe_status pe_inherit_whole(struct pe_inheritance *in, const struct pe_request *request, struct pe_failure *err)
{
    return inherit(in, request, true, err);
}

/* ---- Errors about what is inherited ---- */

/* The one of n fields that has this name, or another one for the same parameter; NULL if there is none. */
static const struct pe_field *find_given(const struct pe_inheritance *in, const struct pe_field *fields, size_t n,
                                         const char *name)
{
    const struct pe_param *rows = in->scheme->info.params, *row = pe_param_find(rows, name);
    for (size_t i = 0; i < n; i++)
        if (pe_same(fields[i].name, name) || (row && pe_param_find(rows, fields[i].name) == row))
            return &fields[i];
    return NULL;
}

void pe_model_label(const struct pe_field *fields, size_t n, char label[PE_MODEL_LABEL_MAX])
{
    const struct pe_value *v = pe_field_find(fields, n, "preset");
    const struct pe_preset *preset = !v ? NULL : v->kind == PE_PRESET ? v->preset : pe_preset_named(v->string);
    if (preset)
        snprintf(label, PE_MODEL_LABEL_MAX, pe_text("the preset \"%.64s\""), preset->name);
    else
        snprintf(label, PE_MODEL_LABEL_MAX, "%s",
                 pe_field_find(fields, n, "gguf")   ? "gguf"
                 : pe_field_find(fields, n, "said") ? "said"
                                                    : "hf_config");
}

/* Replaces a pointer to the inherited field, or into it, by one to the key that it was taken from. */
static void point_to_key(const struct pe_value *gguf, char pointer[PE_POINTER_MAX])
{
    char name[PE_POINTER_MAX];
    const char *last = strrchr(pointer, '/');
    size_t n = last ? strspn(last + 1, "0123456789") : 0;
    bool is_index = last && n && !last[1 + n];
    snprintf(name, sizeof name, "%s", pointer + 1);
    if (is_index)
        name[last - pointer - 1] = '\0';
    const char *field = strrchr(name, '/');
    snprintf(pointer, PE_POINTER_MAX, "/gguf");
    pe_gguf_point(gguf, field ? field + 1 : name, pointer);
}

/* Replaces a pointer to the inherited field, or into it, by one into the config that it was taken from. */
static void point_into(const struct pe_value *hf, const struct pe_request *request, const struct pe_field *given,
                       size_t n_name, char pointer[PE_POINTER_MAX])
{
    struct pe_hf_asked asked = pe_hf_asked_of(request->fields, request->n_fields);
    char rest[PE_POINTER_MAX], name[PE_POINTER_MAX];
    struct pe_field inner = *given;
    snprintf(rest, sizeof rest, "%s", pointer + 1 + n_name);
    if (given->value.kind == PE_OBJECT && *rest) {
        size_t n = strcspn(rest + 1, "/");
        snprintf(name, sizeof name, "%.*s", (int)n, rest + 1);
        const struct pe_value *v = pe_field_find(given->value.object.fields, given->value.object.n, name);
        inner = (struct pe_field){name, v ? *v : (struct pe_value){.kind = PE_NULL}};
        memmove(rest, rest + 1 + n, strlen(rest + 1 + n) + 1);
    }
    snprintf(pointer, PE_POINTER_MAX, "/hf_config");
    pe_hf_config_point(hf, &asked, &inner, pointer);
    size_t used = strlen(pointer);
    if (used > strlen("/hf_config"))
        snprintf(pointer + used, PE_POINTER_MAX - used, "%s", rest);
}

void pe_inherit_blame(const struct pe_inheritance *in, const struct pe_request *request, struct pe_failure *err)
{
    char name[PE_POINTER_MAX] = "", model[PE_MODEL_LABEL_MAX];
    const struct pe_value *preset = pe_field_find(request->fields, request->n_fields, "preset");
    const struct pe_value *hf = pe_field_find(request->fields, request->n_fields, "hf_config");
    const struct pe_value *gguf = pe_field_find(request->fields, request->n_fields, "gguf");
    const struct pe_value *said = pe_field_find(request->fields, request->n_fields, "said");
    bool has_model = preset || hf || gguf || said;
    if (*err->pointer == '/')
        snprintf(name, sizeof name, "%.*s", (int)strcspn(err->pointer + 1, "/"), err->pointer + 1);
    if (!has_model || !in->scheme || !*name || pe_field_find(request->fields, request->n_fields, name) ||
        find_given(in, in->fields, in->n_own, name))
        return;
    const struct pe_field *given = find_given(in, in->fields + in->n_own, in->n_inherited, name);
    if (!pe_same(name, "scheme") && !given)
        return;
    pe_model_label(request->fields, request->n_fields, model);
    if (err->leave_at) /* the request cannot leave out what it does not have */
        err->detail[err->leave_at] = '\0';
    /* The layer type that the request names, if an error about the scheme is due to it: other layers of the model have
     * positions. */
    const struct pe_value *v = pe_field_find(request->fields, request->n_fields, "layer_type");
    bool is_due = v && v->kind == PE_STRING && pe_same(name, "scheme") && pe_same(in->scheme->info.name, "none");
    const char *layer = is_due ? v->string : NULL;
    size_t used = strlen(err->detail);
    if (layer)
        snprintf(err->detail + used, sizeof err->detail - used, pe_text("; %s is set by layer_type \"%.40s\" of %s"),
                 name, layer, model);
    else
        snprintf(err->detail + used, sizeof err->detail - used, pe_text("; %s is set by %s"), name, model);
    bool is_word = false;
    for (size_t i = 0; given && in->words[i]; i++)
        is_word |= pe_same(in->words[i], given->name);
    if (is_word && !layer)
        snprintf(err->pointer, sizeof err->pointer, "/said");
    else if (hf && given && !layer)
        point_into(hf, request, given, strlen(name), err->pointer);
    else if (gguf && given && !layer)
        point_to_key(gguf, err->pointer);
    else
        snprintf(err->pointer, sizeof err->pointer,
                 layer    ? "/layer_type"
                 : preset ? "/preset"
                 : gguf   ? "/gguf"
                 : said   ? "/said"
                          : "/hf_config");
}
