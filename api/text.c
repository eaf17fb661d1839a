/* Text that grows, and JSON written into it. */
#include "api/text.h"
#include "api/numbers/numbers.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 1000 }; /* with malloc's header, a size that malloc caches for each thread */

void api_text_init(struct api_text *text, size_t max) { *text = (struct api_text){.max = max}; }

void api_text_drop(struct api_text *text)
{
    free(text->bytes);
    *text = (struct api_text){.max = text->max};
}

static bool grow(struct api_text *text, size_t needed)
{
    size_t room = text->room ? text->room : FIRST_ROOM;
    while (room < needed)
        room *= 2; /* needed ≤ max, which is far from SIZE_MAX/2 */
    room = room < text->max ? room : text->max;
    char *bytes = realloc(text->bytes, room);
    if (!bytes) {
        text->state = API_TEXT_NO_MEMORY;
        return false;
    }
    text->bytes = bytes;
    text->room = room;
    return true;
}

/* The room exists already: room ≤ max, and after a failure nothing is written. */
static inline char *room_left(struct api_text *text, size_t n)
{
    return text->bytes && !text->state && n <= text->room - text->n ? text->bytes + text->n : api_text_room(text, n);
}

char *api_text_room(struct api_text *text, size_t n)
{
    if (text->state)
        return NULL;
    if (n > text->max - text->n) {
        text->state = API_TEXT_FULL;
        return NULL;
    }
    if ((n > text->room - text->n || !text->bytes) && !grow(text, text->n + n))
        return NULL;
    return text->bytes + text->n;
}

void api_text_add(struct api_text *text, const char *bytes, size_t n)
{
    char *place = room_left(text, n);
    if (!place || n == 0)
        return;
    memcpy(place, bytes, n);
    text->n += n;
}

void api_text_put(struct api_text *text, const char *string) { api_text_add(text, string, strlen(string)); }

void api_text_format(struct api_text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *place = n < 0 ? NULL : api_text_room(text, (size_t)n + 1);
    if (!place)
        return;
    va_start(args, format);
    vsnprintf(place, (size_t)n + 1, format, args);
    va_end(args);
    text->n += (size_t)n;
}

/* ---- JSON strings ---- */

/* Bytes of the well-formed UTF-8 character at s (RFC 3629: no overlong forms, no surrogates), 0 if there is none. */
static size_t utf8_length(const unsigned char *s, size_t n)
{
    static const struct {
        unsigned char lead_min, lead_max, second_min, second_max;
        size_t length;
    } forms[] = {
        {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3}, {0xe1, 0xec, 0x80, 0xbf, 3},
        {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3}, {0xf0, 0xf0, 0x90, 0xbf, 4},
        {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
    };
    if (s[0] < 0x80)
        return 1;
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        if (s[0] < forms[i].lead_min || s[0] > forms[i].lead_max || n < forms[i].length)
            continue;
        if (s[1] < forms[i].second_min || s[1] > forms[i].second_max)
            continue;
        size_t k = 2;
        while (k < forms[i].length && (s[k] & 0xc0) == 0x80)
            k++;
        return k == forms[i].length ? k : 0;
    }
    return 0;
}

static void add_escaped(struct api_text *text, unsigned char c)
{
    switch (c) {
    case '"': api_text_put(text, "\\\""); break;
    case '\\': api_text_put(text, "\\\\"); break;
    case '\n': api_text_put(text, "\\n"); break;
    case '\r': api_text_put(text, "\\r"); break;
    case '\t': api_text_put(text, "\\t"); break;
    default: api_text_format(text, "\\u%04x", c); break;
    }
}

static bool is_plain(unsigned char c) { return c >= 0x20 && c != '"' && c != '\\' && c < 0x7f; }

static void add_char(struct api_text *text, char c)
{
    char *place = room_left(text, 1);
    if (!place)
        return;
    *place = c;
    text->n++;
}

