/* Compares fields with their expected values, written as JSON. */
#include "tests/support/cmocka.h"
#include "tests/support/request.h"

#include <string.h>

static bool number(const struct pe_value *v, double *x)
{
    *x = v->kind == PE_INTEGER ? (double)v->integer : v->real;
    return v->kind == PE_INTEGER || v->kind == PE_REAL;
}

static bool equal_objects(const struct pe_field *a, size_t n_a, const struct pe_field *b, size_t n_b);
static bool equal_lists(const struct pe_value *a, const struct pe_value *b);

/* 4 and 4.0 are equal; lists of numbers are f64 on both sides. */
static bool equal_values(const struct pe_value *a, const struct pe_value *b)
{
    double x, y;
    if (number(a, &x) && number(b, &y))
        return x == y;
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case PE_BOOLEAN: return a->boolean == b->boolean;
    case PE_STRING: return strcmp(a->string, b->string) == 0;
    case PE_OBJECT: return equal_objects(a->object.fields, a->object.n, b->object.fields, b->object.n);
    case PE_LIST: return equal_lists(a, b);
    case PE_ARRAY:
        return a->array.dtype == PE_F64 && a->array.rank == b->array.rank && a->array.shape[0] == b->array.shape[0] &&
               memcmp(a->array.data, b->array.data, a->array.shape[0] * sizeof(double)) == 0;
    default: return false;
    }
}

static bool equal_lists(const struct pe_value *a, const struct pe_value *b)
{
    for (size_t i = 0; a->list.n == b->list.n && i < a->list.n; i++)
        if (!equal_values(&a->list.items[i], &b->list.items[i]))
            return false;
    return a->list.n == b->list.n;
}

static const struct pe_field *find(const struct pe_field *fields, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(fields[i].name, name) == 0)
            return &fields[i];
    return NULL;
}

static bool equal_objects(const struct pe_field *a, size_t n_a, const struct pe_field *b, size_t n_b)
{
    for (size_t i = 0; i < n_a; i++) {
        const struct pe_field *other = find(b, n_b, a[i].name);
        if (!other || !equal_values(&a[i].value, &other->value)) {
            print_error("%s differs or is missing\n", a[i].name);
            return false;
        }
    }
    return n_a == n_b;
}

void test_fields_equal(const char *what, const struct pe_field *fields, size_t n, const char *expected)
{
    struct test_request r;
    test_request_parse(&r, expected);
    if (!equal_objects(r.fields, r.n, fields, n))
        fail_msg("%s: expected %zu fields, %s; got %zu", what, r.n, expected, n);
    test_request_drop(&r);
}
