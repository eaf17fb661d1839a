/* A register of doubles, as wide as the instruction set has, two of them beside a register of their floats, and the few
 * operations that the language's vectors lack.
 *
 * One source serves three instruction sets: LANES is 2, 4 or 8, and + - * on a vector are the compiler's. Missing from
 * the language are the minimum, one bit for each lane of a mask, conversions between the widths, and the fused product;
 * each has a branch for AVX-512, AVX2 and SSE2, and plain C for the rest, arm64 among them. A vector wider than a
 * register would compile too, but through memory.
 *
 * The branches of one function give the same bits, lane by lane; a test of each kernel compares every set with plain C.
 * Two functions are the exception: product_minus and product_plus round once where the machine fuses and twice where it
 * does not, so their result may enter only what an error bound covers either way. product_error has one value in both:
 * the difference between a product and its rounding is itself a double, found by one fused operation or by splitting
 * the factors (Dekker 1971, Numerische Mathematik 18), as long as nothing overflows or is subnormal. */
#ifndef PE_LANES_H
#define PE_LANES_H

#include <stdint.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* As wide as a register: wider vectors would be spilt. */
#if defined(__AVX512F__)
enum { LANES = 8 };
#elif defined(__AVX2__)
enum { LANES = 4 };
#else
enum { LANES = 2 };
#endif

typedef double vd __attribute__((vector_size(LANES * sizeof(double))));
typedef int64_t vi __attribute__((vector_size(LANES * sizeof(int64_t))));
typedef float vf __attribute__((vector_size(LANES * sizeof(float))));

/* As many floats as two registers hold doubles, or their bits. */
typedef uint32_t vu __attribute__((vector_size(2 * LANES * sizeof(uint32_t))));
typedef uint16_t vh __attribute__((vector_size(2 * LANES * sizeof(uint16_t))));

static inline vd load(const double *from)
{
    vd v;
    memcpy(&v, from, sizeof v);
    return v;
}

static inline vd all_lanes(double x)
{
    vd v = {0};
    return v + x;
}

static inline vd magnitude(vd x) { return (vd)((vi)x & INT64_MAX); }

static inline vd choose(vi mask, vd yes, vd no) { return (vd)(((vi)yes & mask) | ((vi)no & ~mask)); }

/* The smaller of two, lane by lane; the result is unspecified if one is NaN. */
static inline vd smaller(vd a, vd b)
{
#if defined(__AVX512F__)
    return (vd)_mm512_min_pd((__m512d)a, (__m512d)b);
#elif defined(__AVX2__)
    return (vd)_mm256_min_pd((__m256d)a, (__m256d)b);
#elif defined(__SSE2__)
    return (vd)_mm_min_pd((__m128d)a, (__m128d)b);
#else
    return choose(a < b, a, b);
#endif
}

/* A bit for every lane of ones; the others are of zeros. */
static inline uint32_t lane_bits(vi mask)
{
#if defined(__AVX512F__)
    return _mm512_movepi64_mask((__m512i)mask);
#elif defined(__AVX2__)
    return (uint32_t)_mm256_movemask_pd((__m256d)mask);
#elif defined(__SSE2__)
    return (uint32_t)_mm_movemask_pd((__m128d)mask);
#else
    uint32_t bits = 0;
    for (int i = 0; i < LANES; i++)
        bits |= (uint32_t)(mask[i] & 1) << i;
    return bits;
#endif
}

