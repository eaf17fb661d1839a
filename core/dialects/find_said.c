/* What the words of a tool leave out, what they say without effect, and what they change of a model. */
#include "core/dialects/findings.h"
#include "core/tools/lens.h"

#include <math.h>
#include <stdio.h>

static const char *word(const struct pe_value *v) { return v && v->kind == PE_STRING ? v->string : ""; }

static const struct pe_target_info *target_of(const struct pe_explain *ex)
{
    return ex->said ? pe_target_info_find(word(pe_stated(ex->said, "to"))) : NULL;
}

const char *pe_dialect_tool(const struct pe_explain *ex)
{
    const struct pe_target_info *target = target_of(ex);
    return target ? target->about.label : "";
}

/* ---- The base ---- */

static const char base_names[] = "rope_theta|rope-freq-base|rotary-base|rotary_base|rotary_embedding_base|base|theta|"
                                 "custom_freqs";

static bool states_base(const struct pe_value *v)
{
    bool states = false;
    for (size_t i = 0; v && v->kind == PE_OBJECT && !states && i < v->object.n; i++) {
        const struct pe_field *field = &v->object.fields[i];
        bool is_number = field->value.kind == PE_INTEGER || field->value.kind == PE_REAL;
        bool is_none = field->value.kind == PE_NULL || (is_number && pe_value_number(&field->value) == 0);
        states = (pe_is_among(base_names, field->name) && !is_none) || states_base(&field->value);
    }
    return states;
}

bool pe_words_state_base(const struct pe_explain *ex) { return ex->said && states_base(pe_stated(ex->said, "value")); }

/* The request's fields for kind k without one, and with another. */
static size_t fields_of(const struct pe_explain *ex, const char *without, const char *layer_type,
                        const struct pe_field *other, struct pe_field *fields)
{
    size_t n = 0;
    for (size_t i = 0; i < ex->n_own; i++)
        if (!pe_same(ex->own[i].name, without) && (!other || !pe_same(ex->own[i].name, other->name)))
            fields[n++] = ex->own[i];
    if (other)
        fields[n++] = *other;
    if (layer_type)
        fields[n++] = (struct pe_field){"layer_type", {.kind = PE_STRING, .string = layer_type}};
    return n;
}

/* How far cosines are off with the model's base in place of the one that is taken. */
static void measure_base(struct pe_findings *f, struct pe_finding *finding, size_t k, double base)
{
    struct pe_explain *ex = f->ex;
    struct pe_field fields[PE_FIELDS_MAX + 4], other = {"base", {.kind = PE_REAL, .real = base}};
    struct pe_reading reading;
    size_t n = fields_of(ex, "", ex->kinds[k].layer_type, &other, fields);
    if (pe_dialect_read_fields(ex, fields, n, &reading))
        f->no_memory = true;
    else if (reading.config)
        pe_finding_measure(f, finding, &reading.turn, &ex->kinds[k].own.turn, false, ex->length);
    pe_reading_drop(&reading);
}

static void find_lost_base(struct pe_findings *f)
{
    struct pe_explain *ex = f->ex;
    for (size_t k = 0; k < ex->n_alone && !f->no_memory; k++) {
        const struct pe_value *config = ex->kinds[k].own.config;
        double found = pe_config_number(ex->alone[k]->config, "base", 0), taken = pe_config_number(config, "base", 0);
        if (found <= 0 || taken <= 0 || pe_is_near(found, taken))
            continue;
        struct pe_finding *finding = pe_finding_add(f, PE_THETA_DROPPED, "/said", NULL);
        finding->kinds = 1U << k;
        finding->label = pe_dialect_tool(ex);
        finding->pattern =
            "The words state no base, and the model's is lost: {label} rotates with base {taken} instead of {found}.";
        finding->found = pe_real(found);
        finding->taken = pe_real(taken);
        measure_base(f, finding, k, found);
    }
}

/* Overrides that the tool sets where no model reads them. */
static void find_unread(struct pe_findings *f)
{
    const struct pe_explain *ex = f->ex;
    enum pe_said_unread unread = pe_said_unread(ex->said, pe_model_has_parts(ex->preset ? NULL : ex->hf, ex->preset));
    if (unread == PE_SAID_READ)
        return;
    const char *place = word(pe_stated(ex->said, "place"));
    bool is_all = unread == PE_SAID_ALL_UNREAD;
    struct pe_finding *finding = pe_finding_add(f, PE_FLAG_WITHOUT_EFFECT, "/said", NULL);
    finding->label = pe_dialect_tool(ex);
    finding->name = pe_same(place, "numbers")             ? "head_dim"
                    : is_all && !pe_same(place, "beside") ? "rope_parameters"
                                                          : "rope_theta";
    finding->pattern = is_all ? "{label} sets {flag} beside text_config, which has the language model's numbers: these "
                                "words change nothing there. Write them inside text_config."
                              : "{label} does not read {flag} beside rope_parameters, which it has made of the model's "
                                "config by then: this number changes nothing. Write it inside rope_parameters.";
}

/* Without a model its base is not known. Tools that keep it where no flag names it have another sentence. */
static void find_default_base(struct pe_findings *f)
{
    const struct pe_reading *own = &f->ex->kinds[0].own;
    double base = pe_config_number(own->config, "base", 0);
    if (!own->turn.n || base <= 0)
        return;
    struct pe_finding *finding = pe_finding_add(f, PE_THETA_DEFAULT, "/said", NULL);
    finding->label = pe_dialect_tool(f->ex);
    finding->taken = pe_real(base);
    enum pe_target_takes takes = target_of(f->ex)->takes;
    finding->pattern =
        takes == PE_TAKES_FLAGS || takes == PE_TAKES_OPTIONS
            ? "The words state no base: {label} uses the model's, which is not known here; {taken} is used."
            : "The words state no base: {label} rotates with base {taken}, whatever the model's is.";
}

