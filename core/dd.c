/* Exponential and logarithm in double-double. */
#include "core/dd.h"

/* ln 2 in three parts; the first has 32 bits, so that its product with any exponent of a double is exact. */
static const double ln2_parts[3] = {0x1.62e42feep-1, 0x1.a39ef35793c76p-33, 0x1.cc01f97b57a08p-87};

/* e^r - 1 for |r| ≤ 2^-9 by its series. The terms fall by 2^-9 and more: ten reach 2^-110. */
static struct pe_dd expm1_series(struct pe_dd r)
{
    struct pe_dd sum = {0, 0};
    for (int n = 11; n >= 2; n--) { /* Horner: (((r/11 + 1)·r/10 + 1)·r/9 + 1) … */
        struct pe_dd inner = dd_add(dd(1), sum);
        sum = dd_mul(dd_div(r, dd(n)), inner);
    }
    return dd_mul(r, dd_add(dd(1), sum));
}

/* e^a = 2^k · e^r with |r| ≤ ln2/2; then e^r - 1 by halving r eight times and doubling back with (1+p)² - 1 = 2p + p²,
 * which keeps the relative error of p small. */
struct pe_dd dd_exp(struct pe_dd a)
{
    enum { HALVINGS = 8 };
    double k = nearbyint(a.hi * 0x1.71547652b82fep+0);
    struct pe_dd r = dd_add(dd_sub(a, dd(k * ln2_parts[0])), dd_neg(dd_two_prod(k, ln2_parts[1])));
    r = dd_sub(r, dd(k * ln2_parts[2]));
    r = (struct pe_dd){ldexp(r.hi, -HALVINGS), ldexp(r.lo, -HALVINGS)};
    struct pe_dd p = expm1_series(r);
    for (int i = 0; i < HALVINGS; i++)
        p = dd_add(dd_add(p, p), dd_mul(p, p));
    p = dd_add(dd(1), p);
    return (struct pe_dd){ldexp(p.hi, (int)k), ldexp(p.lo, (int)k)};
}

/* Newton's method of third order on e^y = a: y += 2(a - e^y)/(a + e^y). It starts from a float, so that machines whose
 * libraries differ in the last bit of log() start alike; one step gives 70 bits, two give all. */
struct pe_dd dd_log(struct pe_dd a)
{
    struct pe_dd y = dd((double)(float)log(a.hi));
    for (int i = 0; i < 2; i++) {
        struct pe_dd e = dd_exp(y);
        struct pe_dd step = dd_div(dd_sub(a, e), dd_add(a, e));
        y = dd_add(y, dd_add(step, step));
    }
    return y;
}
