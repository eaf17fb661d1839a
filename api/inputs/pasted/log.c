/* What llama.cpp writes while it loads a file, and ollama after it:
 *
 *     llama_model_loader: - kv  12:                       llama.rope.freq_base f32              = 500000.000000
 *     print_info: freq_base_train  = 500000.0             (before 2025: llm_load_print_meta)
 *
 *     llama_context: freq_scale    = 0.25                 (before 2025: llama_new_context_with_model)
 *
 * Whatever is in front of these words (a time, a level, a unit's name) is passed by. Keys count before what
 * print_info shows of them, which is rounded, but the context shows what flags have changed. Of several files in one
 * log the last is read that is a language model, and the others are named in `skipped`. */
#include "api/inputs/pasted/pasted.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const char key_mark[] = "- kv ", *const info_marks[] = {"print_info: ", "llm_load_print_meta: ",
                                                               "llama_context: ", "llama_new_context_with_model: "};
enum { N_MARKS = sizeof info_marks / sizeof *info_marks };

/* ---- Lines ---- */

/* Behind "- kv  12:"; NULL: it is no such line. */
static const char *key_of(const char *line, size_t n, long *index)
{
    const char *at = pasted_find(line, n, key_mark), *end = line + n;
    if (!at)
        return NULL;
    at += strlen(key_mark);
    while (at < end && *at == ' ')
        at++;
    *index = 0;
    const char *digits = at;
    while (at < end && *at >= '0' && *at <= '9' && at - digits < 6)
        *index = 10 * *index + (*at++ - '0');
    return at > digits && at < end && *at == ':' ? at + 1 : NULL;
}

static const char *info_of(const char *line, size_t n)
{
    for (size_t i = 0; i < N_MARKS; i++) {
        const char *at = pasted_find(line, n, info_marks[i]);
        if (at)
            return at + strlen(info_marks[i]);
    }
    return NULL;
}

bool pasted_log_looks_so(const char *text)
{
    const char *line;
    size_t n;
    long index;
    while (pasted_line(&text, &line, &n))
        if (key_of(line, n, &index) || info_of(line, n))
            return true;
    return false;
}

/* The next word of a line. */
static const char *word(const char **at, const char *end, size_t *n)
{
    while (*at < end && strchr(" \t", **at))
        ++*at;
    const char *begin = *at;
    while (*at < end && !strchr(" \t", **at))
        ++*at;
    *n = (size_t)(*at - begin);
    return begin;
}

/* "KEY TYPE = VALUE". is_open: the text ends with the line, maybe inside of a word; llama.cpp prints six decimals. */
static bool read_key(struct pasting *p, struct pasted_keys *keys, const char *at, const char *end, bool is_open)
{
    size_t n_name, n_type;
    const char *name = word(&at, end, &n_name), *type = word(&at, end, &n_type);
    while (at < end && strchr(" \t", *at))
        at++;
    const char *value = at < end && *at == '=' ? at + 1 : NULL;
    while (value && value < end && *value == ' ')
        value++;
    const char *point = value ? memchr(value, '.', (size_t)(end - value)) : NULL;
    if (is_open && n_name && !n_type && pasted_key_counts(name, n_name))
        return pasted_fail(p, "the text ends inside of the key %.*s; paste the line whole",
                           (int)(n_name < 80 ? n_name : 80), name);
    if (!n_name || !n_type)
        return true;
    if (is_open && *type == 'f' && (!point || end - point < 7))
        value = NULL;
    return pasted_key_add(p, keys, name, n_name, type, n_type, value, value ? (size_t)(end - value) : 0);
}

/* ---- print_info ---- */

struct info {
    const char *name, *key; /* key behind the architecture */
    enum { INTEGER, REAL, WORD, LIST, COUNT, FACTOR, YES, OF_CONTEXT } is;
};

/* COUNT: an integer, 0 is none. FACTOR: its inverse. OF_CONTEXT: what the program computes with, flags and all. */
static const struct info infos[] = {
    {"n_ctx_train", "context_length", INTEGER},
    {"n_embd", "embedding_length", INTEGER},
    {"n_layer", "block_count", INTEGER},
    {"n_head", "attention.head_count", LIST},
    {"n_rot", "rope.dimension_count", COUNT},
    {"n_embd_head_k", "attention.key_length", COUNT},
    {"n_embd_head_k_swa", "attention.key_length_swa", COUNT},
    {"n_rot_swa", "rope.dimension_count_swa", COUNT},
    {"n_swa", "attention.sliding_window", COUNT},
    {"rope scaling", "rope.scaling.type", WORD},
    {"freq_base_train", "rope.freq_base", REAL},
    {"freq_base_swa", "rope.freq_base_swa", REAL},
    {"freq_scale_train", "rope.scaling.factor", FACTOR},
    {"n_ctx_orig_yarn", "rope.scaling.original_context_length", INTEGER},
    {"n_yarn_orig_ctx", "rope.scaling.original_context_length", INTEGER},
    {"rope_finetuned", "rope.scaling.finetuned", YES},
    {"mrope sections", "rope.dimension_sections", LIST},
    {"f_max_alibi_bias", "attention.max_alibi_bias", REAL},
    {"freq_base", "rope.freq_base", OF_CONTEXT},
    {"freq_scale", "rope.scaling.factor", OF_CONTEXT},
};
enum { N_INFOS = sizeof infos / sizeof *infos };

