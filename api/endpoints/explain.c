/* /explain: what a configuration means for every kind of layers and every tool; /translate: the same in the words of
 * other tools. The answer is one JSON document, or its sentences as text, complete before it is sent. */
#include "api/endpoints/endpoints.h"
#include "api/replies/replies.h"
#include "api/requests/requests.h"
#include "api/routes.h"

#include <stdio.h>
#include <string.h>

static const struct api_taking explain_taking = {
    .tensor = api_tensor_is_q, .params = pe_explain_params, .may_answer_nothing = true, .shows_unread = true};

/* ---- The request ---- */

static bool check_format(struct api_request *request)
{
    return api_study_is_document(request) ||
           api_fail(&request->problem, 406, api_form_format(&request->form) ? "/format" : "",
                    "an explanation is JSON or text and has no tensor, so %s cannot carry it", request->format->name);
}

static bool explain_read(struct api_request *request)
{
    return api_study_read(request, &explain_taking) && check_format(request);
}

/* ---- The answer ---- */

static const struct pe_value *member(const struct pe_value *object, const char *name)
{
    static const struct pe_value none = {.kind = PE_NULL};
    const struct pe_value *found = api_member_find(object, name);
    return found ? found : &none;
}

static void put_explained(struct api_text *text, struct pe_explain *explain)
{
    const struct pe_value *lines = pe_explain_sentences(explain);
    if (!lines) {
        text->state = API_TEXT_NO_MEMORY;
        return;
    }
    for (size_t i = 0; i < lines->list.n; i++) {
        api_text_put(text, lines->list.items[i].string);
        api_text_put(text, "\n");
    }
}

/* The member pasted, behind those of the answer. */
static void put_pasted(struct api_text *text, const struct api_request *request)
{
    if (!text->n)
        return;
    text->n--; /* the brace */
    api_text_put(text, ",\"pasted\":");
    api_text_put(text, request->pasted);
    api_text_put(text, "}");
}

static void put_pasted_line(struct api_text *text, const struct api_request *request)
{
    struct api_json_member as;
    if (!api_json_find(request->pasted, strlen(request->pasted), "as", &as))
        return;
    api_text_put(text, pe_text("read as: "));
    api_text_add(text, as.value + 1, as.value_bytes - 2);
    api_text_put(text, "\n");
}

struct api_reply *api_explained(struct api_request *request, const struct api_explaining *how)
{
    struct pe_failure err;
    struct pe_explain *explain = NULL;
    struct pe_explain_request core = {.fields = request->fields,
                                      .n_fields = request->n_fields,
                                      .lang = request->lang,
                                      .max_work = (double)request->host->max_analysis,
                                      .caller_fields = api_form_names,
                                      .unread = request->unread,
                                      .is_text = request->is_pasted,
                                      .admit = api_memory_admit,
                                      .caller = request};
    struct api_text text;
    api_memory_settle(request);
    if (how->ask(&core, &explain, &err)) {
        /* A value that the text cuts may be needed. */
        for (size_t i = 0; request->unread && request->unread[i]; i++) {
            size_t used = strlen(err.detail);
            if (strstr(err.pointer, request->unread[i]) || strstr(err.detail, request->unread[i]))
                snprintf(err.detail + used, sizeof err.detail - used, "%s", pe_text("; the text cuts its value"));
        }
        api_memory_fail(request, &err);
        return NULL;
    }
    bool has_sentences = api_study_is_sentences(request);
    api_text_init(&text, API_TEXT_MAX);
    if (has_sentences && request->pasted)
        put_pasted_line(&text, request);
    if (has_sentences)
        how->put_sentences(&text, explain);
    else
        how->put(&text, pe_explain_answer(explain));
    pe_explain_free(explain);
    if (!has_sentences && request->pasted)
        put_pasted(&text, request);
    return api_study_reply(request, &text, true);
}

static struct api_reply *explain_build(struct api_request *request)
{
    return api_explained(request, &(struct api_explaining){pe_explain_new, api_text_value, put_explained});
}

const struct api_steps api_explain = {{explain_read}, NULL, explain_build, 0};

/* ---- /translate: the core states values; here each becomes text of a shell, JSON or Python ----------------------- */

static const struct api_taking translate_taking = {
    .tensor = api_tensor_is_q, .params = pe_translate_params, .may_answer_nothing = true};

static bool translate_read(struct api_request *request)
{
    return api_study_read(request, &translate_taking) &&
           (api_study_is_document(request) ||
            api_fail(&request->problem, 406, api_form_format(&request->form) ? "/format" : "",
                     "a translation is JSON or text and has no tensor, so %s cannot carry it", request->format->name));
}

/* ---- A value as words ---- */

/* A word of a POSIX shell: in quotes unless all of it is plain. */
static void put_word(struct api_text *text, const char *bytes, size_t n)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.,/:+@%=";
    bool is_plain = n > 0;
    for (size_t i = 0; i < n; i++)
        is_plain = is_plain && strchr(plain, bytes[i]) != NULL;
    if (is_plain) {
        api_text_add(text, bytes, n);
        return;
    }
    api_text_put(text, "'");
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] == '\'')
            api_text_put(text, "'\\''");
        else
            api_text_add(text, &bytes[i], 1);
    }
    api_text_put(text, "'");
}

/* A flag that is true has no value; one that is false or null is left out. */
static void put_flag(struct api_text *text, const struct pe_field *field)
{
    struct api_text json;
    const struct pe_value *value = &field->value;
    if (value->kind == PE_NULL || (value->kind == PE_BOOLEAN && !value->boolean))
        return;
    api_text_put(text, text->n ? " --" : "--");
    for (const char *p = field->name; *p; p++)
        api_text_add(text, *p == '_' ? "-" : p, 1);
    if (value->kind == PE_BOOLEAN)
        return;
    api_text_put(text, " ");
    if (value->kind == PE_STRING) {
        put_word(text, value->string, strlen(value->string));
        return;
    }
    api_text_init(&json, API_TEXT_MAX);
    api_text_value(&json, value);
    if (json.state == API_TEXT_FINE)
        put_word(text, json.bytes, json.n);
    else
        text->state = json.state;
    api_text_drop(&json);
}

