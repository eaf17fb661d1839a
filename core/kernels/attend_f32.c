/* The kernels of attention rows for floats: the width, the constants and the sums; all else is in attend_rows.h. */
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
