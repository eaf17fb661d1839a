/* A command of a server or trainer, or a script that has one: which tool it is, which model it names, and its flags. A
 * call of Python, and a file of settings, have the same words. The rows of the programs: core/tools/tools. */
#include "api/inputs/pasted/pasted.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

/* ---- Tools ---- */

/* The name of a program: behind the last / of a path, without the ending of Windows. */
static const char *program_of(const char *word, size_t *n)
{
    const char *name = word;
    for (const char *p = word; *p; p++)
        if ((*p == '/' || *p == '\\') && p[1])
            name = p + 1;
    *n = strlen(name);
    if (*n > 4 && strcasecmp(name + *n - 4, ".exe") == 0)
        *n -= 4;
    return name;
}

static const struct pe_target_info *tool_of_word(const char *word)
{
    size_t n;
    const char *name = program_of(word, &n);
    for (size_t i = 0; n && *word != '-' && i < pe_n_targets(); i++)
        if (pe_target_at(i)->command.programs && pasted_is_among(pe_target_at(i)->command.programs, name, n))
            return pe_target_at(i);
    return NULL;
}

/* "./main" and "./server" are old names, which others have, too. */
static const struct pe_target_info *tool_of(const struct pasted_word *words, size_t n)
{
    const struct pe_target_info *tool = NULL;
    for (size_t i = 0; !tool && i < n; i++)
        tool = tool_of_word(words[i].text);
    return tool;
}

/* Two versions of a program. */
bool pasted_is_kin(const struct pe_target_info *a, const struct pe_target_info *b)
{
    const char *of_a = a->command.programs ? a->command.programs : a->command.calls,
               *of_b = b->command.programs ? b->command.programs : b->command.calls;
    return of_a && of_b && strcmp(of_a, of_b) == 0;
}

/* The tool that has one of the flags. Of two the one that takes an object, or does not, as the value is. */
static const struct pe_target_info *tool_of_flags(const struct pasted_word *words, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct pe_target_info *found = NULL;
        size_t length = strcspn(words[i].text, "=");
        const char *value = words[i].text[length] ? words[i].text + length + 1 : i + 1 < n ? words[i + 1].text : "";
        for (size_t k = 0; k < pe_n_targets(); k++) {
            const struct pe_target_info *target = pe_target_at(k);
            const struct pe_param *row = target->command.programs ? pasted_flag_of(target, words[i].text) : NULL;
            if (row && (!found || (row->type == PE_T_VALUE) == (*value == '{')))
                found = target;
        }
        if (found)
            return found;
    }
    return NULL;
}

const struct pe_target_info *pasted_version(const struct pe_target_info *tool, const struct pasted_word *words,
                                            size_t n)
{
    const struct pe_target_info *found = tool;
    size_t most = 0;
    for (size_t k = 0; k < pe_n_targets(); k++) {
        size_t n_flags = 0;
        for (size_t i = 0; i < n; i++) {
            const struct pe_target_info *target = pe_target_at(k);
            const struct pe_param *row = pasted_is_kin(tool, target) ? pasted_flag_of(target, words[i].text) : NULL;
            n_flags += row && !pasted_is_a_length(row);
        }
        found = n_flags > most ? pe_target_at(k) : found;
        most = n_flags > most ? n_flags : most;
    }
    return found;
}

/* ---- Which of the commands ---- */

static size_t end_of(const struct pasted_words *words, size_t begin)
{
    size_t end = begin + 1;
    while (end < words->n && !words->at[end].begins && words->at[end].is_listed == words->at[begin].is_listed)
        end++;
    return end;
}

static bool has_flag(const struct pe_target_info *target, const struct pasted_word *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (target ? pasted_flag_of(target, words[i].text) != NULL : strncmp(words[i].text, "--", 2) == 0)
            return true;
    return false;
}

static bool skip_words(struct pasting *p, const struct pasted_word *words, size_t n)
{
    char line[4 * PASTED_WORD_BYTES];
    size_t used = 0;
    for (size_t i = 0; i < n && used < sizeof line - 1; i++)
        used += (size_t)snprintf(line + used, sizeof line - used, "%s%s", i ? " " : "", words[i].text);
    return pasted_skip(p, line, used < sizeof line ? used : sizeof line - 1);
}

/* Keeps the words of one command. If it is a list, for no command is there, the others count, too. */
static bool keep(struct pasting *p, struct pasted_words *words, size_t chosen)
{
    struct pasted_word *kept = api_arena_array(&p->request->arena, words->n + 1, sizeof *kept);
    size_t n = 0;
    bool is_list = words->at[chosen].is_listed;
    if (!kept)
        return api_fail_memory(p->problem);
    for (size_t begin = 0, end; begin < words->n; begin = end) {
        const struct pasted_word *at = words->at + begin;
        end = end_of(words, begin);
        if (begin == chosen || (is_list && at->is_listed)) {
            memcpy(kept + n, at, (end - begin) * sizeof *kept);
            n += end - begin;
        } else if (!at->is_listed && !skip_words(p, at, end - begin)) {
            return false;
        }
    }
    *words = (struct pasted_words){kept, n};
    return true;
}

enum wanted { TOOL_WITH_FLAGS, TOOL, FLAGS };

static bool is_wanted(const struct pasted_word *at, size_t n, const struct pe_target_info *target, enum wanted wanted)
{
    const struct pe_target_info *tool = tool_of(at, n);
    if (wanted == FLAGS)
        return has_flag(NULL, at, n);
    if (wanted == TOOL)
        return tool && !target;
    tool = tool ? tool : tool_of_flags(at, n);
    const struct pe_target_info *own = target ? target : tool ? pasted_version(tool, at, n) : NULL;
    return own && has_flag(own, at, n);
}

