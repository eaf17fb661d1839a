/* Which command of a text counts: its tool is that of its program, and a text without one has the tool that has its
 * flags. Two commands that state different things are refused, as are those of programs that are not known. */
#include "api/inputs/pasted/pasted.h"

#include <stdio.h>
#include <strings.h>

/* ---- Tools ---- */

/* The name of a program: behind the last / of a path, without the ending of Windows. */
const char *pasted_program(const char *word, size_t *n)
{
    const char *name = word + (*word == '!'); /* of a notebook */
    for (const char *p = word; *p; p++)
        if ((*p == '/' || *p == '\\') && p[1])
            name = p + 1;
    *n = strlen(name);
    if (*n > 4 && strcasecmp(name + *n - 4, ".exe") == 0)
        *n -= 4;
    return name;
}

const struct pe_target_info *pasted_tool_of_word(const char *word)
{
    size_t n;
    const char *name = pasted_program(word, &n);
    for (size_t i = 0; n && *word != '-' && i < pe_n_targets(); i++)
        if (pe_target_at(i)->command.programs && pasted_is_among(pe_target_at(i)->command.programs, name, n))
            return pe_target_at(i);
    return NULL;
}

static bool is_program(const char *word, const char *programs)
{
    size_t n;
    const char *name = pasted_program(word, &n);
    return pasted_is_among(programs, name, n);
}

/* Behind a long flag a tool's name is the value of that flag, but for those of what runs another program. */
static const struct pe_target_info *tool_of(const struct pasted_word *words, size_t n)
{
    static const char runners[] = "docker|podman|nerdctl|srun|torchrun|accelerate|deepspeed|mpirun|numactl|sudo|env|uv|"
                                  "uvx|conda|kubectl|nsys|ray";
    const struct pe_target_info *tool = NULL;
    bool is_run = false;
    for (size_t i = 0; !tool && i < n; i++) {
        bool is_value = i && strncmp(words[i - 1].text, "--", 2) == 0 && !strchr(words[i - 1].text, '=');
        is_run |= is_program(words[i].text, runners);
        tool = is_value && !is_run ? NULL : pasted_tool_of_word(words[i].text);
    }
    return tool;
}

/* A script of Python, else the first word. */
static const char *name_of(const struct pasted_word *words, size_t n, const char *first)
{
    for (size_t i = 0; i < n; i++)
        if (strlen(words[i].text) > 3 && strcmp(words[i].text + strlen(words[i].text) - 3, ".py") == 0)
            return words[i].text;
    return first;
}

/* The program, where no word of the command is a tool's; NULL: it begins with a flag, or with a key of YAML. */
static const char *unknown_program(const struct pasted_word *words, size_t n)
{
    static const char around[] = "sudo|nohup|time|env|exec|then|else|do|if|export";
    for (size_t i = 0; i < n && *words[i].text != '-'; i++) {
        const char *word = words[i].text, *equals = strchr(word, '=');
        bool is_set = equals && equals > word && !memchr(word, '/', (size_t)(equals - word));
        if (*word && word[strlen(word) - 1] != ':' && !is_set && !pasted_is_among(around, word, strlen(word)))
            return name_of(words, n, word);
    }
    return NULL;
}

/* "./main" and "./server" are old names of llama.cpp's, which others have, too. */
static bool is_old_name(const char *program, const struct pe_target_info *tool)
{
    return is_program(program, "main|server") && tool && is_program("llama-server", tool->command.programs);
}

/* Two versions of a program. */
bool pasted_is_kin(const struct pe_target_info *a, const struct pe_target_info *b)
{
    const char *of_a = a->command.programs ? a->command.programs : a->command.calls,
               *of_b = b->command.programs ? b->command.programs : b->command.calls;
    return of_a && of_b && strcmp(of_a, of_b) == 0;
}

/* The tool that has one of the flags. Of two the one that takes an object, or does not, as the value is. */
const struct pe_target_info *pasted_tool_of_flags(const struct pasted_word *words, size_t n)
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

enum { LINE_BYTES = 4 * PASTED_WORD_BYTES };

/* The words with blanks between them, on one line. */
static const char *line_of(const struct pasted_word *words, size_t n, char line[LINE_BYTES])
{
    size_t used = 0;
    *line = '\0';
    for (size_t i = 0; i < n && used < LINE_BYTES - 1; i++)
        used += (size_t)snprintf(line + used, LINE_BYTES - used, "%s%s", i ? " " : "", words[i].text);
    for (char *c = line; *c; c++)
        *c = *c == '\n' || *c == '\r' ? ' ' : *c;
    return line;
}

