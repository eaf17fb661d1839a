/* Flags of a command line as the object that `said` takes.
 *
 * The flags become the text of a JSON object, which is read as a request is, so an object inside a flag has the same
 * limits as one in a body. Words before the first flag are the command and its operands, and are skipped. A whole
 * command line has flags about other things: those, with their operands, are listed as ignored. Refused are a flag
 * that is nearly one of the row's, since a misspelled one would count as not given, and one that another tool's row
 * has, since it is about positions. */
#include "api/inputs/inputs.h"
#include "api/inputs/pasted/pasted.h"
#include "api/json/json.h"
#include "api/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In JSON each byte becomes 6 at most, as \u0001, and each name is there once. */
enum { SAID_MAX = 65536, SAID_JSON_MAX = 7 * SAID_MAX, IGNORED_MAX = 64, IGNORED_BYTES = 128 };

struct flags {
    struct pasting *p;
    const struct pe_target_info *target;
    const struct pasted_word *words;
    size_t n;
};

/* ---- Flags ---- */

static bool is_near_letter(char a, char b)
{
    return a == b || (strchr("-_", a) && strchr("-_", b)) || ((a ^ b) == 32 && (a | 32) >= 'a' && (a | 32) <= 'z');
}

/* Is it the beginning or the end of the member's name, or the name but for a letter or two that are neighbours? */
static bool is_nearly(const char *flag, size_t n, const char *member)
{
    enum { FEW = 2, ENOUGH = 4, LONG = 8 };
    size_t m = strlen(member), least = n < m ? n : m, front = 0, back = 0;
    while (front < least && is_near_letter(flag[front], member[front]))
        front++;
    while (back < least && is_near_letter(flag[n - 1 - back], member[m - 1 - back]))
        back++;
    bool is_end = back == n && n >= LONG && m > n && strchr("-_", member[m - n - 1]);
    back = back < least - front ? back : least - front;
    return is_end || (front + back >= ENOUGH && (front == n || (n - front - back <= FEW && m - front - back <= FEW)));
}

/* ---- Flags about other things ---- */

/* Is it another tool's flag about positions, or a misspelled one of any version of this one? word: with its dashes. */
static bool check_ignored(const struct flags *f, const char *word, size_t n_word, size_t dashes)
{
    const struct pe_target_info *target = f->target;
    const char *flag = word + dashes;
    size_t n = n_word - dashes;
    int shown = (int)(n_word < IGNORED_BYTES ? n_word : IGNORED_BYTES);
    char nearest[PASTED_FLAG_BYTES];
    for (size_t i = 0; i < pe_n_targets(); i++) {
        const struct pe_target_info *other = pe_target_at(i);
        const struct pe_param *row = other->command.programs && dashes == 2 ? pasted_row_of(other, flag, n) : NULL;
        if (row && pasted_is_a_length(row) && pasted_is_kin(target, other))
            return true;
        if (row)
            return pasted_fail(f->p, "%.*s is a flag of %s, not of %s", shown, word, other->name, target->name);
    }
    if (pasted_is_named(flag, n, "max-position-embeddings")) /* Megatron-LM's, of learned positions */
        return true;
    for (size_t i = 0; i < pe_n_targets(); i++) {
        const struct pe_target_info *kin = pe_target_at(i);
        for (const struct pe_param *row = kin->members; pasted_is_kin(target, kin) && row->name; row++)
            if (is_nearly(flag, n, row->name))
                return pasted_fail(f->p, "%.*s is no flag of %s; nearest: \"%s\"", shown, word, target->name,
                                   pasted_flag_spelled(row->name, nearest));
    }
    return true;
}