/* Lists are of numbers or words, which Python writes as JSON does. */
static void put_python(struct api_text *text, const struct pe_value *value)
{
    switch (value->kind) {
    case PE_NULL: api_text_put(text, "None"); break;
    case PE_BOOLEAN: api_text_put(text, value->boolean ? "True" : "False"); break;
    case PE_OBJECT:
        api_text_put(text, "{");
        for (size_t i = 0; i < value->object.n; i++) {
            api_text_put(text, i ? ", " : "");
            api_text_string(text, value->object.fields[i].name);
            api_text_put(text, ": ");
            put_python(text, &value->object.fields[i].value);
        }
        api_text_put(text, "}");
        break;
    default: api_text_value(text, value);
    }
}

/* The member class is what is called. */
static void put_call(struct api_text *text, const struct pe_target_info *target, const struct pe_value *value)
{
    const struct pe_field *fields = value->object.fields;
    bool has_class = value->object.n && strcmp(fields[0].name, "class") == 0;
    api_text_put(text, has_class ? fields[0].value.string : target->called);
    api_text_put(text, "(");
    for (size_t i = has_class; i < value->object.n; i++) {
        api_text_put(text, i > (size_t)has_class ? ", " : "");
        api_text_put(text, fields[i].name);
        api_text_put(text, "=");
        put_python(text, &fields[i].value);
    }
    api_text_put(text, ")");
}

static void put_words(struct api_text *text, const struct pe_target_info *target, const struct pe_value *value)
{
    switch (target->form) {
    case PE_TARGET_JSON: api_text_value(text, value); break;
    case PE_TARGET_SHELL:
        for (size_t i = 0; i < value->object.n; i++)
            put_flag(text, &value->object.fields[i]);
        break;
    case PE_TARGET_PYTHON: put_call(text, target, value); break;
    case PE_TARGET_LINES:
        for (size_t i = 0; i < value->object.n; i++) {
            api_text_put(text, i ? "\n" : "");
            api_text_format(text, "%s.%s = ", target->called, value->object.fields[i].name);
            put_python(text, &value->object.fields[i].value);
        }
        break;
    }
}

/* ---- The answer ---- */

/* The words of a target; false: it has none. Dropped by the caller either way. */
static bool words_of(const struct pe_value *entry, struct api_text *words)
{
    const struct pe_value *value = member(entry, "value");
    api_text_init(words, API_TEXT_MAX);
    if (value->kind == PE_OBJECT)
        put_words(words, pe_target_info_find(member(entry, "to")->string), value);
    return value->kind == PE_OBJECT;
}

static void put_entry(struct api_text *text, const struct pe_value *entry)
{
    struct api_text words;
    bool has_words = words_of(entry, &words);
    api_text_open(text, NULL, '{');
    for (size_t i = 0; i < entry->object.n; i++) {
        const struct pe_field *field = &entry->object.fields[i];
        api_text_name(text, field->name);
        api_text_value(text, &field->value);
        if (strcmp(field->name, "to") != 0)
            continue;
        api_text_name(text, "text");
        if (has_words)
            api_text_string_n(text, words.bytes ? words.bytes : "", words.n);
        else
            api_text_put(text, "null");
    }
    api_text_close(text, '}');
    if (words.state != API_TEXT_FINE)
        text->state = words.state;
    api_text_drop(&words);
}

static void put_answer(struct api_text *text, const struct pe_value *answer)
{
    api_text_open(text, NULL, '{');
    for (size_t i = 0; i < answer->object.n; i++) {
        const struct pe_field *field = &answer->object.fields[i];
        api_text_name(text, field->name);
        if (strcmp(field->name, "targets") != 0) {
            api_text_value(text, &field->value);
            continue;
        }
        api_text_put(text, "[");
        for (size_t k = 0; k < field->value.list.n; k++)
            put_entry(text, &field->value.list.items[k]);
        api_text_close(text, ']');
    }
    api_text_close(text, '}');
}

/* The words of each target, then a line for each loss; at the end how many are exact. */
static void put_translated(struct api_text *text, struct pe_explain *translation)
{
    const struct pe_value *answer = pe_explain_answer(translation), *targets = member(answer, "targets");
    for (size_t k = 0; k < targets->list.n; k++) {
        struct api_text words;
        const struct pe_value *entry = &targets->list.items[k], *losses = member(entry, "loses"),
                              *kind = member(entry, "layer_type");
        api_text_put(text, member(entry, "to")->string);
        if (kind->kind == PE_STRING) {
            api_text_put(text, ", ");
            api_text_put(text, kind->string);
        }
        api_text_put(text, ":\n");
        if (words_of(entry, &words)) {
            api_text_add(text, words.bytes ? words.bytes : "", words.n);
            api_text_put(text, "\n");
        }
        api_text_drop(&words);
        for (size_t i = 0; i < losses->list.n; i++) {
            api_text_put(text, "  ");
            api_text_put(text, member(&losses->list.items[i], "detail")->string);
            api_text_put(text, "\n");
        }
    }
    api_text_put(text, member(answer, "detail")->string);
    api_text_put(text, "\n");
}

static struct api_reply *translate_build(struct api_request *request)
{
    return api_explained(request, &(struct api_explaining){pe_translate_new, put_answer, put_translated});
}

const struct api_steps api_translate = {{translate_read}, NULL, translate_build, 0};
