/* An input's numbers: from its JSON list, or from the bytes behind the JSON. */
#include "api/inputs/inputs.h"
#include "api/limits.h"
#include "api/numbers/numbers.h"
#include "api/oip/oip.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool fail_input(const struct api_oip_input *input, int status, const char *member, struct api_problem *problem,
                       const char *what)
{
    char pointer[PE_POINTER_MAX];
    snprintf(pointer, sizeof pointer, "/inputs/%zu%s%s", input->index, *member ? "/" : "", member);
    return api_fail(problem, status, pointer, "input \"%.64s\": %s", input->name, pe_text(what));
}

/* ---- Numbers in JSON ---- */

/* The fast reader does not read booleans as numbers, so they arrive as a tree, which is limited to a megabyte of
 * text. */
static size_t count_leaves(const struct pe_value *value)
{
    size_t n = 0;
    for (size_t i = 0; value->kind == PE_LIST && i < value->list.n; i++)
        n += value->list.items[i].kind == PE_LIST ? count_leaves(&value->list.items[i]) : 1;
    return n;
}

/* Their values in order; NULL if an item is not a boolean. The tree is at most 64 levels deep. */
static double *flatten(const struct pe_value *list, double *out)
{
    for (size_t i = 0; out && i < list->list.n; i++) {
        const struct pe_value *item = &list->list.items[i];
        if (item->kind == PE_LIST)
            out = flatten(item, out);
        else if (item->kind == PE_BOOLEAN)
            *out++ = item->boolean;
        else
            out = NULL;
    }
    return out;
}

/* Data as a flat list of numbers, however it is nested: the shape already states everything that the brackets
 * express. */
static bool flat_data(struct api_request *request, const struct api_oip_input *input, enum pe_dtype dtype,
                      struct pe_value *flat, struct api_problem *problem)
{
    const struct pe_value *data = input->data;
    uint64_t count = 0;
    *flat = *data;
    if (data->kind == PE_ARRAY) {
        pe_shape_count(data->array.shape, data->array.rank, &count); /* the product fits: all elements are in memory */
    } else if (data->kind == PE_LIST) {
        count = count_leaves(data);
        double *numbers = api_arena_array(&request->arena, (size_t)count + 1, sizeof *numbers);
        if (!numbers)
            return api_fail_memory(problem);
        if ((count && dtype != PE_BOOL) || !flatten(data, numbers))
            return fail_input(
                input, 422, "data", problem,
                "data must be numbers within a double's range (for BOOL true and false), flat or in lists "
                "of equal length");
        *flat = (struct pe_value){.kind = PE_ARRAY, .array = {.dtype = PE_F64, .data = numbers}};
    } else {
        return fail_input(input, 422, "data", problem, "data must be a list");
    }
    flat->array.rank = 1;
    flat->array.shape[0] = count;
    return true;
}

/* The reader of posenc's own tensors does the rest: the object differs only in its words. */
static bool add_json(struct api_request *request, const struct api_oip_input *input, enum pe_dtype dtype,
                     struct api_problem *problem)
{
    struct pe_value data;
    char pointer[32];
    double lengths[PE_RANK_MAX];
    if (!flat_data(request, input, dtype, &data, problem))
        return false;
    struct pe_value shape = {.kind = PE_ARRAY, .array = {.dtype = PE_F64, .rank = 1, .data = lengths}};
    shape.array.shape[0] = input->shape.rank;
    for (unsigned i = 0; i < input->shape.rank; i++)
        lengths[i] = (double)input->shape.shape[i];
    const struct pe_field members[] = {
        {"dtype", {.kind = PE_STRING, .string = pe_dtype_name(dtype)}}, {"shape", shape}, {"data", data}};
    struct pe_value value = {.kind = PE_OBJECT, .object = {members, 3}};
    snprintf(pointer, sizeof pointer, "/inputs/%zu", input->index);
    return api_tensor_read(request, input->name, &value, pointer, problem) &&
           api_request_add(request, input->name, &value, problem);
}

/* ---- Bytes ---- */

