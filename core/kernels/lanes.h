/* A register of doubles, as wide as the instruction set has, and the few operations that the language's vectors lack.
 */
#ifndef PE_LANES_H
#define PE_LANES_H

#include <stdint.h>
#include <string.h>
#if defined(__AVX512F__) || (defined(__AVX2__) && defined(__FMA__))
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

/* The smaller of two, lane by lane; which one where a NaN is, is not said. */
static inline vd smaller(vd a, vd b)
{
#if defined(__AVX512F__)
    return (vd)_mm512_min_pd((__m512d)a, (__m512d)b);
#elif defined(__AVX2__) && defined(__FMA__)
    return (vd)_mm256_min_pd((__m256d)a, (__m256d)b);
#else
    return choose(a < b, a, b);
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