/* Nearly all strings have nothing to escape. */
static bool add_plain_string(struct api_text *text, const char *bytes, size_t n)
{
    size_t run = 0;
    while (run < n && is_plain((unsigned char)bytes[run]))
        run++;
    char *place = run == n ? room_left(text, n + 2) : NULL;
    if (!place)
        return false;
    place[0] = '"';
    if (n)
        memcpy(place + 1, bytes, n);
    place[n + 1] = '"';
    text->n += n + 2;
    return true;
}

void api_text_string_n(struct api_text *text, const char *bytes, size_t n)
{
    const unsigned char *s = (const unsigned char *)bytes;
    if (add_plain_string(text, bytes, n))
        return;
    api_text_add(text, "\"", 1);
    for (size_t i = 0; i < n;) {
        size_t run = 0;
        while (i + run < n && is_plain(s[i + run]))
            run++;
        if (run) {
            api_text_add(text, bytes + i, run);
            i += run;
            continue;
        }
        size_t length = utf8_length(s + i, n - i);
        if (length > 1)
            api_text_add(text, bytes + i, length);
        else if (length == 1)
            add_escaped(text, s[i]);
        else
            api_text_put(text, "\xef\xbf\xbd");
        i += length ? length : 1;
    }
    api_text_add(text, "\"", 1);
}

void api_text_string(struct api_text *text, const char *string) { api_text_string_n(text, string, strlen(string)); }

void api_text_named(struct api_text *text, const char *before, const char *string)
{
    api_text_put(text, before);
    api_text_string(text, string);
}

/* ---- JSON values ---- */

void api_text_integer(struct api_text *text, int64_t x)
{
    char *place = api_text_room(text, API_NUMBER_MAX);
    if (place)
        text->n += (size_t)(api_integer_print(place, x) - place);
}

void api_text_real(struct api_text *text, double x)
{
    char *place = api_text_room(text, API_NUMBER_MAX);
    if (place)
        text->n += (size_t)(api_real_print(place, x) - place);
}

void api_text_shape(struct api_text *text, const uint64_t *shape, unsigned rank)
{
    add_char(text, '[');
    for (unsigned i = 0; i < rank; i++) {
        api_text_add(text, ",", i > 0);
        api_text_integer(text, (int64_t)shape[i]);
    }
    add_char(text, ']');
}

/* In blocks, so that the reserved room stays close to the used room. Narrow numbers are printed as the doubles that
 * they are: a value is read back as doubles, and the shortest text of 0.1f is another one. */
static void add_array(struct api_text *text, const struct pe_tensor *array)
{
    enum { BLOCK = 4096 };
    struct api_elements e;
    double wide[BLOCK];
    bool is_narrow = pe_dtype_is_real(array->dtype) && array->dtype != PE_F64;
    api_elements_init(&e, is_narrow ? PE_F64 : array->dtype, array->shape, array->rank, API_DIGITS_SHORTEST);
    const char *data = array->data;
    if (e.count == 0)
        api_text_put(text, "[]");
    for (uint64_t first = 0; first < e.count; first += BLOCK) {
        size_t n = e.count - first < BLOCK ? (size_t)(e.count - first) : BLOCK;
        char *place = api_text_room(text, n * e.width);
        if (!place || pe_is_cancelled()) {
            text->state = place ? API_TEXT_NO_MEMORY : text->state; /* any failure will do: the text is not read */
            return;
        }
        const void *from = data + first * pe_dtype_size(array->dtype);
        if (is_narrow) {
            pe_convert(PE_F64, wide, array->dtype, from, n);
            from = wide;
        }
        text->n += api_elements_print(&e, from, first, n, place);
    }
}

void api_text_name(struct api_text *text, const char *name)
{
    char last = text->n ? text->bytes[text->n - 1] : '{';
    if (last != '{' && last != '[' && last != ':')
        add_char(text, ',');
    if (!name)
        return;
    api_text_string(text, name);
    add_char(text, ':');
}

