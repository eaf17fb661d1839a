/* Attention's arithmetic in f32 and in f64: BLAS for products, the machine's kernels for rows. */
#include "core/attention/arithmetic.h"
#include "core/gemm.h"
#include "core/kernels/kernels.h"

#define ARITHMETIC(T, suffix, dtype_)                                                                                  \
    static double max_##suffix(const void *s, size_t n) { return (double)pe_kernels()->max_##suffix(s, n); }           \
    static double exp_##suffix(void *s, size_t n, double max, double *weighted)                                        \
    {                                                                                                                  \
        return pe_kernels()->exp_##suffix(s, n, (T)max, weighted);                                                     \
    }                                                                                                                  \
    static void scale_##suffix(void *s, size_t n, double factor) { pe_kernels()->scale_##suffix(s, n, (T)factor); }    \
    static void add_##suffix(void *s, const void *b, size_t n, double factor)                                          \
    {                                                                                                                  \
        pe_kernels()->add_##suffix(s, b, n, (T)factor);                                                                \
    }                                                                                                                  \
    static void cap_##suffix(void *s, size_t n, double cap) { pe_kernels()->cap_##suffix(s, n, (T)cap); }              \
    static void sigmoid_##suffix(const void *s, size_t n, void *out) { pe_kernels()->sigmoid_##suffix(s, n, out); }    \
    static void gather_add_##suffix(void *s, const void *table, const int32_t *index, size_t n, double factor)         \
    {                                                                                                                  \
        pe_kernels()->gather_add_##suffix(s, table, index, n, (T)factor);                                              \
    }                                                                                                                  \
    static const struct pe_arithmetic arithmetic_##suffix = {                                                          \
        .dtype = dtype_,                                                                                               \
        .size = sizeof(T),                                                                                             \
        .abt = pe_gemm_abt_##suffix,                                                                                   \
        .ab = pe_gemm_ab_##suffix,                                                                                     \
        .max = max_##suffix,                                                                                           \
        .exp = exp_##suffix,                                                                                           \
        .scale = scale_##suffix,                                                                                       \
        .add = add_##suffix,                                                                                           \
        .cap = cap_##suffix,                                                                                           \
        .sigmoid = sigmoid_##suffix,                                                                                   \
        .gather_add = gather_add_##suffix,                                                                             \
    };

ARITHMETIC(float, f32, PE_F32)
ARITHMETIC(double, f64, PE_F64)

const struct pe_arithmetic *pe_arithmetic(enum pe_dtype dtype)
{
    return dtype == PE_F64 ? &arithmetic_f64 : &arithmetic_f32;
}

void pe_numbers_set(const struct pe_arithmetic *a, void *row, size_t first, size_t end, double x)
{
    if (a->dtype == PE_F64)
        for (size_t i = first; i < end; i++)
            ((double *)row)[i] = x;
    else
        for (size_t i = first; i < end; i++)
            ((float *)row)[i] = (float)x;
}
