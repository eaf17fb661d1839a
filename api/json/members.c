/* The members of a JSON object as they are written. This file knows brackets, quotes, and what is between members:
 * whether a name or a value is JSON is for the parser to say (json_scan.c). A long text gives up its turn while it is
 * read. */
#include "api/json/json.h"
#include "api/limits.h"
#include "api/text.h"

#include <assert.h>
#include <string.h>

/* Unlike strchr, which finds NUL in every text. */
static bool is_in(const char *set, char c) { return c && strchr(set, c); }

static const char *skip_space(const char *p, const char *end)
{
    for (uint64_t step = 0; p < end && is_in(" \t\r\n", *p) && !pe_is_cancelled_at(step); step++)
        p++;
    return p;
}

/* Behind the string that begins at p; NULL: it does not end. */
static const char *skip_string(const char *p, const char *end)
{
    uint64_t step = 0;
    for (p++; p < end && !pe_is_cancelled_at(step++); p++) {
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
    for (uint64_t step = 0; p < end && !pe_is_cancelled_at(step); step++) {
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
    bool is_object = p < end && *p == '{';
    return (struct api_json_members){.p = is_object ? p + 1 : end, .end = end, .is_broken = !is_object};
}

/* A name behind the object's bracket, or behind a comma that ends another member. NULL: the object ends, or is broken.
 */
static const char *next_name(struct api_json_members *at)
{
    const char *end = at->end, *p = skip_space(at->p, end);
    at->is_broken = at->is_broken || p == end;
    if (at->is_broken || *p == '}')
        return NULL;
    if (at->n_members++)
        p = *p == ',' ? skip_space(p + 1, end) : end;
    return p < end && *p == '"' ? p : NULL;
}

/* Of a name the value, with what is between them. False: it is none. */
static bool take_value(struct api_json_members *at, const char *name, struct api_json_member *member)
{
    const char *end = at->end, *behind = skip_string(name, end);
    if (!behind)
        return false;
    *member = (struct api_json_member){.name = name + 1, .name_bytes = (size_t)(behind - name) - 2};
    const char *p = skip_space(behind, end);
    if (p == end || *p != ':')
        return false;
    member->value = skip_space(p + 1, end);
    at->p = skip_value(member->value, end);
    member->value_bytes = at->p ? (size_t)(at->p - member->value) : 0;
    return member->value_bytes > 0;
}

bool api_json_next(struct api_json_members *at, struct api_json_member *member)
{
    size_t n = at->n_members;
    const char *name = next_name(at);
    bool is_there = name && take_value(at, name, member);
    at->is_broken = at->is_broken || (!is_there && at->n_members > n);
    return is_there;
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
    const char *end = text + n, *p = text;
    size_t depth = 0;
    for (uint64_t step = 0; p && p < end && !pe_is_cancelled_at(step); step++) {
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
