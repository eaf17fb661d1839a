/* Sines at any one position, as floats: half the work of waves.c and no bound for each. If a double is too near the
 * midpoint between two floats, or a phase too near a zero, the row is reported as open and core/waves/wave_table.c
 * computes it with waves.c instead.
 *
 * In quarter turns p·F = m + e, q the nearest integer, r = m - q + e. A pair of columns is a sine and a cosine of one
 * frequency: both polynomials of r are used, once each, whichever way round the quarter puts them.
 *
 * Relative error, u = 2^-53: the polynomials are off by 2^-47.6 and 2^-43.78 for r² < 0.2503, which m < 2^40 ensures (m
 * is off by less than 2^-13). r has its last rounding, u, and what e lacks: roundings of 2^-105·m and F's own 2^-101·m,
 * together below 2^-100·m, which is 2^-46 of r where |r| ≥ 2^-54·m. Neither sine nor cosine lets a relative error of r
 * grow, since x·cot x ≤ 1 and x·tan x ≤ π/4 for |x| ≤ π/4. Squaring, the steps of Horner, fused or not, and the
 * amplitude add less than 16u. Together (0.59 + 0.13 + 0.02)·2^-43 of the value: less than 2^-43, which is less than
 * 2^10 of the double's last bit.
 *
 * So the test needs no arithmetic on doubles: a midpoint has the low 29 bits 2^28, and a double whose low bits are
 * within 2^10 of that is open. One comparison of words, with the phase's test beside it, is kept for all columns of a
 * row; of rows of 128 columns one in 2000 is open. */
#include "core/kernels/kernels.h"
#include "core/kernels/lanes.h"

_Static_assert(PE_WAVES_LANES % LANES == 0, "padding holds whole registers");

/* Words with a sign, and floats, of two registers. */
typedef int32_t vw __attribute__((vector_size(2 * LANES * sizeof(int32_t))));
typedef float vf2 __attribute__((vector_size(2 * LANES * sizeof(float))));

/* ---- Operations the language lacks ---- */

/* yes where q is odd. */
static inline vd if_odd(vi q, vd yes, vd no)
{
#if defined(__AVX512F__)
    return (vd)_mm512_mask_blend_pd(_mm512_test_epi64_mask((__m512i)q, _mm512_set1_epi64(1)), (__m512d)no,
                                    (__m512d)yes);
#elif defined(__AVX2__) && defined(__FMA__)
    return (vd)_mm256_blendv_pd((__m256d)no, (__m256d)yes, (__m256d)(q << 63)); /* the sign bit chooses */
#else
    return (vd)((((vi)yes ^ (vi)no) & -(q & 1)) ^ (vi)no);
#endif
}

static inline vw lesser(vw a, vw b)
{
#if defined(__AVX512F__)
    return (vw)_mm512_min_epi32((__m512i)a, (__m512i)b);
#elif defined(__AVX2__) && defined(__FMA__)
    return (vw)_mm256_min_epi32((__m256i)a, (__m256i)b);
#else
    vw less = a < b;
    return (a & less) | (b & ~less);
#endif
}

/* The low words of two registers, in the order that is cheapest. */
static inline vu low_words(vd a, vd b)
{
#if defined(__AVX512F__)
    return (vu)_mm512_shuffle_ps((__m512)a, (__m512)b, 0x88);
#elif defined(__AVX2__) && defined(__FMA__)
    return (vu)_mm256_shuffle_ps((__m256)a, (__m256)b, 0x88);
#else
    return __builtin_shufflevector((vu)a, (vu)b, 0, 2, 4, 6);
#endif
}

/* The order that takes two registers' floats by turns. */
#if defined(__AVX512F__)
#define BY_TURNS 0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15
#elif defined(__AVX2__)
#define BY_TURNS 0, 4, 1, 5, 2, 6, 3, 7
#else
#define BY_TURNS 0, 2, 1, 3
#endif

/* ---- Some registers of frequencies ---- */

/* Registers processed in parallel: a wave is a chain of some twenty steps, and a machine that looks ahead by a
 * hundred or two hundred instructions reaches only the next one or two registers. */