static bool check_bytes(const struct api_oip_input *input, enum pe_dtype dtype, struct api_problem *problem)
{
    uint64_t count, bytes;
    char what[192];
    if (!pe_shape_count(input->shape.shape, input->shape.rank, &count) ||
        __builtin_mul_overflow(count, pe_dtype_size(dtype), &bytes))
        return fail_input(input, 422, "shape", problem, "its shape has more than 2^63 bytes");
    if (bytes == input->n_bytes)
        return true;
    snprintf(what, sizeof what,
             pe_text("binary_data_size is %" PRIu64 ", its shape and datatype need %" PRIu64 " bytes"), input->n_bytes,
             bytes);
    return fail_input(input, 400, "parameters/binary_data_size", problem, what);
}

/* The input's bytes; NULL, with a problem, if there are too few. */
static const char *take_bytes(const struct api_oip_input *input, struct api_oip_tail *tail, struct api_problem *problem)
{
    char what[192];
    const char *bytes = tail->p;
    uint64_t left = (uint64_t)(tail->end - bytes);
    if (input->n_bytes <= left) {
        tail->p += input->n_bytes;
        return bytes;
    }
    snprintf(what, sizeof what,
             pe_text("binary_data_size is %" PRIu64 ", but the body has only %" PRIu64 " bytes left for it"),
             input->n_bytes, left);
    fail_input(input, 400, "parameters/binary_data_size", problem, what);
    return NULL;
}

static bool add_binary(struct api_request *request, const struct api_oip_input *input, enum pe_dtype dtype,
                       struct api_oip_tail *tail, struct api_problem *problem)
{
    struct pe_tensor tensor = input->shape;
    const char *begin = tail->free_from, *bytes = NULL;
    if (check_bytes(input, dtype, problem))
        bytes = take_bytes(input, tail, problem);
    if (!bytes)
        return false;
    tensor.dtype = dtype;
    tensor.data = bytes;
    if (!api_request_add_tensor(request, input->name, &tensor, (size_t)(bytes - begin), problem))
        return false;
    const char *now = request->fields[request->n_fields - 1].value.array.data;
    if ((uintptr_t)now >= (uintptr_t)begin && (uintptr_t)now <= (uintptr_t)bytes) /* the data is not a copy elsewhere */
        tail->free_from = now + input->n_bytes;
    return true;
}

/* ---- Words: BYTES, for tokens alone ---- */

/* Each word is its length, then its bytes. Counts the words, and copies them unless items is NULL. */
static bool read_words(struct api_request *request, const char *p, const char *end, struct pe_value *items, size_t *n)
{
    for (*n = 0; p < end; ++*n) {
        uint64_t length = end - p < 4 ? UINT64_MAX : api_little_endian(p, 4);
        if (length > (uint64_t)(end - p) - 4)
            return false;
        if (memchr(p + 4, '\0', length))
            return false;
        if (items) {
            items[*n] = (struct pe_value){.kind = PE_STRING};
            items[*n].string = api_arena_string(&request->arena, p + 4, length);
        }
        p += 4 + (size_t)length;
    }
    return true;
}

/* A word in memory takes thirty times the four bytes of an empty word in the body, so the limit is the one for words in
 * JSON. */
static bool check_words(const struct api_oip_input *input, struct api_problem *problem)
{
    char what[192];
    if (input->n_bytes <= API_SKELETON_MAX)
        return true;
    snprintf(what, sizeof what, pe_text("its words have %" PRIu64 " bytes; allowed: at most %d"), input->n_bytes,
             API_SKELETON_MAX);
    return fail_input(input, 413, "parameters/binary_data_size", problem, what);
}

