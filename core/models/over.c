/* The words of a tool on top of a model: what the tool computes that is given a model and these words.
 *
 * A tool takes the words in one of three ways. Overrides replace objects of the model's config whole, so that what they
 * leave out is lost, the base too, and gets the tool's default; flags of a program that reads the model's own numbers
 * replace only what they name; and arguments of trainers and constructors are all that there is, of the model only the
 * width of a head counts. The members that the tool takes from the model are added to the words; then they are read as
 * those of any other request are. */
#include "core/models/gguf/gguf.h"
#include "core/models/hf/hf.h"
#include "core/models/models.h"
#include "core/params.h"
#include "core/schemes/scalings/scaling.h"
#include "core/studies.h"
#include "core/values.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *word_at(const struct pe_value *said, const char *name)
{
    const struct pe_value *v = pe_stated(said, name);
    return v && v->kind == PE_STRING ? v->string : "";
}

/* The overrides of a value, and the object in them that is about positions. */
static const struct pe_value *overrides_of(const struct pe_target_info *target, const struct pe_value *value)
{
    return target->outer ? pe_stated(value, target->outer) : value;
}

static const struct pe_value *inside_of(const struct pe_value *overrides)
{
    return overrides && pe_overrides_are_nested(overrides) ? &overrides->object.fields->value : overrides;
}

/* What the text was before it was read, else what the value is. */
static const char *place_of(const struct pe_target_info *target, const struct pe_value *said)
{
    const char *place = word_at(said, "place");
    const struct pe_value *overrides = target ? overrides_of(target, pe_stated(said, "value")) : NULL;
    return !*place && overrides && pe_overrides_are_nested(overrides) ? "nested" : place;
}

enum pe_said_unread pe_said_unread(const struct pe_value *said, bool has_parts)
{
    const struct pe_target_info *target = pe_target_info_find(word_at(said, "to"));
    const char *place = place_of(target, said);
    if (!target || !target->is_loaded_first || pe_same(place, "nested"))
        return PE_SAID_READ;
    return has_parts ? PE_SAID_ALL_UNREAD : pe_is_among("beside|both", place) ? PE_SAID_BASE_UNREAD : PE_SAID_READ;
}

bool pe_model_has_parts(const struct pe_value *hf, const struct pe_preset *preset)
{
    struct pe_failure err;
    struct pe_hf_language language;
    struct pe_hf_asked asked = pe_hf_asked_of(NULL, 0);
    const struct pe_value *type = hf && hf->kind == PE_OBJECT ? pe_stated(hf, "model_type") : NULL;
    if (preset && preset->config.n)
        type = pe_field_find(preset->config.fields, preset->config.n, "model_type");
    const struct pe_hf_model *row = type && type->kind == PE_STRING ? pe_hf_model_find(type->string) : NULL;
    return (preset && preset->inside) || (row && row->kind == PE_HF_NESTED) ||
           (hf && !pe_hf_language(hf, &asked, &language, &err) && language.place.object != hf);
}

enum { ADDED_MAX = 12 };

struct over {
    const struct pe_target_info *target;
    struct pe_said_over *in;
    const struct pe_value *value; /* the words */
    struct pe_field members[PE_MODEL_FIELDS_MAX + ADDED_MAX], inside[PE_MODEL_FIELDS_MAX + ADDED_MAX], outside[8];
    size_t n, n_inside, n_outside;
    bool is_by_layer;   /* they have an object for each kind of layers */
    bool keeps_scaling; /* the words leave the model's rule as it is */
    struct pe_failure *err;
};

/* ---- The model ---- */

static const struct pe_value *of_model(const struct over *o, const char *name)
{
    return pe_field_find(o->in->model, o->in->n_model, name);
}

static struct pe_value at(const struct over *o, const char *name, const char *member)
{
    const struct pe_value *v = of_model(o, name);
    if (v && member)
        v = v->kind == PE_OBJECT ? pe_field_find(v->object.fields, v->object.n, member) : NULL;
    return v ? *v : (struct pe_value){.kind = PE_NULL};
}

static const char *rule_of(const struct over *o)
{
    struct pe_value type = at(o, "scaling", "type");
    return type.kind == PE_STRING ? type.string : "default";
}

/* ---- Members ---- */

