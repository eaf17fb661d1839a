/* Values as Python writes them, as JSON: dicts, lists, tuples, calls with keywords, texts in any quotes, 1_000_000,
 * names of variables that the text sets before. What has no value that is known is a text that begins with
 * PASTED_UNKNOWN, with the expression behind it. Comments, and what is inside of texts, are no code. */
#include "api/inputs/pasted/python.h"

#include <stdio.h>

enum { DEPTH_MAX = 12 };

/* ---- Bytes ---- */

static bool is_of_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

size_t python_word(const char *at, const char *end)
{
    size_t n = 0;
    while (at + n < end && is_of_word(at[n]))
        n++;
    return n && !(*at >= '0' && *at <= '9') ? n : 0;
}

/* Is the text in quotes at `at` in three of them? Then lines end inside of it. */
static size_t quotes_of(const char *at) { return at[1] == at[0] && at[2] == at[0] ? 3 : 1; }

/* Where what is in quotes ends: at its last quotes, or where it is cut. */
static const char *end_of_quoted(const char *at)
{
    size_t n = quotes_of(at);
    const char quote = *at;
    for (at += n; *at; at++) {
        if (n == 1 ? *at == quote || *at == '\n' : *at == quote && quotes_of(at) == 3)
            return at;
        at += *at == '\\' && at[1];
    }
    return at;
}

const char *python_pass(const char *at)
{
    if (*at == '#')
        return at + strcspn(at, "\n");
    if (*at != '"' && *at != '\'')
        return at + 1;
    const char *end = end_of_quoted(at);
    return *end == *at ? end + quotes_of(at) : end;
}

const char *python_blanks(const char *at, const char *end)
{
    while (at < end && strchr(" \t\r\n\\#", *at))
        at = *at == '#' ? python_pass(at) : at + 1;
    return at < end ? at : end;
}

const char *python_end(const char *at, const char *end, const char *stops)
{
    for (unsigned depth = 0; at < end && *at; at = python_pass(at)) {
        if (!depth && strchr(stops, *at))
            return at;
        depth += strchr("([{", *at) != NULL;
        if (strchr(")]}", *at) && !depth--)
            return at;
    }
    return at < end ? at : end;
}

const char *python_equals(const char *at, const char *end)
{
    const char *begin = at;
    for (; (at = python_end(at, end, "=")) < end && *at == '='; at++) {
        if (at[1] != '=' && at > begin && !strchr("=!<>:", at[-1]))
            return at;
        at += at[1] == '=';
    }
    return NULL;
}

/* ---- Values ---- */

static void put_value(const struct python *py, struct api_text *json, const char *at, const char *end, unsigned depth);
static bool put_known(const struct python *py, struct api_text *json, const char *at, const char *end, unsigned depth);

/* The expression, without ends of lines. */
static void put_unknown(const struct python *py, struct api_text *json, const char *at, const char *end)
{
    char word[PASTED_WORD_BYTES] = PASTED_UNKNOWN;
    size_t n = py->whole ? 1 : 0;
    for (; at < end && n < sizeof word - 1; at++)
        if (!strchr(" \t\r\n", *at) || (n > 1 && word[n - 1] != ' '))
            word[n++] = strchr(" \t\r\n", *at) ? ' ' : *at;
    api_text_string_n(json, word, n);
}

/* Texts behind one another are one. An f before the quotes is no text if it has braces. False: it is none. */
static bool put_texts(const struct python *py, struct api_text *json, const char *at, const char *end)
{
    char *out = api_arena_array(&py->p->request->arena, (size_t)(end - at) + 1, 1);
    size_t n = 0;
    for (; out && (at = python_blanks(at, end)) < end;) {
        const char prefix = *at;
        at += strchr("rRfFuUbB", prefix) != NULL;
        if (at >= end || !strchr("\"'", *at))
            return false;
        const char *last = end_of_quoted(at), *p = at + quotes_of(at);
        if (last >= end || *last != *at || (strchr("fF", prefix) && memchr(p, '{', (size_t)(last - p))))
            return false;
        for (; p < last; p++) {
            bool is_escape = *p == '\\' && !strchr("rR", prefix);
            p += is_escape;
            if (!is_escape || *p != '\n')
                out[n++] = is_escape && *p == 'n' ? '\n' : is_escape && *p == 't' ? '\t' : *p;
        }
        at = last + quotes_of(at);
    }
    json->state = out ? json->state : API_TEXT_NO_MEMORY;
    api_text_string_n(json, out ? out : "", n);
    return true;
}