/* Its first bytes, whole characters; each word once. */
static bool add_ignored(struct pasting *p, const char *word, size_t n)
{
    n = n < IGNORED_BYTES ? n : IGNORED_BYTES;
    while (n > 0 && (word[n] & 0xc0) == 0x80)
        n--;
    if (!p->ignored)
        p->ignored = api_arena_array(&p->request->arena, IGNORED_MAX, sizeof *p->ignored);
    if (!p->ignored)
        return api_fail_memory(p->problem);
    for (size_t i = 0; i < p->n_ignored; i++)
        if (strncmp(p->ignored[i].string, word, n) == 0 && !p->ignored[i].string[n])
            return true;
    if (p->n_ignored == IGNORED_MAX)
        return true;
    char *name = api_arena_string(&p->request->arena, word, n);
    if (!name)
        return api_fail_memory(p->problem);
    p->ignored[p->n_ignored++] = (struct pe_value){.kind = PE_STRING, .string = name};
    return true;
}

/* A negative number is no flag. */
static bool is_operand(const char *word) { return *word != '-' || !word[1] || strchr("0123456789.", word[1]); }

/* Ignores word *i, and the operands of a flag. */
static bool ignore(const struct flags *f, size_t *i)
{
    const char *word = f->words[*i].text;
    bool is_flag = !is_operand(word);
    size_t n = is_flag ? strcspn(word, "=") : strlen(word), dashes = is_flag ? strspn(word, "-") : 0;
    enum { SHORT = 4 }; /* -ngl, -fa, … */
    if ((dashes == 2 || (dashes == 1 && n > SHORT)) && n > dashes && !check_ignored(f, word, n, dashes))
        return false;
    while (is_flag && !word[n] && *i + 1 < f->n && is_operand(f->words[*i + 1].text))
        ++*i;
    return add_ignored(f->p, word, n);
}

/* ---- Values ---- */

/* One value alone: else it would end, and more members follow. */
static bool check_json(struct pasting *p, const char *name, const char *word)
{
    char flag[PASTED_FLAG_BYTES];
    struct api_json_error error;
    bool is_json = api_json_load(&p->request->arena, word, strlen(word), 0, &error);
    if (!is_json && error.no_memory)
        return api_fail_memory(p->problem);
    return is_json || pasted_fail(p, "%s is not JSON: %s", pasted_flag_spelled(name, flag), error.text);
}

/* One word as the value of its row. */
static bool put_value(struct pasting *p, struct api_text *json, const struct pe_param *row, const char *word)
{
    bool is_json = *word == '{' || *word == '[';
    if (row->type == PE_T_BOOL && (strcmp(word, "true") == 0 || strcmp(word, "false") == 0)) {
        api_text_put(json, word);
        return true;
    }
    if (row->type == PE_T_WORD || (!is_json && !api_is_json_number(word, strlen(word)))) {
        api_text_string(json, word);
        return true;
    }
    if (is_json && !check_json(p, row->name, word))
        return false;
    if (is_json && (strcmp(row->name, "hf_overrides") == 0 || strcmp(row->name, "json_model_override_args") == 0))
        return pasted_overrides_put(p, json, row->name, word);
    api_text_put(json, word);
    return true;
}

static bool fail_unknown(struct pasting *p, const struct pe_param *row, const char *word)
{
    char flag[PASTED_FLAG_BYTES];
    return pasted_fail(p,
                       "%s is %.80s, whose value is not known: the text gives it no value, or several; write the value "
                       "itself, in single quotes if a shell would put something else there",
                       pasted_flag_spelled(row->name, flag), word);
}

/* Flags that were read; one that is there twice has the same value, or is refused. */
struct seen {
    const struct pe_param *row[64];
    const char *value[64];
    size_t n;
};

static bool check_twice(struct pasting *p, struct seen *seen, const struct pe_param *row, const char *value,
                        bool *is_again)
{
    char flag[PASTED_FLAG_BYTES];
    size_t i = 0;
    while (i < seen->n && seen->row[i] != row)
        i++;
    *is_again = i < seen->n;
    if (*is_again && strcmp(seen->value[i], value) != 0)
        return pasted_fail(p, "%s is there twice: as %.60s and as %.60s; give one",
                           pasted_flag_spelled(row->name, flag), seen->value[i], value);
    seen->row[i] = row;
    seen->value[i] = value;
    seen->n += !*is_again;
    return true;
}

