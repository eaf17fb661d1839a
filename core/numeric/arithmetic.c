/* Attention's arithmetic in f32 and in f64: BLAS for products, the machine's kernels for rows. */
#include "core/numeric/numeric.h"
#include "core/kernels/kernels.h"

#define T float
#define DTYPE PE_F32
#define OF(name) name##_f32
#include "core/numeric/arithmetic_body.h"
#undef T
#undef DTYPE
#undef OF
#define T double
#define DTYPE PE_F64
#define OF(name) name##_f64
#include "core/numeric/arithmetic_body.h"

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