enum { SIDE = 2 };
_Static_assert(PE_WAVES_LANES % (SIDE * LANES) == 0, "padding holds whole groups");

/* sin(π/2·r)/r and cos(π/2·r) by powers of r², the highest first. */
enum { TERMS = 6 };
static const double sine_terms[TERMS] = {-0x1.dd4c925b9ba83p-19, 0x1.5071bada0275fp-13, -0x1.32d2c6234ea86p-8,
                                         0x1.466bc670f533cp-4,   -0x1.4abbce625774bp-1, 0x1.921fb54442cf8p+0};
static const double cosine_terms[TERMS] = {-0x1.a0d6d01ed2324p-16, 0x1.e1e758a6b5075p-11, -0x1.55d3b964c3626p-6,
                                           0x1.03c1f073bbb39p-2,   -0x1.3bd3cc9bd0798p+0, 0x1.ffffffffffdacp-1};

/* The columns or pairs of a table: padded arrays. */
struct columns {
    const double *fh, *fl, *centre, *sizes, *next_sizes;
    bool scaled;
};

/* Phases of SIDE registers: the quarter in the lowest bits of q, and r in [-1/2, 1/2]. */
struct phases {
    vi q[SIDE];
    vd r[SIDE], z[SIDE]; /* z = r² */
};

/* The quarter comes with the centre, 1.5·2^52 + quarter, which leaves the nearest integer in the low bits of what it is
 * added to. */
PE_INLINED struct phases reduce(struct columns c, size_t j, vd p)
{
    struct phases x;
    for (int i = 0; i < SIDE; i++, j += LANES) {
        vd f = load(c.fh + j), centre = load(c.centre + j), m = f * p, t = m + centre;
        vd e = product_plus(load(c.fl + j), p, product_error(f, p, m));
        x.q[i] = (vi)t;
        x.r[i] = (m - (t - centre)) + e;
        x.z[i] = x.r[i] * x.r[i];
    }
    return x;
}

/* Waves, and the same a quarter on. */
struct waves {
    vd first[SIDE], next[SIDE];
};

PE_INLINED struct waves sines_and_cosines(struct phases x)
{
    struct waves w;
    for (int i = 0; i < SIDE; i++) {
        w.first[i] = all_lanes(sine_terms[0]);
        w.next[i] = all_lanes(cosine_terms[0]);
    }
    for (int n = 1; n < TERMS; n++)
        for (int i = 0; i < SIDE; i++) {
            w.first[i] = product_plus(w.first[i], x.z[i], all_lanes(sine_terms[n]));
            w.next[i] = product_plus(w.next[i], x.z[i], all_lanes(cosine_terms[n]));
        }
    for (int i = 0; i < SIDE; i++)
        w.first[i] *= x.r[i];
    return w;
}

/* The third and fourth quarter are the first two with a minus; a quarter on is that of q + 1. */
PE_INLINED struct waves waves(struct columns c, size_t j, struct phases x)
{
    struct waves w = sines_and_cosines(x);
    for (int i = 0; i < SIDE; i++, j += LANES) {
        vi q = x.q[i], sign = q << 62;
        vd sine = w.first[i], cosine = w.next[i];
        w.first[i] = (vd)((vi)if_odd(q, cosine, sine) ^ (sign & INT64_MIN));
        w.next[i] = (vd)((vi)if_odd(q, sine, cosine) ^ ((sign ^ (q << 63)) & INT64_MIN));
        if (c.scaled) {
            w.first[i] *= load(c.sizes + j);
            w.next[i] *= load(c.next_sizes + j);
        }
    }
    return w;
}

/* ---- Rows ---- */

enum kind { ALONE, MIXED, APART };

/* The least r², and how near doubles came to the middles between floats. A middle's lower 29 bits are 2^28: shifted up
 * by 3 and with half the forbidden zone added, the ones inside are the least signed numbers. */
struct doubt {
    vd least;
    vw nearest;
};
enum { ZONE = 1 << (10 + 3), FORBIDDEN = INT32_MIN + 2 * ZONE };

