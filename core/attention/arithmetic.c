/* Attention's arithmetic in f32 and in f64. */
#include "core/attention/arithmetic.h"
#include "core/gemm.h"

#include <math.h>

#define ROWS(T, suffix, EXP, TANH)                                                                                     \
    static double max_##suffix(const void *row, size_t n)                                                              \
    {                                                                                                                  \
        const T *s = row;                                                                                              \
        double m = -(double)INFINITY;                                                                                  \
        for (size_t i = 0; i < n; i++)                                                                                 \
            m = isnan(m) || (double)s[i] <= m ? m : (double)s[i];                                                      \
        return m;                                                                                                      \
    }                                                                                                                  \
    static double exp_##suffix(void *row, size_t n, double max, double *weighted)                                      \
    {                                                                                                                  \
        T *s = row;                                                                                                    \
        double sum = 0, w = 0;                                                                                         \
        for (size_t i = 0; i < n; i++) {                                                                               \
            T x = s[i] - (T)max;                                                                                       \
            s[i] = EXP(x);                                                                                             \
            sum += (double)s[i];                                                                                       \
            w += s[i] == 0 ? 0 : (double)s[i] * (double)x;                                                             \
        }                                                                                                              \
        if (weighted)                                                                                                  \
            *weighted = w;                                                                                             \
        return sum;                                                                                                    \
    }                                                                                                                  \
    static void scale_##suffix(void *row, size_t n, double factor)                                                     \
    {                                                                                                                  \
        T *s = row;                                                                                                    \
        for (size_t i = 0; i < n; i++)                                                                                 \
            s[i] *= (T)factor;                                                                                         \
    }                                                                                                                  \
    static void add_##suffix(void *row, const void *from, size_t n, double factor)                                     \
    {                                                                                                                  \
        T *s = row;                                                                                                    \
        const T *b = from;                                                                                             \
        for (size_t i = 0; i < n; i++)                                                                                 \
            s[i] += (T)factor * b[i];                                                                                  \
    }                                                                                                                  \
    static void cap_##suffix(void *row, size_t n, double cap)                                                          \
    {                                                                                                                  \
        T *s = row;                                                                                                    \
        for (size_t i = 0; i < n; i++)                                                                                 \
            s[i] = (T)cap * TANH(s[i] / (T)cap);                                                                       \
    }                                                                                                                  \
    static void sigmoid_##suffix(const void *row, size_t n, void *out)                                                 \
    {                                                                                                                  \
        const T *s = row;                                                                                              \
        for (size_t i = 0; i < n; i++)                                                                                 \
            ((T *)out)[i] = 1 / (1 + EXP(-s[i]));                                                                      \
    }                                                                                                                  \
    static void gather_add_##suffix(void *row, const void *table, const int32_t *index, size_t n, double factor)       \
    {                                                                                                                  \
        T *s = row;                                                                                                    \
        const T *t = table;                                                                                            \
        for (size_t i = 0; i < n; i++)                                                                                 \
            s[i] += (T)factor * t[index[i]];                                                                           \
    }                                                                                                                  \
    static const struct pe_arithmetic arithmetic_##suffix = {                                                          \
        .size = sizeof(T),                                                                                             \
        .dtype = sizeof(T) == 4 ? PE_F32 : PE_F64,                                                                     \
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

ROWS(float, f32, expf, tanhf)
ROWS(double, f64, exp, tanh)

const struct pe_arithmetic *pe_arithmetic(enum pe_dtype dtype)
{
    return dtype == PE_F64 ? &arithmetic_f64 : &arithmetic_f32;
}

double pe_number(const struct pe_arithmetic *a, const void *row, size_t i)
{
    return a->dtype == PE_F64 ? ((const double *)row)[i] : (double)((const float *)row)[i];
}

void pe_number_set(const struct pe_arithmetic *a, void *row, size_t i, double x)
{
    if (a->dtype == PE_F64)
        ((double *)row)[i] = x;
    else
        ((float *)row)[i] = (float)x;
}

void pe_numbers_set(const struct pe_arithmetic *a, void *row, size_t first, size_t end, double x)
{
    for (size_t i = first; i < end; i++)
        pe_number_set(a, row, i, x);
}
