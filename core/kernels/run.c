/* Runs of positions: x(n+1) = 2cos(w)·x(n) - x(n-1), one multiplication a value, outwards both ways from an anchor in
 * the middle of 32 rows; and the way from one anchor to the next, a rotation by 32 steps.
 *
 * This is Chebyshev's recurrence. Its error grows with the square of the number of steps (Gentleman 1969, Computer
 * Journal 12, 160, for the same recurrence in Goertzel's method), hence the blocks, and hence an anchor in the middle,
 * which halves the steps and quarters the error. Both directions share the coefficient, and every vector of columns is
 * a chain of its own.
 *
 * Errors in units u = 2^-53, with ρ = min(1, 16|sin w|) and M = |x| + |y|·ρ, which no |value| of a block passes.
 *
 * A block: a step adds at most 6u·M (its one or two roundings, at most 3u·M, and a doubled coefficient right to 2.6u),
 * a later value sees it times its distance, so 16 steps give 6u·M·136. The first row downwards, x(-1), has 4u·M, which
 * the last row sees sixteenfold; with the anchor's own that is less than 84u·M. Together 900u·M.
 *
 * An anchor after k ≤ 15 turns by 32w, where j turns bring |sin 32jw| ≤ min(1, 2jρ): j turns before, |x| was at most
 * max(1, 2j)·M and |y| at most |x| + |y| of now. A turn adds 3u(|xc| + |ys|) + u|x'| to x, over the fifteen less than
 * Σ(6j + 12 + max(1, 2j))u·M = 1021u·M, j from 0 to 14; to y less than 7u(|x| + |y|), of which later turns bring 7u·Σ
 * 2jρ(|x| + |y|) ≤ 1470u·M to x. The exact anchor's own 2^-50 are 8u·(2·15 + 30)M = 480u·M. So x is right to 2971u·M;
 * of y's error, by the same sums, the block sees the share ρ: 105 + 1021 + 8 + 240 = 1374u·M.
 *
 * In all (900 + 2971 + 1374)u·M = 5245u·M < 1.281·2^-41·M, which is PE_RUN_ERROR. F counts as its two doubles are. What
 * they lack, 2^-101·p·F, is in the exact anchor's bound for p up to five times the anchor's; beyond that, as from 17 to
 * 497, it is below 2^-41·M unless F is nearer to an even number than 2^-55·F without being one.
 *
 * Why 32 rows and fifteen turns: the block's part grows with the square of its rows, the anchors' with that of their
 * turns, and every value nearer to a middle than the bound has its column computed again and may need double-double. An
 * exact anchor takes as long as a third of a block: with seven turns it was 6 in a hundred of a table's time. */
#include "core/kernels/kernels.h"
#include "core/kernels/lanes.h"
#include "core/kernels/narrow.h"

#include <math.h>

/* ---- Rounding ---- */

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

/* ---- Runs ---- */

#include <math.h>

/* Registers processed in parallel, to hide the latency of a step; both directions give twice as many chains. A chain
 * is two registers, and its coefficient a third for both directions; all stay in registers. */
#if defined(__AVX512F__)
enum { SIDE = 4 };
#else
enum { SIDE = 2 };
#endif

/* The state of SIDE registers of columns: two neighbouring values in each direction. */
struct chains {
    vd twice[SIDE], up[SIDE], up_next[SIDE], down[SIDE], down_next[SIDE];
    struct seen seen[SIDE / 2];
};

/* The loops over SIDE must be unrolled, so that the state stays in registers. */
#if defined(__clang__)
#define WRITTEN_OUT _Pragma("clang loop unroll(full)")
#else
#define WRITTEN_OUT _Pragma("GCC unroll 4")
#endif

PE_INLINED void start(struct chains *s, const double *x, const double *y, const double *cosines, const double *sines)
{
    WRITTEN_OUT for (int k = 0; k < SIDE; k++)
    {
        vd anchor = load(x + k * LANES), c = load(cosines + k * LANES);
        s->twice[k] = c + c;
        s->up[k] = s->down_next[k] = anchor;
        s->down[k] = anchor * c - load(y + k * LANES) * load(sines + k * LANES);
        s->up_next[k] = s->down[k]; /* until the first step, the one before */
        s->seen[k / 2] = seen_nothing();
    }
}

/* next = 2c·now - before, in before's place. */
PE_INLINED void step(const vd *twice, const vd *now, vd *before)
{
    WRITTEN_OUT for (int k = 0; k < SIDE; k++) before[k] = product_minus(twice[k], now[k], before[k]);
}

