/* The query of a URL: pairs are decoded one by one, written as JSON, and read like a body's members. */
#include "api/requests/requests.h"
#include "api/inputs/inputs.h"
#include "api/json/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How the text of a value is read. */
enum meaning {
    WORD,    /* a literal string */
    SCALAR,  /* a number or boolean; anything else is a string, for its error message */
    NUMBERS, /* a list */
    WORDS,   /* a list of strings */
    JSON,    /* an object */
    NAME,    /* an object, else a literal string */
    TEXT,    /* an object, else a text that was pasted: only a brace begins JSON, and not that of a dict of Python */
    ANY      /* unknown name: guessed from the text */
};

/* ---- What a name means ---- */

static enum meaning meaning_of_row(const struct pe_param *row)
{
    switch (row->type) {
    case PE_T_WORD: return WORD;
    case PE_T_REALS: return NUMBERS;
    case PE_T_OBJECT: return JSON;
    case PE_T_VALUE: return ANY;
    case PE_T_INT:
    case PE_T_REAL:
    case PE_T_BOOL: break;
    }
    return SCALAR;
}

/* A field of the endpoint itself. */
static const struct pe_param *own_row(const struct api_request *request, const char *name)
{
    return request->taking && request->taking->params ? pe_param_find(request->taking->params(), name) : NULL;
}

/* A name may have different types in two schemes, so the requested scheme decides; it may be anywhere in the query
 * or body. */
static enum meaning meaning_of(const char *name, const struct pe_scheme_info *scheme)
{
    if (strcmp(name, "scheme") == 0 || strcmp(name, "preset") == 0 || strcmp(name, "layer_type") == 0)
        return WORD;
    if (strcmp(name, "outputs") == 0 || strcmp(name, "tokens") == 0)
        return WORDS;
    if (strcmp(name, "weights") == 0)
        return NAME;
    if (strcmp(name, "hf_config") == 0 || strcmp(name, "gguf") == 0 || strcmp(name, "said") == 0)
        return TEXT;
    const struct pe_param *row = pe_param_find(api_form_params(), name);
    row = row ? row : pe_param_find(pe_sequence_params(), name);
    row = row || !scheme ? row : pe_param_find(scheme->params, name);
    if (!row && scheme && scheme->is_additive)
        row = pe_param_find(pe_absolute_params(), name);
    return row ? meaning_of_row(row) : ANY;
}

/* ---- Values as JSON ---- */

static bool is_scalar(const char *bytes, size_t n)
{
    static const char *const words[] = {"true", "false", "null"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strlen(words[i]) == n && memcmp(bytes, words[i], n) == 0)
            return true;
    return api_is_json_number(bytes, n);
}

static void put_scalar(struct api_text *text, const char *bytes, size_t n)
{
    if (is_scalar(bytes, n))
        api_text_add(text, bytes, n);
    else
        api_text_string_n(text, bytes, n);
}

static void put_list(struct api_text *text, const char *value, enum meaning meaning)
{
    api_text_put(text, "[");
    for (const char *p = value;; p++) {
        size_t n = strcspn(p, ",");
        if (meaning == WORDS)
            api_text_string_n(text, p, n);
        else
            put_scalar(text, p, n);
        p += n;
        if (!*p)
            break;
        api_text_put(text, ",");
    }
    api_text_put(text, "]");
}

/* Where the value's list or object begins, which a file may begin with a byte order mark and blanks; else the value. */
static const char *skip_to_json(const char *value)
{
    const char *begin = value + api_json_mark(value, strlen(value));
    begin += strspn(begin, " \t\r\n");
    return *begin == '[' || *begin == '{' ? begin : value;
}

/* Writes the value as JSON of the type that its name requires. */
static bool put_value(struct api_request *request, struct api_text *text, enum meaning meaning, const char *name,
                      const char *value, struct api_problem *problem)
{
    if (meaning != WORD && meaning != WORDS)
        value = skip_to_json(value);
    bool looks_json = *value == '[' || *value == '{';
    if (meaning == ANY)
        meaning = strchr(value, ',') && !looks_json ? NUMBERS : SCALAR;
    bool is_text = meaning == TEXT && (*value != '{' || api_pasted_is_dict(value, strlen(value)));
    if (meaning == WORD || (meaning == NAME && !looks_json) || is_text)
        api_text_string(text, value);
    else if (meaning == JSON || looks_json) {
        char where[96];
        snprintf(where, sizeof where, "\"%.64s\" in the query is ", name);
        api_text_put(text, value);
        return api_json_check(&request->arena, value, strlen(value), where, problem);
    } else if (meaning == SCALAR)
        put_scalar(text, value, strlen(value));
    else
        put_list(text, value, meaning);
    return true;
}

/* ---- Pairs ---- */

/* Decodes n bytes into out (room for n + 1). False: a broken or zero percent code. */
static bool decode(const char *in, size_t n, char *out)
{
    for (size_t i = 0; i < n; i++) {
        if (in[i] != '%') {
            *out++ = in[i] == '+' ? ' ' : in[i];
            continue;
        }
        int high = n - i > 2 ? api_hex_digit(in[i + 1]) : -1, low = n - i > 2 ? api_hex_digit(in[i + 2]) : -1;
        if (high < 0 || low < 0 || high + low == 0)
            return false;
        *out++ = (char)(16 * high + low);
        i += 2;
    }
    *out = '\0';
    return true;
}

