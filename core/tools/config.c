/* The config as a tool sees it: the fields of the language model without those that the tool does not read, and one
 * rope object with what it takes, wherever it takes that from. */
#include "core/tools/lens.h"

#include <stdio.h>
#include <string.h>

/* ---- The object ---- */

static const char object_names[] = "rope_scaling|rope_parameters";
static const char original_name[] = "original_max_position_embeddings";

/* NULL if it is null, which is none. */
static const struct pe_field *stated(const struct pe_value *object, const char *name)
{
    for (size_t i = 0; i < object->object.n; i++)
        if (pe_same(object->object.fields[i].name, name))
            return object->object.fields[i].value.kind != PE_NULL ? &object->object.fields[i] : NULL;
    return NULL;
}

const struct pe_field *pe_config_rope(const struct pe_tool *tool, const struct pe_value *config)
{
    const char *names = tool->objects, *word;
    for (size_t n; pe_hf_next_name(&names, &word, &n);) {
        char name[32];
        snprintf(name, sizeof name, "%.*s", (int)n, word);
        const struct pe_field *field = stated(config, name);
        if (field && field->value.kind == PE_OBJECT && field->value.object.n)
            return field;
    }
    return NULL;
}

/* ---- Writing ---- */

struct writer {
    const struct pe_tool *tool;
    const struct pe_value *config; /* of the language model */
    const char *model_type;
    struct pe_values *values;
    struct pe_config_view *view;
    bool is_latent, is_by_layer, is_old;
    bool has_moved_original;
    struct pe_failure *err;
};

/* An object under construction, with room for all its fields. */
struct object {
    struct pe_field *fields;
    size_t n;
};

static bool object_new(struct writer *w, size_t room, struct object *object)
{
    *object = (struct object){pe_values_room(w->values, (room + 1) * sizeof *object->fields), 0};
    return object->fields != NULL;
}

static void add_copy(struct writer *w, struct object *object, const char *name, const struct pe_field *original)
{
    struct pe_field *copy = &object->fields[object->n++];
    *copy = (struct pe_field){name, original->value};
    if (w->view->n_copies < PE_CONFIG_COPIES_MAX)
        w->view->copies[w->view->n_copies++] = (struct pe_config_copy){copy, original};
}

static void add_value(struct object *object, const char *name, struct pe_value value)
{
    object->fields[object->n++] = (struct pe_field){name, value};
}

static struct pe_value value_of(const struct object *object) { return pe_object(object->fields, object->n); }

/* ---- A rope object, or that of a kind of layers ---- */

static enum pe_status refuse_types(const struct writer *w, const struct pe_value *rope)
{
    const struct pe_value *now = pe_stated(rope, "rope_type"), *before = pe_stated(rope, "type");
    bool differ = now && before && !pe_same(pe_rope_rule_word(now), pe_rope_rule_word(before));
    if (!differ || !w->tool->refuses_two_types)
        return PE_OK;
    return pe_fail(w->err, "", "%s refuses a rope object whose type and rope_type differ", w->tool->label);
}

/* NULL: the tool finds none. */
static const struct pe_field *find_at(const struct writer *w, const struct pe_value *rope, const char *name,
                                      enum pe_place place)
{
    const struct pe_field *inside = stated(rope, name), *outside = stated(w->config, name);
    if (w->is_by_layer && place == PE_OUTSIDE_ELSE)
        place = PE_INSIDE_ELSE;
    switch (place) {
    case PE_INSIDE: return inside;
    case PE_INSIDE_ELSE: return inside ? inside : outside;
    case PE_OUTSIDE_ELSE: return outside ? outside : inside;
    case PE_OUTSIDE: return outside;
    }
    return NULL;
}

static enum pe_status add_original(struct writer *w, const struct pe_value *rope, const struct pe_rope_rule *rule,
                                   struct object *to)
{
    bool needs = pe_scaling_needs(pe_scaling_find(rule->name), original_name);
    const struct pe_field *found = find_at(w, rope, original_name, rule->original);
    w->has_moved_original = w->has_moved_original || needs;
    if (!needs)
        return PE_OK;
    if (found)
        add_copy(w, to, original_name, found);
    else if (rule->original_else > 0)
        add_value(to, original_name, pe_real(rule->original_else));
    else if (rule->original_is_needed)
        return pe_fail(w->err, "", "%s stops: it needs original_max_position_embeddings in the rope object",
                       w->tool->label);
    return PE_OK;
}

