/* A command of a server or trainer, or a script that has one: which tool it is, which model it names, and its flags. */
#define _GNU_SOURCE /* memmem */
#include "api/inputs/pasted/pasted.h"

#include <stdio.h>
#include <strings.h>

/* ---- Tools ---- */

struct tool {
    const char *target; /* with flags of its own; "|": an older one, if the command has a flag of that */
    /* A word of the command is one of these, or begins with it if it ends with *; behind the last / of a path. */
    const char *programs;
    const char *models; /* flags in front of a model */
    const char *before; /* a word in front of it; NULL: none */
};

static const struct tool tools[] = {
    {"vllm|vllm_old", "vllm|vllm.entrypoints.*|vllm-openai*|vllm-openai:*", "--model", "serve"},
    {"sglang", "sglang|sglang.launch_server|sglang:*|sglang.bench_*", "--model-path|--model", NULL},
    {"llama.cpp", "llama-*|llama.cpp:*|llamafile", "-m|--model|-hf|-hfr|--hf-repo|-hfd", NULL},
    {"megatron", "pretrain_*|megatron*|Megatron*|train_gpt.py", "", NULL},
};
enum { N_TOOLS = sizeof tools / sizeof *tools };

/* The next of "a|b"; false: there is none. */
static bool next_of(const char **list, const char **word, size_t *n)
{
    *word = *list;
    *n = strcspn(*list, "|");
    *list += *n + ((*list)[*n] == '|');
    return *n > 0;
}

static bool is_among(const char *list, const char *text, size_t n_text)
{
    const char *word;
    for (size_t n; next_of(&list, &word, &n);) {
        bool is_beginning = word[n - 1] == '*';
        n -= is_beginning;
        if ((is_beginning ? n_text >= n : n_text == n) && memcmp(word, text, n) == 0)
            return true;
    }
    return false;
}

static const struct tool *tool_of_word(const char *word)
{
    const char *name = word;
    for (const char *p = word; *p; p++)
        if ((*p == '/' || *p == '\\') && p[1])
            name = p + 1;
    size_t n = strlen(name);
    if (n > 4 && strcasecmp(name + n - 4, ".exe") == 0)
        n -= 4;
    for (size_t i = 0; n && *word != '-' && i < N_TOOLS; i++)
        if (is_among(tools[i].programs, name, n))
            return &tools[i];
    return NULL;
}

/* "./main" and "./server" are old names, which others have, too. */
static const struct tool *tool_of(const struct pasted_word *words, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct tool *tool = tool_of_word(words[i].text);
        if (tool)
            return tool;
    }
    return NULL;
}

/* The row of a tool that reads this flag, or its older one. */
static const struct pe_target_info *target_of_flag(const struct tool *tool, const char *word)
{
    const char *list = tool->target, *name;
    for (size_t n; next_of(&list, &name, &n);) {
        char target[24];
        snprintf(target, sizeof target, "%.*s", (int)n, name);
        const struct pe_target_info *info = pe_target_info_find(target);
        if (info && pasted_is_flag_of(info, word))
            return info;
    }
    return NULL;
}

static const struct pe_target_info *first_target(const struct tool *tool)
{
    char target[24];
    snprintf(target, sizeof target, "%.*s", (int)strcspn(tool->target, "|"), tool->target);
    return pe_target_info_find(target);
}

/* Of the flags only: the tool that has one of them. --rope-scaling is vLLM's if JSON follows. */
static const struct tool *tool_of_flags(const struct pasted_word *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < N_TOOLS; k++) {
            const struct pe_target_info *info = target_of_flag(&tools[k], words[i].text);
            size_t length = strcspn(words[i].text, "=");
            const char *value = words[i].text[length] ? words[i].text + length + 1 : i + 1 < n ? words[i + 1].text : "";
            bool is_json = *value == '{', is_shared = is_among("--rope-scaling|--rope_scaling", words[i].text, length);
            if (info && (!is_shared || is_json == (strcmp(info->name, "vllm_old") == 0)))
                return &tools[k];
        }
    return NULL;
}