/* The smaller of two halves with a sign, of each number the upper and the lower. */
static inline vu least_halves(vu a, vu b)
{
#if defined(__AVX512F__)
    return (vu)_mm512_min_epi16((__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
    return (vu)_mm256_min_epi16((__m256i)a, (__m256i)b);
#elif defined(__SSE2__)
    return (vu)_mm_min_epi16((__m128i)a, (__m128i)b);
#else
    typedef int16_t vs __attribute__((vector_size(4 * LANES * sizeof(int16_t))));
    vs x = (vs)a, y = (vs)b, mask = x < y;
    return (vu)((x & mask) | (y & ~mask));
#endif
}

/* The bits of the floats nearest to the doubles of a and, behind them, of b. */
static inline vu floats(vd a, vd b)
{
#if defined(__AVX512F__)
    __m512 low = _mm512_castps256_ps512(_mm512_cvtpd_ps((__m512d)a));
    return (vu)_mm512_insertf32x8(low, _mm512_cvtpd_ps((__m512d)b), 1);
#elif defined(__AVX2__)
    __m256 low = _mm256_castps128_ps256(_mm256_cvtpd_ps((__m256d)a));
    return (vu)_mm256_insertf128_ps(low, _mm256_cvtpd_ps((__m256d)b), 1);
#elif defined(__SSE2__)
    return (vu)_mm_movelh_ps(_mm_cvtpd_ps((__m128d)a), _mm_cvtpd_ps((__m128d)b));
#else
    vf both[2] = {__builtin_convertvector(a, vf), __builtin_convertvector(b, vf)};
    vu bits;
    memcpy(&bits, both, sizeof bits);
    return bits;
#endif
}

/* The same floats as doubles. */
static inline void doubles(vu bits, vd two[2])
{
#if defined(__AVX2__) && !defined(__AVX512F__)
    two[0] = (vd)_mm256_cvtps_pd(_mm256_castps256_ps128((__m256)bits));
    two[1] = (vd)_mm256_cvtps_pd(_mm256_extractf128_ps((__m256)bits, 1));
#else
    vf halves[2];
    memcpy(halves, &bits, sizeof halves);
    two[0] = __builtin_convertvector(halves[0], vd);
    two[1] = __builtin_convertvector(halves[1], vd);
#endif
}

/* The upper half of each number. */
static inline vh upper_halves(vu bits)
{
#if defined(__AVX512F__)
    return (vh)_mm512_cvtepi32_epi16((__m512i)(bits >> 16));
#elif defined(__AVX2__)
    __m256i upper = (__m256i)(bits >> 16);
    return (vh)_mm_packus_epi32(_mm256_castsi256_si128(upper), _mm256_extracti128_si256(upper, 1));
#elif defined(__SSE2__)
    __m128i upper = _mm_srai_epi32((__m128i)bits, 16); /* with a sign, for packing saturates */
    int64_t halves = _mm_cvtsi128_si64(_mm_packs_epi32(upper, upper));
    vh result;
    memcpy(&result, &halves, sizeof result);
    return result;
#else
    return __builtin_convertvector(bits >> 16, vh);
#endif
}

/* a·b - c, rounded once where the machine can, twice elsewhere: only for what is covered by an error bound either way.
 */
static inline vd product_minus(vd a, vd b, vd c)
{
#if defined(__AVX512F__)
    return (vd)_mm512_fmsub_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif defined(__AVX2__) && defined(__FMA__)
    return (vd)_mm256_fmsub_pd((__m256d)a, (__m256d)b, (__m256d)c);
#else
    return a * b - c;
#endif
}

/* a·b + c, likewise. */
static inline vd product_plus(vd a, vd b, vd c)
{
#if defined(__AVX512F__)
    return (vd)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif defined(__AVX2__) && defined(__FMA__)
    return (vd)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#else
    return a * b + c;
#endif
}

/* a·b - p for p = a·b rounded: what the rounding lost, exactly. With a fused operation, or by Dekker's splits; the
 * value is the same. */
static inline vd product_error(vd a, vd b, vd p)
{
#if defined(__AVX2__) && defined(__FMA__)
    return product_minus(a, b, p);
#else
    vd ca = a * 134217729.0, cb = b * 134217729.0;
    vd ah = ca - (ca - a), al = a - ah, bh = cb - (cb - b), bl = b - bh;
    return ((ah * bh - p) + ah * bl + al * bh) + al * bl;
#endif
}

#endif
