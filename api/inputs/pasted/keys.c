/* Keys of a GGUF file as a text shows them: which count, and a printed value as JSON. */
#include "api/inputs/pasted/pasted.h"

#include <stdio.h>

/* ---- Which count ---- */

/* Keys about tokens, files and quantisation come before the model's own, and have names of these beginnings. */
bool pasted_key_counts(const char *name, size_t n)
{
    static const char *const others[] = {"tokenizer.", "general.", "quantize.", "split.", "imatrix.", "GGUF."};
    if (pasted_is(name, n, "general.architecture") || pasted_is(name, n, "general.name"))
        return true;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (n > strlen(others[i]) && memcmp(name, others[i], strlen(others[i])) == 0)
            return false;
    return memchr(name, '.', n) != NULL;
}

/* Without its value a key about positions is unread; the others do not matter. */
static bool is_about_positions(const char *name)
{
    static const char *const endings[] = {"context_length",
                                          "embedding_length",
                                          "block_count",
                                          "attention.head_count",
                                          "attention.key_length",
                                          "attention.key_length_swa",
                                          "attention.key_length_mla",
                                          "attention.sliding_window",
                                          "attention.sliding_window_pattern",
                                          "attention.compress_ratios",
                                          "architecture"};
    const char *dot = strchr(name, '.');
    if (!dot)
        return false;
    if (strncmp(dot + 1, "rope.", 5) == 0)
        return true;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (strcmp(dot + 1, endings[i]) == 0)
            return true;
    return false;
}

/* ---- Values ---- */

/* Has the printer left out the end? Both tools write three points, or one character of three. */
static bool is_cut(const char *value, size_t n)
{
    for (size_t i = 0; i + 2 < n; i++)
        if (memcmp(value + i, "...", 3) == 0 || memcmp(value + i, "\xe2\x80\xa6", 3) == 0)
            return true;
    return false;
}

static bool put_scalar(struct api_text *json, char kind, const char *value, size_t n)
{
    bool is_true = pasted_is(value, n, "true") || pasted_is(value, n, "True");
    bool is_false = pasted_is(value, n, "false") || pasted_is(value, n, "False");
    if (kind == 's') {
        api_text_string_n(json, value, n);
        return true;
    }
    if (kind == 'b' && (is_true || is_false))
        api_text_put(json, is_true ? "true" : "false");
    else if (kind != 'b' && api_is_json_number(value, n))
        api_text_add(json, value, n);
    else
        return false;
    return true;
}

static size_t blanks(const char *text, size_t n)
{
    size_t at = 0;
    while (at < n && strchr(" \t\r", text[at]))
        at++;
    return at;
}

/* [1, 2, 3]; of words in quotes none is about positions. */
static bool put_list(struct api_text *json, char kind, const char *value, size_t n)
{
    if (n < 2 || value[0] != '[' || value[n - 1] != ']' || kind == 's')
        return false;
    api_text_put(json, "[");
    for (size_t at = 1; at < n - 1;) {
        at += blanks(value + at, n - 1 - at);
        size_t end = at;
        while (end < n - 1 && value[end] != ',')
            end++;
        size_t length = end - at;
        while (length > 0 && strchr(" \t", value[at + length - 1]))
            length--;
        if (length == 0 && at >= n - 1)
            break;
        api_text_name(json, NULL);
        if (!put_scalar(json, kind, value + at, length))
            return false;
        at = end + 1;
    }
    api_text_put(json, "]");
    return true;
}

/* s, b, or n of a type as llama.cpp or gguf-dump names it; is_list: an array of them. */
static char kind_of(const char *type, size_t n, bool *is_list)
{
    static const char *const words[] = {"str", "STRING", "bool", "BOOL"};
    *is_list = n > 4 && (memcmp(type, "arr[", 4) == 0 || *type == '[');
    const char *inner = *is_list ? strchr(type, '[') + 1 : type;
    for (size_t i = 0; i < 4; i++)
        if (n >= strlen(words[i]) && strncmp(inner, words[i], strlen(words[i])) == 0)
            return i < 2 ? 's' : 'b';
    return 'n';
}

/* Its JSON in the arena; *json NULL: the text does not have it. False: no memory. */
static bool read_value(struct pasting *p, const char *type, size_t n_type, const char *value, size_t n,
                       const char **json)
{
    struct api_text text;
    bool is_list;
    char kind = kind_of(type, n_type, &is_list);
    *json = NULL;
    if (!value || is_cut(value, n))
        return true;
    api_text_init(&text, PASTED_MAX);
    bool is_read = is_list ? put_list(&text, kind, value, n) : put_scalar(&text, kind, value, n);
    bool fine = text.state == API_TEXT_FINE;
    if (fine && is_read)
        fine = (*json = api_arena_string(&p->request->arena, text.bytes ? text.bytes : "", text.n)) != NULL;
    api_text_drop(&text);
    return fine || api_fail_memory(p->problem);
}

