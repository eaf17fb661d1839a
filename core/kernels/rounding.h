/* How the doubles of a run are rounded and stored, and what is remembered of them, so that afterwards one comparison a
 * column tells whether all were rounded right. Work is done on two registers of doubles at a time: their floats fill
 * one register, which is stored at once.
 *
 * f32: x, known to E, is rounded right unless a middle between two floats is within E. The middle between the two
 * floats around x has x's upper bits, then a one, then zeros; its distance from x is exact, and absolute as E is. Above
 * 2·E it rules out the others too: it is half the way between the two floats at most, so that E is a quarter of that
 * way, and no middle beyond one of the two, though it be a power of two, is nearer to it.
 *
 * f16, bf16: f is the float of x. Every middle m between two 16-bit numbers is a float. If m lies between x and the
 * exact value, or is x, then it is within E of x; where E is at most half the way from m to the next float, that means
 * f = m. So an f that is no middle rounds as the exact value does wherever |f| is above 2^25·E, for the next float is
 * at least 2^-24 of m away. To round, half of what the last bit is worth is added and the rest cut off: only a middle
 * leaves nothing to cut, and which way it goes does not matter, for it is looked at again. */
#ifndef PE_ROUNDING_H
#define PE_ROUNDING_H

#include "core/kernels/lanes.h"

#include <math.h>

enum kind { F32, F16, BF16 };

/* The bits of a double's fraction that a float has not, of a float's that the narrow types have not. */
enum { DROPPED_F32 = 29, DROPPED_F16 = 13, DROPPED_BF16 = 16 };

#if defined(__AVX2__) && !defined(__AVX512F__)
#define PE_AVX2_ONLY
typedef int16_t vs __attribute__((vector_size(8 * sizeof(int16_t)))); /* eight columns' halves */
#endif

/* What has been seen of two registers' columns. */
struct seen {
#if defined(PE_AVX2_ONLY)
    vu nearest;        /* f32: upper words of the distance from a middle, as the shuffle leaves them */
    vs smallest, ties; /* f16, bf16: the smallest size; least of a middle's mark */
#else
    vd nearest[2]; /* f32: the distance from a middle */
    vu smallest;   /* f16, bf16: bits of the smallest |float| */
    vu cut;        /* the least that was cut off: 0 where there was a middle */
#endif
};

static inline struct seen seen_nothing(void)
{
#if defined(PE_AVX2_ONLY)
    vs none = {0};
    none = none + INT16_MAX;
    return (struct seen){(vu){0} + (uint32_t)INT32_MAX, none, none};
#else
    vu none = (vu){0} + (uint32_t)INT32_MAX;
    return (struct seen){{all_lanes(HUGE_VAL), all_lanes(HUGE_VAL)}, none, none};
#endif
}

/* x less the middle between the two floats around it. */
static inline vd from_middle(vd x)
{
    const int64_t half = (int64_t)1 << (DROPPED_F32 - 1), kept = -((int64_t)1 << DROPPED_F32);
    return x - (vd)(((vi)x & kept) | half);
}

/* ---- f32 ---- */

/* Doubles above 0 compare as their bits do, and of those the upper 32 say enough: AVX2 has a minimum of words, so eight
 * values take a shuffle, a mask and a minimum, where doubles take two of each. AVX-512 has one operation for the
 * smaller size of doubles. */
static inline void emit_f32(void *to, vd a, vd b, struct seen *seen)
{
    vu bits = floats(a, b);
    memcpy(to, &bits, sizeof bits);
#if defined(PE_AVX2_ONLY)
    enum { ODD_WORDS = 0xdd };
    vu words = (vu)_mm256_shuffle_ps((__m256)from_middle(a), (__m256)from_middle(b), ODD_WORDS);
    seen->nearest = least(seen->nearest, words & (uint32_t)INT32_MAX);
#elif defined(__AVX512F__)
    enum { SMALLER_SIZE = 0xa };
    seen->nearest[0] = (vd)_mm512_range_pd((__m512d)seen->nearest[0], (__m512d)from_middle(a), SMALLER_SIZE);
    seen->nearest[1] = (vd)_mm512_range_pd((__m512d)seen->nearest[1], (__m512d)from_middle(b), SMALLER_SIZE);
#else
    seen->nearest[0] = smaller(seen->nearest[0], magnitude(from_middle(a)));
    seen->nearest[1] = smaller(seen->nearest[1], magnitude(from_middle(b)));
#endif
}

/* The distances, or a little less: words become doubles with zeros behind. */
static inline void tell_f32(const struct seen *seen, vd told[2])
{
#if defined(PE_AVX2_ONLY)
    __m256i words = (__m256i)seen->nearest, zero = _mm256_setzero_si256();
    told[0] = (vd)_mm256_unpacklo_epi32(zero, words);
    told[1] = (vd)_mm256_unpackhi_epi32(zero, words);
#else
    told[0] = seen->nearest[0];
    told[1] = seen->nearest[1];
#endif
}

/* ---- f16 and bf16 ---- */