/* An older version's flag makes it that version's command. */
static const struct pe_target_info *target_of(const struct tool *tool, const struct pasted_word *words, size_t n)
{
    const struct pe_target_info *target = first_target(tool);
    for (size_t i = 0; i < n; i++) {
        const struct pe_target_info *info = target_of_flag(tool, words[i].text);
        if (info)
            return info;
    }
    return target;
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
        if (target ? pasted_is_flag_of(target, words[i].text) : strncmp(words[i].text, "--", 2) == 0)
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

/* Keeps the words of one command, and of lists, which it names by a variable. */
static bool keep(struct pasting *p, struct pasted_words *words, size_t chosen)
{
    struct pasted_word *kept = api_arena_array(&p->request->arena, words->n + 1, sizeof *kept);
    size_t n = 0;
    if (!kept)
        return api_fail_memory(p->problem);
    for (size_t begin = 0, end; begin < words->n; begin = end) {
        end = end_of(words, begin);
        if (begin == chosen) {
            memcpy(kept + n, words->at + begin, (end - begin) * sizeof *kept);
            n += end - begin;
        }
    }
    for (size_t i = 0, end = end_of(words, chosen); i < words->n; i++)
        if (words->at[i].is_listed && (i < chosen || i >= end))
            kept[n++] = words->at[i];
    for (size_t begin = 0, end; begin < words->n; begin = end) {
        end = end_of(words, begin);
        if (begin != chosen && !words->at[begin].is_listed && !skip_words(p, words->at + begin, end - begin))
            return false;
    }
    *words = (struct pasted_words){kept, n};
    return true;
}

/* The first command of a tool with one of its flags, else of a tool, else with any flag; words->n: none. */
static size_t choose(const struct pasted_words *words, const struct pe_target_info *target)
{
    for (unsigned round = 0; round < 3; round++)
        for (size_t begin = 0; begin < words->n; begin = end_of(words, begin)) {
            const struct pasted_word *at = words->at + begin;
            size_t n = end_of(words, begin) - begin;
            const struct tool *tool = tool_of(at, n);
            if (round == 0 && !tool)
                tool = tool_of_flags(at, n);
            const struct pe_target_info *own = target ? target : tool ? target_of(tool, at, n) : NULL;
            if (round == 0 ? own && has_flag(own, at, n) : round == 1 ? tool && !target : has_flag(NULL, at, n))
                return begin;
        }
    return words->n;
}

/* ---- The model ---- */

static void set_model(struct pasting *p, const struct pasted_word *word, const char *text)
{
    if (!*p->model && *text && *text != '-' && !word->is_unknown)
        snprintf(p->model, sizeof p->model, "%s", text);
}

static void find_model(struct pasting *p, const struct tool *tool, const struct pasted_words *words)
{
    for (size_t i = 0; i + 1 < words->n; i++) {
        const char *word = words->at[i].text;
        size_t n = strcspn(word, "=");
        if (!is_among(tool->models, word, n))
            continue;
        set_model(p, word[n] ? &words->at[i] : &words->at[i + 1], word[n] ? word + n + 1 : words->at[i + 1].text);
    }
    const struct pasted_word *last = words->n ? &words->at[words->n - 1] : NULL;
    size_t n_last = last ? strcspn(last->text, "=") : 0;
    if (last && last->text[n_last] && is_among(tool->models, last->text, n_last))
        set_model(p, last, last->text + n_last + 1);
    for (size_t i = 0; tool->before && i + 1 < words->n; i++)
        if (strcmp(words->at[i].text, tool->before) == 0)
            set_model(p, &words->at[i + 1], words->at[i + 1].text);
}

/* ---- What is about positions and not read ---- */

/* Beginnings of words; an answer without them would be one about another command. */
static const char *const unread[] = {"--hf-overrides.", "--hf_overrides.", "--json-model-override-args.",
                                     "--ropeconfig",    "LLAMA_ARG_ROPE_", "LLAMA_ARG_YARN_"};

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

/* ---- The readers ---- */

bool pasted_command_choose(struct pasting *p, const struct pe_target_info *target, struct pasted_words *words)
{
    size_t chosen = choose(words, target);
    for (size_t i = 0; i < N_TOOLS; i++) {
        const char *list = tools[i].target;
        const char *name;
        for (size_t n; next_of(&list, &name, &n);)
            if (pasted_is(name, n, target->name))
                find_model(p, &tools[i], words);
    }
    return chosen == words->n || (keep(p, words, chosen) && check_unread(p, words));
}

static bool has_in_line(const char *line, size_t n, const char *what)
{
    return memmem(line, n, what, strlen(what)) != NULL;
}

/* A tool's name begins the line, or is in front of what only a command has. */
static bool names_tool(const char *line, size_t n)
{
    bool is_command = has_in_line(line, n, " -m ") || has_in_line(line, n, " serve ") || has_in_line(line, n, " -hf ");
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

static bool fail_tools(struct pasting *p)
{
    return pasted_fail(p, "this is no command whose flags are known; known are those of vllm, sglang, llama.cpp "
                          "(llama-server, llama-cli, ...) and Megatron-LM");
}

bool pasted_command_read(struct pasting *p)
{
    struct pasted_words words;
    p->kind = PASTED_WORDS;
    if (!pasted_words_split(p, &words))
        return false;
    size_t chosen = choose(&words, NULL);
    if (chosen == words.n)
        return fail_tools(p);
    if (!keep(p, &words, chosen) || !check_unread(p, &words))
        return false;
    const struct tool *tool = tool_of(words.at, words.n);
    tool = tool ? tool : tool_of_flags(words.at, words.n);
    if (!tool)
        return fail_tools(p);
    const struct pe_target_info *target = target_of(tool, words.at, words.n);
    p->tool = target->name;
    find_model(p, tool, &words);
    return pasted_flags_put(p, target, words.at, words.n);
}
