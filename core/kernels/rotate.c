/* Rotation of heads: y1 = x1·cos - x2·sin, y2 = x2·cos + x1·sin for every pair (RoFormer, 2104.09864).
 *
 * Arithmetic is in double whatever the data's type, and rounded once at the store. No contraction (the build forbids
 * it), so all machines give the same bytes.
 *
 * Whole blocks of floats take their cosines from octets (kernels.h), not from doubles. Beyond the first-level cache the
 * table's bytes are what limits: a head of 1024 positions of 128 channels is 512 KiB, its cosines and sines as doubles
 * 1 MiB, as octets 768 KiB, and making doubles of octets costs as many instructions as loading doubles and converting
 * the floats beside them. Measured on a Zen 3 with 4 MiB in place, doubles take 1.25 times as long. Full f32 tables
 * would take 0.85 of the time and be wrong by up to a whole unit in the last place instead of a two-thousandth. */
#include "core/kernels/kernels.h"
#include "core/kernels/lanes.h"

#include <math.h>
#include <string.h>

/* ---- One head, cosines as doubles ---- */

/* -1, but the compiler does not know. Where it sees a difference beside a sum of products, gcc 12 makes one fused
 * instruction of both (vfmaddsub) although contraction is forbidden, and the bytes would depend on the instruction set.
 * It lets two differences be; the second sine's sign is turned by an exact multiplication. */
static inline double minus_one(void)
{
    double x = -1;
    __asm__ volatile("" : "+m"(x));
    return x;
}

/* The two usual layouts get loops whose strides the compiler knows, so that it can vectorise them. */
#define ROTATE_LOOP(T, step, partner)                                                                                  \
    for (size_t c = 0; c < n_pairs; c++) {                                                                             \
        double x1 = (double)x[c * (step)], x2 = (double)x[c * (step) + (partner)];                                     \
        y[c * (step)] = (T)(x1 * cosines[c] - x2 * sines[c]);                                                          \
        y[c * (step) + (partner)] = (T)(x2 * cosines[c] - x1 * (sines[c] * minus));                                    \
    }

#define ROTATE(T, name)                                                                                                \
    void PE_KERNEL(name)(const double *restrict cosines, const double *restrict sines, const T *restrict x,            \
                         T *restrict y, size_t n_pairs, size_t step, size_t partner)                                   \
    {                                                                                                                  \
        double minus = minus_one();                                                                                    \
        if (step == 1)                                                                                                 \
            ROTATE_LOOP(T, 1, partner)                                                                                 \
        else if (step == 2 && partner == 1)                                                                            \
            ROTATE_LOOP(T, 2, 1)                                                                                       \
        else                                                                                                           \
            ROTATE_LOOP(T, step, partner)                                                                              \
    }

ROTATE(float, pe_rotate_f32)
ROTATE(double, pe_rotate_f64)

/* ---- Octets ---- */

/* Where number i of an octet is kept: interleaving registers of heads and tails half by half, as AVX2 does, then leaves
 * 0 1 2 3 in one register and 4 5 6 7 in the other. */
static const unsigned char place[PE_OCTET] = {0, 1, 4, 5, 2, 3, 6, 7};

enum { TAIL_BITS = 16 };

#if defined(__AVX2__)

static inline __m256i rounded(const double *from)
{
    __m256i bits = _mm256_loadu_si256((const __m256i *)(const void *)from);
    __m256i odd = _mm256_and_si256(_mm256_srli_epi64(bits, TAIL_BITS), _mm256_set1_epi64x(1));
    return _mm256_add_epi64(bits, _mm256_add_epi64(odd, _mm256_set1_epi64x(0x7fff)));
}

static inline void pack_eight(const double *from, uint32_t *heads, uint16_t *tails)
{
    enum { EVEN = 0x88, ODD = 0xdd };
    __m256 low = _mm256_castsi256_ps(rounded(from)), high = _mm256_castsi256_ps(rounded(from + 4));
    _mm256_storeu_ps((float *)(void *)heads, _mm256_shuffle_ps(low, high, ODD));
    __m256i rest = _mm256_srli_epi32(_mm256_castps_si256(_mm256_shuffle_ps(low, high, EVEN)), TAIL_BITS);
    __m128i packed = _mm_packus_epi32(_mm256_castsi256_si128(rest), _mm256_extracti128_si256(rest, 1));
    _mm_storeu_si128((__m128i *)(void *)tails, packed);
}

#else

