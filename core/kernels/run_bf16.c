/* Runs of positions in bf16, by floats: rows on both sides of an anchor, x(±φ) = X·cos φ ± Y·sin φ. The result keeps
 * eight bits, so the 24 bits of a float are enough, and an instruction processes twice as many floats as doubles. Every
 * row is computed from the anchor alone, so errors do not grow from row to row. core/waves/run_bf16.c prepares the
 * steps and computes doubtful values again.
 *
 * Error, u = 2^-24, M = min(amplitude, |X| + |Y|·reach) ≤ 2^e. X, Y, the cosine and the sine have been rounded once,
 * the first product is, the second may be: 3u·(|X·cos φ| + |Y·sin φ|), which is at most 3u·M, by Cauchy and Schwarz for
 * the amplitude. The sum's rounding is at most u·2^e/2. What the doubles behind X and Y are wrong by is together less
 * than u/8·2^e, or all is doubted: 3.7u·2^e, and E = 4u·2^e.
 *
 * The test: f, the float, is in its own binade at d = f - m from m, the middle between the two bf16 around it; d is
 * exact. Where |d| > 1.03·E the exact value is on the same side of m. It might still be beyond the next middle on the
 * other side of the bf16 that f rounds to, which is half as far from that bf16 if it is a power of two, a quarter of a
 * unit. But |d| is at most half a unit, and units are powers of two as E is: so E is at most a quarter of a unit, and f
 * is at least that far from the next middle.
 *
 * The test is on squares, d² > (1.03·E)², because a sign then needs no absolute value and one fused operation gives it.
 *
 * Some value in 2000 is doubted in columns that take whole turns: twice E, four and a half times (each binade of sizes
 * has half as many values and twice as many middles) 2^8. The caller computes those again, so it needs their places,
 * and not only their columns. */
#include "core/kernels/kernels.h"
#include "core/kernels/lanes.h"

/* The floats of a register. Columns are processed in neighbouring pairs, with a register for the even columns and
 * one for the odd: their upper halves are then combined by a shift and a selection, without moving data across a
 * register. */
enum { WIDE = 2 * LANES };
typedef float vw __attribute__((vector_size(WIDE * sizeof(float))));

_Static_assert(PE_WAVES_LANES % (2 * WIDE) == 0, "padding holds whole groups");

enum { HALF_BITS = 16, HALF = 1 << (HALF_BITS - 1) };

/* ---- Operations the language lacks ---- */

PE_INLINED vw wide_load(const float *from)
{
    vw v;
    memcpy(&v, from, sizeof v);
    return v;
}

/* a·b + c and c - a·b, rounded once where the machine can. */
PE_INLINED vw plus_product(vw c, vw a, vw b)
{
#if defined(__AVX512F__)
    return (vw)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__AVX2__) && defined(__FMA__)
    return (vw)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
    return c + a * b;
#endif
}

PE_INLINED vw minus_product(vw c, vw a, vw b)
{
#if defined(__AVX512F__)
    return (vw)_mm512_fnmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__AVX2__) && defined(__FMA__)
    return (vw)_mm256_fnmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
    return c - a * b;
#endif
}

/* The lower halves of one and the upper of the other. */
PE_INLINED vu halves_of(vu low, vu high)
{
#if defined(__AVX2__) && !defined(__AVX512F__)
    enum { ODD_HALVES = 0xaa };
    return (vu)_mm256_blend_epi16((__m256i)low, (__m256i)high, ODD_HALVES);
#else
    const uint32_t lower = (1U << HALF_BITS) - 1;
    return (low & lower) | (high & ~lower);
#endif
}

/* A bit for every number's sign. */
PE_INLINED uint32_t signs(vu x)
{
#if defined(__AVX512F__)
    return _mm512_movepi32_mask((__m512i)x);
#elif defined(__AVX2__)
    return (uint32_t)_mm256_movemask_ps((__m256)x);
#elif defined(__SSE2__)
    return (uint32_t)_mm_movemask_ps((__m128)x);
#else
    uint32_t bits = 0;
    for (uint32_t i = 0; i < WIDE; i++)
        bits |= x[i] >> 31 << i;
    return bits;
#endif
}

