/* Elements of a tensor as nested JSON lists. The brackets around element i follow from i alone, so any range can be
 * printed without the elements before it. */
#include "api/numbers/numbers.h"

#include <stdio.h>
#include <string.h>

void api_elements_init(struct api_elements *elements, enum pe_dtype dtype, const uint64_t *shape, unsigned rank,
                       int digits)
{
    *elements = (struct api_elements){.dtype = dtype, .digits = digits, .rank = rank, .count = 1};
    for (unsigned axis = rank; axis-- > 0;) {
        elements->count *= shape[axis];
        elements->blocks[axis] = elements->count;
    }
    elements->width = api_number_width(dtype, digits) + 1 + 2 * (size_t)rank;
}

/* The lists that begin with element i are as many as end just before it: i is a multiple of their size. From the row
 * outwards each size divides the next, so the first size that does not divide i ends the search. */
static unsigned n_lists_at(const struct api_elements *elements, uint64_t i)
{
    unsigned n = 0;
    while (n < elements->rank && i % elements->blocks[elements->rank - 1 - n] == 0)
        n++;
    return n;
}

static char *repeat_char(char *dst, char c, unsigned n)
{
    while (n-- > 0)
        *dst++ = c;
    return dst;
}

/* ---- Rows that the row before them spells ---- */

/* A whole row that was just written: its values, its text without brackets. */
struct written {
    const char *values; /* NULL: none */
    const char *text;
    size_t bytes; /* of the text */
};

/* Below this length printing a row's numbers costs no more than the comparison. */
enum { ROW_TO_COMPARE_MIN = 8 };

/* The text up to the comma before its last number. */
static size_t all_but_last(const struct written *before)
{
    size_t n = before->bytes;
    while (before->text[n - 1] != ',')
        n--;
    return n - 1;
}

/* Writes a row of n values at `from` and sets *end to the end of its text, if the text of the previous row can be
 * reused. That row has the same values (repeated positions, equal heads), or the same values shifted by one after a new
 * first value, e.g. any function of k_pos - q_pos (a Toeplitz output without stored lines); then only one number per
 * row is printed. The values are compared, so this works for any scheme; if rows differ, the comparison ends early. */
static bool spelled_by(const struct written *before, const struct api_elements *elements, const char *from, size_t n,
                       char *dst, char **end)
{
    size_t size = pe_dtype_size(elements->dtype);
    if (!before->values || n < ROW_TO_COMPARE_MIN)
        return false;
    if (memcmp(from, before->values, n * size) == 0) {
        memcpy(dst, before->text, before->bytes);
        *end = dst + before->bytes;
        return true;
    }
    if (memcmp(from + size, before->values, (n - 1) * size) != 0)
        return false;
    dst = api_numbers_print(dst, elements->dtype, from, 1, elements->digits);
    *dst++ = ',';
    size_t kept = all_but_last(before);
    memcpy(dst, before->text, kept);
    *end = dst + kept;
    return true;
}

/* A part of one row: elements i … i+n-1, and the brackets around them. */
struct run {
    uint64_t i, row_end;
    size_t n;
};

static struct run run_at(const struct api_elements *elements, uint64_t i, uint64_t end)
{
    uint64_t row = elements->rank ? elements->blocks[elements->rank - 1] : 1, row_end = i - i % row + row;
    return (struct run){i, row_end, (size_t)((row_end < end ? row_end : end) - i)};
}

static char *open_lists(const struct api_elements *elements, const struct run *run, char *dst)
{
    dst = repeat_char(dst, ',', run->i > 0);
    return repeat_char(dst, '[', n_lists_at(elements, run->i));
}

static char *close_lists(const struct api_elements *elements, const struct run *run, char *dst)
{
    uint64_t end = run->i + run->n;
    return repeat_char(dst, ']', end == run->row_end ? n_lists_at(elements, end) : 0);
}

size_t api_elements_print(const struct api_elements *elements, const void *src, uint64_t first, size_t n, char *dst)
{
    const char *from = src;
    char *start = dst;
    struct written before = {.values = NULL};
    uint64_t row = elements->rank ? elements->blocks[elements->rank - 1] : 1;
    struct run run;
    for (uint64_t i = first, end = first + n; i < end; i += run.n) {
        run = run_at(elements, i, end);
        dst = open_lists(elements, &run, dst);
        char *text = dst;
        if (run.n < row || !spelled_by(&before, elements, from, run.n, text, &dst))
            dst = api_numbers_print(text, elements->dtype, from, run.n, elements->digits);
        if (run.n == row)
            before = (struct written){from, text, (size_t)(dst - text)};
        dst = close_lists(elements, &run, dst);
        from += run.n * pe_dtype_size(elements->dtype);
    }
    return (size_t)(dst - start);
}

size_t api_elements_copy(const struct api_elements *elements, struct api_lines *lines, uint64_t first, size_t n,
                         char *dst)
{
    char *start = dst;
    struct run run;
    for (uint64_t i = first, end = first + n; i < end; i += run.n) {
        run = run_at(elements, i, end);
        struct api_span span = api_lines_span(lines, i, run.n);
        if (!span.text)
            return 0;
        dst = open_lists(elements, &run, dst);
        memcpy(dst, span.text, span.bytes);
        dst = close_lists(elements, &run, dst + span.bytes);
    }
    return (size_t)(dst - start);
}

