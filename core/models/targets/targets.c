/* The list of targets, and `said`: a value in the words of one of them as the fields that a request would write. */
#include "core/models/targets/targets.h"

#include <stdio.h>
#include <stdlib.h>

#define TARGET(name) extern const struct pe_target pe_target_##name;
#include "core/models/targets/list.h"
#undef TARGET

const struct pe_target *const pe_targets[] = {
#define TARGET(name) &pe_target_##name,
#include "core/models/targets/list.h"
#undef TARGET
    NULL};

const struct pe_target *pe_target_find(const char *name)
{
    for (size_t i = 0; pe_targets[i]; i++)
        if (pe_same(pe_targets[i]->info.name, name))
            return pe_targets[i];
    return NULL;
}

/* ---- The catalogue ---- */

size_t pe_n_targets(void) { return sizeof pe_targets / sizeof *pe_targets - 1; }

const struct pe_target_info *pe_target_at(size_t i) { return &pe_targets[i]->info; }

const struct pe_target_info *pe_target_info_find(const char *name)
{
    const struct pe_target *target = pe_target_find(name);
    return target ? &target->info : NULL;
}

enum pe_status pe_target_unknown(const char *name, const char *pointer, struct pe_failure *err)
{
    const char *names[sizeof pe_targets / sizeof *pe_targets];
    char list[320] = "";
    for (size_t i = 0; pe_targets[i]; i++) {
        names[i] = pe_targets[i]->info.name;
        strcat(strcat(list, i ? ", " : ""), names[i]);
    }
    names[pe_n_targets()] = NULL;
    const char *nearest = pe_nearest(name, names);
    if (nearest)
        return pe_fail(err, pointer, "unknown target \"%.40s\"; nearest: \"%s\"; one of: %s", name, nearest, list);
    return pe_fail(err, pointer, "unknown target \"%.40s\"; one of: %s", name, list);
}

/* ---- What was said ---- */

/* Words of the text that were not read. */
static bool is_list_of_words(const struct pe_value *v)
{
    bool is_list = v->kind == PE_LIST;
    for (size_t i = 0; is_list && i < v->list.n; i++)
        is_list = v->list.items[i].kind == PE_STRING;
    return is_list;
}

/* *value is the object; an error names what is there instead. */
static enum pe_status open_said(const struct pe_value *said, const struct pe_target **target,
                                const struct pe_value **value, struct pe_failure *err)
{
    const struct pe_value *to = NULL;
    *value = NULL;
    if (said->kind != PE_OBJECT)
        return pe_fail(err, "/said", "said is not an object; write {\"to\":\"megatron\",\"value\":{…}}");
    for (size_t i = 0; i < said->object.n; i++) {
        const struct pe_field *field = &said->object.fields[i];
        char pointer[PE_POINTER_MAX];
        pe_pointer_join(pointer, sizeof pointer, "/said", field->name);
        if (pe_same(field->name, "to"))
            to = &field->value;
        else if (pe_same(field->name, "value"))
            *value = &field->value;
        else if (!pe_same(field->name, "ignored"))
            return pe_fail(err, pointer, "said has no member \"%.40s\"; allowed: to, value, text", field->name);
        else if (!is_list_of_words(&field->value))
            return pe_fail(err, pointer, "ignored is not a list of words");
    }
    if (!to || to->kind != PE_STRING)
        return pe_fail(err, "/said/to",
                       to ? "to is not a string; write a name" : "to is missing: whose words they are");
    *target = pe_target_find(to->string);
    if (!*target)
        return pe_target_unknown(to->string, "/said/to", err);
    if (!*value)
        return pe_fail(err, "/said/value", "value is missing: the words of %s as an object", (*target)->label);
    if ((*value)->kind != PE_OBJECT)
        return pe_fail(err, "/said/value", "value is not an object");
    return PE_OK;
}

/* Members that state no rotation: what a command line has of any model. */
static const char sizes[] = "kv-channels|max_position_embeddings|max_model_len|context_length";

/* Is there a number, a word or a list in it that is about positions? */
static bool states_something(const struct pe_value *v)
{
    bool states = v->kind != PE_NULL && v->kind != PE_OBJECT;
    for (size_t i = 0; v->kind == PE_OBJECT && !states && i < v->object.n; i++)
        states = !pe_is_among(sizes, v->object.fields[i].name) && states_something(&v->object.fields[i].value);
    return states;
}

