/* Exponential and logarithm in double-double, for frequencies, slopes and decays that need a hundred bits
 * (core/waves/wave_value.c).
 *
 * e^a: the argument is reduced twice. 2^k takes a multiple of ln 2 (in three parts, so that the first product is
 * exact), and then r is halved eight times, which makes eleven terms of the series enough; e^r - 1 rather than e^r is
 * doubled back, because the 1 would swallow its low digits. ln a: one step of Halley's method from a logarithm in
 * double, which has a third of the digits to begin with. Neither calls the C library, whose last bits differ between
 * versions; a frequency must not.
 *
 * Behind them is a second, faster set (pe_dd_fast_…): only the first terms of each series are in double-double and the
 * rest, a thousandth of the sum, in double. That leaves 2^-58 to 2^-62, enough for f64 within an ulp and to decide
 * nearly every rounding to a narrower type; the few values that it leaves open are asked again of the first set. The
 * arithmetic itself, with the proofs of its bounds, is in numeric.h; for the method, the QD library of Hida, Li and
 * Bailey (2001). */
#include "core/numeric/numeric.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>

/* ln 2 in three parts; the first has 32 bits, so that its product with any exponent of a double is exact. */
static const double ln2_parts[3] = {0x1.62e42feep-1, 0x1.a39ef35793c76p-33, 0x1.cc01f97b57a08p-87};

/* 2^k·p. Beyond POWER_MAX all is 0 or infinite; of a NaN, fmin is the other, and p is NaN too. */
static struct pe_dd times_power(struct pe_dd p, double k)
{
    enum { POWER_MAX = 4096 };
    int power = (int)fmax(-POWER_MAX, fmin(k, POWER_MAX));
    return (struct pe_dd){ldexp(p.hi, power), ldexp(p.lo, power)};
}

/* e^a = 2^k · e^r with |r| ≤ ln2/2; then e^r - 1 by halving r eight times and doubling back with (1+p)² - 1 = 2p + p²,
 * which keeps the relative error of p small. */
struct pe_dd pe_dd_exp(struct pe_dd a)
{
    enum { HALVINGS = 8 };
    double k = nearbyint(a.hi * 0x1.71547652b82fep+0);
    struct pe_dd r = dd_add(dd_sub(a, dd(k * ln2_parts[0])), dd_neg(dd_two_prod(k, ln2_parts[1])));
    r = dd_sub(r, dd(k * ln2_parts[2]));
    r = (struct pe_dd){ldexp(r.hi, -HALVINGS), ldexp(r.lo, -HALVINGS)};
    /* e^r - 1 = r + r²/2! + … for |r| ≤ 2^-9.5, by Horner's rule, relative error below 2^-104. The terms fall by 2^-9.5
     * and more: eleven reach 2^-120. The sixth and all later terms add less than 2^-57 of the whole, so a double's 52
     * bits are enough for them; the five terms before them are in double-double. */
    static const double tail[] = {1 / 39916800.0, 1 / 3628800.0, 1 / 362880.0, 1 / 40320.0, 1 / 5040.0, 1 / 720.0};
    static const struct pe_dd head[] = {{0x1.1111111111111p-7, 0x1.1111111111111p-63}, /* 1/5! … 1/2!, 1 */
                                        {0x1.5555555555555p-5, 0x1.5555555555555p-59},
                                        {0x1.5555555555555p-3, 0x1.5555555555555p-57},
                                        {0.5, 0},
                                        {1, 0}};
    double small = tail[0];
    for (size_t i = 1; i < sizeof tail / sizeof *tail; i++)
        small = small * r.hi + tail[i];
    struct pe_dd sum = dd(small);
    for (size_t i = 0; i < sizeof head / sizeof *head; i++)
        sum = dd_add(head[i], dd_mul(sum, r));
    struct pe_dd p = dd_mul(r, sum);
    for (int i = 0; i < HALVINGS; i++)
        p = dd_add((struct pe_dd){2 * p.hi, 2 * p.lo}, dd_mul(p, p));
    p = dd_add(dd(1), p);
    return times_power(p, k);
}

/* ln x by operations that give the same result on every machine, unlike the library's log(): x = 2^e·m, and ln m =
 * 2·atanh z = 2(z + z³/3 + …), z = (m - 1)/(m + 1), |z| < 0.172, so that twelve terms reach 2^-60. */