/* A pair "name=value" in place: name and value decoded into buffer (room for n + 2 bytes). */
struct pair {
    const char *name, *value;
};

static bool pair_decode(const char *in, size_t n, char *buffer, struct pair *pair, struct api_problem *problem)
{
    const char *equals = memchr(in, '=', n);
    size_t name_bytes = equals ? (size_t)(equals - in) : n, value_at = equals ? name_bytes + 1 : n;
    *pair = (struct pair){.name = buffer, .value = buffer + name_bytes + 1};
    if (!decode(in, name_bytes, buffer) || !decode(in + value_at, n - value_at, buffer + name_bytes + 1))
        return api_fail(problem, 400, "", "the query has a %% without two hexadecimal digits other than 00 after it");
    return true;
}

static const char *word_of(const struct api_request *request, const char *name)
{
    const struct pe_value *value = api_request_find(request, name);
    return value && value->kind == PE_STRING ? value->string : NULL;
}

/* The scheme that the request or its preset names. */
static const struct pe_scheme_info *scheme_of(const struct api_request *request)
{
    const char *scheme = word_of(request, "scheme"), *name = word_of(request, "preset");
    const struct pe_value *named = api_request_find(request, "preset");
    const struct pe_preset *preset = name                                ? pe_preset_named(name)
                                     : named && named->kind == PE_PRESET ? named->preset
                                                                         : NULL;
    if (scheme || !preset)
        return scheme ? pe_scheme_find(scheme) : NULL;
    for (size_t i = 0; i < preset->layers->n_fields; i++)
        if (strcmp(preset->layers->fields[i].name, "scheme") == 0)
            return pe_scheme_find(preset->layers->fields[i].value.string);
    return NULL;
}

static enum meaning meaning_in(const struct api_request *request, const char *name)
{
    const struct pe_param *own = own_row(request, name);
    if (own)
        return own->type == PE_T_VALUE ? WORDS : meaning_of_row(own);
    return meaning_of(name, scheme_of(request));
}

static bool add_pair(struct api_request *request, const struct pair *pair, struct api_problem *problem)
{
    struct api_text text;
    api_text_init(&text, API_SKELETON_MAX);
    api_text_put(&text, "{");
    api_text_string(&text, pair->name);
    api_text_put(&text, ":");
    enum meaning meaning = meaning_in(request, pair->name);
    bool fine = put_value(request, &text, meaning, pair->name, pair->value, problem);
    api_text_put(&text, "}");
    if (fine && text.state)
        fine = api_fail_text(problem, &text);
    if (fine)
        fine = api_json_read(request, text.bytes, text.n, "in the query: ", problem);
    api_text_drop(&text);
    return fine;
}

/* request=… is a whole request as JSON. */
static bool is_document(const char *name) { return strcmp(name, "request") == 0; }

static bool names_scheme(const char *name)
{
    return strcmp(name, "scheme") == 0 || strcmp(name, "preset") == 0 || is_document(name);
}

/* Reads the pairs that name the scheme, or the other pairs. */
static bool read_pairs(struct api_request *request, const char *query, char *buffer, bool scheme,
                       struct api_problem *problem)
{
    for (const char *p = query; *p;) {
        size_t n = strcspn(p, "&");
        struct pair pair;
        if (n && !pair_decode(p, n, buffer, &pair, problem))
            return false;
        bool is_now = n && names_scheme(pair.name) == scheme;
        if (is_now && is_document(pair.name)) {
            if (!api_json_read(request, pair.value, strlen(pair.value), "request in the query: ", problem))
                return false;
        } else if (is_now && !add_pair(request, &pair, problem)) {
            return false;
        }
        p += n + (p[n] == '&');
    }
    return true;
}

bool api_query_read(struct api_request *request, bool names_scheme)
{
    const char *query = request->call->query;
    if (!query || !*query)
        return true;
    char *buffer = api_arena_alloc(&request->arena, strlen(query) + 2);
    return buffer ? read_pairs(request, query, buffer, names_scheme, &request->problem)
                  : api_fail_memory(&request->problem);
}

/* ---- One name ---- */

static bool has_name(const char *pair, size_t n, const char *name, char *buffer)
{
    if (*pair != *name && *pair != '%') /* most pairs; asked for every request */
        return false;
    const char *equals = memchr(pair, '=', n);
    return decode(pair, equals ? (size_t)(equals - pair) : n, buffer) && strcmp(buffer, name) == 0;
}

/* Decodes the first pair of that name into buffer; NULL if there is none, or if its value is refused. */
static const char *find_value(const char *query, const char *name, char *buffer, struct api_problem *problem)
{
    struct pair pair;
    for (const char *p = query; *p;) {
        size_t n = strcspn(p, "&");
        if (has_name(p, n, name, buffer))
            return pair_decode(p, n, buffer, &pair, problem) ? pair.value : NULL;
        p += n + (p[n] == '&');
    }
    return NULL;
}

bool api_query_find(const char *query, const char *name, char **value, struct api_problem *problem)
{
    *value = NULL;
    if (!query || !*query)
        return true;
    char *buffer = malloc(strlen(query) + 2);
    if (!buffer)
        return api_fail_memory(problem);
    problem->status = 0;
    const char *found = find_value(query, name, buffer, problem);
    if (found)
        *value = memmove(buffer, found, strlen(found) + 1);
    else
        free(buffer);
    return problem->status == 0;
}
