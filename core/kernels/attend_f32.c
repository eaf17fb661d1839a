/* The kernels of attention rows for floats: the width, the constants and the sums; everything else is in
 * attend_rows.h. */
#include "core/kernels/kernels.h"
#include "core/kernels/lanes.h"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

typedef float real;
typedef int32_t whole;
typedef uint32_t word;
enum { WIDTH = 2 * LANES, FRACTION_BITS = 23, EXPONENT_BIAS = 127 };

#if defined(__AVX512F__)
typedef __m512 native;
#define NATIVE(operation) _mm512_##operation##_ps
#elif defined(__AVX2__) && defined(__FMA__)
typedef __m256 native;
#define NATIVE(operation) _mm256_##operation##_ps
#elif defined(__x86_64__)
typedef __m128 native;
#define NATIVE(operation) _mm_##operation##_ps
#endif

typedef real vr __attribute__((vector_size(WIDTH * sizeof(real))));

/* exp is 0 below EXP_LOWEST and lost beside 1 below EXP_LOST; tanh is its argument below TANH_TINY. LN2_HIGH times an
 * exponent is exact. Added to a small number, MAGIC leaves the nearest integer in the low bits. */
static const real EXP_LOWEST = -104, EXP_LOST = -40, TANH_TINY = 0x1p-13f, MAGIC = 0x1.8p23f;
static const real LOG2_E = 0x1.715476p+0f, LN2_HIGH = 0x1.62e4p-1f, LN2_LOW = 0x1.7f7d1cp-20f;

/* (e^r - 1 - r)/r² for |r| ≤ ln2/2: minimax, relative error of e^r 2^-27.9. */
static const real EXP_SERIES[] = {0x1.fffffcp-2f, 0x1.555492p-3f, 0x1.5558f2p-5f, 0x1.1239e2p-7f, 0x1.6a2434p-10f};

/* A register's values in double, a half at a time. By hand: GCC 12 converts a quarter at a time. */
static inline void widen(vr x, vd wide[WIDTH / LANES])
{
#if defined(__AVX512F__)
    wide[0] = (vd)_mm512_cvtps_pd(_mm512_castps512_ps256((native)x));
    wide[1] = (vd)_mm512_cvtps_pd(_mm512_extractf32x8_ps((native)x, 1));
#elif defined(__AVX2__) && defined(__FMA__)
    wide[0] = (vd)_mm256_cvtps_pd(_mm256_castps256_ps128((native)x));
    wide[1] = (vd)_mm256_cvtps_pd(_mm256_extractf128_ps((native)x, 1));
#else
    wide[0] = (vd){(double)x[0], (double)x[1]};
    wide[1] = (vd){(double)x[2], (double)x[3]};
#endif
}

#define KERNEL(name) PE_KERNEL_NAME(pe_##name##_f32, PE_ISA_SUFFIX)
#include "core/kernels/attend_rows.h"

#include "core/kernels/attend_products.h"

#if defined(__AVX2__) && defined(__FMA__)
#define HAS_TILES
typedef __m256 octet;

static inline octet eight_neighbours(const real *table, const int32_t *index)
{
    int32_t least = index[0] < index[7] ? index[0] : index[7];
    __m256i at = _mm256_sub_epi32(_mm256_loadu_si256((const __m256i_u *)index), _mm256_set1_epi32(least));
    return _mm256_permutevar8x32_ps(_mm256_loadu_ps(table + least), at);
}

static inline void add_octet(real *s, octet x, real factor)
{
    _mm256_storeu_ps(s, _mm256_add_ps(_mm256_loadu_ps(s), _mm256_mul_ps(x, _mm256_set1_ps(factor))));
}

/* Swaps pairs of numbers, then pairs of pairs, then halves. */
static inline void transpose(octet x[8])
{
    octet y[8], z[8];
    for (int k = 0; k < 8; k += 2) {
        y[k] = _mm256_unpacklo_ps(x[k], x[k + 1]);
        y[k + 1] = _mm256_unpackhi_ps(x[k], x[k + 1]);
    }
    for (int k = 0; k < 8; k += 4) {
        z[k] = _mm256_shuffle_ps(y[k], y[k + 2], 0x44);
        z[k + 1] = _mm256_shuffle_ps(y[k], y[k + 2], 0xee);
        z[k + 2] = _mm256_shuffle_ps(y[k + 1], y[k + 3], 0x44);
        z[k + 3] = _mm256_shuffle_ps(y[k + 1], y[k + 3], 0xee);
    }
    for (int k = 0; k < 4; k++) {
        x[k] = _mm256_permute2f128_ps(z[k], z[k + 4], 0x20);
        x[k + 4] = _mm256_permute2f128_ps(z[k], z[k + 4], 0x31);
    }
}
#endif

/* The numbers of WIDTH neighbouring rows, all within WIDTH numbers of one place. */
static inline vr neighbours(const real *table, const int32_t *index)
{
#if defined(__AVX512F__)
    int32_t least = index[0] < index[WIDTH - 1] ? index[0] : index[WIDTH - 1];
    __m512i at = _mm512_sub_epi32(_mm512_loadu_si512(index), _mm512_set1_epi32(least));
    return (vr)_mm512_permutexvar_ps(at, _mm512_loadu_ps(table + least));
#elif defined(__AVX2__) && defined(__FMA__)
    return (vr)eight_neighbours(table, index);
#else
    return (vr){table[index[0]], table[index[1]], table[index[2]], table[index[3]]};
#endif
}

#include "core/kernels/attend_picks.h"

#include "core/kernels/train_rows.h"

#include "core/kernels/train_attend.h"