static void add_fields(struct writer *w, const struct pe_value *rope, const struct pe_rope_rule *rule,
                       struct object *to)
{
    bool has_ratio = rule->ratio_wins && stated(rope, original_name);
    for (size_t i = 0; i < rope->object.n; i++) {
        const struct pe_field *field = &rope->object.fields[i];
        if (field->value.kind != PE_NULL &&
            !pe_is_among("type|rope_type|rope_theta|original_max_position_embeddings|"
                         "partial_rotary_factor|max_position_embeddings",
                         field->name) &&
            !pe_rope_is_unread(w->tool, rule, field->name, w->is_latent, w->is_by_layer) &&
            !(has_ratio && pe_same(field->name, "factor")) &&
            !(w->is_old && pe_is_among(w->tool->unread_before, field->name)))
            add_copy(w, to, field->name, field);
    }
}

/* The list that the tool takes at every length. */
static void add_list(const struct writer *w, const struct pe_value *rope, const struct pe_rope_rule *rule,
                     struct object *to)
{
    const struct pe_field *original = find_at(w, rope, original_name, rule->original),
                          *length = stated(w->config, "max_position_embeddings");
    if (rule->has_one_list && original && length)
        add_value(to, "list", pe_rope_list(pe_value_number(&length->value), pe_value_number(&original->value)));
}

/* A number of the object that the tool takes there. One beside it stays where it is, for a class may have names of its
 * own for it. */
static void add_inside(struct writer *w, const struct pe_value *rope, const char *name, enum pe_place place,
                       struct object *to)
{
    const struct pe_field *inside = stated(rope, name);
    if (inside && find_at(w, rope, name, place) == inside)
        add_copy(w, to, name, inside);
}

static enum pe_status write_rope(struct writer *w, const struct pe_value *rope, struct pe_value *out)
{
    const struct pe_field *type = stated(rope, stated(rope, "rope_type") ? "rope_type" : "type");
    const char *name = type && type->value.kind == PE_STRING ? type->value.string : "default";
    struct object to;
    if (refuse_types(w, rope))
        return w->err->status;
    const struct pe_rope_rule *rule = pe_rope_rule_of_type(w->tool, type ? &type->value : NULL);
    if (rule && rule->types && !pe_is_among(rule->types, w->model_type))
        rule = NULL;
    bool lacks_type = !type && stated(rope, "factor"); /* else it is about axes */
    bool lacks_member = lacks_type || (rule && rule->needed && !stated(rope, rule->needed));
    if (lacks_type && w->tool->needs_type)
        return pe_fail(w->err, "", "%s stops: the rope object has no rope_type", w->tool->label);
    if (!rule && !w->tool->drops_rules)
        return pe_fail(w->err, "", "%s has no rule \"%.40s\"", w->tool->label, name);
    if (!object_new(w, rope->object.n + 6, &to))
        return pe_no_memory(w->err);
    if (!rule || lacks_member) { /* it writes no rule */
        rule = w->tool->rules;
        add_value(&to, "rope_type", pe_word(rule->name));
        if (stated(rope, "mrope_section"))
            add_copy(w, &to, "mrope_section", stated(rope, "mrope_section"));
    } else {
        if (type && rule->word)
            add_value(&to, "rope_type", pe_word(rule->name));
        else if (type)
            add_copy(w, &to, "rope_type", type);
        add_fields(w, rope, rule, &to);
        if (rule->has_convention)
            add_value(&to, "convention", pe_word(w->tool->convention));
        if (add_original(w, rope, rule, &to))
            return w->err->status;
        add_list(w, rope, rule, &to);
    }
    add_inside(w, rope, "rope_theta", w->tool->base, &to);
    add_inside(w, rope, "partial_rotary_factor", w->tool->share, &to);
    *out = value_of(&to);
    return PE_OK;
}

static enum pe_status write_object(struct writer *w, const struct pe_value *rope, struct pe_value *out)
{
    struct object to;
    if (!w->is_by_layer)
        return write_rope(w, rope, out);
    if (!object_new(w, rope->object.n, &to))
        return pe_no_memory(w->err);
    for (size_t i = 0; i < rope->object.n; i++) {
        const struct pe_field *field = &rope->object.fields[i];
        struct pe_value inner = field->value;
        if (inner.kind == PE_OBJECT && write_rope(w, &field->value, &inner))
            return w->err->status;
        add_value(&to, field->name, inner);
    }
    *out = value_of(&to);
    return PE_OK;
}

/* ---- The language model's object, and those around it ---- */

/* Sliding layers take the same rope object as the others. */
static bool share_object(struct writer *w, struct pe_value *rope)
{
    struct object to;
    if (!object_new(w, 2, &to))
        return false;
    add_value(&to, PE_HF_FULL, *rope);
    add_value(&to, "sliding_attention", *rope);
    *rope = value_of(&to);
    return true;
}

