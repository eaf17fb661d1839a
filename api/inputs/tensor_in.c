/* A tensor written in JSON, checked and made dense. */
#include "api/inputs/tensor_in.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const member_names[] = {"dtype", "shape", "data", NULL};

struct draft {
    const struct pe_value *dtype, *shape, *data; /* NULL: not given */
    const char *pointer;                         /* of the object */
    struct api_problem *problem;
};

static bool fail_member(const struct draft *d, const char *member, const char *what)
{
    char pointer[PE_POINTER_MAX];
    snprintf(pointer, sizeof pointer, "%s", d->pointer);
    api_pointer_push(pointer, member, strlen(member));
    return api_fail(d->problem, 422, pointer, "%s", what);
}

static bool fail_unknown(const struct draft *d, const char *name)
{
    char what[PE_DETAIL_MAX];
    const char *nearest = pe_nearest(name, member_names);
    snprintf(what, sizeof what, "unknown member \"%.64s\" of a tensor; %s%s", name,
             nearest ? "nearest: " : "allowed: dtype, shape, data", nearest ? nearest : "");
    return fail_member(d, name, what);
}

static bool find_members(struct draft *d, const struct pe_value *object)
{
    for (size_t i = 0; i < object->object.n; i++) {
        const struct pe_field *field = &object->object.fields[i];
        if (strcmp(field->name, "dtype") == 0)
            d->dtype = &field->value;
        else if (strcmp(field->name, "shape") == 0)
            d->shape = &field->value;
        else if (strcmp(field->name, "data") == 0)
            d->data = &field->value;
        else
            return fail_unknown(d, field->name);
    }
    return d->data || fail_member(d, "data", "data is null; allowed: a list of numbers");
}

/* ---- Data, shape, dtype ---- */

/* A single number is a tensor of rank 0, an empty list a tensor without elements. */
static bool read_data(const struct draft *d, struct api_arena *arena, struct pe_tensor *tensor)
{
    const struct pe_value *data = d->data;
    if (data->kind == PE_ARRAY) {
        *tensor = data->array;
        return true;
    }
    double *number = api_arena_alloc(arena, sizeof *number);
    if (!number)
        return api_fail_memory(d->problem);
    *tensor = (struct pe_tensor){.dtype = PE_F64, .data = number};
    if (data->kind == PE_LIST && data->list.n == 0)
        tensor->rank = 1; /* of length 0 */
    else if (data->kind == PE_INTEGER)
        *number = (double)data->integer;
    else if (data->kind == PE_REAL)
        *number = data->real;
    else
        return fail_member(d, "data",
                           "data must be numbers, in a list or in lists of equal length (booleans as 0 and 1)");
    return true;
}

static bool read_axis(double x, uint64_t *axis)
{
    if (!(x >= 0 && x <= 9007199254740992.0 && x == floor(x))) /* 2^53: beyond, the number's text is no longer exact */
        return false;
    *axis = (uint64_t)x;
    return true;
}

static bool read_stated_shape(const struct draft *d, struct pe_tensor *stated)
{
    const struct pe_value *shape = d->shape;
    *stated = (struct pe_tensor){0};
    if (shape->kind == PE_LIST && shape->list.n == 0)
        return true;
    if (shape->kind != PE_ARRAY || shape->array.rank != 1)
        return fail_member(d, "shape", "shape must be a list of integers");
    if (shape->array.shape[0] > PE_RANK_MAX)
        return fail_member(d, "shape", "shape has more than 8 axes; allowed: at most 8");
    stated->rank = (unsigned)shape->array.shape[0];
    for (unsigned i = 0; i < stated->rank; i++)
        if (!read_axis(((const double *)shape->array.data)[i], &stated->shape[i]))
            return fail_member(d, "shape", "shape must be integers of at least 0");
    return true;
}

static bool same_shape(const struct pe_tensor *a, const struct pe_tensor *b)
{
    return a->rank == b->rank && memcmp(a->shape, b->shape, a->rank * sizeof a->shape[0]) == 0;
}

