/* The door to BLAS: products against plain loops in double, with strides, several threads' worth of calls
 * single-threaded. */
#include "core/numeric/numeric.h"
#include "core/inside.h"
#include "tests/support/cmocka.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

/* With so few last columns, and k, that OpenBLAS's kernels would take memory for them (core/numeric/gemm.c), and not.
 */
TEST(rows_with_columns)
{
    enum { M = 17, N = 41, K = 551, B = 43 };
    float *a = numbers(M * K, 4), *b = numbers(K * B, 5), *before = numbers(M * N, 6), *c = numbers(M * N, 6);
    double wide_a[M * K], wide_b[K * B], wide_c[M * N];
    for (size_t i = 0; i < M * K; i++)
        wide_a[i] = (double)a[i];
    for (size_t i = 0; i < K * B; i++)
        wide_b[i] = (double)b[i];
    for (size_t n = 1; n <= N; n++)
        for (size_t k = 15; k <= K; k += k < 33 ? 9 : 518)
            for (int keep = 0; keep < 2; keep++) {
                memcpy(c, before, M * N * sizeof *c);
                for (size_t i = 0; i < M * N; i++)
                    wide_c[i] = keep ? (double)before[i] : (double)NAN; /* what is not kept is not read */
                pe_gemm_ab_f32(M, n, k, a, K, b, B, 0.5 * keep, c, N);
                pe_gemm_ab_f64(M, n, k, wide_a, K, wide_b, B, 0.5 * keep, wide_c, N);
                for (size_t i = 0; i < M; i++) {
                    for (size_t j = 0; j < n; j++) {
                        double sum = 0.5 * keep * (double)before[i * N + j];
                        for (size_t x = 0; x < k; x++)
                            sum += wide_a[i * K + x] * wide_b[x * B + j];
                        assert_true(fabs((double)c[i * N + j] - sum) < 5e-5);
                        assert_true(fabs(wide_c[i * N + j] - sum) < 1e-12);
                    }
                    for (size_t j = n; j < N; j++)
                        assert_true(c[i * N + j] == before[i * N + j]);
                }
            }
    free(a);
    free(b);
    free(c);
    free(before);
}

void tests_begin(void) { pe_gemm_setup(); }
