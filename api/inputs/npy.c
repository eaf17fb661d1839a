/* NumPy's .npy files, versions 1 to 3: a Python dict in ASCII, then the elements, with either axis order and either
 * byte order.
 *
 * The dict is Python source, which np.load evaluates; here it is read by a grammar of exactly the three keys that NumPy
 * writes, each once. Types that would need a Python object, and shapes whose product is not the number of bytes that
 * follow, are refused. Elements in our order and byte order are used where they are in the body; others are put in
 * order within the body, so a large upload is not copied a second time. */
#include "api/inputs/inputs.h"
#include "api/numbers/numbers.h"
#include "api/operations.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MAGIC_BYTES = 6 };

/* ---- The dict: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), } ---- */

struct header {
    char descr[16];
    bool has_descr, has_order, has_shape, is_complex;
    bool fortran_order;
    unsigned rank;
    uint64_t shape[PE_RANK_MAX];
};

struct cursor {
    const char *p, *end;
};

static void skip_space(struct cursor *c)
{
    while (c->p < c->end && (*c->p == ' ' || *c->p == '\n' || *c->p == '\t' || *c->p == '\r'))
        c->p++;
}

/* Skips the character if it comes next. */
static bool skip_char(struct cursor *c, char expected)
{
    skip_space(c);
    if (c->p == c->end || *c->p != expected)
        return false;
    c->p++;
    return true;
}

static bool take_word(struct cursor *c, const char *word)
{
    size_t n = strlen(word);
    skip_space(c);
    if ((size_t)(c->end - c->p) < n || memcmp(c->p, word, n) != 0)
        return false;
    c->p += n;
    return true;
}

/* A Python string without escapes and without a NUL, which would hide the text behind it; cut to fit. */
static bool read_string(struct cursor *c, char *out, size_t room)
{
    skip_space(c);
    char quote = c->p < c->end ? *c->p : '\0';
    if (quote != '\'' && quote != '"')
        return false;
    const char *start = ++c->p, *stop = memchr(start, quote, (size_t)(c->end - start));
    if (!stop || memchr(start, '\0', (size_t)(stop - start)))
        return false;
    snprintf(out, room, "%.*s", (int)(stop - start), start);
    c->p = stop + 1;
    return true;
}

static bool read_axis(struct cursor *c, uint64_t *axis)
{
    skip_space(c);
    const char *start = c->p;
    for (*axis = 0; c->p < c->end && *c->p >= '0' && *c->p <= '9'; c->p++)
        if (__builtin_mul_overflow(*axis, 10, axis) || __builtin_add_overflow(*axis, (uint64_t)(*c->p - '0'), axis))
            return false;
    return c->p > start;
}

/* A Python tuple of integers; one alone needs its comma. */
static bool read_shape(struct cursor *c, struct header *h)
{
    if (!skip_char(c, '('))
        return false;
    bool comma = true;
    for (h->rank = 0; !skip_char(c, ')'); h->rank++) {
        if (!comma || h->rank == PE_RANK_MAX || !read_axis(c, &h->shape[h->rank]))
            return false;
        comma = skip_char(c, ',');
    }
    return h->rank != 1 || comma;
}

static bool read_order(struct cursor *c, struct header *h)
{
    h->fortran_order = take_word(c, "True");
    return h->fortran_order || take_word(c, "False");
}

/* One key with its value; each key once. */
static bool read_entry(struct cursor *c, struct header *h)
{
    char key[16];
    if (!read_string(c, key, sizeof key) || !skip_char(c, ':'))
        return false;
    bool *has = strcmp(key, "descr") == 0           ? &h->has_descr
                : strcmp(key, "fortran_order") == 0 ? &h->has_order
                : strcmp(key, "shape") == 0         ? &h->has_shape
                                                    : NULL;
    if (!has || *has)
        return false;
    *has = true;
    return has == &h->has_descr   ? read_string(c, h->descr, sizeof h->descr)
           : has == &h->has_order ? read_order(c, h)
                                  : read_shape(c, h);
}

