/* The list of tools, and `said`: a value in the words of one of them as the fields that a request would write. */
#include "core/tools/lens.h"

#include <stdio.h>
#include <stdlib.h>

#define TOOL(name) extern const struct pe_tool pe_tool_##name;
#include "core/tools/list.h"
#undef TOOL

const struct pe_tool *const pe_tools[] = {
#define TOOL(name) &pe_tool_##name,
#include "core/tools/list.h"
#undef TOOL
    NULL};

enum { N_TOOLS = sizeof pe_tools / sizeof *pe_tools - 1, LENSES_MAX = 20, FORMS_MAX = 4 };

const struct pe_tool *pe_tool_find(const char *name)
{
    for (size_t i = 0; pe_tools[i]; i++)
        if (pe_same(pe_tools[i]->name, name))
            return pe_tools[i];
    return NULL;
}

const struct pe_tool *pe_reader_at(size_t i)
{
    const struct pe_tool *const *tool = pe_tools;
    while (*tool && (!(*tool)->objects || i-- > 0))
        tool++;
    return *tool;
}

const struct pe_tool *pe_tool_of_files(void)
{
    size_t i = 0;
    while (!pe_tools[i]->architecture)
        i++;
    return pe_tools[i];
}

enum pe_status pe_tool_unknown(const char *name, const char *pointer, struct pe_failure *err)
{
    const char *names[N_TOOLS + 1] = {NULL};
    char list[320] = "";
    for (size_t i = 0; i < pe_n_targets(); i++) {
        names[i] = pe_tools[i]->name;
        strcat(strcat(list, i ? ", " : ""), names[i]);
    }
    const char *nearest = pe_nearest(name, names);
    if (nearest)
        return pe_fail(err, pointer, "unknown target \"%.40s\"; nearest: \"%s\"; one of: %s", name, nearest, list);
    return pe_fail(err, pointer, "unknown target \"%.40s\"; one of: %s", name, list);
}

/* ---- The catalogue: a row of parameters for each member, put together before main ---- */

static struct pe_target_info infos[N_TOOLS];
static struct pe_param rows[N_TOOLS][LENSES_MAX];
static const char *words[N_TOOLS][FORMS_MAX];

/* One row for a member, however many lenses have it. */
static void add_row(size_t tool, size_t *n, const struct pe_lens *lens)
{
    const struct pe_form *forms = pe_tools[tool]->forms;
    bool is_new = lens->theirs != NULL;
    for (size_t i = 0; i < *n; i++)
        is_new = is_new && !pe_same(rows[tool][i].name, lens->theirs);
    if (!is_new)
        return;
    for (size_t i = 0; lens->type == PE_T_WORD && forms[i].word; i++)
        words[tool][i] = forms[i].word;
    rows[tool][*n] = (struct pe_param){.name = lens->theirs,
                                       .type = lens->type,
                                       .offset = *n * sizeof(union pe_taken),
                                       .fallback = lens->otherwise,
                                       .min = lens->min,
                                       .max = lens->max,
                                       .words = words[tool],
                                       .when = lens->only_with};
    ++*n;
}

__attribute__((constructor)) static void join(void)
{
    for (size_t i = 0; pe_tools[i]; i++) {
        size_t n = 0;
        infos[i] = pe_tools[i]->info;
        infos[i].name = pe_tools[i]->name;
        infos[i].source = pe_tools[i]->source;
        infos[i].members = pe_tools[i]->lenses ? rows[i] : NULL;
        for (const struct pe_lens *lens = pe_tools[i]->lenses; pe_lens_is(lens); lens++)
            add_row(i, &n, lens);
    }
}

bool pe_tool_has_words(const struct pe_tool *tool) { return tool->lenses || tool->import; }

size_t pe_n_targets(void)
{
    size_t n = 0;
    while (n < N_TOOLS && pe_tool_has_words(pe_tools[n]))
        n++;
    return n;
}

const struct pe_target_info *pe_target_at(size_t i) { return &infos[i]; }