/* A number that a flag has which is not read. */
static double number_of(const struct flags *f, const char *name)
{
    double x = 0;
    for (size_t i = 0; i < f->n; i++) {
        const char *word = f->words[i].text;
        size_t n = strncmp(word, "--", 2) == 0 ? strcspn(word + 2, "=") : 0;
        const char *value = n && word[2 + n] ? word + 3 + n : i + 1 < f->n ? f->words[i + 1].text : "";
        if (n && pasted_is_named(word + 2, n, name) && api_is_json_number(value, strlen(value)))
            x = strtod(value, NULL);
    }
    return x;
}

/* The width of a head by its two sizes, where no flag states it. */
static void put_width(struct pasting *p, const struct flags *f, const struct seen *seen)
{
    const char *const *width = f->target->width;
    bool is_there = !width[0];
    for (size_t i = 0; i < seen->n; i++)
        is_there |= width[0] && strcmp(seen->row[i]->name, width[0]) == 0;
    double whole = is_there ? 0 : number_of(f, width[1]), heads = is_there ? 0 : number_of(f, width[2]);
    if (heads >= 1 && whole >= heads && whole / heads <= 65536 && fmod(whole, heads) == 0)
        api_text_count(&p->json, width[0], (int64_t)(whole / heads));
}

bool pasted_flags_put(struct pasting *p, const struct pe_target_info *target, const struct pasted_word *words, size_t n)
{
    struct flags f = {p, target, words, n};
    struct seen seen = {.n = 0};
    size_t i = 0;
    while (i < n && *words[i].text != '-') /* the command */
        i++;
    api_text_put(&p->json, "{");
    for (; i < n; i++) {
        const struct pe_param *row = pasted_flag_of(target, words[i].text);
        size_t length = strcspn(words[i].text, "=");
        const char *value = words[i].text[length] ? words[i].text + length + 1 : NULL;
        bool is_again, is_switch = row && row->type == PE_T_BOOL && !value, is_unknown = words[i].is_unknown;
        if (!row) {
            if (!ignore(&f, &i))
                return false;
            continue;
        }
        if (!value && !is_switch && i + 1 < n) {
            value = words[++i].text;
            is_unknown |= words[i].is_unknown;
        }
        value = is_switch ? "true" : value;
        char flag[PASTED_FLAG_BYTES];
        if (!value)
            return pasted_fail(p, "%s has no value", pasted_flag_spelled(row->name, flag));
        if (is_unknown)
            return fail_unknown(p, row, value);
        if (!check_twice(p, &seen, row, value, &is_again))
            return false;
        if (is_again)
            continue;
        api_text_name(&p->json, row->name);
        if (!put_value(p, &p->json, row, value))
            return false;
    }
    put_width(p, &f, &seen);
    api_text_put(&p->json, "}");
    return pasted_done(p);
}

/* ---- The field ---- */

/* An unknown target is left to the core, which names the nearest. */
bool api_said_flags(struct pasting *p, const struct pe_value *said)
{
    struct pasted_words words;
    const struct pe_value *text = api_member_find(said, "text"), *to = api_member_find(said, "to");
    const struct pe_target_info *target = to && to->kind == PE_STRING ? pe_target_info_find(to->string) : NULL;
    if (api_member_find(said, "value"))
        return pasted_fail(p, "said has a value and a text; give one");
    if (text->kind != PE_STRING)
        return pasted_fail(p, "text is not a string");
    if (target && !target->command.programs && !strchr(text->string, '{'))
        return pasted_fail(p, "%s has no flags that a shell reads; give value", target->name);
    if (strlen(text->string) > SAID_MAX)
        return api_fail(p->problem, 413, p->pointer, "text has %zu bytes; allowed: at most %d", strlen(text->string),
                        SAID_MAX);
    p->text = text->string + strspn(text->string, " \t\r\n");
    api_text_init(&p->json, SAID_JSON_MAX);
    if (target && *p->text == '{')
        return pasted_object_put(p);
    return !target || (pasted_words_split(p, &words) && pasted_command_choose(p, target, &words) &&
                       pasted_flags_put(p, target, words.at, words.n));
}