#if defined(PE_AVX2_ONLY)
/* Two registers of four floats, for to join them in one would cross its halves, of which the machine does one a cycle
 * and the conversions are two already. Marks: of every float the bits that are dropped, moved to the upper end of 16,
 * are the least number of all, 0x8000, for a middle alone; the second register's stand between the first's. */
static inline void emit_narrow(enum kind kind, void *to, vd a, vd b, struct seen *seen)
{
    enum { ODD_HALVES = 0xaa, LOST_F16 = 16 - DROPPED_F16 };
    __m128 low = _mm256_cvtpd_ps((__m256d)a), high = _mm256_cvtpd_ps((__m256d)b);
    __m128i i = _mm_castps_si128(low), k = _mm_castps_si128(high), half = _mm_set1_epi32(1 << (DROPPED_BF16 - 1));
    __m128i halves, marks;
    if (kind == F16) {
        halves = _mm_unpacklo_epi64(_mm_cvtps_ph(low, _MM_FROUND_TO_NEAREST_INT),
                                    _mm_cvtps_ph(high, _MM_FROUND_TO_NEAREST_INT));
        marks = _mm_blend_epi16(_mm_slli_epi32(i, LOST_F16), _mm_slli_epi32(k, LOST_F16 + 16), ODD_HALVES);
    } else {
        halves = _mm_packus_epi32(_mm_srli_epi32(_mm_add_epi32(i, half), DROPPED_BF16),
                                  _mm_srli_epi32(_mm_add_epi32(k, half), DROPPED_BF16));
        marks = _mm_blend_epi16(i, _mm_slli_epi32(k, 16), ODD_HALVES);
    }
    memcpy(to, &halves, sizeof halves);
    seen->ties = (vs)_mm_min_epi16((__m128i)seen->ties, marks);
    seen->smallest = (vs)_mm_min_epi16((__m128i)seen->smallest, (__m128i)((vs)halves & INT16_MAX));
}

static inline void tell_narrow(enum kind kind, const struct seen *seen, vd told[2])
{
    vu marked = (vu)_mm256_cvtepi16_epi32((__m128i)(seen->ties == INT16_MIN)); /* 0 4 1 5 2 6 3 7 */
    vu order = {0, 2, 4, 6, 1, 3, 5, 7}, wide = (vu)_mm256_cvtepu16_epi32((__m128i)seen->smallest);
    vu size = kind == F16 ? (vu)_mm256_cvtph_ps((__m128i)seen->smallest) : wide << DROPPED_BF16;
    size &= ~(vu)_mm256_permutevar8x32_epi32((__m256i)marked, (__m256i)order);
    told[0] = (vd)_mm256_cvtps_pd(_mm256_castps256_ps128((__m256)size));
    told[1] = (vd)_mm256_cvtps_pd(_mm256_extractf128_ps((__m256)size, 1));
}
#else
/* Without an instruction for f16: the exponent's offset changes from 127 to 15, and the fraction moves up by three
 * bits. Right for the normal range; what is below or above is looked at again. */
static inline vh f16_of(vu bits, vu size)
{
#if defined(__AVX512F__)
    (void)size;
    return (vh)_mm512_cvtps_ph((__m512)bits, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#else
    const uint32_t half = 1U << (DROPPED_F16 - 1), offset = (127U - 15U) << 23, sign = 1U << 31;
    return upper_halves(((size + (half - offset)) << 3 | (bits & sign)) & (vu)(size != 0));
#endif
}

static inline void emit_narrow(enum kind kind, void *to, vd a, vd b, struct seen *seen)
{
    const int dropped = kind == F16 ? DROPPED_F16 : DROPPED_BF16;
    vu bits = floats(a, b), size = bits & (uint32_t)INT32_MAX, raised = bits + (1U << (dropped - 1));
    vh halves = kind == F16 ? f16_of(bits, size) : upper_halves(raised);
    memcpy(to, &halves, sizeof halves);
    seen->smallest = least(seen->smallest, size);
    seen->cut = least(seen->cut, raised & ((1U << dropped) - 1));
}

static inline void tell_narrow(enum kind kind, const struct seen *seen, vd told[2])
{
    (void)kind;
    vu size = seen->smallest & (vu)(seen->cut != 0);
    vf two[2];
    memcpy(two, &size, sizeof two);
    told[0] = __builtin_convertvector(two[0], vd);
    told[1] = __builtin_convertvector(two[1], vd);
}
#endif

/* ---- Whichever ---- */

/* Stores the values of a and, behind them, of b. */
static inline __attribute__((always_inline)) void emit(enum kind kind, void *to, vd a, vd b, struct seen *seen)
{
    if (kind == F32)
        emit_f32(to, a, b, seen);
    else
        emit_narrow(kind, to, a, b, seen);
}

/* Per column how far it stayed from what cannot be told: f32, the distance from a middle; f16, bf16, its smallest size,
 * 0 where a middle was met. */
static inline __attribute__((always_inline)) void tell(enum kind kind, const struct seen *seen, double *margins)
{
    vd told[2];
    if (kind == F32)
        tell_f32(seen, told);
    else
        tell_narrow(kind, seen, told);
    memcpy(margins, told, sizeof told);
}

#endif