/* The first command of a tool with one of its flags, else of a tool, else a list with them, else what has any flag;
 * words->n: none. A list that a command uses is in the command. */
static size_t choose(const struct pasted_words *words, const struct pe_target_info *target)
{
    static const struct {
        enum wanted wanted;
        bool is_listed;
    } rounds[] = {{TOOL_WITH_FLAGS, false}, {TOOL, false}, {TOOL_WITH_FLAGS, true}, {FLAGS, false}, {FLAGS, true}};
    for (size_t i = 0; i < sizeof rounds / sizeof *rounds; i++)
        for (size_t begin = 0; begin < words->n; begin = end_of(words, begin)) {
            const struct pasted_word *at = words->at + begin;
            if (at->is_listed == rounds[i].is_listed &&
                is_wanted(at, end_of(words, begin) - begin, target, rounds[i].wanted))
                return begin;
        }
    return words->n;
}

/* ---- The model ---- */

static void set_model(struct pasting *p, const struct pasted_word *word, const char *text)
{
    if (*p->model || !*text || *text == '-' || tool_of_word(text))
        return;
    if (word->is_unknown)
        p->unknown_model = text;
    else
        snprintf(p->model, sizeof p->model, "%s", text);
}

/* Behind a flag, or what is behind its =. */
static void find_model(struct pasting *p, const struct pe_command *command, const struct pasted_words *words)
{
    for (size_t i = 0; command->models && i < words->n; i++) {
        const struct pasted_word *word = &words->at[i], *next = i + 1 < words->n ? word + 1 : NULL;
        size_t n = strcspn(word->text, "="), dashes = strspn(word->text, "-");
        if (!dashes || dashes > 2 || !pasted_is_among(command->models, word->text + dashes, n - dashes))
            continue;
        if (word->text[n])
            set_model(p, word, word->text + n + 1);
        else if (next)
            set_model(p, next, next->text);
    }
    for (size_t i = 0; command->before && i + 1 < words->n; i++)
        if (strcmp(words->at[i].text, command->before) == 0)
            set_model(p, &words->at[i + 1], words->at[i + 1].text);
}

/* ---- What is about positions and not read ---- */

/* Beginnings of words; an answer without them would be one about another command. */
static const char *const unread[] = {"--hf-overrides.",    "--hf_overrides.", "--json-model-override-args.",
                                     "--ropeconfig",       "LLAMA_ARG_ROPE_", "LLAMA_ARG_YARN_",
                                     "--rope_scaling_type"};

static bool is_unread(const struct pasted_words *words, size_t i)
{
    const char *word = words->at[i].text, *next = i + 1 < words->n ? words->at[i + 1].text : "";
    bool is = strncmp(word, "--override-kv", 13) == 0 && (strstr(word, ".rope.") || strstr(next, ".rope."));
    for (size_t k = 0; k < sizeof unread / sizeof *unread; k++)
        is |= strncmp(word, unread[k], strlen(unread[k])) == 0;
    return is;
}

static bool check_unread(struct pasting *p, const struct pasted_words *words)
{
    for (size_t i = 0; i < words->n; i++)
        if (is_unread(words, i))
            return pasted_fail(p,
                               "%.60s is about positions and is not read here; write it as a flag or as JSON that is",
                               words->at[i].text);
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
        const char *name = program_of(words->at[i].text, &n);
        for (size_t k = 0; n && k < sizeof others / sizeof *others; k++)
            if (pasted_is_among(others[k].programs, name, n))
                return api_fail(p->problem, 422, p->pointer, "%s", pe_text(others[k].sentence));
    }
    return true;
}

/* ---- The readers ---- */

bool pasted_command_choose(struct pasting *p, const struct pe_target_info *target, struct pasted_words *words)
{
    size_t chosen = choose(words, target);
    if (chosen < words->n && !(keep(p, words, chosen) && check_unread(p, words)))
        return false;
    find_model(p, &target->command, words);
    return true;
}

static bool fail_tools(struct pasting *p)
{
    return pasted_fail(p, "this is no command whose flags are known; known are those of vllm, sglang, llama.cpp "
                          "(llama-server, llama-cli, ...) and Megatron-LM");
}

static bool read_words(struct pasting *p, const struct pe_target_info *tool, const struct pasted_words *words)
{
    const struct pe_target_info *target = pasted_version(tool, words->at, words->n);
    p->kind = PASTED_WORDS;
    p->tool = target->name;
    find_model(p, &target->command, words);
    return check_unread(p, words) && pasted_flags_put(p, target, words->at, words->n);
}

/* "--name=value". An expression whose value is not known counts as what a shell would put there; it may be inside. */
static bool add_setting(struct pasting *p, struct pasted_words *words, const struct pasted_setting *setting)
{
    struct api_text word;
    const json_t *value = setting->value;
    char *json = json_is_string(value) ? NULL : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
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
    tool = tool ? tool : tool_of_flags(words.at, words.n);
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
        if (length < 119 && !strchr(word, ':') && tool_of_word(word))
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

bool pasted_command_read(struct pasting *p)
{
    struct pasted_words words;
    if (!pasted_words_split(p, &words))
        return false;
    size_t chosen = choose(&words, NULL);
    if (!tool_of(words.at, words.n) && !check_others(p, &words))
        return false;
    if (chosen == words.n)
        return fail_tools(p);
    if (!keep(p, &words, chosen))
        return false;
    const struct pe_target_info *tool = tool_of(words.at, words.n);
    tool = tool ? tool : tool_of_flags(words.at, words.n);
    return tool ? read_words(p, tool, &words) : fail_tools(p);
}
