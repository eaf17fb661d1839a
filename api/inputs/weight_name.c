/* Names of stored weights. */
#include "api/inputs/tensor_table.h"

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
