/* A command of a server or trainer, or a script that has one: which tool it is, which model it names, and its flags. A
 * call of Python, and a file of settings, have the same words. The rows of the programs: core/tools/tools. */
#include "api/inputs/pasted/pasted.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

/* ---- The model ---- */

static bool find_model(struct pasting *p, const struct pe_command *command, const struct pasted_words *words)
{
    pasted_find_model(p, command, words);
    const struct pe_preset *a = p->other_model ? pe_preset_named(p->model) : NULL;
    return !p->other_model || strcmp(p->other_model, p->model) == 0 || (a && a == pe_preset_named(p->other_model)) ||
           pasted_fail(p, "the command names two models: %.80s and %.80s; give one", p->model, p->other_model);
}

/* ---- What is about positions and not read ---- */

/* Beginnings of words; an answer without them would be one about another command. */
static const char unread[] = "--hf-overrides.*|--hf_overrides.*|--json-model-override-args.*|--ropeconfig*|"
                             "LLAMA_ARG_ROPE_*|LLAMA_ARG_YARN_*|--rope_scaling_type*|--hf-config-path*|"
                             "--hf_config_path*|--grp-attn-*|-gan|-gaw|--multi-latent-attention*";

static bool is_unread(const struct pasted_words *words, size_t i)
{
    const char *word = words->at[i].text, *next = i + 1 < words->n ? words->at[i + 1].text : "";
    bool is = strncmp(word, "--override-kv", 13) == 0 && (strstr(word, ".rope.") || strstr(next, ".rope."));
    return is || pasted_is_among(unread, word, strlen(word));
}

static bool fail_unread(struct pasting *p, const char *word)
{
    return pasted_fail(p,
                       "%.60s changes positions and is not read here; write what it sets as flags that are read, or "
                       "give the config.json or the keys of the file with it",
                       word);
}

/* Signs of word processors that are no hyphens and no blanks: a flag with one is a word of another kind. */
static unsigned odd_sign(const char *word)
{
    for (const char *c = word; *c && (*word != '-' || *c != '='); c++) {
        unsigned a = (unsigned char)c[0], b = (unsigned char)c[1], d = b ? (unsigned char)c[2] : 0;
        unsigned code = a == 0xc2 && b == 0xa0 ? 0xa0
                        : (a & 0xf0) == 0xe0   ? (a & 15) << 12 | (b & 63) << 6 | (d & 63)
                                               : 0;
        bool is_dash = (code >= 0x2010 && code <= 0x2015) || code == 0x2212 || code == 0xfe58 || code == 0xff0d;
        bool is_blank = code == 0xa0 || code == 0x202f || code == 0x200b || code == 0x3000 || code == 0xfeff;
        const char *after = c + (code == 0xa0 ? 2 : 3);
        bool is_flag = *word == '-' || c == word;
        if ((is_dash && is_flag && *after && *after != ' ') || (is_blank && (is_flag || *after == '-')))
            return code;
    }
    return 0;
}

static bool check_unread(struct pasting *p, const struct pasted_words *words)
{
    for (size_t i = 0; i < words->n; i++) {
        unsigned sign = odd_sign(words->at[i].text);
        if (sign)
            return pasted_fail(p,
                               "%.60s has the sign U+%04X, which is no hyphen and no blank to a shell; write \"-\" or "
                               "a blank",
                               words->at[i].text, sign);
        if (is_unread(words, i))
            return fail_unread(p, words->at[i].text);
    }
    return true;
}

/* llama.cpp reads variables that a line before sets, or a file. */
static bool check_set(struct pasting *p, const struct pe_target_info *tool, const struct pasted_words *words)
{
    for (size_t i = 0; i < words->n && strcmp(tool->name, "llama.cpp") == 0; i++)
        if (pasted_is_among("LLAMA_ARG_ROPE_*|LLAMA_ARG_YARN_*", words->at[i].text, strlen(words->at[i].text)))
            return fail_unread(p, words->at[i].text);
    return true;
}

