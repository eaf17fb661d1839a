/* Exponential and logarithm in double-double, for frequencies, slopes and decays that need a hundred bits
 * (core/waves/freq.c).
 *
 * e^a: the argument is reduced twice. 2^k takes a multiple of ln 2 (in three parts, so that the first product is
 * exact), and then r is halved eight times, which makes eleven terms of the series enough; e^r - 1 rather than e^r is
 * doubled back, because the 1 would swallow its low digits. ln a: one step of Halley's method from a logarithm in
 * double, which has a third of the digits to begin with. Neither calls the C library, whose last bits differ between
 * versions; a frequency must not. */
#include "core/numeric/numeric.h"

#include <stddef.h>

/* ln 2 in three parts; the first has 32 bits, so that its product with any exponent of a double is exact. */
static const double ln2_parts[3] = {0x1.62e42feep-1, 0x1.a39ef35793c76p-33, 0x1.cc01f97b57a08p-87};

/* e^r - 1 = r + r²/2! + … for |r| ≤ 2^-9.5, by Horner's rule, relative error below 2^-104. The terms fall by 2^-9.5
 * and more: eleven reach 2^-120. The sixth and all later terms add less than 2^-57 of the whole, so a double's 52
 * bits are enough for them; the five terms before them are in double-double. */
static struct pe_dd expm1_series(struct pe_dd r)
{
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
    return dd_mul(r, sum);
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
    struct pe_dd p = expm1_series(r);
    for (int i = 0; i < HALVINGS; i++)
        p = dd_add((struct pe_dd){2 * p.hi, 2 * p.lo}, dd_mul(p, p));
    p = dd_add(dd(1), p);
    return (struct pe_dd){ldexp(p.hi, (int)k), ldexp(p.lo, (int)k)};
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
