/* The evaluator of shape expressions. */
#include "core/request/shape.h"

#include <assert.h>
#include <ctype.h>

static int64_t operand(const char **p, pe_lookup_fn lookup, const void *context)
{
    const char *start = *p;
    int64_t value = 0;
    if (isdigit((unsigned char)*start)) {
        while (isdigit((unsigned char)**p))
            value = 10 * value + (*(*p)++ - '0');
        return value;
    }
    while (isalnum((unsigned char)**p) || **p == '_')
        (*p)++;
    bool found = lookup(context, start, (size_t)(*p - start), &value);
    assert(found && "a shape names something that is neither a size nor an integer parameter");
    (void)found;
    return value;
}

static int64_t axis(const char **p, pe_lookup_fn lookup, const void *context)
{
    int64_t value = operand(p, lookup, context);
    while (**p && **p != ',') {
        char sign = *(*p)++;
        int64_t right = operand(p, lookup, context);
        switch (sign) {
        case '*': value *= right; break;
        case '/': value /= right; break;
        case '+': value += right; break;
        case '-': value -= right; break;
        default: assert(false && "an unknown operator in a shape");
        }
    }
    return value;
}

void pe_shape_parse(const char *expression, pe_lookup_fn lookup, const void *context, uint64_t *shape, unsigned *rank)
{
    *rank = 0;
    for (const char *p = expression; *p; p += *p == ',') {
        assert(*rank < PE_RANK_MAX);
        int64_t value = axis(&p, lookup, context);
        assert(value >= 0);
        shape[(*rank)++] = (uint64_t)value;
    }
}
