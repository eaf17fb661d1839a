/* Calls of Python that have a tool's words as keywords: LLM(…), sgl.Engine(…), AutoConfig.from_pretrained(…), Llama(…).
 * A script sets fields of what a call returns, too:
 *
 *     config = AutoConfig.from_pretrained("Qwen/Qwen3-8B")
 *     config.rope_scaling = {"rope_type": "yarn", "factor": 4.0}      counts as the keyword
 *     config.rope_scaling["factor"] = 8.0                             is refused: what it changes may be anything
 *
 * Calls that say different things are refused, but for one that is given the config of another. */
#include "api/inputs/pasted/python.h"

#include <stdio.h>
#include <stdlib.h>

enum { CALLS_MAX = 8, FIELDS_MAX = 16, LOOKED_UP_MAX = 64, NAME_BYTES = 200 };

struct call {
    const struct pe_target_info *tool;
    const char *name, *open, *close; /* close: its parenthesis; NULL: it is cut */
    size_t n;
    const char *target; /* the variable that has the result; NULL: none */
    size_t n_target, indent;
    const json_t *keywords;
    struct pasted_setting *settings; /* in the arena, with room for fields */
    size_t n_settings, n_fields;
};

/* ---- Where they are ---- */

/* The tool whose call it is: "vllm.LLM" is LLM's. */
static const struct pe_target_info *tool_of(const char *name, size_t n)
{
    const struct pe_target_info *tool = NULL;
    for (const char *dot = name; dot && !tool; dot = memchr(name, '.', n)) {
        size_t skipped = dot == name ? 0 : (size_t)(dot + 1 - name);
        name += skipped;
        n -= skipped;
        tool = pasted_tool_of_call(name, n);
        if (!memchr(name, '.', n))
            break;
    }
    return tool;
}

/* Keywords, a text, or a variable of a script: not "LLM(s)" of a sentence, nor a definition. */
static bool is_called(const char *whole, const char *name, const char *open)
{
    const char *end = open + strlen(open), *after = python_blanks(open + 1, end), *before = name;
    size_t n = python_word(after, end);
    const char *sign = python_blanks(after + n, end);
    while (before > whole && strchr(" \t", before[-1]))
        before--;
    if ((before - whole >= 5 && memcmp(before - 5, "class", 5) == 0) ||
        (before - whole >= 3 && memcmp(before - 3, "def", 3) == 0))
        return false;
    return strchr("\"'*", *after) ? *after != '\0'
                                  : n && ((*sign == '=' && sign[1] != '=') || strstr(whole, "import "));
}

/* The next one from *at on, outside of texts and comments; tool NULL: there is none. */
static struct call next_call(const char *whole, const char **at)
{
    const char *end = whole + strlen(whole);
    while (**at) {
        size_t n = 0;
        for (size_t word; (word = python_word(*at + n, end)); n += (*at)[n] == '.')
            n += word;
        const struct pe_target_info *tool = n && n < NAME_BYTES && (*at)[n] == '(' ? tool_of(*at, n) : NULL;
        if (tool && is_called(whole, *at, *at + n)) {
            struct call call = {.tool = tool, .name = *at, .n = n, .open = *at + n};
            const char *close = python_end(call.open + 1, end, "");
            call.close = *close == ')' ? close : NULL;
            *at = call.close ? close + 1 : end;
            return call;
        }
        *at = n ? *at + n : python_pass(*at);
    }
    return (struct call){.tool = NULL};
}

bool pasted_call_looks_so(const char *text)
{
    const char *at = text;
    return next_call(text, &at).tool;
}

/* The variable to which a statement gives its result. */
static void find_target(const char *whole, struct call *call)
{
    struct python_statement s;
    for (const char *at = whole; python_statement(&at, &s) && s.begin <= call->name;) {
        if (call->name >= s.end)
            continue;
        call->indent = s.indent;
        if (python_target(&s, &call->target, &call->n_target) && python_blanks(s.equals + 1, s.end) == call->name)
            return;
        call->target = NULL;
    }
}