/* ---- Keys ---- */

static struct pasted_key *find_key(struct pasted_keys *keys, const char *name, size_t n)
{
    for (size_t i = 0; i < keys->n; i++)
        if (pasted_is(name, n, keys->at[i].name))
            return &keys->at[i];
    return NULL;
}

const char *pasted_key_find(const struct pasted_keys *keys, const char *name)
{
    for (size_t i = 0; i < keys->n; i++)
        if (strcmp(keys->at[i].name, name) == 0)
            return keys->at[i].json;
    return NULL;
}

bool pasted_key_add(struct pasting *p, struct pasted_keys *keys, const char *name, size_t n_name, const char *type,
                    size_t n_type, const char *value, size_t n)
{
    const char *json;
    struct pasted_key *key = find_key(keys, name, n_name);
    if (!pasted_key_counts(name, n_name) || (!key && keys->n == PASTED_KEYS_MAX))
        return true;
    if (!read_value(p, type, n_type, value, n, &json))
        return false;
    if (key && key->json && json && strcmp(key->json, json) != 0)
        return pasted_fail(p, "the text has %s twice: as %.40s and as %.40s; paste one of them", key->name, key->json,
                           json);
    if (key) {
        key->json = key->json ? key->json : json;
        return true;
    }
    const char *copy = api_arena_string(&p->request->arena, name, n_name);
    if (!copy)
        return api_fail_memory(p->problem);
    keys->at[keys->n++] = (struct pasted_key){copy, json};
    return true;
}

bool pasted_key_replace(struct pasting *p, struct pasted_keys *keys, const char *name, const char *type,
                        const char *value)
{
    struct pasted_key *key = find_key(keys, name, strlen(name));
    if (!key)
        return pasted_key_add(p, keys, name, strlen(name), type, strlen(type), value, strlen(value));
    return read_value(p, type, strlen(type), value, strlen(value), &key->json);
}

void pasted_key_tensor(struct pasted_keys *keys, const char *name, size_t n)
{
    if (n > 6 && memcmp(name, "blk.0.", 6) == 0) {
        name += 6;
        n -= 6;
    }
    keys->has_freqs |= pasted_is(name, n, "rope_freqs.weight");
    keys->has_long |= pasted_is(name, n, "rope_factors_long.weight");
    keys->has_short |= pasted_is(name, n, "rope_factors_short.weight");
}

/* One that is not used beside another does not matter. */
static bool is_needed(const struct pasted_keys *keys, const char *name)
{
    const char *dot = strchr(name, '.');
    if (!dot || strcmp(dot + 1, "attention.head_count") != 0)
        return true;
    for (size_t i = 0; i < keys->n; i++) {
        const char *other = strchr(keys->at[i].name, '.');
        if (other && strcmp(other + 1, "attention.key_length") == 0 && keys->at[i].json)
            return false;
    }
    return true;
}

bool pasted_keys_put(struct pasting *p, const struct pasted_keys *keys)
{
    p->kind = PASTED_KEYS;
    const char *architecture = pasted_key_find(keys, "general.architecture");
    if (!architecture)
        return pasted_fail(p, "the text has no general.architecture, which defines the meaning of a file's keys; paste "
                              "the lines from the first key on");
    api_text_put(&p->json, "{\"general.architecture\":");
    api_text_put(&p->json, architecture);
    for (size_t i = 0; i < keys->n; i++) {
        const struct pasted_key *key = &keys->at[i];
        bool is_unread = !key->json && is_about_positions(key->name) && is_needed(keys, key->name);
        if (is_unread && !pasted_name(p, &p->unread, key->name, strlen(key->name)))
            return false;
        if (!key->json || strcmp(key->name, "general.architecture") == 0)
            continue;
        api_text_name(&p->json, key->name);
        api_text_put(&p->json, key->json);
    }
    static const char *const names[] = {"rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight"};
    const bool has[] = {keys->has_freqs, keys->has_long, keys->has_short};
    size_t n = 0;
    for (size_t i = 0; i < 3; i++)
        if (has[i])
            api_text_format(&p->json, "%s\"%s\":null", n++ ? "," : ",\"tensors\":{", names[i]);
    api_text_put(&p->json, n ? "}" : "");
    api_text_put(&p->json, "}");
    return pasted_done(p);
}