/* ---- Flags without effect ---- */

/* llama.cpp takes the rule of the file where no flag names one. */
static bool counts(const struct pe_explain *ex, const struct pe_need *need, const struct pe_value *value)
{
    const struct pe_value *v = pe_stated(value, need->with), *zero = NULL;
    const char *rule = pe_config_word(ex->kinds[0].own.config, "scaling.type"), *is = v ? word(v) : need->otherwise;
    if (need->unless_zero)
        zero = pe_stated(value, need->unless_zero);
    if (v && v->kind == PE_BOOLEAN)
        is = v->boolean ? "true" : "false";
    if (!v && target_of(ex)->takes == PE_TAKES_FLAGS && pe_same(rule, "yarn"))
        is = rule;
    return pe_is_among(need->words, is) || (zero && pe_value_number(zero) == 0);
}

static void find_flags(struct pe_findings *f, const struct pe_target_info *target)
{
    const struct pe_value *value = pe_stated(f->ex->said, "value");
    for (const struct pe_lens *lens = pe_tool_find(target->name)->lenses; pe_lens_is(lens); lens++) {
        const struct pe_value *v = lens->theirs && lens->needs ? pe_stated(value, lens->theirs) : NULL;
        bool is_there = v && !pe_said_is_unset(target->name, &(struct pe_field){lens->theirs, *v});
        for (const struct pe_need *need = lens->needs; is_there && need->what; need++) {
            if (counts(f->ex, need, value))
                continue;
            struct pe_finding *finding = pe_finding_add(f, PE_FLAG_WITHOUT_EFFECT, "/said/value", lens->theirs);
            finding->label = target->about.label;
            finding->name = lens->theirs;
            finding->needs = need->what;
            finding->found = *v;
        }
    }
}

void pe_find_in_words(struct pe_findings *f)
{
    const struct pe_explain *ex = f->ex;
    const struct pe_target_info *target = target_of(ex);
    for (size_t i = 0; ex->request->unread && ex->request->unread[i]; i++)
        pe_finding_add(f, PE_UNREAD_IN_TEXT, ex->gguf ? "/gguf" : "", ex->request->unread[i])->name =
            ex->request->unread[i];
    if (!target || pe_same(target->name, "gguf"))
        return;
    if (target->members)
        find_flags(f, target);
    if (ex->is_over)
        find_unread(f);
    bool is_lost = ex->is_over && pe_said_unread(ex->said, false) == PE_SAID_BASE_UNREAD;
    if (pe_words_state_base(ex) && !is_lost)
        return;
    if (ex->is_over)
        find_lost_base(f);
    else if (ex->kinds[0].own.config)
        find_default_base(f);
}

/* ---- What they change ---- */

const struct pe_member pe_dialect_change_members[] = {
    {.name = "layer_type", .types = "string", .summary = "the kind of layers"},
    {.name = "field", .types = "string", .summary = "of the configuration"},
    {.name = "model", .summary = "as the model alone has it; null: not"},
    {.name = "words", .summary = "as it is with the words; null: not"},
    {.name = NULL},
};

static void put_change(struct pe_node *list, const char *layer_type, const char *name, const struct pe_value *model,
                       const struct pe_value *words)
{
    struct pe_node *node = pe_put_object(list, NULL);
    const struct pe_value *const values[] = {model, words};
    static const char *const names[] = {"model", "words"};
    pe_put_string(node, "layer_type", layer_type);
    pe_put_string(node, "field", name);
    for (size_t i = 0; i < 2; i++)
        if (values[i])
            pe_put_value(node, names[i], values[i]);
        else
            pe_put_null(node, names[i]);
}

/* Both configurations live as long as the answer. */
static void put_changes_of(struct pe_node *list, const char *layer_type, const struct pe_value *model,
                           const struct pe_value *words)
{
    for (size_t i = 0; i < model->object.n; i++) {
        const struct pe_field *field = &model->object.fields[i];
        const struct pe_value *v = pe_field_find(words->object.fields, words->object.n, field->name);
        if (!v || !pe_value_same(v, &field->value))
            put_change(list, layer_type, field->name, &field->value, v);
    }
    for (size_t i = 0; i < words->object.n; i++)
        if (!pe_field_find(model->object.fields, model->object.n, words->object.fields[i].name))
            put_change(list, layer_type, words->object.fields[i].name, NULL, &words->object.fields[i].value);
}

enum pe_status pe_dialect_put_changes(struct pe_explain *ex, struct pe_node *root)
{
    struct pe_node *list = ex->is_over ? pe_put_list(root, "changes") : NULL;
    for (size_t k = 0; list && k < ex->n_text; k++) {
        struct pe_field fields[PE_FIELDS_MAX + 4];
        const struct pe_dialect_kind *kind = &ex->kinds[k];
        struct pe_reading *alone = pe_values_room(ex->values, sizeof *alone);
        size_t n = fields_of(ex, "said", kind->layer_type, NULL, fields);
        if (!alone)
            return pe_no_memory(ex->err);
        if (pe_dialect_read_fields(ex, fields, n, alone))
            return ex->err->status;
        ex->alone[ex->n_alone++] = alone;
        if (alone->config && kind->own.config)
            put_changes_of(list, kind->layer_type, alone->config, kind->own.config);
    }
    return PE_OK;
}
