/* The door to BLAS: products against plain loops in double, with strides, several threads' worth of calls
 * single-threaded. */
#include "core/numeric/numeric.h"
#include "core/inside.h"
#include "tests/support/cmocka.h"

#include <math.h>
#include <stdlib.h>

static float *numbers(size_t n, unsigned seed)
{
    float *v = malloc(n * sizeof *v);
    assert_non_null(v);
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525 + 1013904223;
        v[i] = (float)((double)(seed >> 8) / 0x1p23 - 1);
    }
    return v;
}

TEST(rows_with_rows)
{
    enum { M = 33, N = 70, K = 64, A = 66, B = 65, C = 71 };
    float *a = numbers(M * A, 1), *b = numbers(N * B, 2), *c = numbers(M * C, 3), *before = numbers(M * C, 3);
    pe_gemm_abt_f32(M, N, K, 0.125, a, A, b, B, 0, c, C);
    for (size_t i = 0; i < M; i++) {
        for (size_t j = 0; j < N; j++) {
            double sum = 0;
            for (size_t k = 0; k < K; k++)
                sum += (double)a[i * A + k] * (double)b[j * B + k];
            assert_true(fabs((double)c[i * C + j] - 0.125 * sum) < 1e-6);
        }
        assert_true(c[i * C + N] == before[i * C + N]); /* the bytes between the rows stay unchanged */
    }
    free(a);
    free(b);
    free(c);
    free(before);
}

TEST(rows_with_columns)
{
    enum { M = 17, N = 40, K = 129 };
    float *a = numbers(M * K, 4), *b = numbers(K * N, 5), *c = numbers(M * N, 6);
    pe_gemm_ab_f32(M, N, K, a, K, b, N, 0, c, N);
    for (size_t i = 0; i < M; i++)
        for (size_t j = 0; j < N; j++) {
            double sum = 0;
            for (size_t k = 0; k < K; k++)
                sum += (double)a[i * K + k] * (double)b[k * N + j];
            assert_true(fabs((double)c[i * N + j] - sum) < 1e-5);
        }
    free(a);
    free(b);
    free(c);
}

void tests_begin(void) { pe_gemm_setup(); }
