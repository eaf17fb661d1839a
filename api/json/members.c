/* The members of a JSON object as they are written. Brackets and quotes are all that this file knows of JSON: whether a
 * text is JSON is for the parser to say (json_scan.c). */
#include "api/json/json.h"
#include "api/limits.h"

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
