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
#include "core/outside.h"

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

/* Rows of a matrix, as OpenBLAS sees them. */
static void check_rows(size_t n_rows, size_t row_bytes, const void *rows, size_t stride_bytes)
{
    for (size_t i = 0; i < n_rows; i++)
        pe_outside_reads((const char *)rows + i * stride_bytes, row_bytes);
}

/* The doors: c = scale·op(a)·op(b) + keep·c, where op(a) is m × k and op(b) k × n. */
#define MULTIPLY(suffix, type, gemm)                                                                                   \
    static void multiply_##suffix(CBLAS_TRANSPOSE of_a, CBLAS_TRANSPOSE of_b, size_t m, size_t n, size_t k,            \
                                  double scale, const void *a, size_t a_stride, const void *b, size_t b_stride,        \
                                  double keep, void *c, size_t c_stride)                                               \
    {                                                                                                                  \
        bool a_turned = of_a == CblasTrans, b_turned = of_b == CblasTrans;                                             \
        check_rows(a_turned ? k : m, (a_turned ? m : k) * sizeof(type), a, a_stride * sizeof(type));                   \
        check_rows(b_turned ? n : k, (b_turned ? k : n) * sizeof(type), b, b_stride * sizeof(type));                   \
        gemm(CblasRowMajor, of_a, of_b, dimension(m), dimension(n), dimension(k), (type)scale, a, dimension(a_stride), \
             b, dimension(b_stride), (type)keep, c, dimension(c_stride));                                              \
        for (size_t i = 0; i < m; i++)                                                                                 \
            pe_outside_wrote((type *)c + i * c_stride, n * sizeof(type));                                              \
    }

MULTIPLY(f32, float, cblas_sgemm)
MULTIPLY(f64, double, cblas_dgemm)

void pe_gemm_abt_f32(size_t m, size_t n, size_t k, double scale, const void *a, size_t a_stride, const void *b,
                     size_t b_stride, double keep, void *c, size_t c_stride)
{
    multiply_f32(CblasNoTrans, CblasTrans, m, n, k, scale, a, a_stride, b, b_stride, keep, c, c_stride);
}

void pe_gemm_abt_f64(size_t m, size_t n, size_t k, double scale, const void *a, size_t a_stride, const void *b,
                     size_t b_stride, double keep, void *c, size_t c_stride)
{
    multiply_f64(CblasNoTrans, CblasTrans, m, n, k, scale, a, a_stride, b, b_stride, keep, c, c_stride);
}

/* Small a·b: the kernels of OpenBLAS for AVX-512 copy what meets the last columns into memory that they take for it,
 * and write there without checking that they got any (kernel/x86_64, [sd]gemm_small_kernel_nn_skylakex.c). They do so
 * for at most half a register of columns and for k from two registers on; such columns are multiplied as a·bᵀ, which
 * takes none, some rows of b at a time. */
static size_t last_columns(size_t m, size_t n, size_t k, size_t lanes)
{
    static const double small_max = 1e6; /* multiply-adds */
    size_t last = n % lanes;
    bool takes_memory = last <= lanes / 2 && k >= 2 * lanes && (double)m * (double)n * (double)k <= small_max;
    return takes_memory ? last : 0;
}

enum { ROWS_TURNED = 512 };

#define MULTIPLY_LAST(suffix, type)                                                                                    \
    static void multiply_last_##suffix(size_t m, size_t last, size_t k, const type *a, size_t a_stride, const type *b, \
                                       size_t b_stride, double keep, type *c, size_t c_stride)                         \
    {                                                                                                                  \
        type turned[32 / sizeof(type) * ROWS_TURNED];                                                                  \
        for (size_t x = 0, n; last && x < k; x += n) {                                                                 \
            n = k - x < ROWS_TURNED ? k - x : ROWS_TURNED;                                                             \
            for (size_t i = 0; i < n; i++)                                                                             \
                for (size_t j = 0; j < last; j++)                                                                      \
                    turned[j * n + i] = b[(x + i) * b_stride + j];                                                     \
            pe_gemm_abt_##suffix(m, last, n, 1, a + x, a_stride, turned, n, x ? 1 : keep, c, c_stride);                \
        }                                                                                                              \
    }

MULTIPLY_LAST(f32, float)
MULTIPLY_LAST(f64, double)

void pe_gemm_ab_f32(size_t m, size_t n, size_t k, const void *a, size_t a_stride, const void *b, size_t b_stride,
                    double keep, void *c, size_t c_stride)
{
    size_t last = last_columns(m, n, k, 16), first = n - last;
    if (first)
        multiply_f32(CblasNoTrans, CblasNoTrans, m, first, k, 1, a, a_stride, b, b_stride, keep, c, c_stride);
    multiply_last_f32(m, last, k, a, a_stride, (const float *)b + first, b_stride, keep, (float *)c + first, c_stride);
}

void pe_gemm_ab_f64(size_t m, size_t n, size_t k, const void *a, size_t a_stride, const void *b, size_t b_stride,
                    double keep, void *c, size_t c_stride)
{
    size_t last = last_columns(m, n, k, 8), first = n - last;
    if (first)
        multiply_f64(CblasNoTrans, CblasNoTrans, m, first, k, 1, a, a_stride, b, b_stride, keep, c, c_stride);
    multiply_last_f64(m, last, k, a, a_stride, (const double *)b + first, b_stride, keep, (double *)c + first,
                      c_stride);
}

void pe_gemm_atb_f32(size_t m, size_t n, size_t k, const void *a, size_t a_stride, const void *b, size_t b_stride,
                     double keep, void *c, size_t c_stride)
{
    multiply_f32(CblasTrans, CblasNoTrans, m, n, k, 1, a, a_stride, b, b_stride, keep, c, c_stride);
}

void pe_gemm_atb_f64(size_t m, size_t n, size_t k, const void *a, size_t a_stride, const void *b, size_t b_stride,
                     double keep, void *c, size_t c_stride)
{
    multiply_f64(CblasTrans, CblasNoTrans, m, n, k, 1, a, a_stride, b, b_stride, keep, c, c_stride);
}
