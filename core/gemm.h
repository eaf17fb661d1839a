/* Matrix products: the one door to BLAS. */
#ifndef PE_GEMM_H
#define PE_GEMM_H

#include <stddef.h>

/* c[m, n] = scale · a[m, k] · b[n, k]ᵀ, all row-major with the given row strides (elements). Each row of the result is
 * the dot products of a row of a with the rows of b: queries with keys. Runs on the calling thread. */
void pe_gemm_abt(size_t m, size_t n, size_t k, float scale, const float *a, size_t a_stride, const float *b,
                 size_t b_stride, float *c, size_t c_stride);

/* c[m, n] = a[m, k] · b[k, n]: weights with values. */
void pe_gemm_ab(size_t m, size_t n, size_t k, const float *a, size_t a_stride, const float *b, size_t b_stride,
                float *c, size_t c_stride);

#endif
