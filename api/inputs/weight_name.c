/* Names of stored weights, and the refusal of a name that is not in memory. */
#include "api/inputs/tensor_table.h"

#include <inttypes.h>
#include <string.h>

#define LETTERS_AND_DIGITS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

bool api_weight_name_is_valid(const char *name)
{
    size_t n = strspn(name, LETTERS_AND_DIGITS "._-");
    return n >= 1 && n <= API_WEIGHT_NAME_MAX && !name[n] && strchr(LETTERS_AND_DIGITS, name[0]);
}

bool api_fail_weight_name(struct api_problem *problem, const char *pointer, const char *name)
{
    return api_fail(problem, 422, pointer,
                    "\"%.140s\" cannot be a name of stored weights; allowed: 1 to %d letters, digits, '.', '_', '-', "
                    "the first a letter or digit; never a path or URL",
                    name, API_WEIGHT_NAME_MAX);
}

bool api_fail_unknown_weights(struct api_problem *problem, const char *pointer, const struct api_store *store,
                              enum api_found found, const char *name)
{
    if (found == API_FOUND_TOO_LARGE)
        return api_fail(problem, 413, pointer,
                        "weights \"%.140s\" are stored, but with them this server would have more than %" PRIu64
                        " bytes of weights (its limit --max-weights) or more than %zu files",
                        name, store->bytes_max, store->files_max);
    return api_fail(problem, 503, pointer,
                    "the place of stored weights (%s of this server) does not answer, so whether \"%.140s\" are stored "
                    "is not known; try again later",
                    store->place, name);
}
