/* Rounds and stores the doubles of a run, and records enough about them that one comparison per column decides
 * afterwards whether all were rounded correctly. Two registers of doubles are processed at a time: their floats fill
 * one register, which is stored at once.
 *
 * The test must cost a value two or three operations, or it would cost more than the value itself (one fused product).
 * So a column keeps one number for all of its rows, the least of something, and a branch is taken once for 32 rows.
 *
 * f32: x, known to E, is rounded right unless a middle between two floats is within E. The middle between the two
 * floats around x has x's upper bits, then a one, then zeros; its distance from x is exact, and absolute as E is. If
 * it is above 2·E, the other middles are ruled out too: the distance is at most half of the gap between the two floats,
 * so E is below a quarter of the gap, and the next middle beyond either float is at least a quarter of the gap away
 * from it, even if that float is a power of two, below which gaps are halved.
 *
 * f16, bf16: f is the float of x. Every middle m between two 16-bit numbers is a float. If m is between x and the
 * exact value, or is x, then it is within E of x; where E is at most half the way from m to the next float, that
 * means f = m. So an f that is no middle rounds as the exact value does wherever |f| is above 2^25·E, for the next
 * float is at least 2^-24 of m away. An instruction rounds, or half of the last kept bit is added and the rest cut
 * off: the rounding of a midpoint does not matter, because midpoints are checked again. */
#ifndef PE_ROUNDING_H
#define PE_ROUNDING_H

#include "core/kernels/halves.h"
#include "core/kernels/kernels.h"
#include "core/kernels/lanes.h"

#include <math.h>

enum kind { F32, F16, BF16 };

#if defined(__AVX2__) && !defined(__AVX512F__)
#define PE_AVX2_ONLY
#endif

/* The record of two registers' columns. */
struct seen {
#if defined(PE_AVX2_ONLY)
    vu nearest; /* f32: upper words of the distance from a middle, as the shuffle leaves them */
#else
    vd nearest[2]; /* f32: the distance from a middle */
#endif
    vu sizes, marks; /* f16, bf16: upper halves of the smallest |float|; lower halves of the least mark */
};

static inline struct seen seen_nothing(void)
{
    const uint32_t largest_halves = (uint32_t)INT16_MAX << 16 | INT16_MAX;
    vu none = (vu){0} + largest_halves;
#if defined(PE_AVX2_ONLY)
    return (struct seen){(vu){0} + (uint32_t)INT32_MAX, none, none};
#else
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

/* Doubles above 0 compare as their bits do, and the upper 32 of those are enough: AVX2 has a minimum of words, so eight
 * values take a shuffle, a mask and a minimum, where doubles take two of each. AVX-512 has one operation for the
 * smaller size of doubles. */
static inline void emit_f32(void *to, vd a, vd b, struct seen *seen)
{
    vu bits = floats(a, b);
    memcpy(to, &bits, sizeof bits);
#if defined(PE_AVX2_ONLY)
    enum { ODD_WORDS = 0xdd };
    vu words = (vu)_mm256_shuffle_ps((__m256)from_middle(a), (__m256)from_middle(b), ODD_WORDS);
    seen->nearest = (vu)_mm256_min_epu32((__m256i)seen->nearest, (__m256i)(words & (uint32_t)INT32_MAX));
#elif defined(__AVX512F__)
    enum { SMALLER_SIZE = 0xa };
    seen->nearest[0] = (vd)_mm512_range_pd((__m512d)seen->nearest[0], (__m512d)from_middle(a), SMALLER_SIZE);
    seen->nearest[1] = (vd)_mm512_range_pd((__m512d)seen->nearest[1], (__m512d)from_middle(b), SMALLER_SIZE);
#else
    seen->nearest[0] = smaller(seen->nearest[0], magnitude(from_middle(a)));
    seen->nearest[1] = smaller(seen->nearest[1], magnitude(from_middle(b)));
#endif
}

/* The distances, rounded down: words become doubles with zeros in the lower half. */
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

/* Without an instruction for f16: the exponent's offset changes from 127 to 15, and the fraction moves up by three
 * bits. Right for the normal range; values below or above it are checked again. */
static inline vh f16_of(vu bits, vu size)
{
    (void)size;
#if defined(__AVX512F__)
    return (vh)_mm512_cvtps_ph((__m512)bits, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#elif defined(__AVX2__)
    return (vh)_mm256_cvtps_ph((__m256)bits, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#else
    const uint32_t half = 1U << (DROPPED_F16 - 1), offset = (127U - 15U) << 23, sign = 1U << 31;
    return upper_halves(((size + (half - offset)) << 3 | (bits & sign)) & (vu)(size != 0));
#endif
}

/* Marks: the bits that are dropped, at the upper end of 16, are the least number of all, 0x8000, for a middle alone.
 * So what is seen of a float fits into halves, and their minimum with a sign is an instruction wherever there are
 * vectors: a size is in the upper half of its number, a mark in the lower, and what the other half holds does not
 * matter. */
static inline void emit_narrow(enum kind kind, void *to, vd a, vd b, struct seen *seen)
{
    enum { LOST_F16 = 16 - DROPPED_F16 };
    vu bits = floats(a, b), size = bits & (uint32_t)INT32_MAX;
    vh halves = kind == F16 ? f16_of(bits, size) : upper_halves(bits + (1U << (DROPPED_BF16 - 1)));
    memcpy(to, &halves, sizeof halves);
    seen->sizes = least_halves(seen->sizes, size);
    seen->marks = least_halves(seen->marks, kind == F16 ? bits << LOST_F16 : size);
}

/* The least size, rounded down to its upper half; 0 where a column had a middle, so that every bound doubts it. */
static inline void tell_narrow(const struct seen *seen, vd told[2])
{
    const uint32_t upper = (uint32_t)UINT16_MAX << 16, middle = 1U << 31;
    doubles(seen->sizes & upper & (vu)(seen->marks << 16 != middle), told);
}

/* ---- Whichever ---- */

/* Stores the values of a, then those of b. */
PE_INLINED void emit(enum kind kind, void *to, vd a, vd b, struct seen *seen)
{
    if (kind == F32)
        emit_f32(to, a, b, seen);
    else
        emit_narrow(kind, to, a, b, seen);
}

/* The distance of each column from an undecided rounding: for f32, from a midpoint; for f16 and bf16, its smallest
 * size, or 0 if it had a midpoint. */
PE_INLINED void tell(enum kind kind, const struct seen *seen, double *margins)
{
    vd told[2];
    if (kind == F32)
        tell_f32(seen, told);
    else
        tell_narrow(seen, told);
    memcpy(margins, told, sizeof told);
}

#endif
