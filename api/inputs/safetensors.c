/* The reader of safetensors files: the length of a JSON header, the header, the data. Every rule of the reference
 * reader is checked: entries sorted by offset cover the data without a gap, an overlap or bytes left over.
 *
 * Why so strict: a file that two readers read differently is a way to smuggle numbers past a review, and tensors may be
 * moved inside the body, so no two may share bytes. The header's length is bounded before it is believed. A file of
 * another kind that users mistake for this one (a .npy file, a zip archive) is named in the refusal. */
#include "api/inputs/inputs.h"
#include "api/json/json.h"
#include "api/limits.h"
#include "api/numbers/numbers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PREFIX = 8 };

struct file {
    const char *header;
    uint64_t header_bytes;
    const char *data;
    uint64_t data_bytes;
    size_t n_max; /* tensors */
    struct api_safetensors *found;
    struct api_problem *problem;
};

static bool fail_file(const struct file *f, const char *what)
{
    return api_fail(f->problem, 400, "", "not a safetensors file: %s", pe_text(what));
}

static bool fail_entry(const struct file *f, int status, const char *name, const char *what)
{
    return api_fail_at(f->problem, status, "", name, "tensor \"%.64s\" of the safetensors file: %s", name,
                       pe_text(what));
}

/* ---- One entry ---- */

/* A list of at most n_max integers, each at least 0. */
static bool read_sizes(const json_t *list, uint64_t *sizes, size_t n_max, size_t *n)
{
    *n = json_array_size(list);
    if (!json_is_array(list) || *n > n_max)
        return false;
    for (size_t i = 0; i < *n; i++) {
        const json_t *item = json_array_get(list, i);
        if (!json_is_integer(item) || json_integer_value(item) < 0)
            return false;
        sizes[i] = (uint64_t)json_integer_value(item);
    }
    return true;
}

static bool read_entry(struct file *f, const char *name, const json_t *json)
{
    struct api_safetensor *entry = &f->found->entries[f->found->n_entries];
    *entry = (struct api_safetensor){.name = name};
    uint64_t offsets[2];
    size_t rank, n;
    if (json_object_size(json) != 3 || !json_is_string(json_object_get(json, "dtype")))
        return fail_entry(f, 400, name, "it must have exactly dtype, shape and data_offsets");
    const char *dtype = json_string_value(json_object_get(json, "dtype")); /* C64: pairs of F32 */
    entry->tensor.dtype = strcmp(dtype, "C64") == 0 ? PE_F32 : api_dtype_find(API_SAFETENSORS, dtype);
    if (entry->tensor.dtype == PE_DTYPE_NONE) {
        char what[192];
        snprintf(what, sizeof what, pe_text("its dtype is not one of %s"), api_safetensors_dtypes);
        return fail_entry(f, 422, name, what);
    }
    if (!read_sizes(json_object_get(json, "shape"), entry->tensor.shape, PE_RANK_MAX, &rank))
        return fail_entry(f, 400, name, "its shape is not a list of at most 8 integers");
    if (!read_sizes(json_object_get(json, "data_offsets"), offsets, 2, &n) || n != 2)
        return fail_entry(f, 400, name, "its data_offsets are not two integers");
    entry->tensor.rank = (unsigned)rank;
    entry->begin = offsets[0];
    entry->end = offsets[1];
    f->found->n_entries++;
    char pointer[PE_POINTER_MAX] = "";
    if (strcmp(json_string_value(json_object_get(json, "dtype")), "C64") != 0)
        return true;
    api_pointer_push(pointer, name, strlen(name));
    return api_complex_shape(pointer, entry->tensor.shape, &entry->tensor.rank, f->problem);
}

/* ---- The header ---- */

static bool read_metadata(struct file *f, const json_t *metadata)
{
    const char *key;
    json_t *value;
    if (!json_is_object(metadata))
        return fail_file(f, "__metadata__ is not an object");
    json_t *mutable = (json_t *)(uintptr_t)metadata; /* only read */
    json_object_foreach(mutable, key, value)
    {
        if (!json_is_string(value))
            return fail_file(f, "__metadata__ has a value that is not a string");
        if (strcmp(key, "request") == 0)
            f->found->request = json_string_value(value);
    }
    return true;
}

static bool read_members(struct file *f, json_t *root)
{
    const char *name;
    json_t *value;
    json_object_foreach(root, name, value)
    {
        bool is_metadata = strcmp(name, "__metadata__") == 0;
        if (is_metadata ? !read_metadata(f, value) : !read_entry(f, name, value))
            return false;
    }
    return true;
}