/* 1_000_000, 5., .5, +5. */
static bool put_number(struct api_text *json, const char *at, const char *end)
{
    char number[48] = "0";
    size_t n = 0;
    at += at < end && *at == '+';
    bool is_point = at < end && *at == '.';
    for (n = is_point; at < end && n < sizeof number - 1; at++)
        if (*at != '_')
            number[n++] = *at;
    n -= n > 1 && number[n - 1] == '.';
    if (at < end || !api_is_json_number(number, n))
        return false;
    api_text_add(json, number, n);
    return true;
}

/* NAME=value, or 'name': value, … of what is between brackets. */
static void put_members(const struct python *py, struct api_text *json, const char *at, const char *end, char between,
                        unsigned depth)
{
    const char stops[] = {between, ',', '\0'};
    size_t n = 0;
    api_text_put(json, "{");
    for (at = python_blanks(at, end); at < end && !json->state; at = python_blanks(at, end)) {
        const char *key = at, *sign = python_end(at, end, stops), *last = python_end(at, end, ",");
        size_t n_word = python_word(key, end), used = json->n;
        bool has_key = sign < last && *sign == between && (between == ':' || sign[1] != '=');
        api_text_put(json, n++ ? "," : "");
        if (!has_key && (n > 1 || strchr("*", *key) || between == ':')) {
            json->n = used;
            n--;
            if (*key == '*' || between == ':') { /* **others */
                api_text_format(json, "%s\"**%zu\":", n ? "," : "", n);
                n++;
                put_value(py, json, key + strspn(key, "*"), last, depth + 1);
            }
        } else {
            if (!has_key)
                api_text_put(json, "\"model\"");
            else if (between == '=' && n_word)
                api_text_string_n(json, key, n_word);
            else if (between == '=' || !strchr("\"'", *key) || !put_texts(py, json, key, sign))
                put_unknown(py, json, key, sign);
            api_text_put(json, ":");
            put_value(py, json, has_key ? sign + 1 : key, last, depth + 1);
        }
        at = last < end ? last + 1 : end;
    }
    api_text_put(json, "}");
}

static void put_list(const struct python *py, struct api_text *json, const char *at, const char *end, unsigned depth)
{
    api_text_put(json, "[");
    for (at = python_blanks(at, end); at < end && !json->state; at = python_blanks(at, end)) {
        const char *last = python_end(at, end, ",");
        api_text_name(json, NULL);
        put_value(py, json, at, last, depth + 1);
        at = last < end ? last + 1 : end;
    }
    api_text_put(json, "]");
}

/* dict(…) and printed calls are objects; float(8e6), np.float64(0.5), json.dumps({…}) what is in them. */
static bool put_call(const struct python *py, struct api_text *json, const char *at, const char *end, unsigned depth)
{
    static const char around[] = "float|int|np.float64|np.float32|np.int64|numpy.float64|json.dumps|dumps|dict";
    const char *open = at;
    while (open < end && (is_of_word(*open) || *open == '.'))
        open++;
    size_t n = (size_t)(open - at);
    if (open >= end || *open != '(' || python_end(open + 1, end, "") + 1 != end || !pasted_is_among(around, at, n))
        return false;
    if (pasted_is(at, n, "dict") && python_equals(open + 1, end - 1))
        put_members(py, json, open + 1, end - 1, '=', depth);
    else if (python_blanks(open + 1, end - 1) == end - 1 && pasted_is(at, n, "dict"))
        api_text_put(json, "{}");
    else
        put_value(py, json, open + 1, python_end(open + 1, end - 1, ","), depth);
    return true;
}

static bool put_word(struct api_text *json, const char *at, size_t n)
{
    static const char *const words[][2] = {{"None|null", "null"}, {"True|true", "true"}, {"False|false", "false"}};
    for (size_t i = 0; i < 3; i++)
        if (pasted_is_among(words[i][0], at, n)) {
            api_text_put(json, words[i][1]);
            return true;
        }
    return false;
}

/* What is in brackets from the first byte to the last. */
static void put_bracketed(const struct python *py, struct api_text *json, const char *at, const char *end,
                          unsigned depth)
{
    bool is_value = *at == '(' && python_end(at + 1, end - 1, ",") >= end - 1;
    if (*at == '{')
        put_members(py, json, at + 1, end - 1, ':', depth);
    else if (is_value)
        put_value(py, json, at + 1, end - 1, depth + 1);
    else
        put_list(py, json, at + 1, end - 1, depth);
}