/* Words of which none is the tool's would be taken for its defaults. */
static enum pe_status check_words(const struct pe_hearing *h)
{
    char list[PE_DETAIL_MAX / 2] = "";
    if (states_something(h->value))
        return PE_OK;
    for (const struct pe_param *row = h->target->info.members; row->name; row++) {
        size_t used = strlen(list);
        if (!pe_is_among(sizes, row->name))
            snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "", row->name);
    }
    return pe_fail(h->err, "/said", "said has no word of %s about positions; those that it has: %s", h->target->label,
                   list);
}

/* Members that are null are not there. */
static enum pe_status read_members(const struct pe_hearing *h)
{
    const struct pe_param whole[] = {{.name = "value", .type = PE_T_OBJECT, .fields = h->target->info.members},
                                     PE_P_END};
    size_t n = h->value->object.n, kept = 0;
    bool taken = false;
    void *members = calloc(1, h->target->bytes);
    struct pe_field *fields = malloc((n + 1) * sizeof *fields);
    enum pe_status status = members && fields ? PE_OK : pe_no_memory(h->err);
    for (size_t i = 0; !status && i < n; i++)
        if (h->value->object.fields[i].value.kind != PE_NULL)
            fields[kept++] = h->value->object.fields[i];
    struct pe_field given = {"value", {.kind = PE_OBJECT, .object = {fields, kept}}};
    if (!status)
        status = pe_params_read(whole, members, &given, 1, &taken, "/said", h->err);
    if (!status)
        status = h->target->read(h, members);
    if (!status)
        status = check_words(h);
    free(fields);
    free(members);
    return status;
}

/* What the words do not state has to be given beside them: a default would be a guess. */
static enum pe_status check_beside(const struct pe_hearing *h)
{
    static const char *const names[] = {"head_dim", "layout"};
    struct pe_model_fields *out = h->out;
    const struct pe_value *scheme = pe_field_find(out->fields, out->n, "scheme");
    const struct pe_value *rotary = pe_field_find(out->fields, out->n, "rotary_dim");
    if (!pe_same(scheme->string, "rope"))
        return PE_OK;
    if (h->target->layout)
        pe_hf_put_word(out, "layout", h->target->layout);
    if (rotary && !pe_field_find(out->fields, out->n, "head_dim"))
        pe_hf_put(out, "head_dim", *rotary);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char pointer[PE_POINTER_MAX];
        pe_pointer_join(pointer, sizeof pointer, "", names[i]);
        if (!pe_field_find(out->fields, out->n, names[i]) && !pe_field_find(h->beside, h->n_beside, names[i]))
            return pe_fail(h->err, pointer, "%s is missing: the words of %s do not state it; give it beside said",
                           names[i], h->target->label);
    }
    return PE_OK;
}

/* Keys of a file are read as those of gguf: the pointer is into said. */
static void point_into_said(struct pe_failure *err)
{
    char rest[PE_POINTER_MAX];
    if (strncmp(err->pointer, "/gguf", 5) != 0)
        return;
    snprintf(rest, sizeof rest, "%s", err->pointer + 5);
    snprintf(err->pointer, sizeof err->pointer, "/said/value%.*s", (int)(sizeof err->pointer - 12), rest);
}

enum pe_status pe_said_read(const struct pe_value *said, const char *layer_type, const struct pe_field *beside,
                            size_t n_beside, struct pe_model_fields *out, struct pe_failure *err)
{
    struct pe_hearing h = {.layer_type = layer_type, .beside = beside, .n_beside = n_beside, .out = out, .err = err};
    pe_model_fields_clear(out);
    enum pe_status status = open_said(said, &h.target, &h.value, err);
    if (status)
        return status;
    if (layer_type && !h.target->has_kinds)
        return pe_fail(err, "/layer_type", "layer_type is not used here: %s has one rule for all layers",
                       h.target->label);
    status = h.target->info.members ? read_members(&h) : h.target->read(&h, NULL);
    if (status) {
        point_into_said(err);
        return status;
    }
    if (!pe_field_find(out->fields, out->n, "scheme"))
        pe_hf_put_word(out, "scheme", "rope");
    return check_beside(&h);
}