struct shown {
    const char *at[N_INFOS]; /* values; NULL: not there */
    size_t n[N_INFOS];
    const char *architecture;
    size_t n_architecture;
};

/* is_open: as of a key; a base has one decimal. */
static bool take_info(struct pasting *p, struct shown *shown, const char *at, const char *end, bool is_open)
{
    const char *equals = memchr(at, '=', (size_t)(end - at));
    size_t n = equals ? (size_t)(equals - at) : 0;
    while (n > 0 && at[n - 1] == ' ')
        n--;
    const char *value = equals ? equals + 1 : end;
    while (value < end && *value == ' ')
        value++;
    if (pasted_is(at, n, "arch") && !shown->architecture) {
        shown->architecture = value;
        shown->n_architecture = (size_t)(end - value);
    }
    for (size_t i = 0; i < N_INFOS; i++)
        if (pasted_is(at, n, infos[i].name) && !shown->at[i]) {
            if (is_open && infos[i].is == REAL && (end - value < 2 || end[-2] != '.'))
                return pasted_name(p, &p->unread, infos[i].name, strlen(infos[i].name));
            shown->at[i] = value;
            shown->n[i] = (size_t)(end - value);
        }
    return equals != NULL;
}

/* 1/0.025 is 40: the log has six digits of it. */
static double inverse(double scale)
{
    double factor = 1 / scale, whole = round(factor);
    return fabs(factor - whole) <= 1e-4 * factor ? whole : factor;
}

static bool add_info(struct pasting *p, struct pasted_keys *keys, const char *architecture, size_t n_architecture,
                     const struct info *info, const char *value, size_t n)
{
    static const char *const types[] = {[INTEGER] = "u32", [REAL] = "f32",   [WORD] = "str", [LIST] = "arr[i32]",
                                        [COUNT] = "u32",   [FACTOR] = "f32", [YES] = "bool"};
    char name[160], number[40] = "";
    const char *type = types[info->is];
    int n_name = snprintf(name, sizeof name, "%.*s.%s", (int)n_architecture, architecture, info->key);
    for (size_t i = 0; i < keys->n; i++)
        if (strcmp(keys->at[i].name, name) == 0 && keys->at[i].json)
            return true;
    if (info->is == FACTOR || info->is == COUNT || info->is == REAL)
        snprintf(number, sizeof number, "%.*s", (int)(n < 39 ? n : 39), value);
    double x = *number ? strtod(number, NULL) : 0;
    if ((info->is == COUNT && x == 0) || (info->is == FACTOR && (!(x > 0) || x == 1)) || (info->is == REAL && x == 0) ||
        (info->is == WORD && pasted_is(value, n, "unknown")))
        return true;
    if (info->is == FACTOR) {
        n = (size_t)snprintf(number, sizeof number, "%.9g", inverse(x));
        value = number;
    }
    if (info->is == LIST && *value != '[')
        type = "u32";
    if (info->is == YES) {
        bool is_yes = pasted_is(value, n, "yes");
        if (!is_yes && !pasted_is(value, n, "no"))
            return true;
        value = is_yes ? "true" : "false";
        n = strlen(value);
    }
    return pasted_key_add(p, keys, name, (size_t)n_name, type, strlen(type), value, n);
}

/* The original length is printed of every model, and counts for two rules. */
static bool counts(const struct shown *shown, size_t i)
{
    size_t type = 0;
    while (strcmp(infos[type].key, "rope.scaling.type") != 0)
        type++;
    return strcmp(infos[i].key, "rope.scaling.original_context_length") != 0 || !shown->at[type] ||
           pasted_is(shown->at[type], shown->n[type], "yarn") || pasted_is(shown->at[type], shown->n[type], "longrope");
}

/* A number of the context that is not the file's: flags have replaced it. Whether another factor is linear or yarn's
 * does not show; without a factor there is no scaling. */
