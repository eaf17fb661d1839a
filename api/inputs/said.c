/* Flags of a command line as the object that `said` takes: words split as a POSIX shell splits them, but for
 * expansions, which are refused: what a shell would put there is not known.
 *
 * The flags become the text of a JSON object, which is read as a request is, so an object inside a flag has the same
 * limits as one in a body. Words before the first flag are the command and its operands, and are skipped. A whole
 * command line has flags about other things: those, with their operands, are listed as ignored. Refused are a flag
 * that is nearly one of the row's, since a misspelled one would count as not given, and one that another tool's row
 * has, since it is about positions. */
#include "api/inputs/inputs.h"
#include "api/json/json.h"
#include "api/text.h"

#include <stdio.h>
#include <string.h>

/* In JSON each byte becomes 6 at most, as \u0001, and each name is there once. */
enum { SAID_MAX = 65536, SAID_JSON_MAX = 7 * SAID_MAX, WORDS_MAX = 1024, IGNORED_MAX = 64, IGNORED_BYTES = 128 };

struct splitter {
    struct api_request *request;
    struct api_problem *problem;
    char pointer[PE_POINTER_MAX]; /* of the text */
    const char *text, *at;
    char *out; /* the words, each with its NUL; in the arena */
    const char *words[WORDS_MAX];
    size_t n;
    struct pe_value *ignored; /* [IGNORED_MAX]; in the arena */
    size_t n_ignored;
};

/* ---- Words ---- */

static bool fail_at(struct splitter *s, const char *what)
{
    return api_fail(s->problem, 422, s->pointer, "the text cannot be split into words: at byte %zu %s",
                    (size_t)(s->at - s->text), pe_text(what));
}

static bool take_single(struct splitter *s)
{
    const char *end = strchr(s->at + 1, '\'');
    if (!end)
        return fail_at(s, "a quote is not closed");
    size_t n = (size_t)(end - s->at - 1);
    memcpy(s->out, s->at + 1, n);
    s->out += n;
    s->at = end + 1;
    return true;
}

static bool take_double(struct splitter *s)
{
    const char *begin = s->at++;
    while (*s->at && *s->at != '"') {
        if (*s->at == '$' || *s->at == '`')
            return fail_at(s, "a shell would expand what follows; write it in single quotes");
        if (*s->at == '\\' && s->at[1] && strchr("$`\"\\\n", s->at[1]))
            s->at++;
        if (*s->at != '\n' || s->at[-1] != '\\')
            *s->out++ = *s->at;
        s->at++;
    }
    if (!*s->at) {
        s->at = begin;
        return fail_at(s, "a quote is not closed");
    }
    s->at++;
    return true;
}

/* Until a space that is not quoted. */
static bool take_word(struct splitter *s)
{
    if (s->n == WORDS_MAX)
        return fail_at(s, "there are more than 1024 words");
    s->words[s->n++] = s->out;
    while (*s->at && !strchr(" \t\n\r", *s->at)) {
        bool fine = true;
        if (*s->at == '\'') {
            fine = take_single(s);
        } else if (*s->at == '"') {
            fine = take_double(s);
        } else if (*s->at == '\\' && s->at[1]) {
            if (s->at[1] != '\n')
                *s->out++ = s->at[1];
            s->at += 2;
        } else if (strchr("$`", *s->at)) {
            fine = fail_at(s, "a shell would expand what follows; write it in single quotes");
        } else if (strchr("|&;<>()", *s->at)) {
            fine = fail_at(s, "the command ends; leave out the rest");
        } else {
            *s->out++ = *s->at++;
        }
        if (!fine)
            return false;
    }
    *s->out++ = '\0';
    return true;
}

static bool split(struct splitter *s)
{
    s->at = s->text;
    for (;;) {
        while (*s->at && (strchr(" \t\n\r", *s->at) || (*s->at == '\\' && s->at[1] == '\n')))
            s->at += *s->at == '\\' ? 2 : 1;
        if (*s->at == '#')
            s->at += strcspn(s->at, "\n");
        else if (!*s->at)
            return true;
        else if (!take_word(s))
            return false;
    }
}

