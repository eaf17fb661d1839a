/* Single values of waves in double-double, frequencies, and the final decision on the rounding of a value: the last
 * level of wave_table.c, and the reference that tests compare kernels with.
 *
 * In quarter turns the phase p·F is a sum of exact products; the nearest integer is subtracted (it selects sine or
 * cosine and the sign), then the nearest k/32, whose sine and cosine are in a table of 17 double-doubles, and the rest,
 * at most π/128, goes through the two power series. The addition theorems put them together. No step depends on a fused
 * operation or on the C library, so every machine decides alike.
 *
 * The value has a relative error below 2^-99 for F as its two doubles are. F itself was rounded to them, which adds
 * phase·2^-100 (below). The two together are the interval in which the exact value lies; if its ends round
 * differently, the case is counted and the value that is known is rounded. Nothing more can be done without more digits
 * of F.
 *
 * Why the rounding is decidable at all: for rational positions and bases w is algebraic, so sin(p·w) is transcendental
 * for p ≠ 0 (Lindemann) and never a midpoint. Exceptions are handled by name: position 0, frequency 0, and whole turns,
 * where frequencies are rational multiples of π. */
#include "core/waves/waves.h"
#include "core/numeric/numeric.h"

#include <stdatomic.h>

static atomic_uint_fast64_t n_undecided;

uint64_t pe_undecided_count(void) { return atomic_load_explicit(&n_undecided, memory_order_relaxed); }

/* ---- A sine ---- */

/* The nearest integer of |x| < 2^51, ties to even, without a call into the C library. */
static double nearest_integer(double x) { return (x + 0x1.8p52) - 0x1.8p52; }

struct both {
    struct pe_dd sine, cosine;
};

/* Sine and cosine of k/32 of a quarter turn, up to half of one. */
enum { PARTS = 32 };
static const struct both table[PARTS / 2 + 1] = {
    {{0, 0}, {1, 0}},
    {{0x1.91f65f10dd814p-5, -0x1.912bd0d569a90p-61}, {0x1.ff621e3796d7ep-1, -0x1.c57bc2e24aa15p-57}},
    {{0x1.917a6bc29b42cp-4, -0x1.e2718d26ed688p-60}, {0x1.fd88da3d12526p-1, -0x1.87df6378811c7p-55}},
    {{0x1.2c8106e8e613ap-3, 0x1.13000a89a11e0p-58}, {0x1.fa7557f08a517p-1, -0x1.7a0a8ca13571fp-55}},
    {{0x1.8f8b83c69a60bp-3, -0x1.26d19b9ff8d82p-57}, {0x1.f6297cff75cb0p-1, 0x1.562172a361fd3p-56}},
    {{0x1.f19f97b215f1bp-3, -0x1.42deef11da2c4p-57}, {0x1.f0a7efb9230d7p-1, 0x1.52c7adc6b4989p-56}},
    {{0x1.294062ed59f06p-2, -0x1.5d28da2c4612dp-56}, {0x1.e9f4156c62ddap-1, 0x1.760b1e2e3f81ep-55}},
    {{0x1.58f9a75ab1fddp-2, -0x1.efdc0d58cf620p-62}, {0x1.e212104f686e5p-1, -0x1.014c76c126527p-55}},
    {{0x1.87de2a6aea963p-2, -0x1.72cedd3d5a610p-57}, {0x1.d906bcf328d46p-1, 0x1.457e610231ac2p-56}},
    {{0x1.b5d1009e15cc0p-2, 0x1.5b362cb974183p-57}, {0x1.ced7af43cc773p-1, -0x1.e7b6bb5ab58aep-58}},
    {{0x1.e2b5d3806f63bp-2, 0x1.e0d891d3c6841p-58}, {0x1.c38b2f180bdb1p-1, -0x1.6e0b1757c8d07p-56}},
    {{0x1.073879922ffeep-1, -0x1.a5a014347406cp-55}, {0x1.b728345196e3ep-1, -0x1.bc69f324e6d61p-55}},
    {{0x1.1c73b39ae68c8p-1, 0x1.b25dd267f6600p-55}, {0x1.a9b66290ea1a3p-1, 0x1.9f630e8b6dac8p-60}},
    {{0x1.30ff7fce17035p-1, -0x1.efcc626f74a6fp-57}, {0x1.9b3e047f38741p-1, -0x1.30ee286712474p-55}},
    {{0x1.44cf325091dd6p-1, 0x1.8076a2cfdc6b3p-57}, {0x1.8bc806b151741p-1, -0x1.2c5e12ed1336dp-55}},
    {{0x1.57d69348ceca0p-1, -0x1.75720992bfbb2p-55}, {0x1.7b5df226aafafp-1, -0x1.0f537acdf0ad7p-56}},
    {{0x1.6a09e667f3bcdp-1, -0x1.bdd3413b26456p-55}, {0x1.6a09e667f3bcdp-1, -0x1.bdd3413b26456p-55}},
};

