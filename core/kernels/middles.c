/* Is any float of a row the midpoint between two numbers of f16 or bf16? The float alone then does not decide the
 * rounding (halves.c rounds rows). The loops have no decisions, so the compiler makes them as wide as the registers;
 * of f16's two cases AVX2 chooses best by hand. */
#include "core/kernels/halves.h"
#include "core/kernels/kernels.h"

#if defined(__AVX2__)
#include <immintrin.h>

enum { AT_ONCE = 8 };

/* f16_is_middle(), eight at a time: lanes of ones where it holds. Below the normal range |x|·2^25 is an odd integer. */
static inline __m256i are_middles(__m256 x)
{
    __m256i size = _mm256_and_si256(_mm256_castps_si256(x), _mm256_set1_epi32(INT32_MAX));
    __m256i is_small = _mm256_cmpgt_epi32(_mm256_set1_epi32(0x38800000), size), one = _mm256_set1_epi32(1);
    __m256 steps = _mm256_mul_ps(_mm256_castsi256_ps(size), _mm256_set1_ps(0x1p25f));
    __m256i whole = _mm256_cvttps_epi32(steps), odd = _mm256_cmpeq_epi32(_mm256_and_si256(whole, one), one);
    __m256 is_whole = _mm256_cmp_ps(_mm256_cvtepi32_ps(whole), steps, _CMP_EQ_OQ);
    __m256i small = _mm256_and_si256(odd, _mm256_castps_si256(is_whole));
    __m256i dropped = _mm256_and_si256(size, _mm256_set1_epi32(0x1fff));
    return _mm256_blendv_epi8(_mm256_cmpeq_epi32(dropped, _mm256_set1_epi32(0x1000)), small, is_small);
}

/* Checks as many of n floats as fill whole registers. Returns how many; *middles states whether one was a midpoint. */
static size_t look_at_registers(const float *from, size_t n, bool *middles)
{
    __m256i found = _mm256_setzero_si256();
    size_t i = 0;
    for (; i + AT_ONCE <= n; i += AT_ONCE)
        found = _mm256_or_si256(found, are_middles(_mm256_loadu_ps(from + i)));
    *middles = _mm256_movemask_epi8(found) != 0;
    return i;
}
#else
static size_t look_at_registers(const float *from, size_t n, bool *middles)
{
    (void)from, (void)n;
    *middles = false;
    return 0;
}
#endif

bool PE_KERNEL(pe_middles_f16)(const float *from, size_t n)
{
    bool middles;
    for (size_t i = look_at_registers(from, n, &middles); i < n; i++)
        middles |= f16_is_middle(from[i]);
    return middles;
}

bool PE_KERNEL(pe_middles_bf16)(const float *from, size_t n)
{
    uint32_t middles = 0;
    for (size_t i = 0; i < n; i++)
        middles |= bf16_is_middle(from[i]);
    return middles;
}
