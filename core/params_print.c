/* Reads a config after parsing: evaluates conditions, looks up single values, and prints the resolved config. */
#include "core/params.h"

#include <string.h>

/* Is word one of the alternatives "a|b|c"? */
bool pe_is_among(const char *alternatives, const char *word)
{
    for (const char *p = alternatives; p;) {
        const char *w = word;
        for (; *p == *w && *p && *p != '|'; p++) /* a word that contains '|' is not an alternative */
            w++;
        if (*w == '\0' && (*p == '|' || *p == '\0'))
            return true;
        p = strchr(p, '|');
        p = p ? p + 1 : NULL;
    }
    return false;
}

static bool word_is_among(const struct pe_param *row, int index, const char *alternatives)
{
    return pe_is_among(alternatives, index == PE_UNSET_WORD ? "" : row->words[index]);
}

bool pe_when_holds(const char *when, const struct pe_param *rows, const void *config)
{
    if (!when)
        return true;
    size_t n = 0;
    while (when[n] != '=')
        n++;
    for (; rows->name; rows++)
        if (*rows->name == *when && strncmp(rows->name, when, n) == 0 && rows->name[n] == '\0')
            return word_is_among(rows, *(const int *)((const char *)config + rows->offset), when + n + 1);
    return false;
}

bool pe_param_integer(const struct pe_param *rows, const void *config, const char *name, size_t n, int64_t *value)
{
    for (; rows->name; rows++)
        if (rows->type == PE_T_INT && strncmp(rows->name, name, n) == 0 && rows->name[n] == '\0') {
            *value = *(const int64_t *)((const char *)config + rows->offset);
            return *value != PE_UNSET_INT;
        }
    return false;
}

static bool print_value(const struct pe_param *row, const void *config, struct pe_value *v, struct pe_field **nested)
{
    const void *field = (const char *)config + row->offset;
    switch (row->type) {
    case PE_T_INT:
        *v = (struct pe_value){.kind = PE_INTEGER, .integer = *(const int64_t *)field};
        return v->integer != PE_UNSET_INT;
    case PE_T_REAL: *v = (struct pe_value){.kind = PE_REAL, .real = *(const double *)field}; return !isnan(v->real);
    case PE_T_BOOL: *v = (struct pe_value){.kind = PE_BOOLEAN, .boolean = *(const bool *)field}; return true;
    case PE_T_WORD:
        if (*(const int *)field == PE_UNSET_WORD)
            return false;
        *v = (struct pe_value){.kind = PE_STRING, .string = row->words[*(const int *)field]};
        return true;
    case PE_T_REALS:
        *v = (struct pe_value){.kind = PE_ARRAY, .array = ((const struct pe_reals *)field)->array};
        return ((const struct pe_reals *)field)->n > 0;
    case PE_T_VALUE:
        if (*(const struct pe_value *const *)field)
            *v = **(const struct pe_value *const *)field;
        return *(const struct pe_value *const *)field != NULL;
    case PE_T_OBJECT: {
        struct pe_field *fields = *nested;
        *nested += pe_params_count(row->fields);
        size_t n = pe_params_print(row->fields, field, fields, nested);
        *v = (struct pe_value){.kind = PE_OBJECT, .object = {fields, n}};
        return true;
    }
    }
    return false;
}

/* The rows that exclude others and are set; usually none. All of them are in first … end-1. */
struct excluding {
    const struct pe_param *first, *end;
};

static bool excludes(const struct pe_param *row, const void *config)
{
    struct pe_value v;
    return row->excludes && print_value(row, config, &v, NULL);
}

static struct excluding find_excluding(const struct pe_param *rows, const void *config)
{
    struct excluding range = {NULL, NULL};
    for (; rows->name; rows++)
        if (excludes(rows, config)) {
            range.first = range.first ? range.first : rows;
            range.end = rows + 1;
        }
    return range;
}

/* Does another parameter that is set exclude this one? */
static bool is_excluded(const struct excluding *range, const struct pe_param *row, const void *config)
{
    for (const struct pe_param *other = range->first; other < range->end; other++)
        if (excludes(other, config) && pe_is_among(other->excludes, row->name))
            return true;
    return false;
}

/* Neighbouring rows mostly share the pointer to their condition, so it is evaluated once for all of them. */
size_t pe_params_print(const struct pe_param *rows, const void *config, struct pe_field *fields,
                       struct pe_field **nested)
{
    const struct excluding excluding = find_excluding(rows, config);
    const char *when = NULL;
    bool holds = true;
    size_t n = 0;
    for (const struct pe_param *row = rows; row->name; row++) {
        if (row->when != when)
            holds = pe_when_holds(when = row->when, rows, config);
        if (holds && !is_excluded(&excluding, row, config) && print_value(row, config, &fields[n].value, nested))
            fields[n++].name = row->name;
    }
    return n;
}

size_t pe_params_count(const struct pe_param *rows)
{
    size_t n = 0;
    for (; rows->name; rows++)
        n += 1 + (rows->type == PE_T_OBJECT ? pe_params_count(rows->fields) : 0);
    return n;
}
