/* Reads lists of ranges with weights, in any order and with any number of blanks and empty elements. */
#include "api/requests/weighted.h"

enum { WEIGHT_ONE = 1000 };

static bool is_space(char c) { return c == ' ' || c == '\t'; }

/* The end of an element: a separator outside of quotes, or the end of the text. */
static const char *element_end(const char *p, const char *end, char separator)
{
    bool quoted = false;
    for (; p < end && (quoted || *p != separator); p++) {
        if (quoted && *p == '\\' && end - p > 1)
            p++;
        else if (*p == '"')
            quoted = !quoted;
    }
    return p;
}

static void trim(const char **start, const char **end)
{
    while (*start < *end && is_space(**start))
        ++*start;
    while (*start < *end && is_space((*end)[-1]))
        --*end;
}

/* "0", "0.25", "1.000": at most three decimals. ".2", which Java's own client sends, is 0.2. -1 if it is no such
 * number. */
static int read_weight(const char *p, const char *end)
{
    bool is_bare = end - p > 1 && *p == '.';
    if (p == end || (!is_bare && *p != '0' && *p != '1'))
        return -1;
    int weight = is_bare ? 0 : (*p++ - '0') * WEIGHT_ONE;
    if (p < end && *p++ != '.')
        return -1;
    for (int unit = WEIGHT_ONE / 10; p < end; p++, unit /= 10) {
        if (*p < '0' || *p > '9' || unit == 0)
            return -1;
        weight += (*p - '0') * unit;
    }
    return weight <= WEIGHT_ONE ? weight : -1;
}

/* Other parameters are ignored: no format or language of ours has any. A weight that is not a number makes the range
 * invalid. */
static int weight_of(const char *p, const char *end)
{
    while (p < end) {
        const char *start = p + 1, *stop = element_end(start, end, ';');
        p = stop;
        trim(&start, &stop);
        if (stop - start >= 2 && (*start == 'q' || *start == 'Q') && start[1] == '=')
            return read_weight(start + 2, stop);
    }
    return WEIGHT_ONE;
}

bool api_weighted_next(const char **list, const char *end, struct api_weighted *range)
{
    if (*list == end)
        return false;
    const char *start = *list, *next = element_end(start, end, ','), *stop = element_end(start, next, ';');
    range->weight = weight_of(stop, next);
    *list = next < end ? next + 1 : end;
    trim(&start, &stop);
    range->name = start;
    range->n = (size_t)(stop - start);
    return true;
}