static bool read_header(struct file *f, struct api_arena *arena)
{
    struct api_json_error error;
    json_t *root = api_json_load(arena, f->header, f->header_bytes, 0, &error);
    if (!root && error.no_memory)
        return api_fail_memory(f->problem);
    if (!root)
        return api_fail(f->problem, 400, "", "not a safetensors file: its header, at byte %zu: %s", error.at,
                        pe_text(error.text));
    if (json_object_size(root) - (json_object_get(root, "__metadata__") ? 1 : 0) > f->n_max)
        return api_fail(f->problem, 422, "", "the safetensors file has more than %zu tensors", f->n_max);
    f->found->entries = api_arena_array(arena, json_object_size(root), sizeof *f->found->entries);
    return f->found->entries ? read_members(f, root) : api_fail_memory(f->problem);
}

/* Names a file type that users mistake for safetensors, because it also contains tensors. NULL: not recognised. */
static const char *other_kind(const char *bytes, size_t n)
{
    if (n >= PREFIX && memcmp(bytes, "\x93NUMPY", 6) == 0)
        return "it is a .npy file";
    if (n >= PREFIX && memcmp(bytes, "PK\3\4", 4) == 0)
        return "it is a zip archive, as .npz files and PyTorch's .pt and .bin are";
    return NULL;
}

static bool find_header(struct file *f, const char *bytes, size_t n)
{
    if (other_kind(bytes, n))
        return fail_file(f, other_kind(bytes, n));
    if (n < PREFIX)
        return fail_file(f, "it has less than 8 bytes");
    f->header = bytes + PREFIX;
    f->header_bytes = api_little_endian(bytes, PREFIX);
    if (f->header_bytes > n - PREFIX)
        return fail_file(f, "it ends within its header");
    if (f->header_bytes > API_SAFETENSORS_HEADER_MAX)
        return api_fail(f->problem, 413, "",
                        "the header of the safetensors file has %" PRIu64 " bytes; allowed: at most %d",
                        f->header_bytes, API_SAFETENSORS_HEADER_MAX);
    if (f->header_bytes == 0 || f->header[0] != '{')
        return fail_file(f, "its header does not begin with {");
    f->data = f->header + f->header_bytes;
    f->data_bytes = n - PREFIX - f->header_bytes;
    return true;
}

/* ---- The data ---- */

/* Empty tensors share their offset with the next tensor; they come first. */
static int compare(const void *left, const void *right)
{
    const struct api_safetensor *a = left, *b = right;
    if (a->begin != b->begin)
        return a->begin < b->begin ? -1 : 1;
    return a->end < b->end ? -1 : a->end > b->end;
}

static bool check_layout(struct file *f)
{
    uint64_t end = 0;
    struct api_safetensor *entries = f->found->entries;
    qsort(entries, f->found->n_entries, sizeof entries[0], compare);
    for (size_t i = 0; i < f->found->n_entries; i++) {
        uint64_t count, bytes;
        if (entries[i].begin != end || entries[i].end < entries[i].begin)
            return fail_entry(f, 400, entries[i].name,
                              "its data_offsets leave a hole, overlap, or end before they begin");
        if (!pe_shape_count(entries[i].tensor.shape, entries[i].tensor.rank, &count) ||
            __builtin_mul_overflow(count, pe_dtype_size(entries[i].tensor.dtype), &bytes) ||
            bytes != entries[i].end - entries[i].begin)
            return fail_entry(f, 400, entries[i].name, "its shape does not need the bytes its data_offsets give");
        if (entries[i].end > f->data_bytes)
            return fail_entry(f, 400, entries[i].name, "its data_offsets pass the end of the file");
        end = entries[i].end;
        entries[i].tensor.data = f->data + entries[i].begin;
    }
    return end == f->data_bytes || fail_file(f, "it has bytes behind its last tensor");
}

bool api_safetensors_parse(struct api_arena *arena, const char *bytes, size_t n, size_t n_max,
                           struct api_safetensors *found, struct api_problem *problem)
{
    struct file f = {.n_max = n_max, .found = found, .problem = problem};
    *found = (struct api_safetensors){0};
    return find_header(&f, bytes, n) && read_header(&f, arena) && check_layout(&f);
}

/* ---- Bodies that are such files: tensors by name, the request as text in the metadata ---- */

static bool add_tensors(const struct api_safetensors *file, struct api_request *request, struct api_problem *problem)
{
    for (size_t i = 0; i < file->n_entries; i++)
        if (!api_request_add_tensor(request, file->entries[i].name, &file->entries[i].tensor, 0, problem))
            return false;
    return true;
}

bool api_safetensors_read(struct api_request *request, const struct api_received *body, struct api_problem *problem)
{
    struct api_safetensors file;
    if (!api_safetensors_parse(&request->arena, body->bytes, body->n, API_FIELDS_MAX, &file, problem) ||
        !add_tensors(&file, request, problem))
        return false;
    return !file.request ||
           api_json_read(request, file.request, strlen(file.request), "__metadata__.request: ", problem);
}
