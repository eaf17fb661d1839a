/* Matrix products; only this file calls BLAS. All matrices are row-major with the given row strides (elements);
 * products run on the calling thread. keep is 0 (c is only written) or 1 (the product is added to it). */
#ifndef PE_GEMM_H
#define PE_GEMM_H

#include <stddef.h>

/* c[m, n] = keep · c + scale · a[m, k] · b[n, k]ᵀ: each row of the result is the dot products of a row of a with the
 * rows of b: queries with keys. */
void pe_gemm_abt_f32(size_t m, size_t n, size_t k, double scale, const void *a, size_t a_stride, const void *b,
                     size_t b_stride, double keep, void *c, size_t c_stride);
void pe_gemm_abt_f64(size_t m, size_t n, size_t k, double scale, const void *a, size_t a_stride, const void *b,
                     size_t b_stride, double keep, void *c, size_t c_stride);

/* c[m, n] = keep · c + a[m, k] · b[k, n]: weights with values. */
void pe_gemm_ab_f32(size_t m, size_t n, size_t k, const void *a, size_t a_stride, const void *b, size_t b_stride,
                    double keep, void *c, size_t c_stride);
void pe_gemm_ab_f64(size_t m, size_t n, size_t k, const void *a, size_t a_stride, const void *b, size_t b_stride,
                    double keep, void *c, size_t c_stride);

/* c[m, n] = keep · c + a[k, m]ᵀ · b[k, n]: gradients of weights, a sum over all rows. */
void pe_gemm_atb_f32(size_t m, size_t n, size_t k, const void *a, size_t a_stride, const void *b, size_t b_stride,
                     double keep, void *c, size_t c_stride);
void pe_gemm_atb_f64(size_t m, size_t n, size_t k, const void *a, size_t a_stride, const void *b, size_t b_stride,
                     double keep, void *c, size_t c_stride);

#endif
