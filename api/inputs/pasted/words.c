/* Words of a shell, as scripts and README files have them: quotes, comments, lines that go on, arrays, and what a shell
 * would put in place of a word, which is not known and stays as it is written. */
#include "api/inputs/pasted/pasted.h"

struct splitter {
    struct pasting *p;
    const char *at;
    char *out; /* the words, each with its NUL; in the arena */
    struct pasted_words *words;
    bool begins, is_listed, skips_one; /* of the next word; it is the file of a redirection */
};

static bool fail_at(const struct splitter *s, const char *at, const char *what)
{
    return pasted_fail(s->p, "the text cannot be split into words: at byte %zu %s", (size_t)(at - s->p->text),
                       pe_text(what));
}

/* ---- Parts of a word ---- */

/* Where what begins with $ or ` ends. */
static const char *end_of_expansion(const char *at)
{
    const char *begin = at;
    unsigned depth = 0;
    if (*at == '`') {
        const char *end = strchr(at + 1, '`');
        return end ? end + 1 : at + strlen(at);
    }
    at++;
    if (*at != '(' && *at != '{') {
        while ((*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') || (*at >= '0' && *at <= '9') || *at == '_')
            at++;
        return at == begin + 1 && *at && !strchr(" \t\r\n\"'", *at) ? at + 1 : at;
    }
    do {
        depth += strchr("({", *at) != NULL;
        depth -= strchr(")}", *at) != NULL;
        at++;
    } while (*at && depth);
    return at;
}

static void copy_expansion(struct splitter *s, struct pasted_word *word)
{
    const char *end = end_of_expansion(s->at);
    memcpy(s->out, s->at, (size_t)(end - s->at));
    s->out += end - s->at;
    s->at = end;
    word->is_unknown = true;
}

static bool take_single(struct splitter *s)
{
    const char *end = strchr(s->at + 1, '\'');
    if (!end)
        return fail_at(s, s->at, "a quote is not closed");
    size_t n = (size_t)(end - s->at - 1);
    memcpy(s->out, s->at + 1, n);
    s->out += n;
    s->at = end + 1;
    return true;
}

static bool take_double(struct splitter *s, struct pasted_word *word)
{
    const char *begin = s->at++;
    while (*s->at && *s->at != '"') {
        if (*s->at == '$' || *s->at == '`') {
            copy_expansion(s, word);
            continue;
        }
        if (*s->at == '\\' && s->at[1] && strchr("$`\"\\\n", s->at[1]))
            s->at++;
        if (*s->at != '\n' || s->at[-1] != '\\')
            *s->out++ = *s->at;
        s->at++;
    }
    if (!*s->at)
        return fail_at(s, begin, "a quote is not closed");
    s->at++;
    return true;
}

/* A line goes on after \, and after what other shells have for it; people leave blanks behind it. 0: it does not. */
static size_t line_goes_on(const char *at)
{
    size_t n = 1;
    if (!strchr("\\^`", *at) || !*at)
        return 0;
    while (at[n] == ' ' || at[n] == '\t' || at[n] == '\r')
        n++;
    return at[n] == '\n' ? n + 1 : !at[n] && *at != '`' ? n : 0;
}

/* ---- Words ---- */

/* NAME=( begins a list. */
static bool begins_list(const struct splitter *s, const struct pasted_word *word)
{
    size_t n = (size_t)(s->out - word->text);
    return *s->at == '(' && n > 1 && s->out[-1] == '=';
}

static bool ends_word(const char *at)
{
    return !*at || strchr(" \t\n\r|;<>()", *at) || (*at == '&') || line_goes_on(at);
}

static bool take_word(struct splitter *s)
{
    struct pasted_words *words = s->words;
    if (words->n == PASTED_WORDS_MAX)
        return fail_at(s, s->at, "there are more than 4096 words");
    struct pasted_word *word = &words->at[words->n++];
    *word = (struct pasted_word){.text = s->out, .begins = s->begins, .is_listed = s->is_listed};
    s->begins = false;
    for (;;) {
        if (s->at[0] == '\\' && s->at[1] == '\n') { /* inside of a word */
            s->at += 2;
            continue;
        }
        if (ends_word(s->at))
            break;
        if (*s->at == '\'' ? !take_single(s) : *s->at == '"' && !take_double(s, word))
            return false;
        if (ends_word(s->at) || strchr("'\"", *s->at))
            continue;
        if (*s->at == '$' || *s->at == '`')
            copy_expansion(s, word);
        else if (*s->at == '\\' && s->at[1]) {
            *s->out++ = s->at[1];
            s->at += 2;
        } else {
            *s->out++ = *s->at++;
        }
    }
    bool is_list = begins_list(s, word);
    *s->out++ = '\0';
    bool is_item = strcmp(word->text, "-") == 0; /* of a list in YAML */
    if (is_list || is_item || s->skips_one) {    /* a name, or a file */
        words->n--;
        s->begins = word->begins && !is_item;
        s->is_listed |= is_list;
        s->at += is_list;
    }
    s->skips_one = false;
    return true;
}

/* What is no word. */
static void take_other(struct splitter *s)
{
    size_t n = line_goes_on(s->at);
    if (n) {
        s->at += n;
        return;
    }
    if (*s->at == '<' || *s->at == '>') {
        s->skips_one = true;
        if (s->words->n && s->at > s->p->text && strchr("0123456789", s->at[-1]) &&
            !s->words->at[s->words->n - 1].text[1])
            s->words->n--; /* the number of a stream */
    } else if (*s->at == ')') {
        s->is_listed = false;
        s->begins = true;
    } else if (*s->at == '&' && s->skips_one) { /* of 2>&1 */
        s->at++;
        return;
    } else if (strchr("|;&(", *s->at)) {
        s->begins = true;
        s->skips_one = false;
    }
    s->at++;
}

bool pasted_words_split(struct pasting *p, struct pasted_words *words)
{
    struct splitter s = {.p = p, .at = p->text, .words = words, .begins = true};
    s.out = api_arena_array(&p->request->arena, 2 * strlen(p->text) + 2, 1);
    words->at = api_arena_array(&p->request->arena, PASTED_WORDS_MAX, sizeof *words->at);
    words->n = 0;
    if (!s.out || !words->at)
        return api_fail_memory(p->problem);
    for (bool is_new_line = true;;) {
        while (*s.at && strchr(" \t\n\r", *s.at))
            is_new_line |= *s.at++ == '\n';
        if (*s.at == '#' && (s.at == p->text || strchr(" \t\n\r", s.at[-1]))) {
            s.at += strcspn(s.at, "\n");
            continue;
        }
        if (!*s.at)
            return true;
        if (is_new_line && *s.at != '-' && !s.is_listed)
            s.begins = true;
        is_new_line = false;
        if (!ends_word(s.at)) {
            if (!take_word(&s))
                return false;
        } else {
            take_other(&s);
        }
    }
}