const struct pe_target_info *pe_target_info_find(const char *name)
{
    for (size_t i = 0; i < pe_n_targets(); i++)
        if (pe_same(infos[i].name, name))
            return &infos[i];
    return NULL;
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
static enum pe_status open_said(const struct pe_value *said, const struct pe_tool **target,
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
    *target = pe_tool_find(to->string);
    if (!*target || !pe_tool_has_words(*target))
        return pe_tool_unknown(to->string, "/said/to", err);
    if (!*value)
        return pe_fail(err, "/said/value", "value is missing: the words of %s as an object", (*target)->label);
    if ((*value)->kind != PE_OBJECT)
        return pe_fail(err, "/said/value", "value is not an object");
    return PE_OK;
}

/* Members that state no rotation: what a command line has of any model. */
static const char sizes[] = "kv-channels|max_position_embeddings|max_model_len|context_length";

bool pe_said_states(const struct pe_value *v)
{
    bool states = v->kind != PE_NULL && v->kind != PE_OBJECT;
    for (size_t i = 0; v->kind == PE_OBJECT && !states && i < v->object.n; i++)
        states = !pe_is_among(sizes, v->object.fields[i].name) && pe_said_states(&v->object.fields[i].value);
    return states;
}

enum pe_status pe_said_no_word(const char *to, struct pe_failure *err)
{
    const struct pe_target_info *target = pe_target_info_find(to);
    char list[PE_DETAIL_MAX / 2] = "";
    for (const struct pe_param *row = target->members; row->name; row++) {
        size_t used = strlen(list);
        if (!pe_is_among(sizes, row->name))
            snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "", row->name);
    }
    return pe_fail(err, "/said", "said has no word of %s about positions; those that it has: %s",
                   pe_tool_find(to)->label, list);
}

bool pe_said_is_unset(const char *to, const struct pe_field *member)
{
    const struct pe_lens *lens = pe_tool_find(to)->lenses;
    bool is_number = member->value.kind == PE_INTEGER || member->value.kind == PE_REAL;
    double x = is_number ? pe_value_number(&member->value) : 1;
    while (pe_lens_is(lens) && !(lens->theirs && pe_same(lens->theirs, member->name)))
        lens++;
    return member->value.kind == PE_NULL ||
           (pe_lens_is(lens) && ((lens->is_none_at_0 && x == 0) || (lens->is_none_below_0 && x < 0)));
}

static enum pe_status read_members(struct pe_import *m)
{
    const struct pe_param whole[] = {{.name = "value", .type = PE_T_OBJECT, .fields = m->rows}, PE_P_END};
    size_t n = m->value->object.n, kept = 0;
    bool taken = false;
    union pe_taken members[LENSES_MAX] = {{.integer = 0}};
    struct pe_field *fields = malloc((n + 1) * sizeof *fields);
    if (!fields)
        return pe_no_memory(m->err);
    for (size_t i = 0; i < n; i++)
        if (!pe_said_is_unset(m->tool->name, &m->value->object.fields[i]))
            fields[kept++] = m->value->object.fields[i];
    struct pe_field given = {"value", {.kind = PE_OBJECT, .object = {fields, kept}}};
    m->members = members;
    enum pe_status status = pe_params_read(whole, members, &given, 1, &taken, "/said", m->err);
    if (!status)
        status = pe_import_members(m);
    if (!status && !pe_said_states(m->value)) /* which would be taken for the tool's defaults */
        status = pe_said_no_word(m->tool->name, m->err);
    free(fields);
    return status;
}

/* What the words do not state has to be given beside them: a default would be a guess. */
static enum pe_status check_beside(const struct pe_import *m)
{
    static const char *const names[] = {"head_dim", "layout"};
    struct pe_model_fields *out = m->out;
    const struct pe_value *scheme = pe_field_find(out->fields, out->n, "scheme");
    const struct pe_value *rotary = pe_field_find(out->fields, out->n, "rotary_dim");
    if (!pe_same(scheme->string, "rope"))
        return PE_OK;
    if (m->tool->layout)
        pe_hf_put_word(out, "layout", m->tool->layout);
    if (rotary && !pe_field_find(out->fields, out->n, "head_dim"))
        pe_hf_put(out, "head_dim", *rotary);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char pointer[PE_POINTER_MAX];
        pe_pointer_join(pointer, sizeof pointer, "", names[i]);
        if (!pe_field_find(out->fields, out->n, names[i]) && !pe_field_find(m->beside, m->n_beside, names[i]))
            return pe_fail(m->err, pointer, "%s is missing: the words of %s do not state it; give it beside said",
                           names[i], m->tool->label);
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
    struct pe_import m = {.layer_type = layer_type, .beside = beside, .n_beside = n_beside, .out = out, .err = err};
    pe_model_fields_clear(out);
    enum pe_status status = open_said(said, &m.tool, &m.value, err);
    if (status)
        return status;
    if (layer_type && !m.tool->has_kinds)
        return pe_fail(err, "/layer_type", "layer_type is not used here: %s has one rule for all layers",
                       m.tool->label);
    m.rows = pe_target_info_find(m.tool->name)->members;
    status = m.rows ? read_members(&m) : m.tool->import(&m);
    if (status) {
        point_into_said(err);
        return status;
    }
    if (!pe_field_find(out->fields, out->n, "scheme"))
        pe_hf_put_word(out, "scheme", "rope");
    return check_beside(&m);
}