static bool read_dict(struct cursor *c, struct header *h)
{
    *h = (struct header){0};
    if (!skip_char(c, '{'))
        return false;
    for (bool comma = true; !skip_char(c, '}'); comma = skip_char(c, ','))
        if (!comma || !read_entry(c, h))
            return false;
    skip_space(c);
    return c->p == c->end && h->has_descr && h->has_order && h->has_shape;
}

/* ---- Types ---- */

/* Codes that are no dtype of ours, and what they hold: pairs of f4 and of f8; and e5m2, which ml_dtypes alone of its
 * types gives NumPy's kind f, so that np.save writes '<f1'. */
static const struct {
    const char *code;
    enum pe_dtype dtype;
} others[] = {{"c8", PE_F32}, {"c16", PE_F64}, {"f1", PE_F8_E5M2}};

/* '<' and '>' state the byte order, '=' is the writer's own (taken as little-endian), '|' means that there is none.
 * Without one of them descr is a name that ml_dtypes knows. */
static bool find_type(const char *descr, enum pe_dtype *dtype, bool *swapped)
{
    *swapped = descr[0] == '>';
    *dtype = api_dtype_find(API_TORCH, descr);
    if (*dtype != PE_DTYPE_NONE)
        return true;
    if (!descr[0] || !strchr("<>=|", descr[0]))
        return false;
    const char *name = descr + 1;
    *dtype = api_dtype_find(API_NUMPY, name);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(others[i].code, name) == 0)
            *dtype = others[i].dtype;
    return *dtype != PE_DTYPE_NONE && (descr[0] != '|' || pe_dtype_size(*dtype) == 1);
}

/* ---- The file ---- */

static bool fail_file(const struct api_npy_file *file, const char *what, struct api_problem *problem)
{
    return api_fail(problem, 400, file->pointer, "%s is not a .npy file: %s", pe_text(file->what), pe_text(what));
}

/* Finds the dict: after magic and version a length of 2 bytes (version 1) or 4 (2 and 3). */
static bool find_dict(const struct api_npy_file *file, struct cursor *dict, struct api_problem *problem)
{
    const unsigned char *b = (const unsigned char *)file->bytes;
    if (!api_npy_looks_like(file->bytes, file->n) || file->n < MAGIC_BYTES + 2)
        return fail_file(file, "it does not begin with \\x93NUMPY and a version", problem);
    if (b[6] < 1 || b[6] > 3 || b[7] != 0)
        return fail_file(file, "its version is not 1.0, 2.0 or 3.0", problem);
    size_t prefix = b[6] == 1 ? 10 : 12, length = 0;
    if (file->n < prefix)
        return fail_file(file, "it ends within its header", problem);
    for (size_t i = prefix; i-- > MAGIC_BYTES + 2;)
        length = length << 8 | b[i];
    if (length > API_NPY_HEADER_MAX)
        return fail_file(file, "its header is over 10000 bytes", problem);
    if (length > file->n - prefix)
        return fail_file(file, "it ends within its header", problem);
    *dict = (struct cursor){.p = file->bytes + prefix, .end = file->bytes + prefix + length};
    return true;
}

static bool check_size(const struct api_npy_file *file, const struct header *h, enum pe_dtype dtype, const char *data,
                       struct api_problem *problem)
{
    uint64_t count, bytes, have = (uint64_t)(file->bytes + file->n - data);
    if (!pe_shape_count(h->shape, h->rank, &count) || __builtin_mul_overflow(count, pe_dtype_size(dtype), &bytes))
        return fail_file(file, "its shape has more elements than memory", problem);
    if (bytes == have)
        return true;
    char what[192];
    snprintf(what, sizeof what, pe_text("its shape needs %" PRIu64 " bytes of data, it has %" PRIu64), bytes, have);
    return fail_file(file, what, problem);
}

/* ---- Other orders ---- */

static void copy_element(char *dst, const char *src, size_t size, bool swapped)
{
    if (!swapped) {
        memcpy(dst, src, size);
        return;
    }
    for (size_t i = 0; i < size; i++)
        dst[i] = src[size - 1 - i];
}

