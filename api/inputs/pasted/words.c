/* Words of a shell, as scripts and README files have them: quotes, comments, lines that go on, arrays, and what a shell
 * would put in place of a word, which is not known and stays as it is written. */
#include "api/inputs/pasted/pasted.h"

/* A variable that the text sets: to a word, or to a list of them. */
struct variable {
    const char *name;
    size_t n;
    const char *value;     /* NULL: not known, or there are several */
    size_t first, n_words; /* of a list; n_words 0: it is none */
};

enum { VARIABLES_MAX = 64, EXPANDED_MAX = 65536 };

struct splitter {
    struct pasting *p;
    const char *at;
    char *out, *out_end; /* the words, each with its NUL; in the arena */
    struct pasted_words *words;
    bool begins, is_listed, skips_one; /* of the next word; it is the file of a redirection */
    bool may_assign;                   /* the command has only set variables so far */
    struct variable list;              /* that is being read */
    struct variable variables[VARIABLES_MAX];
    size_t n_variables;
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

static struct pasted_word *last(const struct splitter *s) { return &s->words->at[s->words->n - 1]; }

/* Another word of the same command. */
static bool begin_word(struct splitter *s, bool begins)
{
    if (s->words->n == PASTED_WORDS_MAX)
        return fail_at(s, s->at, "there are more than 4096 words");
    s->words->at[s->words->n++] = (struct pasted_word){.text = s->out, .begins = begins, .is_listed = s->is_listed};
    return true;
}

static bool copy_bytes(struct splitter *s, const char *text, size_t n)
{
    if ((size_t)(s->out_end - s->out) <= n)
        return fail_at(s, s->at, "its variables are too long");
    memcpy(s->out, text, n);
    s->out += n;
    return true;
}

/* Outside of quotes a value is cut at blanks. */
static bool copy_value(struct splitter *s, const char *value, size_t n, bool is_quoted)
{
    while (!is_quoted && n && strchr(" \t\n", value[n - 1]))
        n--;
    for (size_t i = 0, length; i < n; i += length) {
        length = is_quoted ? n : 0;
        while (i + length < n && !strchr(" \t\n", value[i + length]))
            length++;
        if (!copy_bytes(s, value + i, length))
            return false;
        for (bool cuts = length && !is_quoted; i + length < n && strchr(" \t\n", value[i + length]); cuts = false) {
            length++;
            if (cuts && i + length < n && (!copy_bytes(s, "", 1) || !begin_word(s, false)))
                return false;
        }
    }
    return true;
}

static bool copy_list(struct splitter *s, const struct variable *v)
{
    for (size_t i = 0; i < v->n_words; i++) {
        struct pasted_word word = s->words->at[v->first + i];
        if ((i && (!copy_bytes(s, "", 1) || !begin_word(s, false))) || !copy_bytes(s, word.text, strlen(word.text)))
            return false;
        last(s)->is_unknown |= word.is_unknown;
    }
    return true;
}

static const struct variable *find_variable(const struct splitter *s, const char *name, size_t n)
{
    for (size_t i = 0; i < s->n_variables; i++)
        if (s->variables[i].n == n && memcmp(s->variables[i].name, name, n) == 0)
            return &s->variables[i];
    return NULL;
}

static size_t name_length(const char *at)
{
    size_t n = 0;
    while ((at[n] >= 'a' && at[n] <= 'z') || (at[n] >= 'A' && at[n] <= 'Z') || at[n] == '_' ||
           (at[n] >= '0' && at[n] <= '9'))
        n++;
    return n;
}

/* $NAME, ${NAME}, ${NAME[@]}, ${NAME:-otherwise}; of others the value is not known. */
static bool copy_expansion(struct splitter *s, bool is_quoted)
{
    const char *begin = s->at, *end = end_of_expansion(begin), *name = begin + 1;
    bool has_braces = *name == '{' && end[-1] == '}';
    name += has_braces;
    size_t n = name_length(name), n_rest = (size_t)(end - has_braces - (name + n));
    const char *rest = name + n;
    const struct variable *v = *begin == '$' && n ? find_variable(s, name, n) : NULL;
    bool is_whole = n_rest == 0 || pasted_is_among("[@]|[*]", rest, n_rest);
    bool has_other =
        n_rest > 2 && memcmp(rest, ":-", 2) == 0 && !memchr(rest, '$', n_rest) && !memchr(rest, '`', n_rest);
    s->at = end;
    if (v && v->n_words && is_whole)
        return copy_list(s, v);
    if (v && v->value && (is_whole || has_other))
        return copy_value(s, v->value, strlen(v->value), is_quoted);
    if (!v && n && has_other)
        return copy_value(s, rest + 2, n_rest - 2, is_quoted);
    last(s)->is_unknown = true;
    return copy_bytes(s, begin, (size_t)(end - begin));
}

static bool take_double(struct splitter *s)
{
    const char *begin = s->at++;
    while (*s->at && *s->at != '"') {
        if (*s->at == '$' || *s->at == '`') {
            if (!copy_expansion(s, true))
                return false;
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

/* ---- Variables ---- */

/* The word so far is NAME=, where a command sets a variable. */
static bool is_assignment(const struct splitter *s)
{
    const char *text = last(s)->text;
    size_t n = name_length(text), length = (size_t)(s->out - text);
    return s->may_assign && n && n < length && (text[n] == '=' || (n + 1 < length && memcmp(text + n, "+=", 2) == 0));
}

/* A variable that is set twice has no value that is known, unless it is the same. */
static void set_variable(struct splitter *s, const struct pasted_word *word)
{
    const char *name = word->text;
    size_t n = name_length(name);
    const char *value = word->is_unknown || name[n] == '+' ? NULL : name + n + 1;
    struct variable *v = (struct variable *)(uintptr_t)find_variable(s, name, n);
    bool is_again = v && (v->n_words || !value || !v->value || strcmp(v->value, value) != 0);
    if (!v && s->n_variables == VARIABLES_MAX)
        return;
    if (!v)
        s->variables[s->n_variables++] = (struct variable){.name = name, .n = n, .value = value};
    else if (is_again)
        v->value = NULL;
}

/* NAME=( begins a list, NAME+=( goes on with one. */
static bool begin_list(struct splitter *s, const char *name)
{
    size_t n = name_length(name);
    const struct variable *before = find_variable(s, name, n);
    s->list = (struct variable){.name = name, .n = n, .first = s->words->n};
    s->is_listed = true;
    if (!before || !before->n_words || name[n] != '+')
        return true;
    return begin_word(s, false) && copy_list(s, before) && copy_bytes(s, "", 1);
}

/* One with words in several lists of its name is not known. */
static void end_list(struct splitter *s)
{
    struct variable *v = (struct variable *)(uintptr_t)find_variable(s, s->list.name, s->list.n);
    bool is_again = v && v->n_words && s->list.name[s->list.n] != '+';
    s->list.n_words = is_again ? 0 : s->words->n - s->list.first;
    if (v)
        *v = s->list;
    else if (s->n_variables < VARIABLES_MAX)
        s->variables[s->n_variables++] = s->list;
}

/* ---- Words ---- */

static bool ends_word(const char *at)
{
    return !*at || strchr(" \t\n\r|;<>()", *at) || (*at == '&') || line_goes_on(at);
}

/* The next byte, or what is quoted or put in its place. */
static bool take_part(struct splitter *s)
{
    if (*s->at == '\'') {
        const char *end = strchr(s->at + 1, '\'');
        if (!end)
            return fail_at(s, s->at, "a quote is not closed");
        bool fine = copy_bytes(s, s->at + 1, (size_t)(end - s->at - 1));
        s->at = end + 1;
        return fine;
    }
    if (*s->at == '"')
        return take_double(s);
    if (*s->at == '$' || *s->at == '`')
        return copy_expansion(s, is_assignment(s));
    bool is_path = s->out > last(s)->text && pasted_is_of_name(s->at[1]); /* of Windows: C:\models */
    s->at += *s->at == '\\' && s->at[1] && !is_path;
    return copy_bytes(s, s->at++, 1);
}

/* What a word is: of a command, or a name, or a file, or the mark of an item in YAML, which are none. */
static bool end_word(struct splitter *s, const struct pasted_word *word)
{
    static const char before[] = "export|local|declare|readonly|typeset|then|else|do|-x|-r|-a";
    bool is_list = *s->at == '(' && s->out - word->text > 1 && s->out[-1] == '=';
    bool is_item = pasted_is(word->text, (size_t)(s->out - word->text), "-"), sets = is_assignment(s);
    if (!copy_bytes(s, "", 1))
        return false;
    if (sets && !is_list)
        set_variable(s, word);
    s->may_assign = sets || (s->may_assign && pasted_is_among(before, word->text, strlen(word->text)));
    if (is_list || is_item || s->skips_one) {
        s->words->n--;
        s->begins = word->begins && !is_item;
    }
    s->skips_one = false;
    s->at += is_list;
    return !is_list || begin_list(s, word->text);
}

static bool take_word(struct splitter *s)
{
    const char *begin = s->at;
    s->may_assign |= s->begins;
    if (!begin_word(s, s->begins))
        return false;
    s->begins = false;
    for (;;) {
        while (strncmp(s->at, "\\\n", 2) == 0) /* inside of a word */
            s->at += 2;
        if (ends_word(s->at))
            break;
        if (!take_part(s))
            return false;
    }
    bool is_empty = *begin == '$' && s->out == last(s)->text; /* a variable without words */
    if (!is_empty)
        return end_word(s, last(s));
    s->begins = last(s)->begins;
    s->words->n--;
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
        if (s->is_listed)
            end_list(s);
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
    size_t room = 2 * strlen(p->text) + 2 + EXPANDED_MAX;
    s.out = api_arena_array(&p->request->arena, room, 1);
    s.out_end = s.out + room;
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
