/* Matrix products by OpenBLAS: the only file that calls it.
 *
 * Attention, analyses and training need three products, each in f32 and f64: a·bᵀ, a·b and aᵀ·b (numeric.h). What a
 * BLAS offers beside that (column-major matrices, other transposes) is not used.
 *
 * Two properties of OpenBLAS decide how it is called. It has threads of its own, which would compete with the workers
 * that call it, so a program sets their number to one (pe_gemm_setup) and each product runs on the calling thread. And
 * it needs a buffer of PE_GEMM_BYTES of address space for each product that runs at a time, and asks the system again
 * without end if it gets none; so where address space is limited the buffers are reserved at the start
 * (pe_gemm_reserve) and stay mapped. driver/others/memory.c of OpenBLAS has both.
 *
 * An element's last bits depend on the machine and on the shapes, because OpenBLAS chooses its kernel and its blocks by
 * them. So nothing that is promised to be correctly rounded is computed here. */
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