static double log_double(double x)
{
    static const double terms[] = {1 / 23.0, 1 / 21.0, 1 / 19.0, 1 / 17.0, 1 / 15.0, 1 / 13.0,
                                   1 / 11.0, 1 / 9.0,  1 / 7.0,  1 / 5.0,  1 / 3.0,  1};
    int e;
    double m = frexp(x, &e);
    if (m < 0x1.6a09e667f3bcdp-1) { /* √½ */
        m *= 2;
        e--;
    }
    double z = (m - 1) / (m + 1), square = z * z, sum = 0;
    for (size_t i = 0; i < sizeof terms / sizeof *terms; i++)
        sum = sum * square + terms[i];
    return (double)e * 0x1.62e42fefa39efp-1 + 2 * z * sum;
}

/* Newton's method of third order on e^y = a: y += 2(a - e^y)/(a + e^y), whose error is a twelfth of the cube of the
 * error of y. That error is below 2^-41 (an ulp or two of a logarithm of at most 745), so one step is enough:
 * 2^-123. */
struct pe_dd pe_dd_log(struct pe_dd a)
{
    struct pe_dd y = dd(log_double(a.hi)), e = pe_dd_exp(y);
    struct pe_dd step = dd_div(dd_sub(a, e), dd_add(a, e));
    return dd_add(y, dd_add(step, step));
}

/* ---- Faster: 2^-58 in a tenth of the time ---- */

/* Series whose first terms are computed in double-double, and whose remaining terms, a thousandth of them in size,
 * in double. */

static const struct pe_dd ln2 = {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};
static const struct pe_dd third = {0x1.5555555555555p-2, 0x1.5555555555555p-56};

/* 2·atanh(z) = 2·(z + z³/3 + z⁵/5 + …) for |z| ≤ 0.172: the terms from the fifth power on are below 2^-12 of the first,
 * so their rounding is below 2^-64 of the sum; those behind the 25th are below 2^-65. */
static struct pe_dd twice_atanh(struct pe_dd z)
{
    enum { LAST = 25 };
    struct pe_dd square = dd_mul(z, z), cube = dd_mul(dd_mul(z, square), third);
    double rest = 0;
    for (int k = LAST; k >= 5; k -= 2)
        rest = rest * square.hi + 1.0 / k;
    struct pe_dd sum = dd_add(z, dd_add(cube, dd(rest * square.hi * square.hi * z.hi)));
    return (struct pe_dd){2 * sum.hi, 2 * sum.lo};
}

/* a = 2^e·m with m near 1: ln a = e·ln 2 + 2·atanh((m - 1)/(m + 1)) */
struct pe_dd pe_dd_fast_log(struct pe_dd a)
{
    int e;
    if (frexp(a.hi, &e) < 0x1.6a09e667f3bcdp-1) /* √½: keeps |z| below 0.172 */
        e--;
    struct pe_dd m = {ldexp(a.hi, -e), ldexp(a.lo, -e)};
    struct pe_dd z = dd_div(dd_add(m, dd(-1)), dd_add(m, dd(1)));
    return dd_add(dd_mul_d(ln2, e), twice_atanh(z));
}

/* ln(1 + x) = 2·atanh(x/(2 + x)), which keeps small x whole */
struct pe_dd pe_dd_fast_log1p(struct pe_dd x)
{
    if (x.hi < 0.25)
        return twice_atanh(dd_div(x, dd_add(dd(2), x)));
    return pe_dd_fast_log(dd_add(dd(1), x));
}

/* e^a = 2^k·e^r, |r| ≤ ln2/2: 1 + r + r²/2 in double-double, the rest (below 2^-6) in double */
struct pe_dd pe_dd_fast_exp(struct pe_dd a)
{
    static const double inverse_factorials[] = {
        1 / 6.0,          1 / 24.0,          1 / 120.0,        1 / 720.0,         1 / 5040.0,
        1 / 40320.0,      1 / 362880.0,      1 / 3628800.0,    1 / 39916800.0,    1 / 479001600.0,
        1 / 6227020800.0, 1 / 87178291200.0, 1 / 1307674368e3, 1 / 20922789888e3, 1 / 355687428096e3};
    double k = nearbyint(a.hi * 0x1.71547652b82fep+0), rest = 0;
    struct pe_dd r = dd_sub(a, dd_mul_d(ln2, k)), square = dd_mul(r, r);
    for (size_t i = sizeof inverse_factorials / sizeof *inverse_factorials; i-- > 0;)
        rest = rest * r.hi + inverse_factorials[i];
    struct pe_dd sum = dd_add((struct pe_dd){square.hi / 2, square.lo / 2}, dd(rest * square.hi * r.hi));
    sum = dd_add(dd(1), dd_add(r, sum));
    return times_power(sum, k);
}