/* 1/n! */
static const struct pe_dd over_3 = {0x1.5555555555555p-3, 0x1.5555555555555p-57};
static const struct pe_dd over_4 = {0x1.5555555555555p-5, 0x1.5555555555555p-59};
static const struct pe_dd over_5 = {0x1.1111111111111p-7, 0x1.1111111111111p-63};
static const struct pe_dd over_6 = {0x1.6c16c16c16c17p-10, -0x1.f49f49f49f49fp-65};
static const struct pe_dd over_7 = {0x1.a01a01a01a01ap-13, 0x1.a01a01a01a01ap-73};

/* c - x */
static struct pe_dd less(struct pe_dd c, double x) { return dd_add(c, dd(-x)); }

/* Sine and cosine of |x| ≤ π/128 by their series in z = x² < 2^-10.6, as far as x^13 and x^14: what is left out is
 * below 2^-114 of the value. From x^8 on a term is below 2^-57 of the first, and doubles do. */
static struct both series(struct pe_dd x)
{
    struct pe_dd z = dd_mul(x, x);
    double h = z.hi; /* 1/9!, 1/11!, 1/13! and 1/8!, 1/10!, 1/12!, 1/14! */
    double s = 0x1.71de3a556c734p-19 - h * (0x1.ae64567f544e4p-26 - h * 0x1.6124613a86d09p-33);
    double c =
        0x1.a01a01a01a01ap-16 - h * (0x1.27e4fb7789f5cp-22 - h * (0x1.1eed8eff8d898p-29 - h * 0x1.93974a8c07c9dp-37));
    struct pe_dd sine = dd_sub(over_5, dd_mul(z, less(over_7, h * s)));
    struct pe_dd cosine = dd_sub(over_4, dd_mul(z, less(over_6, h * c)));
    sine = dd_sub(over_3, dd_mul(z, sine));
    cosine = dd_sub(dd(0.5), dd_mul(z, cosine));
    return (struct both){dd_mul(x, dd_sub(dd(1), dd_mul(z, sine))), dd_sub(dd(1), dd_mul(z, cosine))};
}

/* The phase's distance from the nearest whole quarter turn, at most half of one; *quarters is their number. The low
 * part of a long phase is more than its rounding, so it is settled twice. */
static struct pe_dd remainder_of(const struct pe_wave *wave, double p, int64_t *quarters, double *phase)
{
    struct pe_dd high = dd_two_prod(wave->fh, p), low = dd_two_prod(wave->fl, p);
    double whole = nearest_integer(high.hi);
    struct pe_dd rest = dd_add(dd_add(dd_two_sum(high.hi - whole, high.lo), dd(low.hi)), dd(low.lo));
    double more = nearest_integer(rest.hi);
    *quarters = (int64_t)whole + (int64_t)more + wave->quarter;
    *phase = fabs(high.hi);
    return dd_add(rest, dd(-more));
}

/* The remainder is k/32 and a rest, in radians x; the sine and cosine of their sum by the addition theorems.
 *
 * Relative errors in units of v = 2^-106: a sum of double-doubles has at most 3v, also where it cancels, a product 5v
 * (core/numeric/numeric.h), a constant v. Up to phases of 2^40 the remainder has 9v, and neither sine nor cosine
 * lets a relative error of it grow. k's removal and π/2 give x 9v; by the series' last steps its sine has 18v, its
 * cosine 4v. So of the two products the one with the sine has 24v, the other 10v. Where they cancel, for k = 1 and
 * x < 0, they are at most once and twice their sum: 24v + 20v + 3v, and 9v and the amplitude's 6v: 62v. For longer
 * phases, whose remainder may have come from 0.9 down to 0.1, the 9v are 57v: 110v, below 2^-99. */
struct pe_dd pe_wave_value(const struct pe_wave *wave, double p, double *phase)
{
    static const struct pe_dd half_pi = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54};
    int64_t quarters;
    struct pe_dd rest = remainder_of(wave, p, &quarters, phase), v;
    double k = nearest_integer(PARTS * rest.hi);
    struct both x = series(dd_mul(dd_add(rest, dd(-k / PARTS)), half_pi)), a = table[(int)fabs(k)];
    if (k < 0)
        a.sine = dd_neg(a.sine);
    if (quarters & 1)
        v = dd_sub(dd_mul(a.cosine, x.cosine), dd_mul(a.sine, x.sine));
    else
        v = dd_add(dd_mul(a.sine, x.cosine), dd_mul(a.cosine, x.sine));
    v = dd_mul(v, (struct pe_dd){wave->ah, wave->al});
    return quarters & 2 ? dd_sub(dd(0), v) : v; /* 0 - 0 is +0 */
}