/* Programs whose flags about positions are known, but not which numbers every version computes with them. */
static const struct {
    const char *programs, *sentence;
} others[] = {
    /* text-generation-inference 00dc371, docs/source/basic_tutorials/launcher.md; 0666316, layers/rotary.py */
    {"text-generation-launcher|text-generation-inference*",
     "text-generation-inference replaces the config's rope_scaling by the type of --rope-scaling and the factor of "
     "--rope-factor, and not every version computes linear; give the config.json with them as hf_config (read are "
     "commands of vllm, sglang, llama.cpp and Megatron-LM)"},
    {"koboldcpp*",
     "KoboldCpp's --ropeconfig states a frequency scale and a base, which are not read here; write them as "
     "llama-server's --rope-freq-scale and --rope-freq-base (read are commands of vllm, sglang, llama.cpp "
     "and Megatron-LM)"},
    /* lmdeploy 00948ee, lmdeploy/cli/utils.py; test_converter.py, of update_from_engine_config */
    {"lmdeploy|lmdeploy.*",
     "LMDeploy's TurboMind replaces the config's rope_scaling by the rule dynamic with the factor of "
     "--rope-scaling-factor; give the config.json with it as hf_config (read are commands of vllm, sglang, llama.cpp "
     "and Megatron-LM)"},
};

static bool check_others(struct pasting *p, const struct pasted_words *words)
{
    for (size_t i = 0; i < words->n; i++) {
        size_t n;
        const char *name = pasted_program(words->at[i].text, &n);
        for (size_t k = 0; n && k < sizeof others / sizeof *others; k++)
            if (pasted_is_among(others[k].programs, name, n))
                return api_fail(p->problem, 422, p->pointer, "%s", pe_text(others[k].sentence));
    }
    return true;
}

/* ---- The readers ---- */

bool pasted_command_choose(struct pasting *p, const struct pe_target_info *target, struct pasted_words *words)
{
    bool is_found;
    return check_set(p, target, words) && pasted_choose(p, target, words, &is_found) &&
           (!is_found || check_unread(p, words)) && find_model(p, &target->command, words);
}

static bool fail_tools(struct pasting *p)
{
    return pasted_fail(p, "the flags of this command are not known; known are those of vllm, sglang, llama.cpp "
                          "(llama-server, llama-cli, ...) and Megatron-LM");
}

static bool read_words(struct pasting *p, const struct pe_target_info *tool, const struct pasted_words *words)
{
    const struct pe_target_info *target = pasted_version(tool, words->at, words->n);
    p->kind = PASTED_WORDS;
    p->tool = target->name;
    return find_model(p, &target->command, words) && check_unread(p, words) &&
           pasted_flags_put(p, target, words->at, words->n);
}

/* "--name=value". An expression whose value is not known counts as what a shell would put there; it may be inside. */
static bool add_setting(struct pasting *p, struct pasted_words *words, const struct pasted_setting *setting)
{
    struct api_text word;
    const json_t *value = setting->value;
    char *json = json_is_string(value) ? NULL : api_json_text(value, JSON_ENCODE_ANY | JSON_COMPACT);
    const char *text = json_is_string(value) ? json_string_value(value) : json;
    bool is_whole = json_is_string(value) && *text == *PASTED_UNKNOWN;
    bool is_unknown = is_whole || (json && (strstr(json, "\\u0001") || strstr(json, "\"**")));
    text += is_whole;
    for (char *mark = json; is_unknown && mark && (mark = strstr(mark, "\\u0001"));)
        memmove(mark, mark + 6, strlen(mark + 6) + 1);
    api_text_init(&word, 4 * PASTED_MAX);
    api_text_format(&word, "--%s=", setting->name);
    api_text_put(&word, text ? text : "");
    text = text && !word.state ? api_arena_string(&p->request->arena, word.bytes, word.n) : NULL;
    words->at[words->n++] = (struct pasted_word){.text = text, .is_unknown = is_unknown};
    api_text_drop(&word);
    free(json);
    return text || api_fail_memory(p->problem);
}

/* Settings of a server have the names of its flags: one with a dash, or overrides of a config. */
bool pasted_is_setting(const char *name, size_t n)
{
    char flag[64];
    snprintf(flag, sizeof flag, "--%.*s", (int)(n < 60 ? n : 60), name);
    for (size_t i = 0; i < pe_n_targets(); i++) {
        const struct pe_target_info *target = pe_target_at(i);
        const struct pe_param *row = target->command.programs ? pasted_flag_of(target, flag) : NULL;
        bool is_outer = row && target->outer && strcmp(row->name, target->outer) == 0;
        if (is_outer || (row && strchr(flag + 2, '-')))
            return true;
    }
    return false;
}

bool pasted_has_settings(const char *text)
{
    const char *line;
    size_t n;
    while (pasted_line(&text, &line, &n))
        if (pasted_is_setting(line, pasted_name_in(line, n)))
            return true;
    return false;
}