/* Without blanks and comments behind it. */
static const char *trimmed(const char *at, const char *end)
{
    const char *last = at;
    for (const char *next; at < end; at = next) {
        next = python_pass(at);
        last = strchr(" \t\r\n\\#", *at) ? last : next;
    }
    return last < end ? last : end;
}

static void put_value(const struct python *py, struct api_text *json, const char *at, const char *end, unsigned depth)
{
    at = python_blanks(at, end);
    end = trimmed(at, end);
    size_t used = json->n, n = python_word(at, end);
    bool is_word = n && at + n == end;
    const char *first, *last;
    if (json->state || (is_word && put_word(json, at, n)) || put_number(json, at, end))
        return;
    if (at < end && depth < DEPTH_MAX && strchr("([{", *at) && python_end(at + 1, end, "") + 1 == end)
        put_bracketed(py, json, at, end, depth);
    else if (is_word && depth < DEPTH_MAX && python_variable(py, at, n, &first, &last) &&
             put_known(py, json, first, last, depth + 1))
        return;
    else if (at >= end ||
             (!(depth < DEPTH_MAX && put_call(py, json, at, end, depth)) && !put_texts(py, json, at, end))) {
        json->n = used;
        put_unknown(py, json, at, end);
    }
}

/* A value, unless it is an expression: then the variable's own name shows what is not known. */
static bool put_known(const struct python *py, struct api_text *json, const char *at, const char *end, unsigned depth)
{
    static const char mark[] = "\"\\u0001";
    size_t used = json->n;
    put_value(py, json, at, end, depth);
    bool is_known = json->state || json->n < used + 7 || memcmp(json->bytes + used, mark, 7) != 0;
    json->n = is_known ? json->n : used;
    return is_known;
}

void python_put(const struct python *py, struct api_text *json, const char *at, const char *end)
{
    put_value(py, json, at, end, 0);
}

void python_put_call(const struct python *py, struct api_text *json, const char *at, const char *end)
{
    put_members(py, json, at, end, '=', 0);
}

/* ---- Statements ---- */

bool python_statement(const char **at, struct python_statement *s)
{
    const char *end = *at + strlen(*at), *begin = *at;
    while (*begin && (strchr(" \t\r\n;", *begin) || *begin == '#'))
        begin = python_pass(begin);
    const char *line = begin;
    while (line > *at && strchr(" \t", line[-1]))
        line--;
    *s = (struct python_statement){.begin = begin, .indent = (size_t)(begin - line)};
    if (!*begin)
        return false;
    s->end = python_end(begin, end, "\n;#");
    s->equals = python_equals(begin, s->end);
    *at = s->end + (*s->end && *s->end != '#');
    if (*at == s->begin)
        ++*at;
    return true;
}

bool python_target(const struct python_statement *s, const char **name, size_t *n)
{
    *name = s->begin;
    *n = s->equals ? python_word(s->begin, s->equals) : 0;
    const char *after = python_blanks(s->begin + *n, s->equals ? s->equals : s->begin);
    return *n && (after == s->equals || *after == ':');
}

/* A statement that changes the variable and is no assignment of a value: NAME.update(…), NAME["a"] = …, NAME += … */
static bool changes(const struct python_statement *s, const char *name, size_t n)
{
    size_t n_word = python_word(s->begin, s->end);
    bool is_named = n_word == n && memcmp(s->begin, name, n) == 0;
    const char *after = python_blanks(s->begin + n_word, s->end);
    return is_named && after < s->end && strchr(".[+|*-/", *after);
}

bool python_variable(const struct python *py, const char *name, size_t n, const char **first, const char **last)
{
    struct python_statement s;
    bool is_found = false, is_known = true;
    if (!py->whole || !*py->n_left)
        return false;
    --*py->n_left;
    for (const char *at = py->whole; python_statement(&at, &s);) {
        const char *target;
        size_t n_target;
        bool is_named = python_target(&s, &target, &n_target) && n_target == n && memcmp(target, name, n) == 0;
        is_known &= !changes(&s, name, n);
        if (!is_named)
            continue;
        size_t length = (size_t)(s.end - s.equals - 1);
        is_known &= !is_found || ((size_t)(*last - *first) == length && memcmp(*first, s.equals + 1, length) == 0);
        is_found = true;
        *first = s.equals + 1;
        *last = s.end;
    }
    return is_found && is_known;
}
