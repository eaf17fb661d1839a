/* Owns the syntax of the configuration file: strict JSON (RFC 8259), but flat. No option has a nested value, so the
 * parser does not recurse. */
#include "server/process/process.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* STRING_MAX includes the final NUL. A string may be as long as the longest path and as all the values of a repeated
 * flag together. A longer string is refused, never truncated. */
enum { STRING_MAX = 4096 + 1, KEYS_MAX = 64 };

struct reader {
    const char *begin, *at, *end;
    char *error;
    char keys[KEYS_MAX][64]; /* keys seen so far; a duplicate is refused */
    size_t n_keys;
};

static bool fail(struct reader *reader, const char *format, ...) __attribute__((format(printf, 2, 3)));

static bool fail(struct reader *reader, const char *format, ...)
{
    size_t line = 1, column = 1;
    for (const char *s = reader->begin; s < reader->at; s++, column++)
        if (*s == '\n')
            line++, column = 0;
    int n = snprintf(reader->error, CONFIG_FILE_ERROR_BYTES, "line %zu, column %zu: ", line, column);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reader->error + n, CONFIG_FILE_ERROR_BYTES - (size_t)n, format, arguments);
    va_end(arguments);
    return false;
}

static void skip_space(struct reader *reader)
{
    while (reader->at < reader->end && strchr(" \t\r\n", *reader->at) && *reader->at)
        reader->at++;
}

static bool skip_char(struct reader *reader, char c)
{
    skip_space(reader);
    if (reader->at == reader->end || *reader->at != c)
        return false;
    reader->at++;
    return true;
}

/* The character that a one-letter escape denotes, or 0 if there is no such escape. */
static char escape_value(char c)
{
    static const char letters[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    const char *found = c ? strchr(letters, c) : NULL;
    return found ? values[found - letters] : '\0';
}

/* Numeric escapes (\u....) are not supported: no option needs them, and file names can be written directly in UTF-8. */
static bool read_string(struct reader *reader, char *dst)
{
    size_t n = 0;
    for (reader->at++; reader->at < reader->end && *reader->at != '"'; reader->at++) {
        char c = *reader->at;
        if ((unsigned char)c < 0x20)
            return fail(reader, "a control character in a string");
        if (c == '\\') {
            c = ++reader->at < reader->end ? escape_value(*reader->at) : '\0';
            if (!c)
                return fail(reader, "an escape other than \\\" \\\\ \\/ \\b \\f \\n \\r \\t");
        }
        if (n == STRING_MAX - 1)
            return fail(reader, "a string of more than %d bytes", STRING_MAX - 1);
        dst[n++] = c;
    }
    dst[n] = '\0';
    if (reader->at == reader->end)
        return fail(reader, "the string does not end");
    reader->at++;
    return true;
}

static const char *skip_digits(const char *s) { return s + strspn(s, "0123456789"); }

/* Whether the whole word is a JSON number: -? (0 | 1-9 digits) (. digits)? (e ±? digits)? */
static bool is_number(const char *s)
{
    s += *s == '-';
    const char *digits = s;
    s = *s == '0' ? s + 1 : skip_digits(s);
    if (s == digits)
        return false;
    if (*s == '.') {
        digits = s + 1;
        s = skip_digits(digits);
        if (s == digits)
            return false;
    }
    if (*s == 'e' || *s == 'E') {
        digits = s + 1 + (s[1] == '+' || s[1] == '-');
        s = skip_digits(digits);
        if (s == digits)
            return false;
    }
    return *s == '\0';
}

static bool read_word(struct reader *reader, char *dst)
{
    size_t n = 0;
    while (reader->at + n < reader->end && n < STRING_MAX - 1 && !strchr(" \t\r\n,:{}[]\"", reader->at[n]))
        n++;
    if (n == STRING_MAX - 1)
        return fail(reader, "a value of %d characters or more", STRING_MAX - 1);
    memcpy(dst, reader->at, n);
    dst[n] = '\0';
    if (!is_number(dst) && strcmp(dst, "true") != 0 && strcmp(dst, "false") != 0 && strcmp(dst, "null") != 0)
        return fail(reader, "expected a string, a number, true, false or null");
    reader->at += n;
    return true;
}

static bool is_new_key(struct reader *reader, const char *key)
{
    for (size_t i = 0; i < reader->n_keys; i++)
        if (strncmp(reader->keys[i], key, sizeof *reader->keys - 1) == 0)
            return fail(reader, "duplicate key \"%.60s\"", key);
    if (reader->n_keys == KEYS_MAX)
        return fail(reader, "more than %d keys", KEYS_MAX);
    snprintf(reader->keys[reader->n_keys++], sizeof *reader->keys, "%.*s", (int)sizeof *reader->keys - 1, key);
    return true;
}

static bool read_member(struct reader *reader, config_file_member *member, void *self)
{
    char key[STRING_MAX], value[STRING_MAX];
    skip_space(reader);
    if (reader->at == reader->end || *reader->at != '"')
        return fail(reader, "expected a key in double quotes");
    if (!read_string(reader, key) || !is_new_key(reader, key))
        return false;
    if (!skip_char(reader, ':'))
        return fail(reader, "expected : after the key \"%.60s\"", key);
    skip_space(reader);
    bool is_string = reader->at < reader->end && *reader->at == '"';
    if (!(is_string ? read_string(reader, value) : read_word(reader, value)))
        return false;
    if (!is_string && strcmp(value, "null") == 0)
        return true;
    char reason[CONFIG_FILE_ERROR_BYTES] = "";
    return member(self, key, value, reason) || fail(reader, "%s", reason);
}

bool config_file_parse(const char *text, size_t n_bytes, config_file_member *member, void *self, char *error)
{
    struct reader reader = {.begin = text, .at = text, .end = text + n_bytes, .error = error};
    if (!skip_char(&reader, '{'))
        return fail(&reader, "expected {, a JSON object");
    if (!skip_char(&reader, '}')) {
        do {
            if (!read_member(&reader, member, self))
                return false;
        } while (skip_char(&reader, ','));
        if (!skip_char(&reader, '}'))
            return fail(&reader, "expected , or }");
    }
    skip_space(&reader);
    return reader.at == reader.end || fail(&reader, "text after the object");
}

bool config_file_read(const char *path, config_file_member *member, void *self, char *error)
{
    FILE *file = fopen(path, "re");
    char *text = file ? malloc(CONFIG_FILE_MAX_BYTES + 1) : NULL;
    char reason[CONFIG_FILE_ERROR_BYTES] = "cannot be read";
    bool done = false;
    if (text) {
        size_t n = fread(text, 1, CONFIG_FILE_MAX_BYTES + 1, file);
        if (n > CONFIG_FILE_MAX_BYTES)
            snprintf(reason, sizeof reason, "is larger than %d bytes", CONFIG_FILE_MAX_BYTES);
        else if (!ferror(file))
            done = config_file_parse(text, n, member, self, reason);
    }
    if (!done)
        snprintf(error, CONFIG_FILE_ERROR_BYTES, "%.100s: %.150s", path, reason);
    free(text);
    if (file)
        fclose(file);
    return done;
}