/* cos x = 1 - x²/2 + x⁴/24 - …, |x| ≤ π/4: three terms in double-double, the rest (below 2^-11) in double */
static struct pe_dd cosine(struct pe_dd square)
{
    static const double rest_of[] = {-1 / 720.0,         1 / 40320.0,       -1 / 3628800.0,      1 / 479001600.0,
                                     -1 / 87178291200.0, 1 / 20922789888e3, -1 / 6402373705728e3};
    double rest = 0;
    for (size_t i = sizeof rest_of / sizeof *rest_of; i-- > 0;)
        rest = rest * square.hi + rest_of[i];
    struct pe_dd fourth = dd_mul(dd_mul(square, square), third);
    struct pe_dd sum =
        dd_add((struct pe_dd){fourth.hi / 8, fourth.lo / 8}, dd(rest * square.hi * square.hi * square.hi));
    return dd_add(dd(1), dd_add((struct pe_dd){-square.hi / 2, -square.lo / 2}, sum));
}

/* sin x = x - x³/6 + x⁵/120 - …: three terms in double-double, the rest (below 2^-14) in double */
static struct pe_dd sine(struct pe_dd x, struct pe_dd square)
{
    static const struct pe_dd of_fifth = {0x1.1111111111111p-7, 0x1.1111111111111p-63}; /* 1/120 */
    static const double rest_of[] = {-1 / 5040.0,       1 / 362880.0,       -1 / 39916800.0,       1 / 6227020800.0,
                                     -1 / 1307674368e3, 1 / 355687428096e3, -1 / 121645100408832e3};
    double rest = 0;
    for (size_t i = sizeof rest_of / sizeof *rest_of; i-- > 0;)
        rest = rest * square.hi + rest_of[i];
    struct pe_dd cube = dd_mul(x, square), third_term = dd_mul(cube, third),
                 fifth = dd_mul(dd_mul(cube, square), of_fifth);
    struct pe_dd sum = dd_add(fifth, dd(rest * square.hi * square.hi * cube.hi));
    return dd_add(x, dd_add((struct pe_dd){-third_term.hi / 2, -third_term.lo / 2}, sum));
}

struct pe_dd pe_dd_fast_cos(struct pe_dd f, struct pe_dd p)
{
    static const struct pe_dd half_pi = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54};
    struct pe_dd high = dd_two_prod(f.hi, p.hi);
    double whole = nearbyint(high.hi);
    struct pe_dd part = dd_add(dd_two_sum(high.hi - whole, high.lo), dd_two_sum(f.lo * p.hi, f.hi * p.lo));
    struct pe_dd x = dd_mul(part, half_pi), square = dd_mul(x, x);
    switch ((int64_t)whole & 3) {
    case 0: return cosine(square);
    case 1: return dd_neg(sine(x, square));
    case 2: return dd_neg(cosine(square));
    default: return sine(x, square);
    }
}

/* The same series for small x with all terms in double-double; else 1 + x is exact enough: ln(1 + 2^-8) is above 2^-9.
 */
struct pe_dd pe_dd_log1p(struct pe_dd x)
{
    enum { LAST = 13 };
    if (x.hi >= 0x1p-8)
        return pe_dd_log(dd_add(dd(1), x));
    struct pe_dd z = dd_div(x, dd_add(dd(2), x)), square = dd_mul(z, z), sum = {0, 0};
    for (int k = LAST; k >= 1; k -= 2)
        sum = dd_add(dd_mul(sum, square), dd_div(dd(1), dd(k)));
    sum = dd_mul(z, sum);
    return (struct pe_dd){2 * sum.hi, 2 * sum.lo};
}
