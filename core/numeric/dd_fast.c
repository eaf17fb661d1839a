/* Series whose first terms are computed in double-double, and whose remaining terms, a thousandth of them in size,
 * in double. */
#include "core/numeric/numeric.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>

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
    return (struct pe_dd){ldexp(sum.hi, (int)k), ldexp(sum.lo, (int)k)};
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
