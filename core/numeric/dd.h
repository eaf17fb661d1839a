/* Double-double arithmetic: a number is the unevaluated sum hi + lo with |lo| ≤ ulp(hi)/2, about 106 bits. Plain C with
 * error-free transformations (Dekker, Knuth); correct only without contraction and reassociation (-ffp-contract=off).
 *
 * Relative errors, v = 2^-106 (Joldes, Muller, Popescu 2017, ACM TOMS 44, 15; for the product Muller, Rideau 2022, ACM
 * TOMS 48, 9): a sum at most 3v, also where it cancels; a product 5v. They hold for numbers as above: a pair whose
 * parts overlap must be normalised first (dd_two_sum).
 *
 * Why not long double or __float128: the first is 64 bits on x86 and 53 or 113 elsewhere, the second is a library in
 * integers. These functions give the same bits on every machine with IEEE doubles. */
#ifndef PE_DD_H
#define PE_DD_H

#include <math.h>

struct pe_dd {
    double hi, lo;
};

static inline struct pe_dd dd(double x) { return (struct pe_dd){x, 0}; }

/* a + b exactly, for any a, b (Knuth). */
static inline struct pe_dd dd_two_sum(double a, double b)
{
    double s = a + b, bb = s - a;
    return (struct pe_dd){s, (a - (s - bb)) + (b - bb)};
}

/* a + b exactly, for |a| ≥ |b| (Dekker). */
static inline struct pe_dd dd_quick_sum(double a, double b)
{
    double s = a + b;
    return (struct pe_dd){s, b - (s - a)};
}

/* a · b exactly (while no part under- or overflows): Dekker's product by Veltkamp's split, so that the value is the
 * same with and without a fused multiply-add in the machine. */
static inline struct pe_dd dd_two_prod(double a, double b)
{
    double p = a * b;
    double ca = a * 134217729.0, cb = b * 134217729.0;
    double ah = ca - (ca - a), al = a - ah, bh = cb - (cb - b), bl = b - bh;
    return (struct pe_dd){p, ((ah * bh - p) + ah * bl + al * bh) + al * bl};
}

static inline struct pe_dd dd_neg(struct pe_dd a) { return (struct pe_dd){-a.hi, -a.lo}; }

static inline struct pe_dd dd_add(struct pe_dd a, struct pe_dd b)
{
    struct pe_dd s = dd_two_sum(a.hi, b.hi), t = dd_two_sum(a.lo, b.lo);
    s = dd_quick_sum(s.hi, s.lo + t.hi);
    return dd_quick_sum(s.hi, s.lo + t.lo);
}

static inline struct pe_dd dd_sub(struct pe_dd a, struct pe_dd b) { return dd_add(a, dd_neg(b)); }

static inline struct pe_dd dd_mul(struct pe_dd a, struct pe_dd b)
{
    struct pe_dd p = dd_two_prod(a.hi, b.hi);
    return dd_quick_sum(p.hi, p.lo + (a.hi * b.lo + a.lo * b.hi));
}

static inline struct pe_dd dd_mul_d(struct pe_dd a, double b)
{
    struct pe_dd p = dd_two_prod(a.hi, b);
    return dd_quick_sum(p.hi, p.lo + a.lo * b);
}

/* a / b by three steps of long division. */
static inline struct pe_dd dd_div(struct pe_dd a, struct pe_dd b)
{
    double q1 = a.hi / b.hi;
    struct pe_dd r = dd_sub(a, dd_mul_d(b, q1));
    double q2 = r.hi / b.hi;
    r = dd_sub(r, dd_mul_d(b, q2));
    double q3 = r.hi / b.hi;
    struct pe_dd q = dd_quick_sum(q1, q2);
    return dd_add(q, dd(q3));
}

/* hi + lo rounded to odd in 53 bits: a double that any narrower format then rounds as it would round the sum itself. */
static inline double dd_round_odd(struct pe_dd a)
{
    if (a.lo == 0)
        return a.hi;
    union {
        double d;
        unsigned long long u;
    } bits = {.d = a.hi};
    if (bits.u & 1)
        return a.hi; /* already odd: the sum lies within half an ulp of it */
    /* even: step one ulp towards lo; away from zero when lo has hi's sign */
    bits.u += ((a.lo > 0) == (a.hi > 0)) ? 1 : -1ULL;
    return bits.d;
}

/* e^a and ln(a) for a > 0, relative (absolute for the logarithm: × max(1, |ln a|)) error about 2^-102. In
 * core/numeric/dd.c. */
struct pe_dd dd_exp(struct pe_dd a);
struct pe_dd dd_log(struct pe_dd a);

#endif
