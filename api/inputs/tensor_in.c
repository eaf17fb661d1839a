/* A tensor written in JSON, checked and made dense; or drawn from a seed; or a .npy file in base64. */
#include "api/inputs/inputs.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const member_names[] = {"dtype", "shape", "data", "seed", "std", "npy", NULL};
enum { DTYPE, SHAPE, DATA, SEED, STD, NPY, N_MEMBERS };

struct draft {
    const struct pe_value *members[N_MEMBERS]; /* by the enum above; NULL: not given */
    struct pe_value read;                      /* of data that are a text */
    const char *name;                          /* of the field */
    const char *pointer;                       /* of the object */
    struct api_problem *problem;
};

static int member_of(const char *name)
{
    int i = 0;
    while (i < N_MEMBERS && strcmp(member_names[i], name) != 0)
        i++;
    return i;
}

/* Without data or a file it takes both a shape and a seed, or nothing that belongs to another kind of object. */
bool api_tensor_is(const struct pe_value *object, const char *pointer)
{
    bool has[N_MEMBERS + 1] = {false};
    for (size_t i = 0; i < object->object.n; i++)
        has[member_of(object->object.fields[i].name)] = true;
    if (has[DATA] || strstr(pointer, "/hf_config"))
        return has[DATA];
    if (has[NPY] || strstr(pointer, "/gguf"))
        return has[NPY];
    return (has[SHAPE] && has[SEED]) || ((has[SHAPE] || has[SEED]) && !has[N_MEMBERS]);
}

static bool fail_member(const struct draft *d, const char *member, const char *what)
{
    return api_fail_at(d->problem, 422, d->pointer, member, "%s", pe_text(what));
}

static bool fail_unknown(const struct draft *d, const char *name)
{
    char what[PE_DETAIL_MAX];
    const char *nearest = pe_nearest(name, member_names);
    snprintf(what, sizeof what,
             pe_text(nearest ? "unknown member \"%.64s\" of a tensor; nearest: %s"
                             : "unknown member \"%.64s\" of a tensor; allowed: dtype, shape, data, seed, std, npy"),
             name, nearest);
    return fail_member(d, name, what);
}

static bool find_members(struct draft *d, const struct pe_value *object)
{
    for (size_t i = 0; i < object->object.n; i++) {
        const struct pe_field *field = &object->object.fields[i];
        int member = member_of(field->name);
        if (member == N_MEMBERS)
            return fail_unknown(d, field->name);
        d->members[member] = &field->value;
    }
    for (int other = 0; d->members[NPY] && other < NPY; other++)
        if (d->members[other])
            return fail_member(d, member_names[other], "the file in npy has dtype, shape and data; leave them out");
    if (d->members[NPY])
        return true;
    if (d->members[DATA] && d->members[SEED])
        return fail_member(d, "seed", "a tensor has data or a seed; leave one out");
    if (d->members[DATA] && d->members[STD])
        return fail_member(d, "std", "std is not used here: the tensor has data");
    return d->members[DATA] || d->members[SEED] ||
           fail_member(d, "data", "data is missing or null; allowed: a list of numbers, or shape and seed instead");
}

/* ---- Data, shape, dtype ---- */