/* ---- Flags ---- */

static bool is_same_letter(char a, char b) { return a == b || (strchr("-_", a) && strchr("-_", b)); }

static bool is_name(const char *flag, size_t n, const char *member)
{
    bool is_same = strlen(member) == n;
    for (size_t i = 0; is_same && i < n; i++)
        is_same = is_same_letter(flag[i], member[i]);
    return is_same;
}

static const struct pe_param *row_of(const struct pe_target_info *target, const char *flag, size_t n)
{
    for (const struct pe_param *row = target->members; row->name; row++)
        if (is_name(flag, n, row->name))
            return row;
    return NULL;
}

/* Is it the beginning of the member's name, or the name but for a letter or two that are neighbours? */
static bool is_nearly(const char *flag, size_t n, const char *member)
{
    enum { FEW = 2, ENOUGH = 4 };
    size_t m = strlen(member), least = n < m ? n : m, front = 0, back = 0;
    while (front < least && is_same_letter(flag[front], member[front]))
        front++;
    while (back < least - front && is_same_letter(flag[n - 1 - back], member[m - 1 - back]))
        back++;
    return front + back >= ENOUGH && (front == n || (n - front - back <= FEW && m - front - back <= FEW));
}

/* ---- Flags about other things ---- */

/* Is it another tool's flag about positions, or a misspelled one? */
static bool check_ignored(struct splitter *s, const struct pe_target_info *target, const char *flag, size_t n)
{
    for (const struct pe_param *row = target->members; row->name; row++)
        if (is_nearly(flag, n, row->name))
            return api_fail(s->problem, 422, s->pointer, "--%.*s is no flag of %s; nearest: \"--%s\"",
                            (int)(n < IGNORED_BYTES ? n : IGNORED_BYTES), flag, target->name, row->name);
    for (size_t i = 0; i < pe_n_targets(); i++) {
        const struct pe_target_info *other = pe_target_at(i);
        if (other->reads_text && row_of(other, flag, n))
            return api_fail(s->problem, 422, s->pointer, "--%.*s is a flag of %s, not of %s",
                            (int)(n < IGNORED_BYTES ? n : IGNORED_BYTES), flag, other->name, target->name);
    }
    return true;
}

/* Its first bytes, whole characters; each word once. */
static bool add_ignored(struct splitter *s, const char *word, size_t n)
{
    n = n < IGNORED_BYTES ? n : IGNORED_BYTES;
    while (n > 0 && (word[n] & 0xc0) == 0x80)
        n--;
    for (size_t i = 0; i < s->n_ignored; i++)
        if (strncmp(s->ignored[i].string, word, n) == 0 && !s->ignored[i].string[n])
            return true;
    if (s->n_ignored == IGNORED_MAX)
        return true;
    char *name = api_arena_array(&s->request->arena, n + 1, 1);
    if (!name)
        return api_fail_memory(s->problem);
    memcpy(name, word, n);
    name[n] = '\0';
    s->ignored[s->n_ignored++] = (struct pe_value){.kind = PE_STRING, .string = name};
    return true;
}

/* A negative number is no flag. */
static bool is_operand(const char *word) { return *word != '-' || !word[1] || strchr("0123456789.", word[1]); }

/* Ignores word *i, and the operands of a flag. */
static bool ignore(struct splitter *s, const struct pe_target_info *target, size_t *i)
{
    const char *word = s->words[*i];
    bool is_flag = !is_operand(word), is_long = is_flag && word[1] == '-';
    size_t n = is_flag ? strcspn(word, "=") : strlen(word);
    if (is_long && n > 2 && !check_ignored(s, target, word + 2, n - 2))
        return false;
    while (is_flag && !word[n] && *i + 1 < s->n && is_operand(s->words[*i + 1]))
        ++*i;
    return add_ignored(s, word, n);
}

/* ---- Values ---- */

/* One value alone: else it would end, and more members follow. */
static bool check_json(struct splitter *s, const char *name, const char *word)
{
    struct api_json_error error;
    bool is_json = api_json_load(&s->request->arena, word, strlen(word), 0, &error);
    if (!is_json && error.no_memory)
        return api_fail_memory(s->problem);
    return is_json || api_fail(s->problem, 400, s->pointer, "--%s is not JSON: %s", name, error.text);
}

