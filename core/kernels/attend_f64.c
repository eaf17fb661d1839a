/* The kernels of attention rows for doubles: the width, the constants and the sums; everything else is in
 * attend_rows.h. */
#include "core/kernels/kernels.h"
#include "core/kernels/lanes.h"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

typedef double real;
typedef int64_t whole;
typedef uint64_t word;
enum { WIDTH = LANES, FRACTION_BITS = 52, EXPONENT_BIAS = 1023 };

#if defined(__AVX512F__)
typedef __m512d native;
#define NATIVE(operation) _mm512_##operation##_pd
#elif defined(__AVX2__) && defined(__FMA__)
typedef __m256d native;
#define NATIVE(operation) _mm256_##operation##_pd
#elif defined(__x86_64__)
typedef __m128d native;
#define NATIVE(operation) _mm_##operation##_pd
#endif

typedef real vr __attribute__((vector_size(WIDTH * sizeof(real))));

/* As in attend_f32.c. */
static const real EXP_LOWEST = -746, EXP_LOST = -80, TANH_TINY = 0x1p-28, MAGIC = 0x1.8p52;
static const real LOG2_E = 0x1.71547652b82fep+0, LN2_HIGH = 0x1.62e42feep-1, LN2_LOW = 0x1.a39ef35793c76p-33;

/* (e^r - 1 - r)/r² for |r| ≤ ln2/2: minimax, relative error of e^r 2^-56.5. */
static const real EXP_SERIES[] = {
    0x1.0000000000009p-1,  0x1.5555555555558p-3,  0x1.55555555503e3p-5,  0x1.111111110f803p-7,  0x1.6c16c18601e8cp-10,
    0x1.a01a01b00c2c6p-13, 0x1.a01993b37a9cap-16, 0x1.71ddf6b3f10d1p-19, 0x1.28b410d73d492p-22, 0x1.af632ad6abee8p-26};

static inline void widen(vr x, vd wide[WIDTH / LANES]) { wide[0] = x; }

#define KERNEL(name) PE_KERNEL_NAME(pe_##name##_f64, PE_ISA_SUFFIX)
#include "core/kernels/attend_rows.h"

#include "core/kernels/attend_products.h"

/* The numbers of WIDTH neighbouring rows, all within WIDTH numbers of one place. */
static inline vr neighbours(const real *table, const int32_t *index)
{
#if defined(__AVX512F__)
    int32_t least = index[0] < index[WIDTH - 1] ? index[0] : index[WIDTH - 1];
    __m256i at = _mm256_sub_epi32(_mm256_loadu_si256((const __m256i_u *)index), _mm256_set1_epi32(least));
    return (vr)_mm512_permutexvar_pd(_mm512_cvtepi32_epi64(at), _mm512_loadu_pd(table + least));
#elif defined(__AVX2__) && defined(__FMA__)
    return (vr){table[index[0]], table[index[1]], table[index[2]], table[index[3]]};
#else
    return (vr){table[index[0]], table[index[1]]};
#endif
}

#include "core/kernels/attend_picks.h"

#include "core/kernels/train_rows.h"

#include "core/kernels/train_attend.h"
