/* Sines of many columns at one position, in double, each with a bound of its error: the second level of
 * core/waves/wave_table.c.
 *
 * In quarter turns: m + e = p·F exactly enough, q = the nearest integer, r = m - q + e in [-1/2, 1/2]; then the sine or
 * cosine of r, by a polynomial of r² with first-order terms for what r and its square lost.
 *
 * Why quarter turns: the reduction modulo π/2, which costs libm a table of 2/π's digits (Payne and Hanek 1983), becomes
 * a subtraction of an integer. F was divided by π/2 once, in double-double. Adding 1.5·2^52 leaves the nearest integer
 * in a double's low bits, of which two are the quadrant; so no branch and no conversion is needed, and position 2^40
 * costs what position 1 does.
 *
 * Invariant: every lane does the same operations in the same order on every machine: no contraction, and the one
 * error-free product is exact whichever way it is computed. An f64 is stored as it leaves this file, so these doubles
 * are part of what the service promises. At a position that is a power of two, both products with F are exact, so the
 * steps of runs, which are such positions, have no error of phase. */
#include "core/kernels/kernels.h"
#include "core/kernels/lanes.h"

/* A value and its rounding error. */
struct pair {
    vd high, low;
};

static inline struct pair sum(vd a, vd b) /* |a| ≥ |b| */
{
    vd s = a + b;
    return (struct pair){s, b - (s - a)};
}

/* sin(π/2·(r + rl)): π/2 in two parts, then a minimax polynomial in z = r². Its relative error is 2^-68.8 before its
 * coefficients are rounded to doubles and 2^-57.4 after, nearly all of it from the cubic term's. */
static inline struct pair sine(vd r, vd rl, vd z)
{
    const double high = 0x1.921fb54442d18p+0, low = 0x1.1a62633145c07p-54;
    vd t = -0x1.6c58cc2f48f24p-31 * z + 0x1.e8eec79c1c797p-25;
    t = t * z - 0x1.e3074b42c34dep-19;
    t = t * z + 0x1.50783485c2d5cp-13;
    t = t * z - 0x1.32d2cce62abbdp-8;
    t = t * z + 0x1.466bc6775aad9p-4;
    t = t * z - 0x1.4abbce625be53p-1;
    vd h = all_lanes(high), p = r * h;
    return sum(p, product_error(r, h, p) + (r * low + rl * high) + r * z * t);
}

/* cos(π/2·(r + rl)) = 1 + z·C1 + z²·…: the first two terms are summed exactly. Relative error 2^-64.6, and 2^-55.3 with
 * rounded coefficients: C1 is a double, and beside 1 its rounding is a seventh of an ulp at the end of the range. */
static inline struct pair cosine(vd r, vd rl, vd z)
{
    vd second = all_lanes(-0x1.3bd3cc9be45dep+0), zl = product_error(r, r, z) + 2 * (r * rl);
    vd t = -0x1.b2586bc3c2c6ep-28 * z + 0x1.f9cc15d5b0993p-22;
    t = t * z - 0x1.a6d1ec3d48e0cp-16;
    t = t * z + 0x1.e1f5068303f38p-11;
    t = t * z - 0x1.55d3c7e3c8d5cp-6;
    t = t * z + 0x1.03c1f081b5aaap-2;
    vd a = z * second;
    struct pair head = sum(all_lanes(1), a);
    return sum(head.high, head.low + (product_error(z, second, a) + zl * second) + z * z * t);
}

/* The wave's value from the sine and the cosine of its remainder: the quarter selects one of the two and its sign. */
static inline vd wave(struct pair s, struct pair c, vi q, bool scaled, vd ah, vd al)
{
    vi odd = -(q & 1), sign = (q & 2) << 62;
    vd v = choose(odd, c.high, s.high);
    if (scaled) {
        vd low = choose(odd, c.low, s.low), product = v * ah;
        v = product + (product_error(v, ah, product) + (low * ah + v * al));
    }
    return (vd)((vi)v ^ sign) + 0.0; /* -0 + 0 = +0 */
}

void PE_KERNEL(pe_waves)(double p, const double *fh, const double *fl, const double *ah, const double *al,
                         const int64_t *quarter, bool scaled, size_t n, double *values, double *nexts, double *bounds)
{
    const double magic = 0x1.8p52; /* added, it leaves the nearest integer in the low bits */
    vd position = all_lanes(p);
    for (size_t j = 0; j < n; j += LANES) {
        vd f = load(fh + j), m = f * position, a = {0}, b = {0};
        vd e = product_error(f, position, m) + load(fl + j) * position;
        vd t = m + magic, rh = m - (t - magic), r = rh + e, rl = (rh - r) + e, z = r * r;
        vi q;
        memcpy(&q, quarter + j, sizeof q);
        q += (vi)t;
        if (scaled) {
            a = load(ah + j);
            b = load(al + j);
        }
        struct pair s = sine(r, rl, z), c = cosine(r, rl, z);
        vd v = wave(s, c, q, scaled, a, b);
        /* 2^-50 covers the polynomials and roundings, several times; next to a zero the phase's own error counts as
         * well: 2^-101 of p·F, in quarter turns of at most π/2 of the amplitude, and as much again for the next
         * quarter, from which a run comes back here. */
        vd phase_error = magnitude(m) * 0x1p-98;
        vd bound = magnitude(v) * 0x1p-50 + (scaled ? phase_error * magnitude(a) : phase_error);
        memcpy(values + j, &v, sizeof v);
        memcpy(bounds + j, &bound, sizeof bound);
        if (nexts) {
            v = wave(s, c, q + 1, scaled, a, b);
            memcpy(nexts + j, &v, sizeof v);
        }
    }
}