static inline void pack_eight(const double *from, uint32_t *heads, uint16_t *tails)
{
    for (size_t i = 0; i < PE_OCTET; i++) {
        uint64_t bits;
        memcpy(&bits, &from[i], sizeof bits);
        bits += 0x7fff + (bits >> TAIL_BITS & 1); /* to nearest, ties to even */
        heads[place[i]] = (uint32_t)(bits >> 32);
        tails[place[i]] = (uint16_t)(bits >> TAIL_BITS);
    }
}

#endif

static void pack(const double *from, size_t n, uint32_t *heads, uint16_t *tails)
{
    double padded[PE_OCTET] = {0};
    if (n >= PE_OCTET) {
        pack_eight(from, heads, tails);
        return;
    }
    memcpy(padded, from, n * sizeof *from);
    pack_eight(padded, heads, tails);
}

void PE_KERNEL(pe_pack)(const double *cosines, const double *sines, size_t n_pairs, struct pe_octet *to)
{
    for (size_t c = 0; c < n_pairs; c += PE_OCTET, to++) {
        pack(cosines + c, n_pairs - c, to->cosine_heads, to->cosine_tails);
        pack(sines + c, n_pairs - c, to->sine_heads, to->sine_tails);
    }
}

static inline double unpacked(const uint32_t *heads, const uint16_t *tails, size_t i)
{
    uint64_t bits = (uint64_t)heads[place[i]] << 32 | (uint64_t)tails[place[i]] << TAIL_BITS;
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Pairs of one octet one by one: the truth, and what is left over of whole registers. */
static inline void turn_pairs(const struct pe_octet *o, size_t n, const float *x, float *y, size_t step, size_t partner)
{
    double minus = minus_one();
    for (size_t c = 0; c < n; c++) {
        double cosine = unpacked(o->cosine_heads, o->cosine_tails, c), sine = unpacked(o->sine_heads, o->sine_tails, c),
               x1 = (double)x[c * step], x2 = (double)x[c * step + partner];
        y[c * step] = (float)(x1 * cosine - x2 * sine);
        y[c * step + partner] = (float)(x2 * cosine - x1 * (sine * minus));
    }
}

#if defined(__AVX2__)

/* The numbers 0-3 and 4-7 of heads and tails. */
static inline void unpack(const uint32_t *heads, const uint16_t *tails, __m256d *first, __m256d *second)
{
    __m256i high = _mm256_loadu_si256((const __m256i *)(const void *)heads);
    __m256i low = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)tails));
    low = _mm256_slli_epi32(low, TAIL_BITS);
    *first = _mm256_castsi256_pd(_mm256_unpacklo_epi32(low, high));
    *second = _mm256_castsi256_pd(_mm256_unpackhi_epi32(low, high));
}

static inline __m128 first_of_pair(__m256d a, __m256d b, __m256d cosine, __m256d sine)
{
    return _mm256_cvtpd_ps(_mm256_sub_pd(_mm256_mul_pd(a, cosine), _mm256_mul_pd(b, sine)));
}

static inline __m128 second_of_pair(__m256d a, __m256d b, __m256d cosine, __m256d sine)
{
    return _mm256_cvtpd_ps(_mm256_add_pd(_mm256_mul_pd(b, cosine), _mm256_mul_pd(a, sine)));
}

/* Four pairs, all read before the first is written. */
static inline void turn_halves(const float *x, float *y, size_t partner, __m256d cosine, __m256d sine)
{
    __m256d a = _mm256_cvtps_pd(_mm_loadu_ps(x)), b = _mm256_cvtps_pd(_mm_loadu_ps(x + partner));
    _mm_storeu_ps(y, first_of_pair(a, b, cosine, sine));
    _mm_storeu_ps(y + partner, second_of_pair(a, b, cosine, sine));
}

static inline void turn_neighbours(const float *x, float *y, __m256d cosine, __m256d sine)
{
    enum { EVEN = 0x88, ODD = 0xdd };
    __m128 low = _mm_loadu_ps(x), high = _mm_loadu_ps(x + 4);
    __m256d a = _mm256_cvtps_pd(_mm_shuffle_ps(low, high, EVEN)), b = _mm256_cvtps_pd(_mm_shuffle_ps(low, high, ODD));
    __m128 first = first_of_pair(a, b, cosine, sine), second = second_of_pair(a, b, cosine, sine);
    _mm_storeu_ps(y, _mm_unpacklo_ps(first, second));
    _mm_storeu_ps(y + 4, _mm_unpackhi_ps(first, second));
}

static inline void turn_octet(const struct pe_octet *o, const float *x, float *y, size_t step, size_t partner)
{
    __m256d c1, c2, s1, s2;
    unpack(o->cosine_heads, o->cosine_tails, &c1, &c2);
    unpack(o->sine_heads, o->sine_tails, &s1, &s2);
    if (step == 1) {
        turn_halves(x, y, partner, c1, s1);
        turn_halves(x + 4, y + 4, partner, c2, s2);
    } else {
        turn_neighbours(x, y, c1, s1);
        turn_neighbours(x + PE_OCTET, y + PE_OCTET, c2, s2);
    }
}

