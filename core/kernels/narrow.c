/* Rows of floats to f16 and bf16, ties to even, and whether any of them lay in the middle between two numbers of the
 * narrower type. The loops have no decisions, so the compiler makes them as wide as the registers; f16 has an
 * instruction of its own on x86, which rounds the same. */
#include "core/kernels/halves.h"
#include "core/kernels/kernels.h"

#if defined(__F16C__)
#include <immintrin.h>
#endif

enum { AT_ONCE = 8 };

#if defined(__F16C__)
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

/* As many of n as whole registers hold; returns how many, and in *middles whether there was a middle. */
static size_t narrow_registers(const float *from, size_t n, uint16_t *to, bool *middles)
{
    __m256i found = _mm256_setzero_si256();
    size_t i = 0;
    for (; i + AT_ONCE <= n; i += AT_ONCE) {
        __m256 x = _mm256_loadu_ps(from + i);
        _mm_storeu_si128((__m128i *)(void *)(to + i),
                         _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
        found = _mm256_or_si256(found, are_middles(x));
    }
    *middles = _mm256_movemask_epi8(found) != 0;
    return i;
}
#else
static size_t narrow_registers(const float *from, size_t n, uint16_t *to, bool *middles)
{
    (void)from, (void)n, (void)to;
    *middles = false;
    return 0;
}
#endif

bool PE_KERNEL(pe_narrow_f16)(const float *from, size_t n, uint16_t *to)
{
    bool middles;
    for (size_t i = narrow_registers(from, n, to, &middles); i < n; i++) {
        to[i] = f16_of_float(from[i]);
        middles |= f16_is_middle(from[i]);
    }
    return middles;
}

bool PE_KERNEL(pe_narrow_bf16)(const float *from, size_t n, uint16_t *to)
{
    uint32_t middles = 0;
    for (size_t i = 0; i < n; i++) {
        to[i] = bf16_of_number(from[i]);
        middles |= bf16_is_middle(from[i]);
    }
    return middles;
}