/* Visits the elements in our order (last axis fastest) and tracks, axis by axis, the place in the file, where with
 * fortran_order the first axis is fastest. The parts of a complex number are beside each other in both. */
static void reorder(char *dst, const char *src, const struct header *h, size_t size, bool swapped, uint64_t count)
{
    uint64_t strides[PE_RANK_MAX] = {0}, index[PE_RANK_MAX] = {0}, step = size, at = 0;
    unsigned n_axes = h->rank - h->is_complex;
    if (h->is_complex) {
        strides[n_axes] = size;
        step = 2 * size;
    }
    for (unsigned i = 0; i < n_axes; i++) {
        unsigned axis = h->fortran_order ? i : n_axes - 1 - i;
        strides[axis] = step;
        step *= h->shape[axis];
    }
    for (uint64_t i = 0; i < count; i++, dst += size) {
        copy_element(dst, src + at, size, swapped);
        for (unsigned axis = h->rank; axis-- > 0;) {
            at += strides[axis];
            if (++index[axis] < h->shape[axis])
                break;
            at -= strides[axis] * h->shape[axis];
            index[axis] = 0;
        }
    }
}

bool api_npy_parse(struct api_arena *arena, const struct api_npy_file *file, struct pe_tensor *tensor,
                   struct api_problem *problem)
{
    struct cursor dict = {0};
    struct header h;
    bool swapped;
    if (!find_dict(file, &dict, problem))
        return false;
    const char *data = dict.end;
    if (!read_dict(&dict, &h))
        return fail_file(
            file, "its header is not a dict of exactly descr (a plain dtype), fortran_order and shape (at most 8 axes)",
            problem);
    *tensor = (struct pe_tensor){.rank = 0};
    if (strcmp(h.descr + (h.descr[0] != 0), "V1") == 0 || strcmp(h.descr + (h.descr[0] != 0), "V2") == 0)
        return api_fail(problem, 422, file->pointer,
                        "%s has the dtype '%s', bytes whose type it does not state: np.save writes this for every type "
                        "of ml_dtypes, as bfloat16 and float8_e4m3fn; send safetensors",
                        pe_text(file->what), h.descr);
    if (!find_type(h.descr, &tensor->dtype, &swapped))
        return api_fail(problem, 422, file->pointer, "%s has the dtype '%s'; allowed: %s", pe_text(file->what), h.descr,
                        api_numpy_dtypes);
    h.is_complex = h.descr[0] && h.descr[1] == 'c';
    if (h.is_complex && !api_complex_shape(file->pointer, h.shape, &h.rank, problem))
        return false;
    tensor->rank = h.rank;
    memcpy(tensor->shape, h.shape, sizeof h.shape);
    if (!check_size(file, &h, tensor->dtype, data, problem))
        return false;
    size_t size = pe_dtype_size(tensor->dtype);
    tensor->data = data;
    if (!(swapped && size > 1) && !(h.fortran_order && h.rank > 1))
        return true;
    uint64_t count = 0;
    pe_shape_count(h.shape, h.rank, &count);
    char *copy = api_arena_array(arena, (size_t)count, size);
    if (!copy)
        return api_fail_memory(problem);
    reorder(copy, data, &h, size, swapped, count);
    tensor->data = copy;
    return true;
}

/* A body of one .npy file: the endpoint's main tensor. The rest of the request is in the query. */
bool api_npy_read(struct api_request *request, const struct api_received *body, struct api_problem *problem)
{
    bool has_own = request->taking && request->taking->tensor;
    const char *name = has_own ? "" : api_operations[request->operation].tensor;
    char pointer[PE_POINTER_MAX] = "";
    if (*name)
        api_pointer_push(pointer, name, strlen(name));
    struct api_npy_file file = {.bytes = body->bytes, .n = body->n, .what = "the body", .pointer = pointer};
    struct pe_tensor tensor;
    return api_npy_parse(&request->arena, &file, &tensor, problem) &&
           api_request_add_tensor(request, has_own ? request->taking->tensor(&tensor) : name, &tensor, 0, problem);
}