static bool skip_words(struct pasting *p, const struct pasted_word *words, size_t n)
{
    char line[LINE_BYTES];
    line_of(words, n, line);
    return pasted_skip(p, line, strlen(line));
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

/* ---- What a command states ---- */

/* Those that ask a server which is running load no model. */
static bool is_client(const struct pasted_word *at, size_t n)
{
    bool is = false;
    for (size_t i = 0; i < n; i++)
        is |= is_program(at[i].text, "sglang.bench_serving") ||
              (i + 1 < n && strcmp(at[i].text, "bench") == 0 && strcmp(at[i + 1].text, "serve") == 0);
    return is;
}

/* What a command states: its tool, the model and the flags about positions. */
struct meaning {
    const struct pe_target_info *tool; /* NULL: nothing about positions, and no model */
    struct pasting found;              /* has the model */
    const struct pasted_word *at;
    size_t n;
};

static struct meaning meaning_of(const struct pasting *p, const struct pasted_word *at, size_t n,
                                 const struct pe_target_info *target)
{
    struct meaning m = {.tool = target ? target : tool_of(at, n), .found = {.request = p->request}, .at = at, .n = n};
    m.tool = m.tool ? m.tool : pasted_tool_of_flags(at, n);
    m.tool = m.tool && !is_client(at, n) ? pasted_version(m.tool, at, n) : NULL;
    if (m.tool)
        pasted_find_model(&m.found, &m.tool->command, &(struct pasted_words){(struct pasted_word *)(uintptr_t)at, n});
    if (m.tool && !has_flag(m.tool, at, n) && !*m.found.model && !m.found.unknown_model)
        m.tool = NULL;
    return m;
}

enum wanted { TOOL_WITH_FLAGS, TOOL_WITH_MODEL, TOOL, FLAGS };

static bool is_wanted(const struct pasting *p, const struct pasted_word *at, size_t n,
                      const struct pe_target_info *target, enum wanted wanted)
{
    const struct pe_target_info *tool = tool_of(at, n);
    if (wanted == TOOL_WITH_MODEL)
        return tool && !target && meaning_of(p, at, n, NULL).tool;
    if (wanted == FLAGS)
        return has_flag(NULL, at, n);
    if (wanted == TOOL)
        return tool && !target;
    tool = tool ? tool : pasted_tool_of_flags(at, n);
    const struct pe_target_info *own = target ? target : tool ? pasted_version(tool, at, n) : NULL;
    return own && has_flag(own, at, n);
}

/* The first command of a tool with one of its flags, else with a model, else of a tool, else a list with them, else
 * what has any flag; words->n: none. A list that a command uses is in the command. */
static size_t choose(const struct pasting *p, const struct pasted_words *words, const struct pe_target_info *target)
{
    static const struct {
        enum wanted wanted;
        bool is_listed;
    } rounds[] = {{TOOL_WITH_FLAGS, false}, {TOOL_WITH_MODEL, false}, {TOOL, false},
                  {TOOL_WITH_FLAGS, true},  {FLAGS, false},           {FLAGS, true}};
    for (size_t i = 0; i < sizeof rounds / sizeof *rounds; i++)
        for (size_t begin = 0; begin < words->n; begin = end_of(words, begin)) {
            const struct pasted_word *at = words->at + begin;
            if (at->is_listed == rounds[i].is_listed &&
                is_wanted(p, at, end_of(words, begin) - begin, target, rounds[i].wanted))
                return begin;
        }
    return words->n;
}

/* ---- Several ---- */

static const char *value_of(const struct pasted_word *at, size_t i, size_t n)
{
    const char *equals = strchr(at[i].text, '=');
    return equals ? equals + 1 : i + 1 < n ? at[i + 1].text : "";
}

/* Has b every flag about positions that a has, with its value? */
static bool has_all(const struct meaning *b, const struct meaning *a)
{
    for (size_t i = 0; i < a->n; i++) {
        const struct pe_param *row = pasted_flag_of(a->tool, a->at[i].text);
        bool is_there = !row || pasted_is_a_length(row);
        for (size_t k = 0; k < b->n && !is_there; k++)
            is_there = pasted_flag_of(b->tool, b->at[k].text) == row &&
                       (row->type == PE_T_BOOL || strcmp(value_of(a->at, i, a->n), value_of(b->at, k, b->n)) == 0);
        if (!is_there)
            return false;
    }
    return true;
}

static bool is_same_model(const char *a, const char *b)
{
    const struct pe_preset *of_a = *a ? pe_preset_named(a) : NULL, *of_b = *b ? pe_preset_named(b) : NULL;
    return strcmp(a, b) == 0 || (of_a && of_a == of_b);
}

static bool check_several(struct pasting *p, const struct pasted_words *words, size_t chosen,
                          const struct pe_target_info *target)
{
    char first[LINE_BYTES], second[LINE_BYTES];
    struct meaning a = meaning_of(p, words->at + chosen, end_of(words, chosen) - chosen, target);
    for (size_t begin = 0, end; begin < words->n && !words->at[chosen].is_listed; begin = end) {
        end = end_of(words, begin);
        struct meaning b = meaning_of(p, words->at + begin, end - begin, target);
        bool is_other = begin != chosen && !words->at[begin].is_listed && a.tool && b.tool;
        bool is_same = is_other && a.tool == b.tool && is_same_model(a.found.model, b.found.model) && has_all(&a, &b) &&
                       has_all(&b, &a);
        if (is_other && !is_same)
            return pasted_fail(p, "the text has two commands that differ: %.200s; and %.200s; paste one of them",
                               line_of(a.at, a.n, first), line_of(b.at, b.n, second));
    }
    return true;
}

static bool check_program(struct pasting *p, const struct pasted_words *words, size_t chosen)
{
    const struct pasted_word *at = words->at + chosen;
    size_t n = end_of(words, chosen) - chosen;
    const char *program = at->is_listed || tool_of(at, n) ? NULL : unknown_program(at, n);
    return !program || is_old_name(program, pasted_tool_of_flags(at, n)) ||
           pasted_fail(p,
                       "the program %.60s is not known here; known are those of vllm, sglang, llama.cpp (llama-server, "
                       "llama-cli, ...) and Megatron-LM",
                       program);
}

bool pasted_choose(struct pasting *p, const struct pe_target_info *target, struct pasted_words *words, bool *is_found)
{
    size_t chosen = choose(p, words, target);
    *is_found = chosen < words->n;
    return !*is_found || ((target || check_program(p, words, chosen)) && check_several(p, words, chosen, target) &&
                          keep(p, words, chosen));
}

bool pasted_has_program(const struct pasted_words *words) { return tool_of(words->at, words->n); }

const struct pe_target_info *pasted_tool(const struct pasted_words *words)
{
    const struct pe_target_info *tool = tool_of(words->at, words->n);
    return tool ? tool : pasted_tool_of_flags(words->at, words->n);
}
