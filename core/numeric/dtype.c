/* Element types: names, sizes, and conversion with one rounding.
 *
 * A double becomes f16 or bf16 by way of a float that is rounded to odd: cut off, with its last bit set if anything was
 * lost. Such a float is never on the wrong side of a midpoint, so rounding it again is the single rounding that was
 * wanted (Boldo and Melquiond 2008). Everything else is a table of two functions for each type, load and store, through
 * which all readers and writers go. */
#include "core/numeric/numeric.h"
#include "core/kernels/narrow.h"
#include "core/kernels/kernels.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* ---- Rounding to 16 bits ---- */

bool pe_f16_is_middle(float x) { return f16_is_middle(x); }

bool pe_bf16_is_middle(float x) { return bf16_is_middle(x); }

bool pe_f16_narrow(const float *from, size_t n, uint16_t *to)
{
    pe_kernels()->to_f16(from, n, to);
    return pe_kernels()->middles_f16(from, n);
}

bool pe_bf16_narrow(const float *from, size_t n, uint16_t *to)
{
    pe_kernels()->to_bf16(from, n, to);
    return pe_kernels()->middles_bf16(from, n);
}

/* A double cut to a float with the last bit set if anything was lost: rounding that to 16 bits is one rounding. */
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

uint16_t pe_f16_round(double x) { return f16_of_float(odd_float(x)); }

uint16_t pe_bf16_round(double x) { return bf16_of_float(odd_float(x)); }

double pe_f16_value(uint16_t bits)
{
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double value = exponent == 31 ? (fraction ? (double)NAN : (double)INFINITY)
                   : exponent     ? ldexp(fraction + 1024, exponent - 25)
                                  : ldexp(fraction, -24);
    return bits & 0x8000 ? -value : value;
}

double pe_bf16_value(uint16_t bits)
{
    union {
        float f;
        uint32_t u;
    } v = {.u = (uint32_t)bits << 16};
    return (double)v.f;
}

int pe_rising(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

double pe_round_to(enum pe_dtype dtype, double x)
{
    switch (dtype) {
    case PE_F32: return (double)(float)x;
    case PE_F16: return pe_f16_value(pe_f16_round(x));
    case PE_BF16: return pe_bf16_value(pe_bf16_round(x));
    default: return x;
    }
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

static double load_f16(const void *src, size_t i)
{
    uint16_t v;
    memcpy(&v, (const char *)src + 2 * i, 2);
    return pe_f16_value(v);
}

static double load_bf16(const void *src, size_t i)
{
    uint16_t v;
    memcpy(&v, (const char *)src + 2 * i, 2);
    return pe_bf16_value(v);
}

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

static void store_f16(void *dst, size_t i, double x)
{
    uint16_t v = pe_f16_round(x);
    memcpy((char *)dst + 2 * i, &v, 2);
}

static void store_bf16(void *dst, size_t i, double x)
{
    uint16_t v = pe_bf16_round(x);
    memcpy((char *)dst + 2 * i, &v, 2);
}

static void store_bool(void *dst, size_t i, double x) { ((uint8_t *)dst)[i] = x != 0; }

/* ---- The dtypes ---- */

static const struct {
    const char *name;
    size_t size;
    bool is_real;
    double (*load)(const void *src, size_t i);
    void (*store)(void *dst, size_t i, double x);
} dtypes[PE_N_DTYPES] = {
    [PE_F32] = {"f32", 4, true, load_f32, store_f32},      [PE_F64] = {"f64", 8, true, load_f64, store_f64},
    [PE_F16] = {"f16", 2, true, load_f16, store_f16},      [PE_BF16] = {"bf16", 2, true, load_bf16, store_bf16},
    [PE_I32] = {"i32", 4, false, load_i32, store_i32},     [PE_I64] = {"i64", 8, false, load_i64, store_i64},
    [PE_I16] = {"i16", 2, false, load_i16, store_i16},     [PE_I8] = {"i8", 1, false, load_i8, store_i8},
    [PE_U8] = {"u8", 1, false, load_u8, store_u8},         [PE_U16] = {"u16", 2, false, load_u16, store_u16},
    [PE_U32] = {"u32", 4, false, load_u32, store_u32},     [PE_U64] = {"u64", 8, false, load_u64, store_u64},
    [PE_BOOL] = {"bool", 1, false, load_bool, store_bool},
};

const char *const pe_answer_dtypes[] = {"f32", "f64", "f16", "bf16", NULL};
const char *const pe_dtypes_by_bits[] = {"f64", "f32", "f16", "bf16", NULL};

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

bool pe_dtype_is_real(enum pe_dtype dtype) { return dtype >= 0 && dtype < PE_N_DTYPES && dtypes[dtype].is_real; }

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