/* ---- Names of dtypes ---- */

/* In the order in which OIP's refusal lists them; rank: in the order of safetensors' reference writer, with room
 * between. NumPy has no bf16: it loads the code that ml_dtypes writes for it as raw bytes. The types of eight bits have
 * ml_dtypes' name in its place, which np.load finds where ml_dtypes is imported. OIP has none of eight bits; Zarr 2 has
 * none, and Zarr 3 registers no float8_e4m3fn. */
static const struct {
    enum pe_dtype dtype;
    int rank;
    const char *names[API_N_NAMINGS];
} rows[PE_N_DTYPES] = {
    {PE_BOOL, 0, {[API_OIP] = "BOOL", [API_NUMPY] = "b1", [API_ZARR] = "bool", [API_SAFETENSORS] = "BOOL"}},
    {PE_I8, 20, {[API_OIP] = "INT8", [API_NUMPY] = "i1", [API_ZARR] = "int8", [API_SAFETENSORS] = "I8"}},
    {PE_I16, 30, {[API_OIP] = "INT16", [API_NUMPY] = "i2", [API_ZARR] = "int16", [API_SAFETENSORS] = "I16"}},
    {PE_I32, 70, {[API_OIP] = "INT32", [API_NUMPY] = "i4", [API_ZARR] = "int32", [API_SAFETENSORS] = "I32"}},
    {PE_I64, 110, {[API_OIP] = "INT64", [API_NUMPY] = "i8", [API_ZARR] = "int64", [API_SAFETENSORS] = "I64"}},
    {PE_U8, 10, {[API_OIP] = "UINT8", [API_NUMPY] = "u1", [API_ZARR] = "uint8", [API_SAFETENSORS] = "U8"}},
    {PE_U16, 40, {[API_OIP] = "UINT16", [API_NUMPY] = "u2", [API_ZARR] = "uint16", [API_SAFETENSORS] = "U16"}},
    {PE_U32, 80, {[API_OIP] = "UINT32", [API_NUMPY] = "u4", [API_ZARR] = "uint32", [API_SAFETENSORS] = "U32"}},
    {PE_U64, 120, {[API_OIP] = "UINT64", [API_NUMPY] = "u8", [API_ZARR] = "uint64", [API_SAFETENSORS] = "U64"}},
    {PE_F16,
     50,
     {[API_OIP] = "FP16",
      [API_NUMPY] = "f2",
      [API_ZARR] = "float16",
      [API_SAFETENSORS] = "F16",
      [API_TORCH] = "float16"}},
    {PE_BF16, 60, {[API_OIP] = "BF16", [API_SAFETENSORS] = "BF16", [API_TORCH] = "bfloat16"}},
    {PE_F8_E4M3, 24, {[API_NUMPY] = "float8_e4m3fn", [API_SAFETENSORS] = "F8_E4M3", [API_TORCH] = "float8_e4m3fn"}},
    {PE_F8_E5M2, 22, {[API_NUMPY] = "float8_e5m2", [API_SAFETENSORS] = "F8_E5M2", [API_TORCH] = "float8_e5m2"}},
    {PE_F32, 90, {[API_OIP] = "FP32", [API_NUMPY] = "f4", [API_ZARR] = "float32", [API_SAFETENSORS] = "F32"}},
    {PE_F64, 100, {[API_OIP] = "FP64", [API_NUMPY] = "f8", [API_ZARR] = "float64", [API_SAFETENSORS] = "F64"}},
};

const char api_numpy_dtypes[] = "f2, f4, f8, i1 to i8, u1 to u8, b1; by its name float8_e4m3fn, float8_e5m2, bfloat16";
const char api_safetensors_dtypes[] = "F32, F64, F16, BF16, F8_E4M3, F8_E5M2, I8 to I64, U8 to U64, BOOL";

static size_t row_of(enum pe_dtype dtype)
{
    size_t i = 0;
    while (rows[i].dtype != dtype)
        i++;
    return i;
}

const char *api_dtype_name(enum api_naming naming, enum pe_dtype dtype) { return rows[row_of(dtype)].names[naming]; }

enum pe_dtype api_dtype_find(enum api_naming naming, const char *name)
{
    for (size_t i = 0; i < PE_N_DTYPES; i++)
        if (rows[i].names[naming] && strcmp(rows[i].names[naming], name) == 0)
            return rows[i].dtype;
    return PE_DTYPE_NONE;
}

void api_dtypes_print(enum api_naming naming, char *out, size_t room)
{
    size_t used = 0;
    for (size_t i = 0; i < PE_N_DTYPES && used < room; i++)
        if (rows[i].names[naming])
            used += (size_t)snprintf(out + used, room - used, "%s%s", used ? ", " : "", rows[i].names[naming]);
}

const char *api_numpy_descr(enum pe_dtype dtype, char descr[API_DESCR_BYTES])
{
    const char *code = api_dtype_name(API_NUMPY, dtype);
    snprintf(descr, API_DESCR_BYTES, "%s%s", strlen(code) > 2 ? "" : pe_dtype_size(dtype) == 1 ? "|" : "<", code);
    return descr;
}

int api_safetensors_rank(enum pe_dtype dtype) { return rows[row_of(dtype)].rank; }