static bool add_context(struct pasting *p, struct pasted_keys *keys, const char *architecture, const struct info *info,
                        const char *value, size_t n)
{
    char name[160], number[40];
    bool is_base = strcmp(info->key, "rope.freq_base") == 0;
    snprintf(name, sizeof name, "%s.%s", architecture, info->key);
    const char *stated = pasted_key_find(keys, name);
    double x = strtod(value, NULL), of_file = stated ? strtod(stated, NULL) : is_base ? 10000 : 1;
    x = is_base || !(x > 0) ? x : inverse(x);
    if (!(x > 0) || fabs(x - of_file) <= 1e-4 * of_file)
        return true;
    if (!is_base && x != 1)
        return pasted_fail(p,
                           "the file has %s %.10g and the context freq_scale %.*s: flags have changed it, and the text "
                           "does not show whether it is linear or yarn; give the flags as said beside gguf",
                           name, of_file, (int)(n < 20 ? n : 20), value);
    snprintf(number, sizeof number, is_base ? "%.10g" : "none", x);
    if (!is_base)
        snprintf(name, sizeof name, "%s.rope.scaling.type", architecture);
    return pasted_key_replace(p, keys, name, is_base ? "f32" : "str", number);
}

static bool add_shown(struct pasting *p, struct pasted_keys *keys, const struct shown *shown)
{
    char architecture[80];
    const char *stated = pasted_key_find(keys, "general.architecture");
    if (!stated && !shown->architecture)
        return true;
    if (!stated &&
        !pasted_key_add(p, keys, "general.architecture", 20, "str", 3, shown->architecture, shown->n_architecture))
        return false;
    stated = pasted_key_find(keys, "general.architecture"); /* in quotes */
    size_t n = stated ? strlen(stated) : 0;
    if (n < 3 || n - 2 >= sizeof architecture)
        return true;
    memcpy(architecture, stated + 1, n - 2);
    architecture[n - 2] = '\0';
    for (size_t i = 0; i < N_INFOS; i++)
        if (shown->at[i] && infos[i].is != OF_CONTEXT && counts(shown, i) &&
            !add_info(p, keys, architecture, n - 2, &infos[i], shown->at[i], shown->n[i]))
            return false;
    for (size_t i = 0; i < N_INFOS; i++)
        if (shown->at[i] && infos[i].is == OF_CONTEXT &&
            !add_context(p, keys, architecture, &infos[i], shown->at[i], shown->n[i]))
            return false;
    return true;
}

/* ---- The whole ---- */

/* What a log shows of one file: the one that is being read, and the language model before it. */
struct load {
    struct pasted_keys keys;
    struct shown shown;
};

static bool is_language_model(const struct load *load)
{
    const char *architecture = pasted_key_find(&load->keys, "general.architecture");
    return architecture ? strcmp(architecture, "\"clip\"") != 0 : load->keys.n || load->shown.architecture;
}

/* A file before the one that counts is named, unless it is a vision tower. */
static bool pass_by(struct pasting *p, const struct load *load)
{
    const char *name = pasted_key_find(&load->keys, "general.name"),
               *architecture = pasted_key_find(&load->keys, "general.architecture");
    char line[2 * PASTED_WORD_BYTES];
    snprintf(line, sizeof line, "general.architecture %.30s, general.name %.40s", architecture ? architecture : "-",
             name ? name : "-");
    return !is_language_model(load) || pasted_name(p, &p->skipped, line, strlen(line));
}

static bool read_line(struct pasting *p, struct load loads[2], const char *line, size_t n, bool is_open)
{
    long index;
    const char *key = key_of(line, n, &index), *info = key ? NULL : info_of(line, n), *end = line + n;
    const char *tensor = key || info ? NULL : pasted_find(line, n, "- tensor ");
    struct load *now = &loads[0];
    if (key && index == 0 && now->keys.n) {
        if (is_language_model(now) && !pass_by(p, &loads[1]))
            return false;
        if (is_language_model(now))
            loads[1] = *now;
        *now = (struct load){.keys = {.n = 0}};
    }
    if (key)
        return read_key(p, &now->keys, key, end, is_open);
    for (const char *at = tensor; at && at < end;) {
        size_t n_word;
        const char *name = word(&at, end, &n_word);
        pasted_key_tensor(&now->keys, name, n_word);
    }
    bool is_read = tensor || (info && take_info(p, &now->shown, info, end, is_open));
    return is_read || pasted_skip(p, line, n);
}

bool pasted_log_read(struct pasting *p)
{
    struct load *loads = api_arena_array(&p->request->arena, 2, sizeof *loads);
    const char *text = p->text, *line;
    size_t n;
    if (!loads)
        return api_fail_memory(p->problem);
    loads[0] = loads[1] = (struct load){.keys = {.n = 0}};
    while (pasted_line(&text, &line, &n))
        if (!read_line(p, loads, line, n, !*text && text[-1] != '\n'))
            return false;
    bool is_first = is_language_model(&loads[0]) || !loads[1].keys.n;
    struct load *last = &loads[is_first ? 0 : 1];
    return (!is_first || pass_by(p, &loads[1])) && add_shown(p, &last->keys, &last->shown) &&
           pasted_keys_put(p, &last->keys);
}
