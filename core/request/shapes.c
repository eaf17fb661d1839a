/* Shapes as rows state them: "n,rotary_dim/2", evaluated over sizes and integer parameters. */
#include "core/scheme.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

/* Looks a name of length n up; false if there is none. */
typedef bool lookup_fn(const struct pe_plan *plan, const char *name, size_t n, int64_t *value);

static int64_t number_of(const char **p, lookup_fn *lookup, const struct pe_plan *plan)
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
    bool found = lookup(plan, start, (size_t)(*p - start), &value);
    assert(found && "a shape names something that is neither a size nor an integer parameter");
    (void)found;
    return value;
}

/* Writes the axes of expression to shape and returns their number. The expression is ours, so a name that is not found
 * or bad syntax is a programming error (assert). Operators * / + - apply from left to right. */
static unsigned parse_shape(const char *expression, lookup_fn *lookup, const struct pe_plan *plan, uint64_t *shape)
{
    unsigned rank = 0;
    for (const char *p = expression; *p; p += *p == ',') {
        assert(rank < PE_RANK_MAX);
        int64_t value = number_of(&p, lookup, plan);
        while (*p && *p != ',') {
            char sign = *p++;
            int64_t right = number_of(&p, lookup, plan);
            switch (sign) {
            case '*': value *= right; break;
            case '/': value /= right; break;
            case '+': value += right; break;
            case '-': value -= right; break;
            default: assert(false && "an unknown operator in a shape");
            }
        }
        assert(value >= 0);
        shape[rank++] = (uint64_t)value;
    }
    return rank;
}

static bool look_up(const struct pe_plan *plan, const char *name, size_t n, int64_t *value)
{
    const struct {
        const char *name;
        uint64_t value;
    } sizes[] = {
        {"n", plan->seq.k->n}, {"q_len", plan->seq.q->n}, {"k_len", plan->seq.k->n}, {"axes", plan->seq.n_axes}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (strncmp(sizes[i].name, name, n) == 0 && sizes[i].name[n] == '\0') {
            *value = (int64_t)sizes[i].value;
            return true;
        }
    if (plan->scheme->width && strncmp("width", name, n) == 0 && n == strlen("width")) {
        *value = (int64_t)plan->scheme->width(plan);
        return true;
    }
    return pe_param_integer(plan->scheme->info.params, plan->config, name, n, value);
}

/* Like look_up, before the scheme's plan(): a size that plan() will derive is at most the largest of those given. */
static bool look_up_most(const struct pe_plan *plan, const char *name, size_t n, int64_t *value)
{
    if (look_up(plan, name, n, value) && *value != PE_UNSET_INT)
        return true;
    *value = 0;
    for (const struct pe_param *row = plan->scheme->info.params; row->name; row++) {
        const void *field = (const char *)plan->config + row->offset;
        if (row->type == PE_T_INT && row->group == PE_G_SIZE && *(const int64_t *)field > *value)
            *value = *(const int64_t *)field;
    }
    return true;
}

unsigned pe_shape_of(const struct pe_plan *plan, const char *expression, uint64_t *shape)
{
    return parse_shape(expression, look_up, plan, shape);
}

unsigned pe_shape_most(const struct pe_plan *plan, const char *expression, uint64_t *shape)
{
    return parse_shape(expression, look_up_most, plan, shape);
}