/* Copies those of an object that are given; false: there are too many, which the tool's reader refuses. */
static bool copy(const struct over *o, const struct pe_value *object, struct pe_field *to, size_t room, size_t *n)
{
    for (size_t i = 0; object && i < object->object.n; i++) {
        if (pe_said_is_unset(o->in->to, &object->object.fields[i]))
            continue;
        if (*n == room)
            return false;
        to[(*n)++] = object->object.fields[i];
    }
    return true;
}

static void add_member(struct pe_field *to, size_t *n, const char *name, struct pe_value value)
{
    if (value.kind != PE_NULL && !pe_field_find(to, *n, name))
        to[(*n)++] = (struct pe_field){name, value};
}

static void drop(struct pe_field *from, size_t *n, const char *name)
{
    size_t kept = 0;
    for (size_t i = 0; i < *n; i++)
        if (!pe_same(from[i].name, name))
            from[kept++] = from[i];
    *n = kept;
}

/* ---- Flags of llama.cpp: what they do not name is the file's ---- */

static const struct pe_value *stated(const struct over *o, const char *name)
{
    return pe_field_find(o->members, o->n, name);
}

static enum pe_status fill_flags(struct over *o)
{
    const struct pe_value *type = stated(o, "rope-scaling");
    bool has_factor = stated(o, "rope-scale") || stated(o, "rope-freq-scale");
    bool was_yarn = pe_same(rule_of(o), "yarn"), was_linear = pe_same(rule_of(o), "linear");
    bool has_ends = stated(o, "yarn-orig-ctx") || stated(o, "yarn-beta-fast") || stated(o, "yarn-beta-slow") ||
                    stated(o, "yarn-ext-factor");
    bool is_yarn = type ? type->kind == PE_STRING && pe_same(type->string, "yarn") : was_yarn;
    add_member(o->members, &o->n, "rope-freq-base", at(o, "base", NULL));
    o->keeps_scaling = !type && !has_factor && !(has_ends && was_yarn) && !stated(o, "yarn-attn-factor");
    if (o->keeps_scaling)
        return PE_OK;
    if (!pe_is_among("default|linear|yarn|dynamic", rule_of(o)))
        return pe_fail(o->err, "/said",
                       "the model's rule is %s, which llama.cpp has in the file, where flags act on it; give the "
                       "file's keys as gguf",
                       rule_of(o));
    if (was_yarn)
        add_member(o->members, &o->n, "rope-scaling", pe_word("yarn"));
    if (!has_factor && (was_yarn || was_linear))
        add_member(o->members, &o->n, "rope-scale", at(o, "scaling", "factor"));
    if (!is_yarn)
        return PE_OK;
    add_member(o->members, &o->n, "yarn-orig-ctx", at(o, "scaling", "original_max_position_embeddings"));
    if (o->in->length > 0)
        add_member(o->members, &o->n, "yarn-orig-ctx", pe_integer(o->in->length));
    if (was_yarn) {
        add_member(o->members, &o->n, "yarn-beta-fast", at(o, "scaling", "beta_fast"));
        add_member(o->members, &o->n, "yarn-beta-slow", at(o, "scaling", "beta_slow"));
    }
    return PE_OK;
}

/* ---- Overrides ---- */

/* An object for each kind of layers: that of the kind asked for; NULL: it has none. */
static const struct pe_value *of_kind(const struct over *o, const struct pe_value *inner)
{
    bool is_by_layer = *o->in->layer_type && o->target->outer && pe_value_has_objects(inner);
    return is_by_layer ? pe_stated(inner, o->in->layer_type) : inner;
}

