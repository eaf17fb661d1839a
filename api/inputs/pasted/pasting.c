/* What the readers of pasted texts share: refusals, names and lines that the answer shows, and presets by the name of a
 * model. */
#define _GNU_SOURCE /* memmem */
#include "api/inputs/pasted/pasted.h"
#include "api/text.h"

#include <stdarg.h>
#include <stdio.h>

bool pasted_fail(struct pasting *p, const char *format, ...)
{
    char sentence[PE_DETAIL_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, pe_text(format), args);
    va_end(args);
    for (char *c = sentence; *c; c++) /* of what is shown of the text */
        *c = strchr("\n\r\t", *c) ? ' ' : *c;
    return api_fail(p->problem, 422, p->pointer, "%s", sentence);
}

bool pasted_done(struct pasting *p)
{
    if (p->json.state == API_TEXT_FULL)
        return api_fail(p->problem, 413, p->pointer, "the values of the text are too long");
    return p->json.state == API_TEXT_FINE || api_fail_memory(p->problem);
}

bool pasted_name(struct pasting *p, struct pasted_names *names, const char *text, size_t n)
{
    n = n < PASTED_WORD_BYTES ? n : PASTED_WORD_BYTES;
    while (n > 0 && (text[n] & 0xc0) == 0x80)
        n--;
    for (size_t i = 0; i < names->n; i++)
        if (pasted_is(text, n, names->at[i]))
            return true;
    names->n_all++;
    if (names->n == PASTED_NAMES_MAX)
        return true;
    names->at[names->n] = api_arena_string(&p->request->arena, text, n);
    return names->at[names->n++] != NULL || api_fail_memory(p->problem);
}

bool pasted_skip(struct pasting *p, const char *line, size_t n)
{
    return n == 0 || pasted_name(p, &p->skipped, line, n);
}

bool pasted_line(const char **at, const char **line, size_t *n)
{
    static const char blanks[] = " \t\r";
    if (!**at)
        return false;
    size_t length = strcspn(*at, "\n");
    *line = *at;
    *at += length + ((*at)[length] == '\n');
    for (; length > 0 && strchr(blanks, **line); length--)
        ++*line;
    while (length > 0 && strchr(blanks, (*line)[length - 1]))
        length--;
    *n = length;
    return true;
}

bool pasted_is(const char *text, size_t n, const char *word) { return strlen(word) == n && memcmp(text, word, n) == 0; }

bool pasted_is_among(const char *list, const char *text, size_t n)
{
    for (size_t length; *list; list += length + (list[length] == '|')) {
        length = strcspn(list, "|");
        bool is_beginning = length && list[length - 1] == '*';
        if (is_beginning ? n + 1 >= length && memcmp(text, list, length - 1) == 0
                         : n == length && memcmp(text, list, n) == 0)
            return true;
    }
    return false;
}

const char *pasted_find(const char *text, size_t n, const char *what) { return memmem(text, n, what, strlen(what)); }

bool pasted_is_of_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || (c && strchr("_.+-", c));
}

size_t pasted_name_in(const char *line, size_t n)
{
    size_t name = 0;
    while (name < n && pasted_is_of_name(line[name]))
        name++;
    return name < n && line[name] == ':' && (name + 1 == n || line[name + 1] == ' ') ? name : 0;
}

const char *pasted_flag_spelled(const char *name, char spelled[PASTED_FLAG_BYTES])
{
    snprintf(spelled, PASTED_FLAG_BYTES, "--%s", name);
    for (char *c = spelled; *c; c++)
        *c = *c == '_' ? '-' : *c;
    return spelled;
}

bool pasted_is_named(const char *flag, size_t n, const char *member)
{
    bool is_same = strlen(member) == n;
    for (size_t i = 0; is_same && i < n; i++)
        is_same = flag[i] == member[i] || (strchr("-_", flag[i]) && strchr("-_", member[i]));
    return is_same;
}

const struct pe_param *pasted_row_of(const struct pe_target_info *target, const char *flag, size_t n)
{
    for (const struct pe_param *row = target->members; row->name; row++)
        if (pasted_is_named(flag, n, row->name))
            return row;
    return NULL;
}

const struct pe_param *pasted_flag_of(const struct pe_target_info *target, const char *word)
{
    size_t n = strncmp(word, "--", 2) == 0 ? strcspn(word + 2, "=") : 0;
    return n && target->members ? pasted_row_of(target, word + 2, n) : NULL;
}

bool pasted_is_a_length(const struct pe_param *row) { return strcmp(row->name, "max_model_len") == 0; }