const struct pe_target_info *pasted_tool_of_call(const char *name, size_t n)
{
    for (size_t i = 0; i < pe_n_targets(); i++)
        if (pe_target_at(i)->command.calls && pasted_is_among(pe_target_at(i)->command.calls, name, n))
            return pe_target_at(i);
    return NULL;
}

struct pasted_setting *pasted_settings_of(struct pasting *p, const json_t *object, size_t *n)
{
    json_t *mutable = (json_t *)(uintptr_t)object;
    struct pasted_setting *settings =
        api_arena_array(&p->request->arena, json_object_size(object) + 1, sizeof *settings);
    *n = 0;
    for (void *at = json_object_iter(mutable); at && settings; at = json_object_iter_next(mutable, at))
        if (!json_is_null(json_object_iter_value(at)))
            settings[(*n)++] = (struct pasted_setting){json_object_iter_key(at), json_object_iter_value(at)};
    return settings;
}

bool pasted_settings_read(struct pasting *p, const struct pe_target_info *tool, const struct pasted_setting *settings,
                          size_t n)
{
    struct pasted_words words = {.n = 0};
    words.at = settings ? api_arena_array(&p->request->arena, n + 1, sizeof *words.at) : NULL;
    if (!words.at)
        return api_fail_memory(p->problem);
    for (size_t i = 0; i < n; i++)
        if (!add_setting(p, &words, &settings[i]))
            return false;
    p->json.n = 0;
    tool = tool ? tool : pasted_tool_of_flags(words.at, words.n);
    return tool ? read_words(p, tool, &words) : fail_tools(p);
}

/* A tool's name begins the line, or is in front of what only a command has. */
static bool names_tool(const char *line, size_t n)
{
    bool is_command = pasted_find(line, n, " -m ") || pasted_find(line, n, " serve ") || pasted_find(line, n, " -hf ");
    for (size_t at = 0; at < n && (at == 0 || is_command);) {
        char word[120];
        size_t length = 0;
        while (at + length < n && line[at + length] != ' ')
            length++;
        snprintf(word, sizeof word, "%.*s", (int)(length < 119 ? length : 119), line + at);
        if (length < 119 && word[strlen(word) - 1] != ':' && pasted_tool_of_word(word))
            return true;
        at += length;
        while (at < n && line[at] == ' ')
            at++;
    }
    return false;
}

/* A long flag anywhere, or a tool's name: configs, which have braces and colons, have neither. */
bool pasted_command_looks_so(const char *text)
{
    const char *line;
    size_t n;
    for (const char *p = text; (p = strstr(p, "--")); p += 2)
        if ((p == text || strchr(" \t\n\r(\"'[", p[-1])) && p[2] >= 'a' && p[2] <= 'z')
            return true;
    while (pasted_line(&text, &line, &n))
        if (names_tool(line, n))
            return true;
    return false;
}

/* The lines that are given to a shell by -c; NULL: there are none. */
static const char *given_to_shell(struct pasting *p, const struct pasted_words *words)
{
    struct api_text text;
    bool is_shell = false;
    api_text_init(&text, PASTED_MAX);
    for (size_t i = 0; i + 1 < words->n; i++) {
        size_t n;
        const char *name = pasted_program(words->at[i].text, &n);
        is_shell = (is_shell && !words->at[i].begins) || pasted_is_among("bash|sh|zsh|dash", name, n);
        if (!is_shell || !pasted_is_among("-c|-lc|-ec", words->at[i].text, strlen(words->at[i].text)) ||
            !strchr(words->at[i + 1].text, ' '))
            continue;
        api_text_put(&text, words->at[i + 1].text);
        api_text_put(&text, "\n");
    }
    const char *lines = text.n && !text.state ? api_arena_string(&p->request->arena, text.bytes, text.n) : NULL;
    api_text_drop(&text);
    return lines;
}

static bool read_command(struct pasting *p, bool is_given)
{
    struct pasted_words words;
    if (!pasted_words_split(p, &words))
        return false;
    const char *given = is_given ? NULL : given_to_shell(p, &words);
    if (given) {
        p->text = given;
        return check_set(p, pe_target_info_find("llama.cpp"), &words) && read_command(p, true);
    }
    struct pasted_words all = words;
    const struct pe_target_info *tool;
    bool is_found;
    if (!pasted_has_program(&words) && !check_others(p, &words))
        return false;
    if (!pasted_choose(p, NULL, &words, &is_found))
        return false;
    tool = is_found ? pasted_tool(&words) : NULL;
    return tool ? check_set(p, tool, &all) && read_words(p, tool, &words) : fail_tools(p);
}

bool pasted_command_read(struct pasting *p) { return read_command(p, false); }