static void fill_overrides(struct over *o)
{
    const struct pe_value *outer = inside_of(overrides_of(o->target, o->value));
    const struct pe_value *inner = of_kind(o, pe_stated(outer, o->target->inner));
    struct pe_value length = {.kind = PE_INTEGER, .integer = o->in->length};
    const char *place = place_of(o->target, o->in->said);
    bool is_alone = pe_is_among("beside|numbers", place), is_nested = pe_same(place, "nested");
    o->keeps_scaling = (outer && outer->kind == PE_OBJECT && !inner) || is_alone;
    if (!inner || inner->kind != PE_OBJECT || !copy(o, inner, o->inside, PE_MODEL_FIELDS_MAX, &o->n_inside))
        return;
    if (pe_said_unread(o->in->said, o->in->has_parts) == PE_SAID_BASE_UNREAD)
        drop(o->inside, &o->n_inside, "rope_theta");
    o->is_by_layer = *o->in->layer_type && !o->target->outer && pe_value_has_objects(inner);
    if (is_alone || (is_nested && o->target->is_loaded_first)) {
        /* An object inside a nested config is merged with the model's, member by member. */
        struct pe_value scaling = at(o, "scaling", NULL);
        bool has_type =
            pe_field_find(o->inside, o->n_inside, "rope_type") || pe_field_find(o->inside, o->n_inside, "type");
        add_member(o->inside, &o->n_inside, "rope_theta", at(o, "base", NULL));
        add_member(o->inside, &o->n_inside, "partial_rotary_factor", at(o, "partial_rotary_factor", NULL));
        for (size_t i = 0; !has_type && scaling.kind == PE_OBJECT && i < scaling.object.n; i++) {
            const struct pe_field *field = &scaling.object.fields[i];
            bool is_type = pe_same(field->name, "type");
            if (o->n_inside < PE_MODEL_FIELDS_MAX && !pe_is_among("convention|divisors|seq_len", field->name))
                add_member(o->inside, &o->n_inside, is_type ? "rope_type" : field->name, field->value);
        }
    }
    for (const struct pe_class_base *row = o->target->bases; row && row->types; row++)
        if (pe_is_among(row->types, o->in->model_type))
            add_member(o->inside, &o->n_inside, "rope_theta", pe_real(row->base));
    struct pe_field object = {o->target->inner, {.kind = PE_OBJECT, .object = {.fields = o->inside, .n = o->n_inside}}};
    struct pe_field *to = o->target->outer ? o->outside : o->members;
    size_t *n = o->target->outer ? &o->n_outside : &o->n, room = o->target->outer ? 4 : PE_MODEL_FIELDS_MAX;
    *n = 0;
    to[(*n)++] = object;
    for (size_t i = 0; i < outer->object.n && *n < room; i++)
        add_member(to, n, outer->object.fields[i].name, outer->object.fields[i].value);
    if (o->in->length > 0)
        add_member(to, n, "max_position_embeddings", length);
    if (!o->target->outer)
        return;
    o->n = 0;
    o->members[o->n++] =
        (struct pe_field){o->target->outer, {.kind = PE_OBJECT, .object = {.fields = o->outside, .n = o->n_outside}}};
    for (size_t i = 0; i < o->value->object.n && o->n < PE_MODEL_FIELDS_MAX; i++)
        add_member(o->members, &o->n, o->value->object.fields[i].name, o->value->object.fields[i].value);
}

/* ---- Both together ---- */

static void put_field(struct pe_said_over *in, const char *name, struct pe_value value)
{
    if (in->n < PE_OVER_FIELDS_MAX)
        in->fields[in->n++] = (struct pe_field){name, value};
}

static bool has(const struct over *o, const char *name)
{
    return pe_field_find(o->in->own->fields, o->in->own->n, name) != NULL;
}

/* Arguments that state a number of rotated channels are beside a head of the model's width. */
static bool is_of_head(const struct over *o)
{
    return o->target->takes == PE_TAKES_WORDS && has(o, "rotary_dim") && of_model(o, "head_dim");
}

/* Of the model those fields that the words do not replace. Latent attention turns the same channels with any words. */
static bool is_replaced(const struct over *o, const char *name)
{
    bool has_share = has(o, "partial_rotary_factor") || has(o, "rotary_dim");
    if (pe_same(name, "head_dim") && is_of_head(o))
        return false;
    if (has(o, name))
        return true;
    if (pe_is_among("partial_rotary_factor|rotary_dim", name) && has_share)
        return true;
    if (o->target->takes == PE_TAKES_WORDS && of_model(o, "rotary_offset") &&
        pe_is_among("rotary_dim|rotary_offset", name))
        return false;
    if (o->target->takes == PE_TAKES_WORDS)
        return !pe_is_among("head_dim|layout|softmax_scale|softcap|query_scale", name);
    return pe_same(name, "inv_freq") || (!o->keeps_scaling && pe_is_among("scaling|attention_factor", name));
}