/* ---- How it rounds ---- */

double pe_wave_decide(const struct pe_wave *wave, enum pe_dtype dtype, double p)
{
    /* Phase 0: sines are +0, cosines are the amplitude. Every run that contains position 0 needs this for each sine. */
    if (p == 0 || wave->fh == 0) {
        double size = wave->quarter & 1 ? dd_round_odd((struct pe_dd){wave->ah, wave->al}) : 0;
        return wave->quarter & 2 ? 0 - size : size;
    }
    double phase;
    struct pe_dd v = pe_wave_value(wave, p, &phase);
    /* A value that cannot be distinguished from zero is zero: frequencies that are rational multiples of π (Fourier
     * features, DINOv3) reach whole turns, and only their rounding to double-double remains. */
    if (fabs(v.hi) <= phase * fabs(wave->ah) * 0x1p-100)
        return 0;
    double error = fabs(v.hi) * 0x1p-98 + phase * fabs(wave->ah) * 0x1p-100;
    double least = dd_round_odd(dd_sub(v, dd(error))), most = dd_round_odd(dd_add(v, dd(error)));
    if (phase > 0 && !pe_rounds_alike(dtype, least, most)) /* with no phase v is exact, and may be a tie */
        atomic_fetch_add_explicit(&n_undecided, 1, memory_order_relaxed);
    return dd_round_odd(v);
}

void pe_sincos_f32(double angle, float *cos_out, float *sin_out)
{
    struct pe_dd f = pe_quarter_turns(dd(1));
    struct pe_wave sine = {.fh = f.hi, .fl = f.lo, .ah = 1}, cosine = {.fh = f.hi, .fl = f.lo, .ah = 1, .quarter = 1};
    *cos_out = (float)pe_wave_decide(&cosine, PE_F32, angle);
    *sin_out = (float)pe_wave_decide(&sine, PE_F32, angle);
}

/* ---- Lists of frequencies ---- */

/* base^(-i/D), i = 0, 1, …, in double-double: an exponential for every ANCHOR_EVERY-th value, products in
 * between.
 *
 * A table at position 2^40 multiplies a frequency's relative error by up to 2^40 quarter turns, so a double's 2^-53 is
 * useless there: F needs about a hundred bits. An exponential is some thirty operations of double-double, a product is
 * one, and errors add up along a chain of products; sixteen is a compromise.
 *
 * Error: a product has at most 5·2^-106 (wave_value.c cites the bound), the step's own error, about 2^-102, enters each
 * time, and the chain has fifteen: 2^-97.6 if all were at their worst and of one sign. Measured against 300-bit
 * arithmetic for ten pairs of base and D, the largest error of all is 2^-102.3; a test requires 2^-99. */

enum { ANCHOR_EVERY = 16 };

/* base^(-i/denominator), with the exponent's quotient in double-double. */
static struct pe_dd rung(struct pe_dd log_base, double i, double denominator)
{
    return pe_dd_exp(dd_neg(dd_mul(dd_div(dd(i), dd(denominator)), log_base)));
}

void pe_ladder_dd(struct pe_dd log_base, double denominator, size_t n, struct pe_dd *out)
{
    struct pe_dd step = {1, 0};
    if (n > 1)
        step = rung(log_base, 1, denominator);
    for (size_t i = 0; i < n; i++) {
        if (i == 0)
            out[i] = dd(1); /* also if the denominator is 0, because then there is only this value */
        else if (i % ANCHOR_EVERY == 0)
            out[i] = rung(log_base, (double)i, denominator);
        else
            out[i] = dd_mul(out[i - 1], step);
    }
}

void pe_ladder(double base, double denominator, size_t n, struct pe_dd *out)
{
    pe_ladder_dd(pe_dd_log(dd(base)), denominator, n, out);
}

float pe_power_float32(struct pe_dd log_base, size_t i, double denominator)
{
    float exponent = i ? (float)((double)i / denominator) : 0;
    return (float)dd_round_odd(pe_dd_exp(dd_mul_d(log_base, (double)exponent)));
}

void pe_ladder_float32(double base, double denominator, size_t n, struct pe_dd *out)
{
    struct pe_dd log_base = pe_dd_log(dd((double)(float)base));
    for (size_t i = 0; i < n; i++)
        out[i] = dd((double)(1.0f / pe_power_float32(log_base, i, denominator)));
}

struct pe_dd pe_quarter_turns(struct pe_dd radians)
{
    static const struct pe_dd two_over_pi = {0x1.45f306dc9c883p-1, -0x1.6b01ec5417056p-55};
    return dd_mul(radians, two_over_pi);
}
