/* Sines of many columns at one position, in double, each with a bound of its error. Every lane does the same operations in the
 * same order on every machine: no contraction, and the one error-free product is exact however it is made.
 *
 * In quarter turns: m + e = p·F exactly enough, q = the nearest integer, r = m - q + e in [-1/2, 1/2]; then the sine or
 * cosine of r, by a polynomial of r² with first-order terms for what r and its square lost. */
#include "core/kernels/kernels.h"

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

static inline vd load(const double *from)
{
    vd v;
    memcpy(&v, from, sizeof v);
    return v;
}

static inline vd magnitude(vd x)
{
    return (vd)((vi)x & INT64_MAX);
}

/* a·b - p for p = a·b rounded: what the rounding lost, exactly. With a fused operation, or by Dekker's splits. */
static inline vd product_error(vd a, vd b, vd p)
{
#if defined(__AVX512F__)
    return (vd)_mm512_fmsub_pd((__m512d)a, (__m512d)b, (__m512d)p);
#elif defined(__AVX2__) && defined(__FMA__)
    return (vd)_mm256_fmsub_pd((__m256d)a, (__m256d)b, (__m256d)p);
#else
    vd ca = a * 134217729.0, cb = b * 134217729.0;
    vd ah = ca - (ca - a), al = a - ah, bh = cb - (cb - b), bl = b - bh;
    return ((ah * bh - p) + ah * bl + al * bh) + al * bl;
#endif
}

/* A value and what its rounding left over. */
struct pair {
    vd high, low;
};

static inline struct pair sum(vd a, vd b) /* |a| ≥ |b| */
{
    vd s = a + b;
    return (struct pair){s, b - (s - a)};
}

/* sin(π/2·(r + rl)): minimax polynomial, relative error 2^-68.8; π/2 in two parts. */
static inline struct pair sine(vd r, vd rl, vd z)
{
    const double high = 0x1.921fb54442d18p+0, low = 0x1.1a62633145c07p-54;
    vd t = -0x1.6c58cc2f48f24p-31 * z + 0x1.e8eec79c1c797p-25;
    t = t * z - 0x1.e3074b42c34dep-19;
    t = t * z + 0x1.50783485c2d5cp-13;
    t = t * z - 0x1.32d2cce62abbdp-8;
    t = t * z + 0x1.466bc6775aad9p-4;
    t = t * z - 0x1.4abbce625be53p-1;
    vd h = {0};
    h += high;
    vd p = r * h;
    return sum(p, product_error(r, h, p) + (r * low + rl * high) + r * z * t);
}

/* cos(π/2·(r + rl)) = 1 + z·C1 + z²·…: relative error 2^-64.6; the first two terms are summed exactly. */
static inline struct pair cosine(vd r, vd rl, vd z)
{
    vd second = {0}, one = {0};
    second += -0x1.3bd3cc9be45dep+0;
    one += 1;
    vd zl = product_error(r, r, z) + 2 * (r * rl);
    vd t = -0x1.b2586bc3c2c6ep-28 * z + 0x1.f9cc15d5b0993p-22;
    t = t * z - 0x1.a6d1ec3d48e0cp-16;
    t = t * z + 0x1.e1f5068303f38p-11;
    t = t * z - 0x1.55d3c7e3c8d5cp-6;
    t = t * z + 0x1.03c1f081b5aaap-2;
    vd a = z * second;
    struct pair head = sum(one, a);
    return sum(head.high, head.low + (product_error(z, second, a) + zl * second) + z * z * t);
}

static inline vd choose(vi mask, vd yes, vd no)
{
    return (vd)(((vi)yes & mask) | ((vi)no & ~mask));
}

void PE_KERNEL(pe_waves)(double p, const double *fh, const double *fl, const double *ah, const double *al, const int64_t *quarter,
                         bool scaled, size_t n, double *values, double *bounds)
{
    const double magic = 0x1.8p52; /* added, it leaves the nearest integer in the low bits */
    vd position = {0};
    position += p;
    for (size_t j = 0; j < n; j += LANES) {
        vd f = load(fh + j), m = f * position;
        vd e = product_error(f, position, m) + load(fl + j) * position;
        vd t = m + magic, rh = m - (t - magic), r = rh + e, rl = (rh - r) + e, z = r * r;
        vi q;
        memcpy(&q, quarter + j, sizeof q);
        q += (vi)t;
        struct pair s = sine(r, rl, z), c = cosine(r, rl, z);
        vi odd = -(q & 1), sign = (q & 2) << 62;
        vd v = choose(odd, c.high, s.high), low = choose(odd, c.low, s.low);
        if (scaled) {
            vd a = load(ah + j), product = v * a;
            low = product_error(v, a, product) + (low * a + v * load(al + j));
            v = product + low;
        }
        v = (vd)((vi)v ^ sign) + 0.0; /* -0 + 0 = +0 */
        /* 2^-50 covers the polynomials and roundings, several times; next to a zero the phase's own error (2^-101 of p·F)
         * counts, and where it could matter nothing is promised. */
        vd bound = magnitude(v) * 0x1p-50;
        vi lost = (magnitude(r) < magnitude(m) * 0x1p-48) & (magnitude(m) > 0);
        vd all = {0};
        all += 2;
        if (scaled)
            all *= magnitude(load(ah + j));
        bound = choose(lost, all, bound);
        memcpy(values + j, &v, sizeof v);
        memcpy(bounds + j, &bound, sizeof bound);
    }
}