static void put_scaling(struct pe_model_fields *own, const char *name, struct pe_value value)
{
    struct pe_field *scaling = NULL;
    for (size_t i = 0; i < own->n; i++)
        if (pe_same(own->fields[i].name, "scaling"))
            scaling = &own->fields[i];
    size_t n = scaling ? scaling->value.object.n : 0;
    if (!scaling)
        own->scaling[n++] = (struct pe_field){"type", pe_word("default")};
    if (n < PE_MODEL_FIELDS_MAX)
        own->scaling[n++] = (struct pe_field){name, value};
    struct pe_value whole = {.kind = PE_OBJECT, .object = {.fields = own->scaling, .n = n}};
    if (scaling)
        scaling->value = whole;
    else if (own->n < PE_MODEL_FIELDS_MAX)
        own->fields[own->n++] = (struct pe_field){"scaling", whole};
}

/* With latent attention llama.cpp multiplies the softmax scale by (a·m(s, 1)·m(s, l))², s the factor of the flags and l
 * the file's; with a ramp a·m(s, 1) is 1, and cosines and sines keep their size (core/models/gguf/rope.c). */
static void keep_latent_scale(struct over *o)
{
    struct pe_value model = {.kind = PE_OBJECT, .object = {.fields = o->in->model, .n = o->in->n_model}};
    struct pe_value own = {.kind = PE_OBJECT, .object = {.fields = o->in->own->fields, .n = o->in->own->n}};
    double before = pe_config_number(&model, "scaling.factor", 1), s = pe_config_number(&own, "scaling.factor", 1);
    double softmax = pe_config_number(&model, "scaling.softmax_scale_factor", 1);
    double l = pe_config_number(&model, "scaling.mscale_all_dim", 0);
    if (l == 0 && softmax > 1 && before > 1)
        l = (sqrt(softmax) - 1) / (0.1 * log(before));
    if (!(l > 0) || s == 1)
        return;
    if (pe_same(pe_config_word(&own, "scaling.type"), "yarn") &&
        pe_config_number(&own, "scaling.extrapolation_factor", 1) != 0) {
        put_scaling(o->in->own, "mscale", pe_real(l));
        put_scaling(o->in->own, "mscale_all_dim", pe_real(l));
        return;
    }
    double a = pe_config_number(&own, "attention_factor", 1), by_1 = pe_scaling_magnitude(s, 1).hi,
           by_l = pe_scaling_magnitude(s, l).hi;
    put_scaling(o->in->own, "softmax_scale_factor", pe_real(a * a * by_1 * by_1 * by_l * by_l));
}

/* llama.cpp divides the frequencies by the file's tensor before any rule. */
static void keep_of_file(struct over *o)
{
    struct pe_value divisors = at(o, "scaling", "divisors");
    if (o->target->takes != PE_TAKES_FLAGS)
        return;
    if (divisors.kind != PE_NULL)
        put_scaling(o->in->own, "divisors", divisors);
    keep_latent_scale(o);
}

static void join(struct over *o)
{
    struct pe_said_over *in = o->in;
    static const struct pe_field none[] = {{"type", {.kind = PE_STRING, .string = "default"}}};
    const struct pe_model_fields *own = in->own;
    bool has_scaling = false;
    if (!o->keeps_scaling)
        keep_of_file(o);
    for (size_t i = 0; i < own->n; i++) {
        bool is_scaling = pe_same(own->fields[i].name, "scaling");
        bool is_width = pe_same(own->fields[i].name, "head_dim") && is_of_head(o);
        has_scaling |= is_scaling || pe_same(own->fields[i].name, "inv_freq");
        if ((!is_scaling || !o->keeps_scaling) && !is_width)
            put_field(in, own->fields[i].name, own->fields[i].value);
    }
    if (!has_scaling && !o->keeps_scaling)
        put_field(in, "scaling", (struct pe_value){.kind = PE_OBJECT, .object = {.fields = none, .n = 1}});
    for (size_t i = 0; i < in->n_model; i++)
        if (!is_replaced(o, in->model[i].name) || (o->keeps_scaling && pe_same(in->model[i].name, "scaling")))
            put_field(in, in->model[i].name, in->model[i].value);
}