PE_INLINED struct doubt doubt_more(struct doubt d, enum kind kind, struct phases x, struct waves w)
{
    for (int i = 0; i < SIDE; i++) {
        vu low = low_words(w.first[i], kind == ALONE ? w.first[i] : w.next[i]);
        d.least = smaller(d.least, x.z[i]);
        d.nearest = lesser(d.nearest, (vw)((low << 3) + ZONE));
    }
    return d;
}

/* Writes the columns or pairs of SIDE registers, or the n of them that there are. */
PE_INLINED void put(enum kind kind, struct waves w, size_t n, float *out, float *next)
{
    for (size_t i = 0, done = 0; i < SIDE && done < n; i++, done += LANES) {
        vf first = __builtin_convertvector(w.first[i], vf), second = __builtin_convertvector(w.next[i], vf);
        vf2 both = __builtin_shufflevector(first, second, BY_TURNS);
        size_t bytes = (n - done < LANES ? n - done : LANES) * sizeof *out;
        if (kind == MIXED)
            memcpy(out + 2 * done, &both, 2 * bytes);
        else
            memcpy(out + done, &first, bytes);
        if (kind == APART)
            memcpy(next + done, &second, bytes);
    }
}

static inline bool is_settled(struct doubt doubt, double least)
{
    vi open = ~(doubt.least > least) | (vi)(doubt.nearest <= FORBIDDEN);
    int64_t any = 0;
    for (int k = 0; k < LANES; k++)
        any |= open[k];
    return any == 0;
}

/* One group of columns or pairs: computed, watched, written. */
PE_INLINED struct doubt step(enum kind kind, struct columns c, size_t j, vd position, struct doubt doubt, size_t n,
                             float *out, float *next)
{
    struct phases x = reduce(c, j, position);
    struct waves w = waves(c, j, x);
    put(kind, w, n, out, next);
    return doubt_more(doubt, kind, x, w);
}

/* Whether the row at p is right. */
PE_INLINED bool fill_row(enum kind kind, struct columns c, double p, double unsure, size_t n, float *out, float *next)
{
    struct doubt doubt = {all_lanes(1), (vw){0} + INT32_MAX};
    double rest = p * unsure, least = rest * rest > PE_LIST_LEAST ? rest * rest : PE_LIST_LEAST;
    size_t group = SIDE * LANES, width = kind == MIXED ? 2 : 1;
    vd position = all_lanes(p);
    size_t j = 0;
    for (; j + group <= n; j += group)
        doubt = step(kind, c, j, position, doubt, group, out + width * j, next + j);
    if (j < n)
        doubt = step(kind, c, j, position, doubt, n - j, out + width * j, next + j);
    return is_settled(doubt, least);
}

/* One function for each kind of rows: inlined, so that the loops have no decisions. */
PE_INLINED size_t fill(enum kind kind, struct columns c, const double *positions, size_t n_rows, double unsure,
                       size_t n, float *out, float *next, size_t stride)
{
    size_t i = 0;
    while (i < n_rows && fill_row(kind, c, positions[i], unsure, n, out + i * stride, next + i * stride))
        i++;
    return i;
}

size_t PE_KERNEL(pe_list_f32)(const double *positions, size_t n_rows, double unsure, const double *fh, const double *fl,
                              const double *centre, const double *sizes, size_t n, float *out, size_t stride)
{
    struct columns c = {fh, fl, centre, sizes, sizes, false};
    if (!sizes)
        return fill(ALONE, c, positions, n_rows, unsure, n, out, out, stride);
    c.scaled = true;
    return fill(ALONE, c, positions, n_rows, unsure, n, out, out, stride);
}

size_t PE_KERNEL(pe_list_pairs_f32)(const double *positions, size_t n_rows, double unsure, const double *fh,
                                    const double *fl, const double *centre, const double *sizes,
                                    const double *next_sizes, size_t n, float *out, float *next, size_t stride)
{
    struct columns c = {fh, fl, centre, sizes, next_sizes, false};
    if (!sizes)
        return next ? fill(APART, c, positions, n_rows, unsure, n, out, next, stride)
                    : fill(MIXED, c, positions, n_rows, unsure, n, out, out, stride);
    c.scaled = true;
    return next ? fill(APART, c, positions, n_rows, unsure, n, out, next, stride)
                : fill(MIXED, c, positions, n_rows, unsure, n, out, out, stride);
}