/* ---- What they say ---- */

/* Names that a script sets and no tool here has as a word are about positions, too. */
static bool is_about_positions(const char *text, size_t n)
{
    static const char *const parts[] = {"rope_", "rotary", "position_embeddings", "hf_overrides", "model_override_args",
                                        "yarn_"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (pasted_find(text, n, parts[i]))
            return true;
    return false;
}

static bool is_word_of(const struct pe_target_info *tool, const char *name)
{
    char flag[PASTED_FLAG_BYTES];
    bool is = false;
    snprintf(flag, sizeof flag, "--%.60s", name);
    for (size_t i = 0; i < pe_n_targets(); i++)
        is |= pasted_is_kin(tool, pe_target_at(i)) && pasted_flag_of(pe_target_at(i), flag);
    return is;
}

static bool is_model(const struct pe_target_info *tool, const char *name)
{
    return pasted_is_among(tool->command.models, name, strlen(name));
}

/* A rope object that is None is none: the type "default". Of other words None is what they are without it. */
static bool add_setting(struct pasting *p, struct call *call, const char *name, const json_t *value)
{
    struct api_json_error error;
    bool is_options = call->tool->takes == PE_TAKES_OPTIONS || call->tool->form == PE_TARGET_JSON;
    if (json_is_null(value) && is_options && strcmp(name, "rope_scaling") == 0) {
        static const char none[] = "{\"rope_type\":\"default\"}";
        value = api_json_load(&p->request->arena, none, sizeof none - 1, 0, &error);
        if (!value)
            return api_fail_memory(p->problem);
    } else if (json_is_null(value)) {
        return !is_options || !is_about_positions(name, strlen(name)) ||
               pasted_fail(p, "%s is None, and what %.*s does then is not read here; write the value itself", name,
                           (int)(call->n < 60 ? call->n : 60), call->name);
    }
    call->settings[call->n_settings++] = (struct pasted_setting){name, value};
    return true;
}

static bool fail_keywords(struct pasting *p, const struct call *call)
{
    return pasted_fail(p, "what %.*s is called with cannot be read; write values themselves as keywords",
                       (int)(call->n < 60 ? call->n : 60), call->name);
}

/* **NAME is read where the script has the dict. */
static bool add_members(struct pasting *p, struct call *call, const json_t *object, size_t room)
{
    json_t *mutable = (json_t *)(uintptr_t)object;
    for (void *at = json_object_iter(mutable); at; at = json_object_iter_next(mutable, at)) {
        const char *name = json_object_iter_key(at);
        const json_t *value = json_object_iter_value(at);
        bool is_others = strncmp(name, "**", 2) == 0;
        if (is_others && json_is_object(value) && json_object_size(value) < room - call->n_settings) {
            if (!add_members(p, call, value, room))
                return false;
        } else if (is_others) {
            const char *text = json_is_string(value) ? json_string_value(value) : "";
            return pasted_fail(p, "%.*s is called with **%.60s, whose keywords are not known; write them themselves",
                               (int)(call->n < 60 ? call->n : 60), call->name, text + (*text == *PASTED_UNKNOWN));
        } else if (call->n_settings >= room - FIELDS_MAX) {
            return fail_keywords(p, call);
        } else if (!add_setting(p, call, name, value)) {
            return false;
        }
    }
    return true;
}

static bool read_keywords(struct pasting *p, const struct python *py, struct call *call)
{
    enum { OTHERS_MAX = 64 };
    struct api_json_error error = {.no_memory = false};
    p->json.n = 0;
    if (call->close)
        python_put_call(py, &p->json, call->open + 1, call->close);
    if (p->json.state)
        return pasted_done(p);
    call->keywords = call->close ? api_json_load(&p->request->arena, p->json.bytes, p->json.n, 0, &error) : NULL;
    if (!call->keywords)
        return error.no_memory ? api_fail_memory(p->problem) : fail_keywords(p, call);
    size_t room = json_object_size(call->keywords) + OTHERS_MAX + FIELDS_MAX;
    call->settings = api_arena_array(&p->request->arena, room, sizeof *call->settings);
    return call->settings ? add_members(p, call, call->keywords, room) : api_fail_memory(p->problem);
}

/* ---- Fields that a script sets ---- */

/* NAME.FIELD = value behind the call whose result is NAME, as deep in the script. */
static bool is_field(const struct call *call, const struct python_statement *s, char field[PASTED_FLAG_BYTES])
{
    const char *at = s->begin + call->n_target;
    size_t n = call->target && s->begin > call->name && s->indent == call->indent && s->equals > at &&
                       memcmp(s->begin, call->target, call->n_target) == 0 && *at == '.'
                   ? python_word(at + 1, s->equals)
                   : 0;
    snprintf(field, PASTED_FLAG_BYTES, "%.*s", (int)(n < 60 ? n : 60), at + 1);
    return n && n < 60 && python_blanks(at + 1 + n, s->equals) == s->equals && is_word_of(call->tool, field);
}

static bool add_field(struct pasting *p, const struct python *py, struct call *call, const struct python_statement *s,
                      const char *field)
{
    struct api_json_error error = {.no_memory = false};
    const char *name = api_arena_string(&p->request->arena, field, strlen(field));
    p->json.n = 0;
    python_put(py, &p->json, s->equals + 1, s->end);
    if (p->json.state || !name)
        return name ? pasted_done(p) : api_fail_memory(p->problem);
    const json_t *value = api_json_load(&p->request->arena, p->json.bytes, p->json.n, JSON_DECODE_ANY, &error);
    if (!value)
        return api_fail_memory(p->problem);
    return add_setting(p, call, name, value);
}

/* Does the statement, which is no such field, change what is about positions? */
static bool changes_positions(const struct python_statement *s)
{
    static const char *const calls[] = {"setattr(", ".update(", ".pop(", ".setdefault(", "__dict__", "del "};
    const char *name;
    size_t n, length = (size_t)((s->equals ? s->equals : s->end) - s->begin);
    bool changes = s->equals && !python_target(s, &name, &n);
    if (!s->equals)
        for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
            changes |= pasted_find(s->begin, length, calls[i]) != NULL;
    return changes && is_about_positions(s->begin, length);
}

static bool read_fields(struct pasting *p, const struct python *py, struct call *calls, size_t n_calls)
{
    struct python_statement s;
    char field[PASTED_FLAG_BYTES];
    for (const char *at = py->whole; python_statement(&at, &s);) {
        size_t i = 0;
        bool is_inside = false; /* of a call: its keywords */
        for (size_t k = 0; k < n_calls; k++)
            is_inside |= s.begin <= calls[k].name && calls[k].name < s.end;
        while (i < n_calls && !is_field(&calls[i], &s, field))
            i++;
        if (i < n_calls && calls[i].n_fields++ == FIELDS_MAX)
            return pasted_fail(p, "the script sets more than %d fields of what a call returns", FIELDS_MAX);
        if (i < n_calls) {
            if (!add_field(p, py, &calls[i], &s, field))
                return false;
        } else if (!is_inside && changes_positions(&s)) {
            size_t n = (size_t)((s.equals ? s.equals : s.end) - s.begin);
            n = n && s.begin[n - 1] == ' ' ? n - 1 : n;
            n = strcspn(s.begin, "\r\n") < n ? strcspn(s.begin, "\r\n") : n;
            return pasted_fail(p,
                               "the script changes %.*s, which is about positions and is not read here; write it as "
                               "a keyword of the call",
                               (int)(n < 80 ? n : 80), s.begin);
        }
    }
    return true;
}

/* ---- Several ---- */

/* "LLM {"model":…}", with what is about positions. */
static bool put_meaning(struct pasting *p, const struct call *call, char **meaning)
{
    struct api_text text;
    api_text_init(&text, 4 * PASTED_MAX);
    api_text_add(&text, call->name, call->n);
    for (size_t i = 0; i < call->n_settings; i++) {
        const struct pasted_setting *s = &call->settings[i];
        if (!is_model(call->tool, s->name) && !is_word_of(call->tool, s->name))
            continue;
        char *json = api_json_text(s->value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS);
        api_text_format(&text, " %s=%s", is_model(call->tool, s->name) ? "model" : s->name, json ? json : "");
        free(json);
    }
    *meaning = text.state ? NULL : api_arena_string(&p->request->arena, text.bytes, text.n);
    api_text_drop(&text);
    return *meaning || api_fail_memory(p->problem);
}

static const json_t *given(const struct call *call, const char *name)
{
    for (size_t i = 0; i < call->n_settings; i++)
        if (strcmp(call->settings[i].name, name) == 0)
            return call->settings[i].value;
    return NULL;
}

/* Is the call given what the other returns, and states nothing else? */
static bool takes_config(const struct call *call, const struct call *other)
{
    const json_t *config = given(call, "config"), *model = given(call, "model"), *before = given(other, "model");
    const char *word = json_is_string(config) ? json_string_value(config) : NULL;
    if (!word && json_is_string(model) && *json_string_value(model) == *PASTED_UNKNOWN) /* from_config(config) */
        word = json_string_value(model);
    bool is = word && other->target && *word == *PASTED_UNKNOWN && pasted_is(other->target, other->n_target, word + 1);
    for (size_t i = 0; is && i < call->n_settings; i++)
        is = !is_word_of(call->tool, call->settings[i].name);
    return is && pasted_is_kin(call->tool, other->tool) && (!config || !model || !before || json_equal(model, before));
}

/* The call that counts. */
static const struct call *choose(struct pasting *p, const struct call *calls, size_t n)
{
    const struct call *chosen = &calls[0];
    char *first, *second;
    for (size_t i = 1; i < n; i++) {
        if (takes_config(&calls[i], chosen))
            continue;
        if (!put_meaning(p, chosen, &first) || !put_meaning(p, &calls[i], &second))
            return NULL;
        if (strcmp(first + chosen->n, second + calls[i].n) != 0 || !pasted_is_kin(chosen->tool, calls[i].tool)) {
            pasted_fail(p, "two calls contradict each other: %.160s and %.160s; paste one of them", first, second);
            return NULL;
        }
    }
    const json_t *config = chosen->tool->form == PE_TARGET_JSON ? given(chosen, "config") : NULL;
    const char *word = json_is_string(config) ? json_string_value(config) : NULL;
    if (word)
        pasted_fail(p, "%.*s is given the config %.60s, which is not read here; paste the call that returns it",
                    (int)(chosen->n < 60 ? chosen->n : 60), chosen->name, word + (*word == *PASTED_UNKNOWN));
    return word ? NULL : chosen;
}

bool pasted_call_read(struct pasting *p)
{
    unsigned n_left = LOOKED_UP_MAX;
    const struct python py = {p, p->text, &n_left};
    struct call *calls = api_arena_array(&p->request->arena, CALLS_MAX, sizeof *calls);
    const char *at = p->text;
    size_t n = 0;
    if (!calls)
        return api_fail_memory(p->problem);
    for (; n < CALLS_MAX && (calls[n] = next_call(p->text, &at)).tool; n++) {
        find_target(p->text, &calls[n]);
        if (!read_keywords(p, &py, &calls[n]))
            return false;
    }
    if (n == CALLS_MAX && next_call(p->text, &at).tool)
        return pasted_fail(p, "the text has more than %d calls; paste one of them", CALLS_MAX);
    if (!read_fields(p, &py, calls, n))
        return false;
    const struct call *call = choose(p, calls, n);
    return call && pasted_settings_read(p, call->tool, call->settings, call->n_settings);
}