/* The words, and what the tool takes of the model beside them. */
static enum pe_status fill(struct over *o)
{
    size_t most = sizeof o->members / sizeof *o->members - ADDED_MAX;
    if (!copy(o, o->value, o->members, most, &o->n))
        return pe_fail(o->err, "/said/value", "value has %zu members; allowed: at most %zu", o->value->object.n, most);
    switch (o->target->takes) {
    case PE_TAKES_FLAGS: return fill_flags(o);
    case PE_TAKES_OVERRIDES: fill_overrides(o); break;
    case PE_TAKES_OPTIONS:
        add_member(o->members, &o->n, o->target->inner ? "rope_theta" : "rotary_embedding_base", at(o, "base", NULL));
        o->keeps_scaling = o->target->inner
                               ? !pe_stated(o->value, "rope_scaling")
                               : !pe_stated(o->value, "scale_pos_emb") && !pe_stated(o->value, "scale_alpha_value");
        if (o->target->inner && o->in->length > 0 && !o->keeps_scaling &&
            pe_param_find(o->target->members, "max_position_embeddings"))
            add_member(o->members, &o->n, "max_position_embeddings", pe_integer(o->in->length));
        break;
    case PE_TAKES_WORDS: break;
    }
    return PE_OK;
}

static enum pe_status read_filled(struct over *o)
{
    struct pe_said_over *in = o->in;
    struct pe_field beside[PE_FIELDS_MAX + PE_MODEL_FIELDS_MAX];
    size_t n = 0;
    struct pe_field words[] = {
        {"to", {.kind = PE_STRING, .string = in->to}},
        {"value", {.kind = PE_OBJECT, .object = {.fields = o->members, .n = o->n}}},
    };
    struct pe_value said = {.kind = PE_OBJECT, .object = {.fields = words, .n = 2}};
    for (size_t i = 0; i < in->n_beside && n < PE_FIELDS_MAX; i++)
        beside[n++] = in->beside[i];
    for (size_t i = 0; i < in->n_model && i < PE_MODEL_FIELDS_MAX; i++)
        if (!pe_field_find(in->beside, in->n_beside, in->model[i].name))
            beside[n++] = in->model[i];
    return pe_said_read(&said, o->is_by_layer ? in->layer_type : NULL, beside, n, in->own, o->err);
}

enum pe_status pe_said_over(struct pe_said_over *in, struct pe_failure *err)
{
    struct over o = {.in = in, .err = err};
    const struct pe_value *scheme = pe_field_find(in->model, in->n_model, "scheme"), *to = pe_stated(in->said, "to");
    in->n = 0;
    in->layer_type = in->layer_type ? in->layer_type : "";
    o.value = pe_stated(in->said, "value");
    in->to = to && to->kind == PE_STRING ? to->string : NULL;
    in->place = word_at(in->said, "place");
    o.target = in->to ? pe_target_info_find(in->to) : NULL;
    if (!o.target || !o.value || o.value->kind != PE_OBJECT)
        return pe_said_read(in->said, NULL, in->beside, in->n_beside, in->own, err); /* which refuses it in words */
    if (pe_same(in->to, "gguf"))
        return pe_fail(err, "/said", "the keys of a file are a model of their own; leave out the other");
    if (!pe_said_states(o.value))
        return pe_said_no_word(in->to, err);
    bool is_still = scheme && scheme->kind == PE_STRING && pe_same(scheme->string, "none");
    /* llama.cpp's flags are not for sliding layers, whose numbers are the file's. */
    bool is_apart =
        o.target->takes == PE_TAKES_FLAGS && pe_is_among("sliding_attention|chunked_attention", in->layer_type);
    if (is_still || is_apart || pe_said_unread(in->said, in->has_parts) == PE_SAID_ALL_UNREAD) {
        o.keeps_scaling = true;
        pe_model_fields_clear(in->own);
        join(&o);
        return PE_OK;
    }
    if (!scheme || scheme->kind != PE_STRING || !pe_same(scheme->string, "rope"))
        return pe_fail(err, "/said", "said is about rotary positions, and the model has the scheme %.40s",
                       scheme && scheme->kind == PE_STRING ? scheme->string : "-");
    if (fill(&o) || read_filled(&o))
        return err->status;
    join(&o);
    return PE_OK;
}
