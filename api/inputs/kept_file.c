/* Names of stored files, and the refusal of a name that is not in memory. */
#include "api/inputs/inputs.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LETTERS_AND_DIGITS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

bool api_weight_name_is_valid(const char *name)
{
    size_t n = strspn(name, LETTERS_AND_DIGITS "._-");
    return n >= 1 && n <= API_WEIGHT_NAME_MAX && !name[n] && strchr(LETTERS_AND_DIGITS, name[0]);
}

bool api_fail_kept_name(struct api_problem *problem, const char *pointer, const struct api_contents *contents,
                        const char *name)
{
    return api_fail(problem, 422, pointer,
                    "\"%.140s\" cannot be a name of stored %s; allowed: 1 to %d letters, digits, '.', '_', '-', "
                    "the first a letter or digit; never a path or URL",
                    name, contents->what, API_WEIGHT_NAME_MAX);
}

void api_kept_limit(const struct api_store *store, char *text, size_t room)
{
    if (store->limit)
        snprintf(text, room, pe_text("the limit %s of this server"), store->limit);
    else
        snprintf(text, room, "%s", pe_text("a limit of this program"));
}

bool api_fail_kept_unknown(struct api_problem *problem, const char *pointer, const struct api_store *store,
                           enum api_found found, const char *name)
{
    const char *what = store->contents->what;
    char limit[API_LIMIT_BYTES];
    api_kept_limit(store, limit, sizeof limit);
    if (found == API_FOUND_TOO_LARGE)
        return api_fail(problem, 413, pointer,
                        "\"%.140s\" is among the stored %s, but with it this server would have more than %" PRIu64
                        " bytes of %s (%s) or more than %zu files",
                        name, what, store->bytes_max, what, limit, store->files_max);
    if (found == API_FOUND_NO_ROOM)
        return api_fail(
            problem, 503, pointer,
            "\"%.140s\" is among the stored %s, but there is no room for it now (%s): others are being read, "
            "or are still in use after they were replaced or removed; try again later",
            name, what, limit);
    if (found == API_FOUND_BUSY)
        return api_fail(problem, 503, pointer,
                        "\"%.140s\" is being read from the place of stored %s (%s of this server), which takes long or "
                        "has many requests waiting; try again later",
                        name, what, store->place);
    return api_fail(problem, 503, pointer,
                    "the place of stored %s (%s of this server) does not answer, so whether \"%.140s\" is stored "
                    "is not known; try again later",
                    what, store->place, name);
}
