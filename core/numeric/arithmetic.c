/* Attention's arithmetic in f32 and in f64: BLAS for products, the machine's kernels for rows. */
#include "core/numeric/numeric.h"
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
    static void pack_##suffix(const void *b, size_t b_stride, size_t n, size_t k, void *panels)                        \
    {                                                                                                                  \
        pe_kernels()->pack_##suffix(b, b_stride, n, k, panels);                                                        \
    }                                                                                                                  \
    static void products_##suffix(size_t m, size_t first, size_t n, size_t k, double scale, const void *a,             \
                                  size_t a_stride, const void *panels, void *c, size_t c_stride)                       \
    {                                                                                                                  \
        pe_kernels()->products_##suffix(m, first, n, k, (T)scale, a, a_stride, panels, c, c_stride);                   \
    }                                                                                                                  \
    static void pick_add_##suffix(void *s, const void *table, const int32_t *index, size_t n)                          \
    {                                                                                                                  \
        pe_kernels()->pick_add_##suffix(s, table, index, n);                                                           \
    }                                                                                                                  \
    static void pick_across_add_##suffix(void *s, size_t s_stride, const void *table, size_t t_stride,                 \
                                         const int32_t *index, size_t n_rows, size_t n, double factor)                 \
    {                                                                                                                  \
        pe_kernels()->pick_across_add_##suffix(s, s_stride, table, t_stride, index, n_rows, n, (T)factor);             \
    }                                                                                                                  \
    static const struct pe_arithmetic arithmetic_##suffix = {                                                          \
        .dtype = dtype_,                                                                                               \
        .size = sizeof(T),                                                                                             \
        .abt = pe_gemm_abt_##suffix,                                                                                   \
        .ab = pe_gemm_ab_##suffix,                                                                                     \
        .pack = pack_##suffix,                                                                                         \
        .products = products_##suffix,                                                                                 \
        .max = max_##suffix,                                                                                           \
        .exp = exp_##suffix,                                                                                           \
        .scale = scale_##suffix,                                                                                       \
        .add = add_##suffix,                                                                                           \
        .cap = cap_##suffix,                                                                                           \
        .sigmoid = sigmoid_##suffix,                                                                                   \
        .gather_add = gather_add_##suffix,                                                                             \
        .pick_add = pick_add_##suffix,                                                                                 \
        .pick_across_add = pick_across_add_##suffix,                                                                   \
    };

ARITHMETIC(float, f32, PE_F32)
ARITHMETIC(double, f64, PE_F64)

static void abt_in_order(size_t m, size_t n, size_t k, double scale, const void *a, size_t a_stride, const void *b,
                         size_t b_stride, double keep, void *c, size_t c_stride)
{
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++) {
            const double *x = (const double *)a + i * a_stride, *y = (const double *)b + j * b_stride;
            double sum = 0, *to = (double *)c + i * c_stride + j;
            for (size_t l = 0; l < k; l++)
                sum += x[l] * y[l];
            *to = (keep == 0 ? 0 : keep * *to) + scale * sum;
        }
}

static void ab_in_order(size_t m, size_t n, size_t k, const void *a, size_t a_stride, const void *b, size_t b_stride,
                        double keep, void *c, size_t c_stride)
{
    for (size_t i = 0; i < m; i++) {
        double *to = (double *)c + i * c_stride;
        for (size_t j = 0; j < n; j++)
            to[j] = keep == 0 ? 0 : keep * to[j];
        for (size_t l = 0; l < k; l++)
            for (size_t j = 0; j < n; j++)
                to[j] += ((const double *)a)[i * a_stride + l] * ((const double *)b)[l * b_stride + j];
    }
}

static const struct pe_arithmetic arithmetic_in_order = {
    .dtype = PE_F64,
    .size = sizeof(double),
    .abt = abt_in_order,
    .ab = ab_in_order,
    .pack = pack_f64,
    .products = products_f64,
    .max = max_f64,
    .exp = exp_f64,
    .scale = scale_f64,
    .add = add_f64,
    .cap = cap_f64,
    .sigmoid = sigmoid_f64,
    .gather_add = gather_add_f64,
    .pick_add = pick_add_f64,
    .pick_across_add = pick_across_add_f64,
};

const struct pe_arithmetic *pe_arithmetic_in_order(void) { return &arithmetic_in_order; }

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