PE_INLINED void emit_rows(enum kind kind, struct chains *s, const vd *up, const vd *down, char *above, char *below)
{
    const size_t size = kind == F32 ? sizeof(float) : sizeof(uint16_t);
    WRITTEN_OUT for (int k = 0; k < SIDE; k += 2)
    {
        emit(kind, above + (size_t)k * LANES * size, up[k], up[k + 1], &s->seen[k / 2]);
        emit(kind, below + (size_t)k * LANES * size, down[k], down[k + 1], &s->seen[k / 2]);
    }
}

/* Computes all rows of SIDE registers of columns. Each iteration computes two rows, so that `now` and `before` swap
 * roles and no data moves. */
PE_INLINED void run_columns(enum kind kind, struct chains s, char *out, size_t row_bytes, double *margins)
{
    char *above = out + PE_RUN_HALF * row_bytes, *below = above - row_bytes;
    for (size_t n = 0; n < PE_RUN_HALF; n += 2) {
        emit_rows(kind, &s, s.up, s.down, above, below);
        step(s.twice, s.up, s.up_next);
        step(s.twice, s.down, s.down_next);
        emit_rows(kind, &s, s.up_next, s.down_next, above + row_bytes, below - row_bytes);
        step(s.twice, s.up_next, s.up);
        step(s.twice, s.down_next, s.down);
        above += 2 * row_bytes;
        below -= 2 * row_bytes;
    }
    for (int k = 0; k < SIDE; k += 2)
        tell(kind, &s.seen[k / 2], margins + k * LANES);
}

/* Lanes of ones where a value of the column may have been rounded wrong; also where one is NaN, for which no
 * comparison holds. In a column of zeros the recurrence gives +0 unless the anchor or the cosine has a sign. */
PE_INLINED vi judge(enum kind kind, const double *x, const double *y, const double *bounds, const double *cosines,
                    const double *reach, const double *margins)
{
    vd most = magnitude(load(x)) + magnitude(load(y)) * load(reach);
    vd error = PE_RUN_ERROR * most + load(bounds), margin = load(margins);
    vi clear, is_negative = ((vi)load(x) | (vi)load(cosines)) < 0;
    if (kind == F32)
        clear = (margin > error + error) & (most > PE_RUN_TINY_F32); /* see above */
    else if (kind == BF16)
        clear = (margin > PE_RUN_CLEAR * error) & (most > PE_RUN_TINY_F32);
    else
        clear = (margin > PE_RUN_CLEAR * error) & (margin > PE_RUN_TINY_F16);
    return ~clear & ((most != 0) | is_negative);
}

PE_INLINED bool run(enum kind kind, const double *x, const double *y, const double *bounds, const double *cosines,
                    const double *sines, const double *reach, size_t n, void *out, size_t stride, uint32_t *doubts)
{
    _Static_assert(PE_WAVES_LANES % (SIDE * LANES) == 0, "padding holds whole groups");
    const size_t size = kind == F32 ? sizeof(float) : sizeof(uint16_t);
    _Alignas(64) double margins[SIDE * LANES];
    uint32_t any = 0;
    for (size_t group = 0; group < n; group += PE_WAVES_LANES) {
        uint32_t here = 0;
        for (size_t j = group; j < group + PE_WAVES_LANES; j += SIDE * LANES) {
            struct chains s;
            start(&s, x + j, y + j, cosines + j, sines + j);
            run_columns(kind, s, (char *)out + j * size, stride * size, margins);
            for (size_t k = 0, i = j; k < SIDE * LANES; k += LANES, i += LANES)
                here |= lane_bits(judge(kind, x + i, y + i, bounds + i, cosines + i, reach + i, margins + k))
                        << (i - group);
        }
        doubts[group / PE_WAVES_LANES] = here;
        any |= here;
    }
    return any != 0;
}

#define RUN(name, kind)                                                                                                \
    bool PE_KERNEL(name)(const double *x, const double *y, const double *bounds, const double *cosines,                \
                         const double *sines, const double *reach, size_t n, void *out, size_t stride,                 \
                         uint32_t *doubts)                                                                             \
    {                                                                                                                  \
        return run(kind, x, y, bounds, cosines, sines, reach, n, out, stride, doubts);                                 \
    }
RUN(pe_run_f32, F32)
RUN(pe_run_f16, F16)
RUN(pe_run_bf16, BF16)

void PE_KERNEL(pe_turn)(double *x, double *y, const double *cosines, const double *sines, size_t n)
{
    for (size_t j = 0; j < n; j += LANES) {
        vd a = load(x + j), b = load(y + j), c = load(cosines + j), s = load(sines + j);
        vd turned = a * c + b * s, next = b * c - a * s;
        memcpy(x + j, &turned, sizeof turned);
        memcpy(y + j, &next, sizeof next);
    }
}