/* Flat data may have any shape with the same number of elements; nested data only its own shape. */
static bool apply_shape(const struct draft *d, struct pe_tensor *tensor)
{
    struct pe_tensor stated;
    if (!d->shape)
        return true;
    if (!read_stated_shape(d, &stated))
        return false;
    uint64_t have = 1, want;
    pe_shape_count(tensor->shape, tensor->rank, &have); /* the product fits: all elements are in memory */
    if (!pe_shape_count(stated.shape, stated.rank, &want))
        return fail_member(d, "shape", "shape has more than 2^63 elements");
    if (have != want) {
        char what[128];
        snprintf(what, sizeof what, "shape has %" PRIu64 " elements, data %" PRIu64, want, have);
        return fail_member(d, "shape", what);
    }
    if (tensor->rank > 1 && !same_shape(tensor, &stated))
        return fail_member(d, "shape",
                           "shape differs from that of the nested data; give the data flat, or leave shape out");
    tensor->rank = stated.rank;
    memcpy(tensor->shape, stated.shape, sizeof stated.shape);
    return true;
}

static bool read_dtype(const struct draft *d, enum pe_dtype *dtype)
{
    *dtype = d->dtype->kind == PE_STRING ? pe_dtype_find(d->dtype->string) : PE_DTYPE_NONE;
    if (*dtype != PE_DTYPE_NONE)
        return true;
    char what[PE_DETAIL_MAX];
    int used =
        snprintf(what, sizeof what, "dtype is %s%.32s%s; allowed:", d->dtype->kind == PE_STRING ? "\"" : "",
                 d->dtype->kind == PE_STRING ? d->dtype->string : "no word", d->dtype->kind == PE_STRING ? "\"" : "");
    for (int i = 0; i < PE_N_DTYPES; i++)
        used +=
            snprintf(what + used, sizeof what - (size_t)used, "%s %s", i ? "," : "", pe_dtype_name((enum pe_dtype)i));
    return fail_member(d, "dtype", what);
}

/* Least and greatest integer of each dtype that the double read from the text represents exactly. */
static bool fits_integer(enum pe_dtype dtype, double x)
{
    static const struct {
        double min, max;
    } ranges[PE_N_DTYPES] = {
        [PE_I8] = {-128, 127},
        [PE_U8] = {0, 255},
        [PE_I16] = {-32768, 32767},
        [PE_U16] = {0, 65535},
        [PE_I32] = {-2147483648.0, 2147483647.0},
        [PE_U32] = {0, 4294967295.0},
        [PE_I64] = {-9007199254740992.0, 9007199254740992.0},
        [PE_U64] = {0, 9007199254740992.0},
        [PE_BOOL] = {0, 1},
    };
    return x >= ranges[dtype].min && x <= ranges[dtype].max && x == floor(x);
}

static bool check_integers(const struct draft *d, enum pe_dtype dtype, const double *data, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!fits_integer(dtype, data[i])) {
            char what[160];
            snprintf(what, sizeof what, "data has %.17g at index %zu; allowed: what %s holds (in JSON up to 2^53)",
                     data[i], i, pe_dtype_name(dtype));
            return fail_member(d, "data", what);
        }
    return true;
}

/* The number's text is read as the nearest double, which is then rounded once. */
static bool apply_dtype(const struct draft *d, struct api_arena *arena, struct pe_tensor *tensor)
{
    enum pe_dtype dtype;
    if (!read_dtype(d, &dtype))
        return false;
    uint64_t count = 0;
    pe_shape_count(tensor->shape, tensor->rank, &count);
    size_t n = (size_t)count;
    if (!pe_dtype_is_real(dtype) && !check_integers(d, dtype, tensor->data, n))
        return false;
    if (dtype == PE_F64)
        return true;
    void *dense = api_arena_array(arena, n, pe_dtype_size(dtype));
    if (!dense)
        return api_fail_memory(d->problem);
    pe_convert(dtype, dense, PE_F64, tensor->data, n);
    tensor->dtype = dtype;
    tensor->data = dense;
    return true;
}

bool api_tensor_read(struct api_arena *arena, struct pe_value *value, const char *pointer, struct api_problem *problem)
{
    struct draft d = {.pointer = pointer, .problem = problem};
    struct pe_tensor tensor;
    if (!find_members(&d, value) || !read_data(&d, arena, &tensor) || !apply_shape(&d, &tensor))
        return false;
    if (d.dtype && !apply_dtype(&d, arena, &tensor))
        return false;
    *value = (struct pe_value){.kind = PE_ARRAY, .from_text = !d.dtype, .array = tensor};
    return true;
}