void api_text_open(struct api_text *text, const char *name, char bracket)
{
    api_text_name(text, name);
    add_char(text, bracket);
}

void api_text_close(struct api_text *text, char bracket) { add_char(text, bracket); }

void api_text_member(struct api_text *text, const char *name, const char *value)
{
    api_text_name(text, name);
    api_text_string(text, value);
}

void api_text_count(struct api_text *text, const char *name, int64_t value)
{
    api_text_name(text, name);
    api_text_integer(text, value);
}

void api_text_flag(struct api_text *text, const char *name, bool value)
{
    api_text_name(text, name);
    api_text_put(text, value ? "true" : "false");
}

void api_text_aliases(struct api_text *text, const char *aliases)
{
    if (!aliases)
        return;
    api_text_open(text, "aliases", '[');
    for (const char *p = aliases; *p; p += *p == '|') {
        size_t n = strcspn(p, "|");
        api_text_name(text, NULL);
        api_text_string_n(text, p, n);
        p += n;
    }
    api_text_close(text, ']');
}

void api_text_put_described(struct api_text *text, const char *json)
{
    static const char mark[] = "\"description\":\"";
    char english[384];
    for (const char *at; (at = strstr(json, mark)); json = at) {
        at += sizeof mark - 2; /* the opening quote of the description */
        size_t n = strcspn(at + 1, "\"");
        assert(n < sizeof english);
        snprintf(english, sizeof english, "%.*s", (int)n, at + 1);
        api_text_add(text, json, (size_t)(at - json));
        api_text_string(text, pe_text(english));
        at += n + 2;
    }
    api_text_put(text, json);
}

void api_text_description(struct api_text *text, const char *english)
{
    api_text_member(text, "description", pe_text(english));
}

void api_text_pair(struct api_text *text, const char *name, const char *english, const char *chinese, enum pe_lang lang)
{
    char name_zh[32];
    snprintf(name_zh, sizeof name_zh, "%s_zh", name);
    api_text_member(text, name, lang == PE_ZH ? chinese : english);
    api_text_member(text, name_zh, chinese);
}

int api_hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The rows of api/zh.po. */
extern const struct pe_translation api_zh_rows[];
extern const size_t api_n_zh_rows;

__attribute__((constructor)) static void add_texts(void) { pe_texts_add(api_zh_rows, api_n_zh_rows); }

void api_text_about(struct api_text *text, const struct pe_about *about, enum pe_lang lang)
{
    api_text_pair(text, "label", about->label, pe_label_in(PE_ZH, about), lang);
    api_text_pair(text, "summary", about->summary, pe_summary_in(PE_ZH, about), lang);
}

void api_text_value(struct api_text *text, const struct pe_value *value)
{
    switch (value->kind) {
    case PE_NULL: api_text_put(text, "null"); break;
    case PE_BOOLEAN: api_text_put(text, value->boolean ? "true" : "false"); break;
    case PE_INTEGER: api_text_integer(text, value->integer); break;
    case PE_REAL: api_text_real(text, value->real); break;
    case PE_STRING: api_text_string(text, value->string); break;
    case PE_LIST:
        api_text_add(text, "[", 1);
        for (size_t i = 0; i < value->list.n; i++) {
            api_text_name(text, NULL);
            api_text_value(text, &value->list.items[i]);
        }
        api_text_add(text, "]", 1);
        break;
    case PE_OBJECT:
        add_char(text, '{');
        for (size_t i = 0; i < value->object.n; i++) {
            api_text_name(text, value->object.fields[i].name);
            api_text_value(text, &value->object.fields[i].value);
        }
        add_char(text, '}');
        break;
    case PE_ARRAY: add_array(text, &value->array); break;
    case PE_PRESET: api_text_string(text, value->preset->name); break;
    }
}
