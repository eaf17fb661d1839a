/* The members of a JSON object as they are written. Brackets and quotes are all that this file knows of JSON: whether a
 * text is JSON is for the parser to say (json_scan.c). */
#include "api/json/json.h"
#include "api/limits.h"
#include "api/text.h"

#include <assert.h>
#include <string.h>

/* Unlike strchr, which finds NUL in every text. */
static bool is_in(const char *set, char c) { return c && strchr(set, c); }

static const char *skip_space(const char *p, const char *end)
{
    while (p < end && is_in(" \t\r\n", *p))
        p++;
    return p;
}

/* Behind the string that begins at p; NULL: it does not end. */
static const char *skip_string(const char *p, const char *end)
{
    for (p++; p < end; p++) {
        if (*p == '\\')
            p++;
        else if (*p == '"')
            return p + 1;
    }
    return NULL;
}

static const char *skip_value(const char *p, const char *end)
{
    size_t depth = 0;
    while (p < end) {
        if (*p == '"') {
            p = skip_string(p, end);
            if (!p)
                return NULL;
        } else if (is_in("{[", *p)) {
            depth++;
            p++;
        } else if (depth == 0 && is_in(",}] \t\r\n", *p)) {
            return p;
        } else {
            depth -= is_in("}]", *p);
            p++;
        }
        if (depth == 0 && is_in("\"}]", p[-1]))
            return p;
    }
    return depth ? NULL : p;
}

struct api_json_members api_json_members(const char *object, size_t n)
{
    const char *end = object + n, *p = skip_space(object, end);
    return (struct api_json_members){.p = p < end && *p == '{' ? p + 1 : end, .end = end};
}

bool api_json_next(struct api_json_members *at, struct api_json_member *member)
{
    const char *end = at->end, *p = skip_space(at->p, end);
    if (p < end && *p == ',')
        p = skip_space(p + 1, end);
    const char *behind = p < end && *p == '"' ? skip_string(p, end) : NULL;
    if (!behind)
        return false;
    *member = (struct api_json_member){.name = p + 1, .name_bytes = (size_t)(behind - p) - 2};
    p = skip_space(behind, end);
    if (p == end || *p != ':')
        return false;
    member->value = skip_space(p + 1, end);
    behind = skip_value(member->value, end);
    if (!behind)
        return false;
    member->value_bytes = (size_t)(behind - member->value);
    at->p = behind;
    return true;
}

bool api_json_find(const char *object, size_t n, const char *name, struct api_json_member *member)
{
    struct api_json_members at = api_json_members(object, n);
    while (api_json_next(&at, member))
        if (strlen(name) == member->name_bytes && memcmp(name, member->name, member->name_bytes) == 0)
            return true;
    return false;
}

bool api_json_is_deep(const char *text, size_t n)
{
    const char *end = text + n;
    size_t depth = 0;
    for (const char *p = text; p && p < end;) {
        depth += is_in("{[", *p);
        depth -= depth && is_in("}]", *p);
        if (depth > API_DEPTH_MAX)
            return true;
        p = *p == '"' ? skip_string(p, end) : p + 1;
    }
    return false;
}

/* ---- Printing through a window ---- */

bool api_window_skip(struct api_window *window, uint64_t n)
{
    if (n > window->first || window->at > window->first - n)
        return false;
    window->at += n;
    return true;
}

void api_window_add(struct api_window *window, const char *bytes, size_t n)
{
    size_t before = 0;
    if (api_window_skip(window, n))
        return;
    if (window->at < window->first)
        before = (size_t)(window->first - window->at);
    size_t rest = n - before, room = window->room - window->n;
    memcpy(window->dst + window->n, bytes + before, rest < room ? rest : room);
    window->n += rest < room ? rest : room;
    window->at += n;
}

void api_window_put(struct api_window *window, const char *string) { api_window_add(window, string, strlen(string)); }

enum { CHUNK = 64, ESCAPED_MAX = 6 }; /* \u0001 */

/* The number of bytes, at most CHUNK, that ends with a whole character. */
static size_t chunk_bytes(const char *utf8, size_t n)
{
    size_t end = n < CHUNK ? n : CHUNK;
    while (end < n && end > 0 && ((unsigned char)utf8[end] & 0xc0) == 0x80)
        end--;
    return end;
}

void api_window_string(struct api_window *window, const char *utf8)
{
    char room[CHUNK * ESCAPED_MAX + 3]; /* quotes, and the NUL that vsnprintf writes */
    api_window_add(window, "\"", 1);
    for (size_t n = strlen(utf8), end; n > 0; utf8 += end, n -= end) {
        struct api_text text = {.bytes = room, .room = sizeof room, .max = sizeof room};
        end = chunk_bytes(utf8, n);
        api_text_string_n(&text, utf8, end);
        assert(text.state == API_TEXT_FINE);
        api_window_add(window, text.bytes + 1, text.n - 2);
    }
    api_window_add(window, "\"", 1);
}
