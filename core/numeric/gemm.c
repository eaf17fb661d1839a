/* The only file that calls OpenBLAS. Products run single-threaded, because the caller's workers already run in
 * parallel. */
#include "core/numeric/numeric.h"
#include "core/inside.h"

#include <assert.h>
#include <cblas.h>
#include <limits.h>
#include <stdlib.h>

/* OpenBLAS counts with int; a larger block is a programming error, not the user's. */
static int dimension(size_t n)
{
    assert(n <= INT_MAX);
    return (int)n;
}

void pe_gemm_setup(void) { openblas_set_num_threads(1); }

/* OpenBLAS's own functions, which every product calls for its buffer (driver/others/memory.c); not every build exports
 * them. */
extern void *blas_memory_alloc(int position) __attribute__((weak));
extern void blas_memory_free(void *buffer) __attribute__((weak));

void pe_gemm_reserve(size_t n)
{
    void **buffers = blas_memory_alloc && blas_memory_free ? calloc(n, sizeof(void *)) : NULL;
    for (size_t i = 0; buffers && i < n; i++)
        buffers[i] = blas_memory_alloc(0);
    for (size_t i = 0; buffers && i < n; i++)
        blas_memory_free(buffers[i]); /* stays mapped, for the next product */
    free(buffers);
}

void pe_gemm_abt_f32(size_t m, size_t n, size_t k, double scale, const void *a, size_t a_stride, const void *b,
                     size_t b_stride, double keep, void *c, size_t c_stride)
{
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, dimension(m), dimension(n), dimension(k), (float)scale, a,
                dimension(a_stride), b, dimension(b_stride), (float)keep, c, dimension(c_stride));
}

void pe_gemm_abt_f64(size_t m, size_t n, size_t k, double scale, const void *a, size_t a_stride, const void *b,
                     size_t b_stride, double keep, void *c, size_t c_stride)
{
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, dimension(m), dimension(n), dimension(k), scale, a,
                dimension(a_stride), b, dimension(b_stride), keep, c, dimension(c_stride));
}

void pe_gemm_ab_f32(size_t m, size_t n, size_t k, const void *a, size_t a_stride, const void *b, size_t b_stride,
                    double keep, void *c, size_t c_stride)
{
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, dimension(m), dimension(n), dimension(k), 1, a,
                dimension(a_stride), b, dimension(b_stride), (float)keep, c, dimension(c_stride));
}

void pe_gemm_ab_f64(size_t m, size_t n, size_t k, const void *a, size_t a_stride, const void *b, size_t b_stride,
                    double keep, void *c, size_t c_stride)
{
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, dimension(m), dimension(n), dimension(k), 1, a,
                dimension(a_stride), b, dimension(b_stride), keep, c, dimension(c_stride));
}

void pe_gemm_atb_f32(size_t m, size_t n, size_t k, const void *a, size_t a_stride, const void *b, size_t b_stride,
                     double keep, void *c, size_t c_stride)
{
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, dimension(m), dimension(n), dimension(k), 1, a,
                dimension(a_stride), b, dimension(b_stride), (float)keep, c, dimension(c_stride));
}

void pe_gemm_atb_f64(size_t m, size_t n, size_t k, const void *a, size_t a_stride, const void *b, size_t b_stride,
                     double keep, void *c, size_t c_stride)
{
    cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, dimension(m), dimension(n), dimension(k), 1, a,
                dimension(a_stride), b, dimension(b_stride), keep, c, dimension(c_stride));
}