#else

/* As above, in two loops whose length the compiler knows. */
static inline void turn_octet(const struct pe_octet *o, const float *x, float *y, size_t step, size_t partner)
{
    double cosines[PE_OCTET], sines[PE_OCTET], a[PE_OCTET], b[PE_OCTET], minus = minus_one();
    for (size_t c = 0; c < PE_OCTET; c++) {
        cosines[c] = unpacked(o->cosine_heads, o->cosine_tails, c);
        sines[c] = unpacked(o->sine_heads, o->sine_tails, c);
        a[c] = (double)x[c * step];
        b[c] = (double)x[c * step + partner];
    }
    for (size_t c = 0; c < PE_OCTET; c++) {
        y[c * step] = (float)(a[c] * cosines[c] - b[c] * sines[c]);
        y[c * step + partner] = (float)(b[c] * cosines[c] - a[c] * (sines[c] * minus));
    }
}

#endif

/* Bytes from what is worked on to what is called for: the cache sees three or four streams and keeps less far ahead of
 * each. With it a row takes 0.8 of the time, from the second-level cache as from memory. */
enum { AHEAD = 4096 };

static inline void call_for(const float *x) { __builtin_prefetch((const char *)x + AHEAD); }

static inline void turn_row(const struct pe_octet *o, const float *x, float *y, size_t n_pairs, size_t step,
                            size_t partner)
{
    size_t c = 0;
    for (; c + PE_OCTET <= n_pairs; c += PE_OCTET, o++) {
        call_for(x + c * step);
        if (step == 1)
            call_for(x + c + partner);
        turn_octet(o, x + c * step, y + c * step, step, partner);
    }
    turn_pairs(o, n_pairs - c, x + c * step, y + c * step, step, partner);
}

void PE_KERNEL(pe_rotate_rows)(const struct pe_octet *table, size_t table_step, const float *x, float *y,
                               size_t row_len, size_t n_rows, size_t n_pairs, size_t step, size_t partner)
{
    for (size_t r = 0; r < n_rows; r++, table += table_step, x += row_len, y += row_len)
        if (step == 1)
            turn_row(table, x, y, n_pairs, 1, partner);
        else
            turn_row(table, x, y, n_pairs, 2, 1);
}

/* ---- Tables ---- */

/* a + b where they left enough of each other; how far below that they are is in *worst. */
static inline vd sum(vd a, vd b, vd *worst)
{
    vd total = a + b;
    *worst = smaller(*worst, magnitude(total) - PE_ANGLES_KEPT * (magnitude(a) + magnitude(b)));
    return total;
}

/* cos(m ± j) = cos m · cos j ∓ sin m · sin j, sin(m ± j) = sin m · cos j ± cos m · sin j. With sign = ±1 both are one
 * loop; a multiplication by it is exact. */
static inline void add_angles(const double *anchor, const double *steps, double sign, size_t n_pairs, double *row,
                              vd *worst)
{
    vd c1 = load(anchor), s1 = load(anchor + n_pairs), c2 = load(steps), s2 = load(steps + n_pairs) * sign;
    vd cosine = sum(c1 * c2, -(s1 * s2), worst), sine = sum(s1 * c2, c1 * s2, worst);
    memcpy(row, &cosine, sizeof cosine);
    memcpy(row + n_pairs, &sine, sizeof sine);
}

bool PE_KERNEL(pe_angles)(const double *anchor, const double *steps, double sign, size_t n_pairs, double *row)
{
    vd worst = {0};
    size_t c = 0;
    for (; c + LANES <= n_pairs; c += LANES)
        add_angles(anchor + c, steps + c, sign, n_pairs, row + c, &worst);
    double lost = 0;
    for (int k = 0; k < LANES; k++)
        lost += worst[k];
    for (; c < n_pairs; c++) {
        double cc = anchor[c] * steps[c], ss = -(anchor[n_pairs + c] * (steps[n_pairs + c] * sign));
        double sc = anchor[n_pairs + c] * steps[c], cs = anchor[c] * (steps[n_pairs + c] * sign);
        row[c] = cc + ss;
        row[n_pairs + c] = sc + cs;
        lost += fmin(0, fabs(row[c]) - PE_ANGLES_KEPT * (fabs(cc) + fabs(ss)));
        lost += fmin(0, fabs(row[n_pairs + c]) - PE_ANGLES_KEPT * (fabs(sc) + fabs(cs)));
    }
    return lost < 0;
}
