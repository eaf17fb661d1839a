/* A config as Python prints it: transformers' class with JSON in it, or a dict.
 *
 *     LlamaConfig {                                {'model_type': 'llama', 'rope_theta': 500000.0,
 *       "model_type": "llama", …                    'rope_scaling': None}
 *     }
 *     ModelArgs(model_type='llama', rope_theta=500000.0)
 *
 * Ollama's /api/show has the keys of a file in its object model_info. */
#include "api/inputs/pasted/python.h"

#include <jansson.h>

/* A call whose name has a capital, with keywords, or a text before them. */
struct call {
    const char *name, *at; /* its parenthesis */
};

/* The first of them from text on, which is within the whole; at NULL: there is none. */
static struct call call_of(const char *whole, const char *text)
{
    for (const char *p = text; *p; p = python_pass(p)) {
        if (*p != '(')
            continue;
        const char *begin = p, *after = p + 1 + strspn(p + 1, " \t\r\n");
        size_t n = 0;
        while (begin > whole && pasted_is_of_name(begin[-1]))
            begin--;
        while (pasted_is_of_name(after[n]))
            n++;
        bool has_keyword = n && after[n] == '=' && after[n + 1] != '=';
        if (*begin >= 'A' && *begin <= 'Z' && begin < p && (has_keyword || strchr("'\"", *after)))
            return (struct call){begin, p};
    }
    return (struct call){NULL, NULL};
}

bool pasted_printed_looks_so(const char *text)
{
    const char *brace = strchr(text, '{');
    const char *after = brace ? brace + 1 + strspn(brace + 1, " \t\r\n") : "";
    bool is_object = (*after == '"' || *after == '\'') && !pasted_has_settings(text);
    return is_object || call_of(text, text).at || (strstr(text, "(rotary_emb)") && strchr(text, '('));
}

/* Behind the bracket that ends what begins at text; NULL: none does. */
static const char *end_of(const char *text)
{
    const char *end = python_end(text + 1, text + strlen(text), "");
    return *end ? end + 1 : NULL;
}

bool api_pasted_is_dict(const char *text, size_t n)
{
    size_t at = 1;
    while (at < n && strchr(" \t\r\n", text[at]))
        at++;
    return at < n && text[at] == '\'';
}

/* Names that a config has, or the keys of a file, and what a request has instead of them. */
bool api_pasted_is_config(const char *text, size_t n)
{
    static const char marks[] = "model_type|_class_name|text_config|general.architecture|model_info";
    static const char fields[] = "scheme|preset|hf_config|gguf|said|configs";
    struct api_json_members at = api_json_members(text, n);
    struct api_json_member member;
    bool is_config = false, is_request = false;
    while (!is_request && api_json_next(&at, &member)) {
        is_config |= pasted_is_among(marks, member.name, member.name_bytes);
        is_request |= pasted_is_among(fields, member.name, member.name_bytes);
    }
    return is_config && !is_request;
}

static const json_t *load(struct pasting *p, const char *text, size_t n, bool *no_memory)
{
    struct api_json_error error = {.no_memory = false};
    const json_t *json = api_json_load(&p->request->arena, text, n, 0, &error);
    *no_memory |= !json && error.no_memory;
    return json;
}

/* The first object of the text that JSON or Python reads; its JSON is then in p->json. */
static const json_t *find_object(struct pasting *p, const char **begin, const char **end)
{
    const struct python py = {.p = p};
    bool no_memory = false;
    enum { TRIED = 8 };
    const char *at = p->text, *call = call_of(p->text, p->text).at;
    if (call && call < at + strcspn(at, "{")) /* the call is around the rest */
        at = call;
    for (unsigned i = 0; i < TRIED && at && (*at == '(' || (at = strchr(at, '{'))); i++, at++) {
        *begin = at;
        *end = end_of(at);
        if (!*end)
            continue;
        p->json.n = 0;
        api_text_add(&p->json, at, (size_t)(*end - at));
        const json_t *json = p->json.state ? NULL : load(p, p->json.bytes, p->json.n, &no_memory);
        if (!json && !no_memory) {
            p->json.n = 0;
            if (*at == '(')
                python_put_call(&py, &p->json, at + 1, *end - 1);
            else
                python_put(&py, &p->json, at, *end);
            json = p->json.state ? NULL : load(p, p->json.bytes, p->json.n, &no_memory);
        }
        if (json || no_memory || p->json.state)
            return json;
    }
    return NULL;
}

/* Of transformers, or of diffusers. */
static bool names_model(const json_t *object)
{
    return json_object_get(object, "model_type") || json_object_get(object, "_class_name") ||
           json_object_get(object, "text_config");
}

/* Another config behind the one that was read. */
static bool check_second(struct pasting *p, const char *text, const char *first, size_t n_first, const json_t *object)
{
    enum { TRIED = 8 };
    bool no_memory = false;
    const char *at = text;
    for (unsigned i = 0; i < TRIED && (at = strchr(at, '{')); i++) {
        const char *end = end_of(at);
        const json_t *second = end ? load(p, at, (size_t)(end - at), &no_memory) : NULL;
        bool is_config = names_model(second);
        if (no_memory)
            return api_fail_memory(p->problem);
        if (is_config && !json_equal(object, second))
            return pasted_fail(p, "the text has two configs that differ: %.*s and %.*s; paste one of them",
                               (int)(n_first < 160 ? n_first : 160), first, (int)(end - at < 160 ? end - at : 160), at);
        at = end ? end : at + 1;
    }
    return true;
}

static bool skip(struct pasting *p, const char *text, size_t n)
{
    const char *line;
    size_t length;
    for (const char *at = text; at < text + n && pasted_line(&at, &line, &length);) {
        if (line + length > text + n)
            length = (size_t)(text + n - line);
        if (!pasted_skip(p, line, length))
            return false;
    }
    return true;
}

static bool put_object(struct pasting *p, const json_t *object)
{
    char *text = api_json_text(object, JSON_COMPACT);
    p->json.n = 0;
    if (text)
        api_text_put(&p->json, text);
    free(text);
    return text != NULL;
}

bool pasted_object_put(struct pasting *p)
{
    const char *begin, *end;
    if (find_object(p, &begin, &end))
        return pasted_done(p);
    return p->json.state ? pasted_done(p)
                         : pasted_fail(p, "the text between { and } is neither JSON nor a dict of Python");
}

bool pasted_printed_read(struct pasting *p)
{
    const char *begin, *end;
    const json_t *json = find_object(p, &begin, &end);
    if (!json && p->json.state)
        return pasted_done(p);
    if (!json && strstr(p->text, "(rotary_emb)"))
        return pasted_fail(p, "a module that is printed does not show its numbers; print model.config");
    if (!json)
        return pasted_fail(p, "the text between { and } is neither JSON nor a dict of Python");
    const json_t *shown = json_object_get(json, "model_info");
    if (json_object_get(shown, "general.architecture") && !put_object(p, shown))
        return api_fail_memory(p->problem);
    json = json_object_get(shown, "general.architecture") ? shown : json;
    bool are_keys = json_object_get(json, "general.architecture");
    if (!are_keys && !names_model(json))
        return pasted_fail(p, "the object in the text has no model_type and no _class_name, so it is not known how its "
                              "fields are meant");
    p->kind = are_keys ? PASTED_KEYS : PASTED_CONFIG;
    if (!are_keys && !check_second(p, end, begin, (size_t)(end - begin), json))
        return false;
    return skip(p, p->text, (size_t)(begin - p->text)) && skip(p, end, strlen(end)) && pasted_done(p);
}
