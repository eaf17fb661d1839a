/* Whole rows of narrow types to floats, which is exact, and back, ties to even. NaN stays NaN, with the same bits on
 * every machine: narrow.h states which. The loops have no decisions, so the compiler makes them as wide as the
 * registers; x86 has instructions of its own for f16, and packs bf16 better by hand.
 *
 * Rounding a double to 16 bits through a float would round twice: 1 + 2^-8 + 2^-40 is above a midpoint of bf16, its
 * float is the midpoint itself, and that rounds down to even. So callers either hold floats that are the data, or ask
 * below whether the float is a midpoint (core/waves), or round the double to odd first (dd_round_odd in
 * core/numeric/numeric.h; Boldo and Melquiond 2008, IEEE TC 57). That question is the kernel `middles`, at the end.
 *
 * As much of a row as fills whole registers goes through instructions, the rest through the function for one number
 * (narrow.h); both give the same bits, so a row may begin and end anywhere. Registers with a NaN are done again one by
 * one, because the instructions keep other bits of it. */
#include "core/kernels/narrow.h"
#include "core/kernels/kernels.h"

#include <stddef.h>

#if defined(__AVX2__) && defined(__F16C__)
#include <immintrin.h>
enum { AT_ONCE = 8 };
#endif

#if defined(__AVX2__) && defined(__F16C__)

/* As in rotate.c: these loops are the first to touch the input. */
enum { AHEAD = 4096 };

static inline void call_for(const uint16_t *from) { __builtin_prefetch((const char *)from + AHEAD); }

static size_t widen_f16(const uint16_t *from, size_t n, float *to)
{
    size_t i = 0;
    for (; i + AT_ONCE <= n; i += AT_ONCE) {
        call_for(from + i);
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(from + i))));
    }
    return i;
}

static size_t widen_bf16(const uint16_t *from, size_t n, float *to)
{
    size_t i = 0;
    for (; i + AT_ONCE <= n; i += AT_ONCE) {
        call_for(from + i);
        __m256i bits = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)(from + i)));
        _mm256_storeu_ps(to + i, _mm256_castsi256_ps(_mm256_slli_epi32(bits, 16)));
    }
    return i;
}

/* The instruction keeps a NaN's fraction, but other machines do not, so the plain code handles a register with a
 * NaN. */
static size_t narrow_f16(const float *from, size_t n, uint16_t *to)
{
    size_t i = 0;
    for (; i + AT_ONCE <= n; i += AT_ONCE) {
        __m256 x = _mm256_loadu_ps(from + i);
        _mm_storeu_si128((__m128i *)(void *)(to + i),
                         _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
        if (_mm256_movemask_ps(_mm256_cmp_ps(x, x, _CMP_UNORD_Q)))
            for (size_t j = i; j < i + AT_ONCE; j++)
                to[j] = f16_of_float(from[j]);
    }
    return i;
}

/* bf16_of_number(), eight at a time: each in the low half of its lane. */
static inline __m256i bf16_lanes(__m256 x)
{
    __m256i bits = _mm256_castps_si256(x);
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
    return _mm256_srli_epi32(rounded, 16);
}

static size_t narrow_bf16(const float *from, size_t n, uint16_t *to)
{
    enum { IN_ORDER = 0xd8 }; /* packing takes the registers half by half */
    size_t i = 0;
    for (; i + 2 * AT_ONCE <= n; i += 2 * AT_ONCE) {
        __m256 x = _mm256_loadu_ps(from + i), next = _mm256_loadu_ps(from + i + AT_ONCE);
        __m256i both = _mm256_packus_epi32(bf16_lanes(x), bf16_lanes(next));
        _mm256_storeu_si256((__m256i *)(void *)(to + i), _mm256_permute4x64_epi64(both, IN_ORDER));
        if (_mm256_movemask_ps(_mm256_cmp_ps(x, next, _CMP_UNORD_Q)))
            for (size_t j = i; j < i + 2 * AT_ONCE; j++)
                to[j] = bf16_of_float(from[j]);
    }
    return i;
}

#else

static size_t widen_f16(const uint16_t *from, size_t n, float *to)
{
    (void)from, (void)n, (void)to;
    return 0;
}

static size_t widen_bf16(const uint16_t *from, size_t n, float *to)
{
    (void)from, (void)n, (void)to;
    return 0;
}

static size_t narrow_f16(const float *from, size_t n, uint16_t *to)
{
    (void)from, (void)n, (void)to;
    return 0;
}

static size_t narrow_bf16(const float *from, size_t n, uint16_t *to)
{
    (void)from, (void)n, (void)to;
    return 0;
}

#endif

/* The kernels of a type: how many of a row go through instructions (0: the compiler's are as good), and the rest one by
 * one. */
#define ROWS(name, T, widened, narrowed)                                                                               \
    void PE_KERNEL(pe_of_##name)(const void *from, size_t n, float *to)                                                \
    {                                                                                                                  \
        for (size_t i = widened; i < n; i++)                                                                           \
            to[i] = float_of_##name(((const T *)from)[i]);                                                             \
    }                                                                                                                  \
    void PE_KERNEL(pe_to_##name)(const float *from, size_t n, void *to)                                                \
    {                                                                                                                  \
        for (size_t i = narrowed; i < n; i++)                                                                          \
            ((T *)to)[i] = name##_of_float(from[i]);                                                                   \
    }
ROWS(f16, uint16_t, widen_f16(from, n, to), narrow_f16(from, n, to))
ROWS(bf16, uint16_t, widen_bf16(from, n, to), narrow_bf16(from, n, to))
ROWS(f8_e4m3, uint8_t, 0, 0)
ROWS(f8_e5m2, uint8_t, 0, 0)

/* ---- Midpoints ---- */

/* Is any float of a row the midpoint between two numbers of a narrow type? The float alone then does not decide the
 * rounding. The loops have no decisions, so the compiler makes them as wide as the registers;
 * of f16's two cases AVX2 chooses best by hand. */

#if defined(__AVX2__)
#include <immintrin.h>

enum { EIGHT = 8 };

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
    for (; i + EIGHT <= n; i += EIGHT)
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

#define MIDDLES(name)                                                                                                  \
    bool PE_KERNEL(pe_middles_##name)(const float *from, size_t n)                                                     \
    {                                                                                                                  \
        uint32_t middles = 0;                                                                                          \
        for (size_t i = 0; i < n; i++)                                                                                 \
            middles |= name##_is_middle(from[i]);                                                                      \
        return middles;                                                                                                \
    }
MIDDLES(bf16)
MIDDLES(f8_e4m3)
MIDDLES(f8_e5m2)
