/* Element types: names, sizes, and conversion with one rounding.
 *
 * A double becomes a type narrower than f32 by way of a float that is rounded to odd: cut off, with its last bit set if
 * anything was lost. Such a float is never on the wrong side of a midpoint, so rounding it again is the single rounding
 * that was wanted (Boldo and Melquiond 2008). Everything else is a table of two functions for each type, load and
 * store, through which all readers and writers go. */
#include "core/numeric/numeric.h"
#include "core/kernels/narrow.h"
#include "core/kernels/kernels.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* ---- Rounding ---- */

/* A double cut to a float with the last bit set if anything was lost: rounding that to a narrower type is one rounding.
 */
static float odd_float(double x)
{
    union {
        float f;
        uint32_t u;
    } v = {.f = (float)x};
    double back = (double)v.f;
    if (back == x || isnan(x) || isinf(back))
        return v.f;
    if (fabs(back) > fabs(x))
        v.u--; /* towards zero: the truncation */
    v.u |= 1;
    return v.f;
}

int pe_rising(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* ---- Elements ---- */

/* Reads element i of src as type T whatever its alignment. */
#define LOAD(T, name)                                                                                                  \
    static double name(const void *src, size_t i)                                                                      \
    {                                                                                                                  \
        T v;                                                                                                           \
        memcpy(&v, (const char *)src + i * sizeof v, sizeof v);                                                        \
        return (double)v;                                                                                              \
    }
LOAD(float, load_f32)
LOAD(double, load_f64)
LOAD(int32_t, load_i32)
LOAD(int64_t, load_i64)
LOAD(int16_t, load_i16)
LOAD(int8_t, load_i8)
LOAD(uint8_t, load_u8)
LOAD(uint16_t, load_u16)
LOAD(uint32_t, load_u32)
LOAD(uint64_t, load_u64)

static double load_bool(const void *src, size_t i) { return ((const uint8_t *)src)[i] != 0; }

/* Stores x as an integer of type T, saturating; NaN is 0. The bounds are compared as doubles: 2^63 is one, INT64_MAX is
 * not. */
#define STORE_INTEGER(T, name, lowest, highest, beyond)                                                                \
    static void name(void *dst, size_t i, double x)                                                                    \
    {                                                                                                                  \
        T v = isnan(x) ? 0 : x <= (double)(lowest) ? (lowest) : x >= (beyond) ? (highest) : (T)x;                      \
        memcpy((char *)dst + i * sizeof v, &v, sizeof v);                                                              \
    }
STORE_INTEGER(int32_t, store_i32, INT32_MIN, INT32_MAX, 2147483648.0)
STORE_INTEGER(int64_t, store_i64, INT64_MIN, INT64_MAX, 9223372036854775808.0)
STORE_INTEGER(int16_t, store_i16, INT16_MIN, INT16_MAX, 32768.0)
STORE_INTEGER(int8_t, store_i8, INT8_MIN, INT8_MAX, 128.0)
STORE_INTEGER(uint8_t, store_u8, 0, UINT8_MAX, 256.0)
STORE_INTEGER(uint16_t, store_u16, 0, UINT16_MAX, 65536.0)
STORE_INTEGER(uint32_t, store_u32, 0, UINT32_MAX, 4294967296.0)
STORE_INTEGER(uint64_t, store_u64, 0, UINT64_MAX, 18446744073709551616.0)

static void store_f32(void *dst, size_t i, double x)
{
    float v = (float)x;
    memcpy((char *)dst + 4 * i, &v, 4);
}

static void store_f64(void *dst, size_t i, double x) { memcpy((char *)dst + 8 * i, &x, 8); }

static void store_bool(void *dst, size_t i, double x) { ((uint8_t *)dst)[i] = x != 0; }

/* A type with fewer bits than f32: its elements and its kernels (core/kernels/narrow.h, narrow.c). */
#define NARROW(name, T)                                                                                                \
    static double load_##name(const void *src, size_t i)                                                               \
    {                                                                                                                  \
        T v;                                                                                                           \
        memcpy(&v, (const char *)src + i * sizeof v, sizeof v);                                                        \
        return (double)float_of_##name(v);                                                                             \
    }                                                                                                                  \
    static void store_##name(void *dst, size_t i, double x)                                                            \
    {                                                                                                                  \
        T v = name##_of_float(odd_float(x));                                                                           \
        memcpy((char *)dst + i * sizeof v, &v, sizeof v);                                                              \
    }                                                                                                                  \
    static void widen_##name(const void *from, size_t n, float *to) { pe_kernels()->of_##name(from, n, to); }          \
    static void narrow_##name(const float *from, size_t n, void *to) { pe_kernels()->to_##name(from, n, to); }         \
    static bool has_middle_##name(const float *from, size_t n) { return pe_kernels()->middles_##name(from, n); }       \
    static const struct pe_narrow_type kernels_##name = {widen_##name, narrow_##name, has_middle_##name,               \
                                                         name##_is_middle};
NARROW(f16, uint16_t)
NARROW(bf16, uint16_t)
NARROW(f8_e4m3, uint8_t)
NARROW(f8_e5m2, uint8_t)

/* ---- The dtypes ---- */

/* One row a dtype: everything that the program asks about it, but for its names in other programs
 * (api/numbers/elements.c). A type narrower than f32 needs its kernels besides, which narrow.h makes from three
 * numbers. */
static const struct {
    const char *name;
    size_t size;
    double (*load)(const void *src, size_t i);
    void (*store)(void *dst, size_t i, double x);
    const struct pe_narrow_type *narrow; /* NULL: f32, f64, integers */
    struct pe_real_type real;            /* zeros: integers */
} dtypes[PE_N_DTYPES] = {
    [PE_F32] = {"f32", 4, load_f32, store_f32, NULL, {23, 0x1p-24, 0x1.fffffep127, 0x1p-126, 0x1p-149}},
    [PE_F64] = {"f64", 8, load_f64, store_f64, NULL, {52, 0x1p-53, 0x1.fffffffffffffp1023, 0x1p-1022, 0x1p-1074}},
    [PE_F16] = {"f16", 2, load_f16, store_f16, &kernels_f16, {10, 0x1p-11, 65504, 0x1p-14, 0x1p-24}},
    [PE_BF16] = {"bf16", 2, load_bf16, store_bf16, &kernels_bf16, {7, 0x1p-8, 0x1.fep127, 0x1p-126, 0x1p-133}},
    [PE_I32] = {"i32", 4, load_i32, store_i32, NULL, {0}},
    [PE_I64] = {"i64", 8, load_i64, store_i64, NULL, {0}},
    [PE_I16] = {"i16", 2, load_i16, store_i16, NULL, {0}},
    [PE_I8] = {"i8", 1, load_i8, store_i8, NULL, {0}},
    [PE_U8] = {"u8", 1, load_u8, store_u8, NULL, {0}},
    [PE_U16] = {"u16", 2, load_u16, store_u16, NULL, {0}},
    [PE_U32] = {"u32", 4, load_u32, store_u32, NULL, {0}},
    [PE_U64] = {"u64", 8, load_u64, store_u64, NULL, {0}},
    [PE_BOOL] = {"bool", 1, load_bool, store_bool, NULL, {0}},
    [PE_F8_E4M3] = {"f8_e4m3", 1, load_f8_e4m3, store_f8_e4m3, &kernels_f8_e4m3, {3, 0x1p-4, 448, 0x1p-6, 0x1p-9}},
    [PE_F8_E5M2] = {"f8_e5m2", 1, load_f8_e5m2, store_f8_e5m2, &kernels_f8_e5m2, {2, 0x1p-3, 57344, 0x1p-14, 0x1p-16}},
};

const char *const pe_answer_dtypes[] = {"f32", "f64", "f16", "bf16", "f8_e4m3", "f8_e5m2", NULL};
const char *const pe_dtypes_by_bits[] = {"f64", "f32", "f16", "bf16", NULL};

enum pe_dtype pe_answer_dtype(int word) { return word < 0 ? PE_DTYPE_NONE : pe_dtype_find(pe_answer_dtypes[word]); }

size_t pe_dtype_size(enum pe_dtype dtype)
{
    assert(dtype >= 0 && dtype < PE_N_DTYPES);
    return dtypes[dtype].size;
}

const char *pe_dtype_name(enum pe_dtype dtype)
{
    assert(dtype >= 0 && dtype < PE_N_DTYPES);
    return dtypes[dtype].name;
}

bool pe_dtype_is_real(enum pe_dtype dtype) { return dtype >= 0 && dtype < PE_N_DTYPES && dtypes[dtype].real.unit > 0; }

const struct pe_real_type *pe_real_type(enum pe_dtype dtype)
{
    assert(dtype >= 0 && dtype < PE_N_DTYPES);
    return &dtypes[dtype].real;
}

const struct pe_narrow_type *pe_narrow_type(enum pe_dtype dtype)
{
    assert(dtype >= 0 && dtype < PE_N_DTYPES);
    return dtypes[dtype].narrow;
}

enum pe_dtype pe_dtype_find(const char *name)
{
    for (int i = 0; i < PE_N_DTYPES; i++)
        if (strcmp(dtypes[i].name, name) == 0)
            return (enum pe_dtype)i;
    return PE_DTYPE_NONE;
}

bool pe_shape_count(const uint64_t *shape, unsigned rank, uint64_t *count)
{
    uint64_t product = 1;
    for (unsigned i = 0; i < rank; i++)
        if (__builtin_mul_overflow(product, shape[i], &product) || product > INT64_MAX)
            return false;
    *count = product;
    return true;
}

double pe_element(enum pe_dtype dtype, const void *src, size_t i) { return dtypes[dtype].load(src, i); }

void pe_store(enum pe_dtype dtype, void *dst, size_t i, double x) { dtypes[dtype].store(dst, i, x); }

uint64_t pe_bits(enum pe_dtype dtype, double x)
{
    uint64_t bits = 0; /* little-endian: api/numbers/numbers_print.c refuses to compile elsewhere */
    dtypes[dtype].store(&bits, 0, x);
    return bits;
}

double pe_round_to(enum pe_dtype dtype, double x)
{
    if (dtype == PE_F32) /* most calls: loops over a table */
        return (double)(float)x;
    if (!pe_dtype_is_real(dtype))
        return x;
    uint64_t bits = pe_bits(dtype, x);
    return dtypes[dtype].load(&bits, 0);
}

int64_t pe_place(enum pe_dtype dtype, double x)
{
    int64_t place = (int64_t)pe_bits(dtype, fabs(x));
    return x < 0 ? -place : place;
}

void pe_convert(enum pe_dtype to, void *dst, enum pe_dtype from, const void *src, size_t n)
{
    if (to == from) {
        memcpy(dst, src, n * pe_dtype_size(to));
        return;
    }
    double (*load)(const void *, size_t) = dtypes[from].load;
    void (*store)(void *, size_t, double) = dtypes[to].store;
    for (size_t i = 0; i < n; i++)
        store(dst, i, load(src, i));
}