/* MPT's object, without what the tool does not read. */
static enum pe_status add_attention(struct writer *w, struct object *to, const struct pe_field *field)
{
    struct object inner;
    if (!object_new(w, field->value.object.n, &inner))
        return pe_no_memory(w->err);
    for (size_t i = 0; i < field->value.object.n; i++)
        if (!pe_is_among(w->tool->unread_attention, field->value.object.fields[i].name))
            add_copy(w, &inner, field->value.object.fields[i].name, &field->value.object.fields[i]);
    add_copy(w, to, field->name, field);
    to->fields[to->n - 1].value = value_of(&inner);
    return PE_OK;
}

static enum pe_status write_language(struct writer *w, struct pe_value *out)
{
    struct object to;
    struct pe_value rope;
    const struct pe_field *object = pe_config_rope(w->tool, w->config);
    if (!object_new(w, w->config->object.n + 1, &to))
        return pe_no_memory(w->err);
    w->is_by_layer = object && pe_value_has_objects(&object->value);
    if (object && write_object(w, &object->value, &rope))
        return w->err->status;
    bool is_shared = object && !w->is_by_layer && pe_is_among(w->tool->scaled_sliding, w->model_type);
    if (is_shared && !share_object(w, &rope))
        return pe_no_memory(w->err);
    for (size_t i = 0; i < w->config->object.n; i++) {
        const struct pe_field *field = &w->config->object.fields[i];
        bool is_moved = w->has_moved_original && !w->is_by_layer && pe_same(field->name, original_name);
        bool is_attention = pe_same(field->name, "attn_config") && field->value.kind == PE_OBJECT;
        if (is_attention && add_attention(w, &to, field))
            return w->err->status;
        if (!is_moved && !is_attention && !pe_is_among(object_names, field->name))
            add_copy(w, &to, field->name, field);
    }
    if (object)
        add_value(&to, object->name, rope);
    *out = value_of(&to);
    return PE_OK;
}

/* Copies the objects on the way to the language model's, whose pointer is `at`. */
static enum pe_status wrap(struct writer *w, const struct pe_value *outer, const char *at, const struct pe_value *inner,
                           struct pe_value *out)
{
    char name[64];
    struct object to;
    if (outer == w->config) {
        *out = *inner;
        return PE_OK;
    }
    snprintf(name, sizeof name, "%.*s", (int)strcspn(at + 1, "/"), at + 1);
    const struct pe_field *next = stated(outer, name);
    if (!next || next->value.kind != PE_OBJECT) { /* an object that the class makes */
        *out = *outer;
        return PE_OK;
    }
    if (!object_new(w, outer->object.n, &to))
        return pe_no_memory(w->err);
    for (size_t i = 0; i < outer->object.n; i++)
        add_copy(w, &to, outer->object.fields[i].name, &outer->object.fields[i]);
    struct pe_value *place = &to.fields[next - outer->object.fields].value;
    if (wrap(w, &next->value, at + 1 + strlen(name), inner, place))
        return w->err->status;
    *out = value_of(&to);
    return PE_OK;
}

bool pe_tool_has_type(const struct pe_tool *tool, const char *model_type)
{
    const struct pe_hf_model *row = pe_hf_model_find(model_type);
    return !(row && row->is_class) && (!tool->types || pe_is_among(tool->types, model_type)) &&
           (!tool->architecture || tool->architecture(model_type));
}

enum pe_status pe_config_view(const struct pe_tool *tool, bool is_old, const struct pe_value *config,
                              const struct pe_hf_language *language, struct pe_values *values,
                              struct pe_config_view *view, struct pe_failure *err)
{
    struct pe_value inner;
    const struct pe_value *object = language->place.object;
    struct writer w = {.tool = tool,
                       .config = object,
                       .model_type = language->model_type,
                       .is_old = is_old,
                       .values = values,
                       .view = view,
                       .err = err};
    if (pe_is_among(tool->lacks, language->model_type))
        return pe_fail(err, "", "%s has no class for the model_type \"%.40s\"", tool->label, language->model_type);
    if ((tool->types || language->row->is_class) && !pe_tool_has_type(tool, language->model_type))
        return pe_fail(err, "", "how %s reads the model_type \"%.40s\" is not known here", tool->label,
                       language->model_type);
    *view = (struct pe_config_view){.copies = pe_values_room(values, PE_CONFIG_COPIES_MAX * sizeof *view->copies)};
    if (!view->copies)
        return pe_no_memory(err);
    w.is_latent = pe_hf_find(&language->place, "qk_rope_head_dim") != NULL ||
                  pe_is_among(tool->reads_magnitudes, language->model_type);
    if (write_language(&w, &inner))
        return err->status;
    return wrap(&w, config, language->place.at + strlen("/hf_config"), &inner, &view->config);
}