/* One word as the value of its row. */
static bool put_value(struct splitter *s, struct api_text *json, const struct pe_param *row, const char *word)
{
    bool is_json = *word == '{' || *word == '[';
    if (row->type == PE_T_WORD || (!is_json && !api_is_json_number(word, strlen(word)))) {
        api_text_string(json, word);
        return true;
    }
    if (is_json && !check_json(s, row->name, word))
        return false;
    api_text_put(json, word);
    return true;
}

static bool put_flags(struct splitter *s, const struct pe_target_info *target, struct api_text *json)
{
    const struct pe_param *seen[64];
    size_t n_seen = 0, i = 0;
    while (i < s->n && *s->words[i] != '-') /* the command */
        i++;
    api_text_put(json, "{");
    for (; i < s->n; i++) {
        const char *word = s->words[i];
        bool is_long = strncmp(word, "--", 2) == 0;
        size_t n = is_long ? strcspn(word + 2, "=") : 0;
        const struct pe_param *row = is_long ? row_of(target, word + 2, n) : NULL;
        if (!row && !ignore(s, target, &i))
            return false;
        if (!row)
            continue;
        const char *value = word[2 + n] ? word + 3 + n : NULL;
        for (size_t k = 0; k < n_seen; k++)
            if (seen[k] == row)
                return api_fail(s->problem, 422, s->pointer, "--%s is there twice", row->name);
        seen[n_seen++] = row;
        api_text_put(json, n_seen > 1 ? "," : "");
        api_text_string(json, row->name);
        api_text_put(json, ":");
        if (row->type == PE_T_BOOL && !value) {
            api_text_put(json, "true");
            continue;
        }
        value = value ? value : i + 1 < s->n ? s->words[++i] : NULL;
        if (!value)
            return api_fail(s->problem, 422, s->pointer, "--%s has no value", row->name);
        if (!put_value(s, json, row, value))
            return false;
    }
    api_text_put(json, "}");
    return true;
}

/* ---- The field ---- */

static bool put_text(struct splitter *s, const struct pe_target_info *target, struct api_text *json)
{
    s->out = api_arena_array(&s->request->arena, strlen(s->text) + 2, 1);
    s->ignored = api_arena_array(&s->request->arena, IGNORED_MAX, sizeof *s->ignored);
    if (!s->out || !s->ignored)
        return api_fail_memory(s->problem);
    if (!split(s) || !put_flags(s, target, json))
        return false;
    return json->state == API_TEXT_FINE || api_fail_memory(s->problem);
}

/* An unknown target is left to the core, which names the nearest. */
bool api_said_flags(struct api_request *request, const struct pe_value *said, const char *pointer,
                    struct api_text *json, struct pe_value *ignored, struct api_problem *problem)
{
    struct splitter s = {.request = request, .problem = problem};
    const struct pe_value *text = api_member_find(said, "text"), *to = api_member_find(said, "to");
    snprintf(s.pointer, sizeof s.pointer, "%s", pointer);
    api_pointer_push(s.pointer, "text", 4);
    const struct pe_target_info *target = to && to->kind == PE_STRING ? pe_target_info_find(to->string) : NULL;
    api_text_init(json, SAID_JSON_MAX);
    if (api_member_find(said, "value"))
        return api_fail(problem, 422, s.pointer, "said has a value and a text; give one");
    if (text->kind != PE_STRING)
        return api_fail(problem, 422, s.pointer, "text is not a string");
    if (target && !target->reads_text)
        return api_fail(problem, 422, s.pointer, "%s has no flags that a shell reads; give value", target->name);
    if (strlen(text->string) > SAID_MAX)
        return api_fail(problem, 413, s.pointer, "text has %zu bytes; allowed: at most %d", strlen(text->string),
                        SAID_MAX);
    s.text = text->string;
    bool fine = !target || put_text(&s, target, json);
    *ignored = (struct pe_value){.kind = PE_LIST, .list = {s.ignored, s.n_ignored}};
    return fine;
}
