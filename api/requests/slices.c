/* The field slice of a request. An axis is null (all), an index, [start, stop] or [start, stop, step]. */
#include "api/requests/requests.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The current place in the request. */
struct at {
    char pointer[PE_POINTER_MAX];
    struct api_problem *problem;
};

static bool fail_axis(const struct at *at)
{
    return api_fail(at->problem, 422, at->pointer,
                    "an axis of slice is null (all of it), an index, [start,stop] or [start,stop,step] of integers "
                    "with a step of at least 1; null is open");
}

/* An integer, or null if the bound may be open. */
static bool read_integer(const struct pe_value *v, bool may_be_open, int64_t *x)
{
    if (v->kind == PE_NULL && may_be_open) {
        *x = PE_UNSET_INT;
        return true;
    }
    if (v->kind == PE_INTEGER)
        *x = v->integer;
    else if (v->kind == PE_REAL && v->real == floor(v->real) && fabs(v->real) < 0x1p62)
        *x = (int64_t)v->real;
    else
        return false;
    return *x > -(INT64_C(1) << 62) && *x < INT64_C(1) << 62;
}

/* The items of a list, in either representation. */
static size_t n_items(const struct pe_value *v)
{
    return v->kind == PE_LIST ? v->list.n : v->kind == PE_ARRAY ? (size_t)v->array.shape[0] : 0;
}

static struct pe_value item(const struct pe_value *v, size_t i)
{
    if (v->kind == PE_LIST)
        return v->list.items[i];
    const struct pe_tensor *t = &v->array;
    if (t->rank == 1)
        return (struct pe_value){.kind = PE_REAL, .real = ((const double *)t->data)[i]};
    struct pe_value row = {.kind = PE_ARRAY, .array = *t};
    uint64_t n = 1;
    row.array.rank = t->rank - 1;
    memmove(row.array.shape, t->shape + 1, row.array.rank * sizeof *t->shape);
    for (unsigned a = 0; a < row.array.rank; a++)
        n *= row.array.shape[a];
    row.array.data = (const double *)t->data + i * n;
    return row;
}

/* Lists in JSON text are doubles; tensors from files are not slices. */
static bool is_list(const struct pe_value *v)
{
    return v->kind == PE_LIST || (v->kind == PE_ARRAY && v->array.dtype == PE_F64 && v->array.rank > 0);
}

static bool read_cut(const struct pe_value *v, struct pe_cut *cut, const struct at *at)
{
    *cut = (struct pe_cut){.start = PE_UNSET_INT, .stop = PE_UNSET_INT, .step = 1};
    if (v->kind == PE_NULL)
        return true;
    if (!is_list(v)) {
        cut->is_index = true;
        return read_integer(v, false, &cut->start) || fail_axis(at);
    }
    size_t n = n_items(v);
    int64_t *fields[] = {&cut->start, &cut->stop, &cut->step};
    for (size_t i = 0; i < n && i < 3; i++) {
        struct pe_value x = item(v, i);
        if (!read_integer(&x, true, fields[i]))
            return fail_axis(at);
    }
    if (cut->step == PE_UNSET_INT)
        cut->step = 1;
    return (n == 2 || n == 3) && cut->step >= 1 ? true : fail_axis(at);
}

static bool read_slice(const struct pe_value *v, struct pe_slice *slice, struct at *at)
{
    size_t n = n_items(v), depth = strlen(at->pointer);
    if (!is_list(v))
        return api_fail(at->problem, 422, at->pointer, "a slice is a list with an entry for each axis");
    if (n > PE_RANK_MAX)
        return api_fail(at->problem, 422, at->pointer, "slice has %zu entries; allowed: at most %d axes", n,
                        PE_RANK_MAX);
    slice->n_cuts = (unsigned)n;
    for (size_t i = 0; i < n; i++) {
        char number[24];
        struct pe_value axis = item(v, i);
        api_pointer_push(at->pointer, number, (size_t)snprintf(number, sizeof number, "%zu", i));
        if (!read_cut(&axis, &slice->cuts[i], at))
            return false;
        at->pointer[depth] = '\0';
    }
    return true;
}

bool api_slices_read(struct api_request *request, const struct pe_value *value, struct pe_slice **slices,
                     size_t *n_slices, struct api_problem *problem)
{
    struct at at = {.pointer = "/slice", .problem = problem};
    bool by_name = value->kind == PE_OBJECT;
    size_t n = by_name ? value->object.n : 1;
    if (n > API_OUTPUTS_MAX)
        return api_fail(problem, 422, at.pointer, "slice names %zu outputs; allowed: at most %d", n, API_OUTPUTS_MAX);
    *slices = api_arena_array(&request->arena, n, sizeof **slices);
    *n_slices = n;
    if (!*slices)
        return api_fail_memory(problem);
    for (size_t i = 0; i < n; i++) {
        const struct pe_field *field = by_name ? &value->object.fields[i] : NULL;
        (*slices)[i] = (struct pe_slice){.output = field ? field->name : NULL};
        if (field)
            api_pointer_push(at.pointer, field->name, strlen(field->name));
        if (!read_slice(field ? &field->value : value, &(*slices)[i], &at))
            return false;
        strcpy(at.pointer, "/slice");
    }
    return true;
}