static bool add_words(struct api_request *request, const struct api_oip_input *input, struct api_oip_tail *tail,
                      struct api_problem *problem)
{
    struct pe_value value;
    if (input->is_binary) {
        size_t n;
        if (!check_words(input, problem))
            return false;
        const char *bytes = take_bytes(input, tail, problem);
        if (!bytes)
            return false;
        if (!read_words(request, bytes, bytes + input->n_bytes, NULL, &n))
            return fail_input(input, 400, "", problem,
                              "its bytes are not words, each a length of four bytes and as many bytes without a zero");
        struct pe_value *items = api_arena_array(&request->arena, n + 1, sizeof *items);
        if (!items)
            return api_fail_memory(problem);
        read_words(request, bytes, bytes + input->n_bytes, items, &n);
        for (size_t i = 0; i < n; i++)
            if (!items[i].string)
                return api_fail_memory(problem);
        value = (struct pe_value){.kind = PE_LIST, .list = {.items = items, .n = n}};
    } else {
        value = *input->data;
    }
    if (value.kind != PE_LIST)
        return fail_input(input, 422, "data", problem, "data of BYTES must be a flat list of words");
    if (input->shape.rank != 1 || input->shape.shape[0] != value.list.n)
        return fail_input(input, 422, "shape", problem, "its shape is not [number of words]");
    return api_request_add(request, input->name, &value, problem);
}

bool api_oip_add_tensor(struct api_request *request, const struct api_oip_input *input, struct api_oip_tail *tail,
                        struct api_problem *problem)
{
    enum pe_dtype dtype = api_dtype_find(API_OIP, input->datatype);
    if (api_request_find(request, input->name))
        return fail_input(input, 400, "name", problem, "a parameter has this name too; give one of them");
    if (dtype == PE_DTYPE_NONE && strcmp(input->datatype, "BYTES") == 0) {
        if (strcmp(input->name, "tokens") == 0)
            return add_words(request, input, tail, problem);
        return fail_input(input, 422, "datatype", problem,
                          "BYTES are words, which only the input tokens accepts; send numbers");
    }
    if (dtype == PE_DTYPE_NONE) {
        char list[128], what[256];
        api_dtypes_print(API_OIP, list, sizeof list);
        snprintf(what, sizeof what, pe_text("unknown datatype \"%.32s\"; allowed: %s (BYTES for tokens)"),
                 input->datatype, list);
        return fail_input(input, 422, "datatype", problem, what);
    }
    return input->is_binary ? add_binary(request, input, dtype, tail, problem)
                            : add_json(request, input, dtype, problem);
}

/* ---- Parameters ---- */

/* The text is read as the value of a member with its name, so that lists of numbers take the fast path here too. */
static bool add_text(struct api_request *request, const char *name, const char *json, struct api_problem *problem)
{
    char where[128];
    snprintf(where, sizeof where, pe_text("parameter \"%.48s\": "), name);
    if (!api_json_check(&request->arena, json, strlen(json), where, problem))
        return false;
    struct api_text text;
    api_text_init(&text, API_TEXT_MAX);
    api_text_put(&text, "{");
    api_text_string(&text, name);
    api_text_put(&text, ":");
    api_text_put(&text, json);
    api_text_put(&text, "}");
    bool fine = text.state ? api_fail_text(problem, &text) : api_json_read(request, text.bytes, text.n, where, problem);
    api_text_drop(&text);
    if (fine)
        return true;
    /* A place within the text is reported under /parameters of the client's request. */
    char inner[PE_POINTER_MAX];
    snprintf(inner, sizeof inner, "%s", problem->error.pointer);
    if (*inner)
        snprintf(problem->error.pointer, PE_POINTER_MAX, "/parameters%.140s", inner);
    return false;
}

bool api_oip_add_parameter(struct api_request *request, const char *name, const struct pe_value *value,
                           struct api_problem *problem)
{
    switch (value->kind) {
    case PE_STRING:
        if (*value->string == '[' || *value->string == '{')
            return add_text(request, name, value->string, problem);
        return api_request_add(request, name, value, problem);
    case PE_BOOLEAN:
    case PE_INTEGER:
    case PE_REAL: return api_request_add(request, name, value, problem);
    default: break;
    }
    return api_fail_at(problem, 422, "/parameters", name, "parameter \"%.64s\": %s", name,
                       pe_text("parameters are strings, numbers and booleans; write lists and objects as JSON text in "
                               "a string"));
}