/* A single number is a tensor of rank 0, an empty list a tensor without elements. */
static bool read_data(const struct draft *d, struct api_arena *arena, struct pe_tensor *tensor)
{
    const struct pe_value *data = d->members[DATA];
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
    const struct pe_value *shape = d->members[SHAPE];
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
    if (!d->members[SHAPE])
        return true;
    if (!read_stated_shape(d, &stated))
        return false;
    uint64_t have = 1, want;
    pe_shape_count(tensor->shape, tensor->rank, &have); /* the product fits: all elements are in memory */
    if (!pe_shape_count(stated.shape, stated.rank, &want))
        return fail_member(d, "shape", "shape has more than 2^63 elements");
    if (have != want) {
        char what[192];
        snprintf(what, sizeof what, pe_text("shape has %" PRIu64 " elements, data %" PRIu64), want, have);
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
    *dtype = d->members[DTYPE]->kind == PE_STRING ? pe_dtype_find(d->members[DTYPE]->string) : PE_DTYPE_NONE;
    if (*dtype != PE_DTYPE_NONE)
        return true;
    char what[PE_DETAIL_MAX];
    bool is_word = d->members[DTYPE]->kind == PE_STRING;
    int used =
        snprintf(what, sizeof what, pe_text(is_word ? "dtype is \"%.32s\"; allowed:" : "dtype is no word; allowed:"),
                 is_word ? d->members[DTYPE]->string : "");
    for (int i = 0; i < PE_N_DTYPES; i++)
        used +=
            snprintf(what + used, sizeof what - (size_t)used, "%s %s", i ? "," : "", pe_dtype_name((enum pe_dtype)i));
    return fail_member(d, "dtype", what);
}

/* Integers that the dtype holds, up to 2^53: beyond, the double read from the text may be another one's. */
static bool fits_integer(enum pe_dtype dtype, double x)
{
    double back;
    uint64_t stored;
    pe_convert(dtype, &stored, PE_F64, &x, 1);
    pe_convert(PE_F64, &back, dtype, &stored, 1);
    return back == x && fabs(x) <= 0x1p53;
}

static bool check_integers(const struct draft *d, enum pe_dtype dtype, const double *data, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!fits_integer(dtype, data[i])) {
            char what[192];
            snprintf(what, sizeof what,
                     pe_text("data has %s at index %zu; allowed: what %s holds (in JSON up to 2^53)"),
                     pe_shown(data[i]).text, i, pe_dtype_name(dtype));
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
    if (!pe_dtype_is_real(dtype) && tensor->dtype == PE_F64 && !check_integers(d, dtype, tensor->data, n))
        return false;
    if (dtype == tensor->dtype)
        return true;
    void *dense = api_arena_array(arena, n, pe_dtype_size(dtype));
    if (!dense)
        return api_fail_memory(d->problem);
    pe_convert(dtype, dense, tensor->dtype, tensor->data, n);
    tensor->dtype = dtype;
    tensor->data = dense;
    return true;
}

/* Data that are a text as a program prints it, where tensors are compared. */
static bool read_print(struct draft *d, struct api_request *request)
{
    char pointer[PE_POINTER_MAX];
    struct pe_tensor stated;
    if (d->members[DATA]->kind != PE_STRING || !api_takes_prints(request))
        return true;
    snprintf(pointer, sizeof pointer, "%s", d->pointer);
    api_pointer_push(pointer, "data", 4);
    if (d->members[SHAPE] && !read_stated_shape(d, &stated))
        return false;
    const char *text = d->members[DATA]->string;
    d->members[DATA] = &d->read;
    return api_printed_read(request, text, d->members[SHAPE] ? &stated : NULL, pointer, &d->read, d->problem);
}

static bool read_written(struct draft *d, struct api_request *request, struct pe_value *value)
{
    struct api_arena *arena = &request->arena;
    struct pe_tensor tensor;
    if (!read_print(d, request) || !read_data(d, arena, &tensor) || !apply_shape(d, &tensor))
        return false;
    if (d->members[DTYPE] && !apply_dtype(d, arena, &tensor))
        return false;
    const struct pe_value *data = d->members[DATA];
    bool has_own = data->kind == PE_ARRAY && (data == &d->read || !d->members[DTYPE]);
    *value = (struct pe_value){.kind = PE_ARRAY, .array = tensor, .print = has_own ? data->print : NULL};
    value->from_text = !d->members[DTYPE] && tensor.dtype == PE_F64; /* a text may state its dtype */
    return true;
}

/* ---- Drawn from a seed ---- */

/* The number of member, which lies from 0 to most; missing if it is not given. */
static bool read_number(const struct draft *d, int member, double missing, double most, double *x)
{
    const struct pe_value *value = d->members[member];
    *x = !value ? missing : value->kind == PE_INTEGER ? (double)value->integer : value->real;
    bool is_number = !value || value->kind == PE_INTEGER || value->kind == PE_REAL;
    if (is_number && *x >= 0 && *x <= most && (member != SEED || *x == floor(*x)))
        return true;
    return fail_member(d, member_names[member],
                       member == SEED ? "seed must be an integer from 0 to 2^53"
                                      : "std must be a number from 0 to 1e6");
}

/* Refuses more numbers than the request may have. */
static bool may_have(const struct draft *d, struct api_drawing *drawing, uint64_t n)
{
    if (n > drawing->max || drawing->n > drawing->max - n)
        return api_fail(d->problem, 413, d->pointer,
                        "the tensors drawn from seeds have more than %" PRIu64 " numbers, which is as many as this "
                        "server allows in one request (its limits --max-body and --max-work)",
                        drawing->max);
    drawing->n += n;
    return true;
}

static bool draw_later(const struct draft *d, struct api_request *request, const struct api_waiting *all)
{
    struct api_waiting drawn = *all;
    drawn.name = api_arena_string(&request->arena, d->name, strlen(d->name));
    if (!drawn.name || !api_request_wait(request, &drawn))
        return api_fail_memory(d->problem);
    request->drawing.n_waiting += drawn.n;
    return true;
}

static bool check_drawn(const struct draft *d)
{
    if (d->members[DTYPE])
        return fail_member(d, "dtype", "a tensor that is drawn from a seed is f32; leave dtype out");
    return d->members[SHAPE] ||
           fail_member(d, "shape", "shape is missing; a tensor that is drawn from a seed needs it, as [1,64]");
}

static bool read_drawn(const struct draft *d, struct api_request *request, struct pe_value *value)
{
    struct pe_tensor tensor;
    uint64_t n;
    double seed, std;
    if (!check_drawn(d) || !read_stated_shape(d, &tensor) || !read_number(d, SEED, 0, 0x1p53, &seed) ||
        !read_number(d, STD, 0.02, 1e6, &std))
        return false;
    if (!pe_shape_count(tensor.shape, tensor.rank, &n))
        return fail_member(d, "shape", "shape has more than 2^63 elements");
    bool waits = request->fills_later && api_field_may_wait(d->name) && !strchr(d->pointer + 1, '/');
    if (!may_have(d, &request->drawing, n))
        return false;
    struct api_waiting all = {.seed = (int64_t)seed, .std = std, .n = (size_t)n};
    all.to = api_arena_array(&request->arena, all.n, sizeof(float));
    if (!all.to)
        return api_fail_memory(d->problem);
    bool is_late = request->drawing.n - request->drawing.n_waiting > request->drawing.max_at_once;
    if (!waits && !is_late)
        pe_seed_fill(all.seed, d->name, all.std, 0, all.n, all.to);
    else if (!draw_later(d, request, &all))
        return false;
    request->draws_first |= !waits && is_late;
    tensor.dtype = PE_F32;
    tensor.data = all.to;
    *value = (struct pe_value){.kind = PE_ARRAY, .array = tensor};
    return true;
}

/* ---- A .npy file ---- */

static int digit_of(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* Base64 with padding (RFC 4648, section 4). Returns how many characters of n are in order: all, or up to the first
 * wrong one. */
static size_t decode(const char *text, size_t n, char *out, size_t *n_out)
{
    size_t n_digits = n, i = 0;
    while (n_digits && n - n_digits < 2 && n % 4 == 0 && text[n_digits - 1] == '=')
        n_digits--;
    unsigned bits = 0;
    int digit;
    *n_out = 0;
    for (; i < n_digits && (digit = digit_of(text[i])) >= 0; i++) {
        bits = bits << 6 | (unsigned)digit;
        if (i % 4)
            out[(*n_out)++] = (char)(bits >> (6 - 2 * (i % 4)));
    }
    return i == n_digits ? n : i;
}

bool api_tensor_read(struct api_request *request, const char *name, struct pe_value *value, const char *pointer,
                     struct api_problem *problem)
{
    struct draft d = {.name = name, .pointer = pointer, .problem = problem};
    if (!find_members(&d, value))
        return false;
    if (d.members[NPY]) {
        const struct pe_value *text = d.members[NPY];
        struct api_npy_file file = {.what = "npy", .pointer = d.pointer};
        struct pe_tensor tensor;
        if (text->kind != PE_STRING)
            return fail_member(&d, "npy", "npy must be a string: the bytes of a .npy file in base64");
        size_t n = strlen(text->string);
        char *bytes = api_arena_array(&request->arena, n / 4 * 3 + 3, 1);
        if (!bytes)
            return api_fail_memory(d.problem);
        size_t fine = decode(text->string, n, bytes, &file.n);
        file.bytes = bytes;
        if (fine < n || n % 4) {
            char what[96];
            snprintf(what, sizeof what, pe_text("npy: not base64 at character %zu"), fine + 1);
            fail_member(&d, "npy", what);
            d.problem->status = 400;
            return false;
        }
        if (!api_npy_parse(&request->arena, &file, &tensor, d.problem))
            return false;
        /* The elements are moved to the beginning of the memory, which is aligned, where their place in the file is
         * not. */
        size_t size = pe_dtype_size(tensor.dtype);
        uint64_t count = 0;
        pe_shape_count(tensor.shape, tensor.rank, &count);
        tensor.data = (uintptr_t)tensor.data % size ? memmove(bytes, tensor.data, (size_t)count * size) : tensor.data;
        *value = (struct pe_value){.kind = PE_ARRAY, .array = tensor};
        return true;
    }
    return d.members[DATA] ? read_written(&d, request, value) : read_drawn(&d, request, value);
}