/* The even and the odd numbers, as floats. */
PE_INLINED void part(const double *from, vw parts[2])
{
#if defined(__AVX2__) && !defined(__AVX512F__)
    enum { EVEN = 0x88, ODD = 0xdd }; /* of each half of a register */
    vu first = floats(load(from), load(from + 2 * LANES)), second = floats(load(from + LANES), load(from + 3 * LANES));
    parts[0] = (vw)_mm256_shuffle_ps((__m256)first, (__m256)second, EVEN);
    parts[1] = (vw)_mm256_shuffle_ps((__m256)first, (__m256)second, ODD);
#else
    vu first = floats(load(from), load(from + LANES)), second = floats(load(from + WIDE), load(from + WIDE + LANES));
#if defined(__AVX512F__)
    parts[0] = (vw)__builtin_shufflevector(first, second, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    parts[1] = (vw)__builtin_shufflevector(first, second, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
#else
    parts[0] = (vw)__builtin_shufflevector(first, second, 0, 2, 4, 6);
    parts[1] = (vw)__builtin_shufflevector(first, second, 1, 3, 5, 7);
#endif
#endif
}

/* ---- A group: a register of even columns and one of odd ---- */

struct group {
    vw x[2], y[2], square[2]; /* the square of the bound that |d| must exceed */
};

PE_INLINED struct group start(const struct pe_anchors *a, size_t j)
{
    struct group g;
    part(a->x + j, g.x);
    part(a->y + j, g.y);
    for (int i = 0; i < 2; i++)
        g.square[i] = wide_load(a->squares[i] + j / 2);
    return g;
}

/* Signs of d² - square: negative where the rounding of x may be wrong. */
PE_INLINED vu doubt(vw x, vw square)
{
    vw d = x - (vw)halves_of((vu){0} + HALF, (vu)x);
#if defined(__AVX512F__)
    return (vu)_mm512_fmsub_ps((__m512)d, (__m512)d, (__m512)square);
#elif defined(__AVX2__) && defined(__FMA__)
    return (vu)_mm256_fmsub_ps((__m256)d, (__m256)d, (__m256)square);
#else
    return (vu)(d * d - square);
#endif
}

/* Adds half of the last kept bit and cuts off the rest. The rounding of a midpoint does not matter here. */
PE_INLINED void put(vw even, vw odd, uint16_t *to)
{
    vu both = halves_of(((vu)even + HALF) >> HALF_BITS, (vu)odd + HALF);
    memcpy(to, &both, sizeof both);
}

/* A row of a group on both sides of the anchor. */
struct both {
    vw up[2], down[2];
};

PE_INLINED struct both turned(const struct group *g, const float *const steps[4], size_t at)
{
    struct both r;
    for (int i = 0; i < 2; i++) {
        vw product = g->x[i] * wide_load(steps[i] + at), sine = wide_load(steps[2 + i] + at);
        r.up[i] = plus_product(product, g->y[i], sine);
        r.down[i] = minus_product(product, g->y[i], sine);
    }
    return r;
}

/* Writes it; returns a bit for every pair of columns with a doubtful value. */
PE_INLINED uint32_t put_both(const struct group *g, struct both r, uint16_t *above, uint16_t *below)
{
    put(r.up[0], r.up[1], above);
    put(r.down[0], r.down[1], below);
    return signs(doubt(r.up[0], g->square[0]) | doubt(r.up[1], g->square[1]) | doubt(r.down[0], g->square[0]) |
                 doubt(r.down[1], g->square[1]));
}

/* All rows of a group; the doubtful places of each go to places. A row is computed while the row before it is
 * written. */
PE_INLINED void fill_group(const struct pe_anchors *a, size_t j, uint16_t *out, size_t stride,
                           uint32_t places[PE_RUN_HALF])
{
    struct group g = start(a, j);
    const float *const steps[4] = {a->steps[0] + j / 2, a->steps[1] + j / 2, a->steps[2] + j / 2, a->steps[3] + j / 2};
    const size_t step_stride = a->step_stride;
    uint16_t *above = out + PE_RUN_HALF * stride, *below = above - stride;
    struct both row = turned(&g, steps, 0);
    for (size_t k = 0, at = step_stride; k < PE_RUN_HALF - 1;
         k++, at += step_stride, above += stride, below -= stride) {
        struct both next = turned(&g, steps, at);
        places[k] = put_both(&g, row, above, below);
        row = next;
    }
    places[PE_RUN_HALF - 1] = put_both(&g, row, above, below);
}

bool PE_KERNEL(pe_around_bf16)(const struct pe_anchors *a, size_t n, uint16_t *out, size_t stride, uint16_t *doubts)
{
    uint32_t any = 0;
    for (size_t j = 0; j < n; j += PE_WAVES_LANES, doubts += PE_RUN_HALF) {
        uint32_t places[PE_WAVES_LANES / (2 * WIDE)][PE_RUN_HALF];
        for (size_t i = 0; i < PE_WAVES_LANES / (2 * WIDE); i++)
            fill_group(a, j + i * 2 * WIDE, out + j + i * 2 * WIDE, stride, places[i]);
        for (size_t k = 0; k < PE_RUN_HALF; k++) {
            uint32_t here = 0;
            for (size_t i = 0; i < PE_WAVES_LANES / (2 * WIDE); i++)
                here |= places[i][k] << (i * WIDE);
            doubts[k] = (uint16_t)here;
            any |= here;
        }
    }
    return any != 0;
}

/* ---- What is clear of a middle ---- */

PE_INLINED vw size_of(vw x) { return (vw)((vu)x & INT32_MAX); }

/* yes where mask is of ones. */
PE_INLINED vw wide_choice(vu mask, vw yes, vw no) { return (vw)(((vu)yes & mask) | ((vu)no & ~mask)); }

/* The power of two from x on: 0 for 0. */
PE_INLINED vw power_above(vw x)
{
    const uint32_t fraction = (1U << 23) - 1;
    return (vw)(((vu)x + fraction) & ~fraction);
}

/* The blocks of an exact anchor X, Y lie around anchors at most 480 steps away. Let ρ, reach, be the largest sine of up
 * to 15½ steps. Then
 *
 *     |sin 16w| ≤ 2ρ   and   |sin 480w| = |sin (30·15½ + 15)w| ≤ 32ρ,
 *     so |x| + |y|·ρ of a block is at most |X| + |Y|·32ρ + (|Y| + |X|)·ρ. */
PE_INLINED vw square_of(vw x, vw y, vw bound, vw size, vw reach, vw turns)
{
    vw most = size_of(x) * (reach + 1.0f) + size_of(y) * (reach * 33.0f);
    most = wide_choice((vu)(most < size), most, size);
    vw clear = power_above(most) * PE_AROUND_CLEAR, known = (bound * 0x1p28f + 0x1p-40f) * turns;
    return wide_choice((vu)(most < known), (vw){0} + __builtin_inff(), clear * clear);
}

void PE_KERNEL(pe_around_squares)(const double *x, const double *y, const double *bounds, const float *const sizes[2],
                                  const float *const reach[2], const float *const turns[2], size_t n,
                                  float *const squares[2])
{
    for (size_t j = 0; j < n; j += 2 * WIDE) {
        vw values[2], nexts[2], errors[2];
        part(x + j, values);
        part(y + j, nexts);
        part(bounds + j, errors);
        for (int i = 0; i < 2; i++) {
            vw square = square_of(values[i], nexts[i], errors[i], wide_load(sizes[i] + j / 2),
                                  wide_load(reach[i] + j / 2), wide_load(turns[i] + j / 2));
            memcpy(squares[i] + j / 2, &square, sizeof square);
        }
    }
}
