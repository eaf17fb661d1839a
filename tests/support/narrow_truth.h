/* Narrow dtypes from the definition of their formats, in doubles and by search: slow, and nothing of the code that it
 * checks. */
#ifndef TESTS_SUPPORT_NARROW_TRUTH_H
#define TESTS_SUPPORT_NARROW_TRUTH_H

#include "core/numeric/numeric.h"

#include <math.h>

static const struct narrow_truth {
    enum pe_dtype dtype;
    int fraction, exponent;
    bool has_infinities;
} narrow_truths[] = {
    {PE_F16, 10, 5, true},
    {PE_BF16, 7, 8, true},
    {PE_F8_E4M3, 3, 4, false},
    {PE_F8_E5M2, 2, 5, true},
};

#define EACH_NARROW_TRUTH                                                                                              \
    const struct narrow_truth *t = narrow_truths;                                                                      \
    t < narrow_truths + sizeof narrow_truths / sizeof *narrow_truths;                                                  \
    t++

/* The last code without its sign that is a finite number. */
static inline uint32_t narrow_last(const struct narrow_truth *t)
{
    uint32_t infinity = ((1U << t->exponent) - 1) << t->fraction;
    return t->has_infinities ? infinity - 1 : (1U << (t->fraction + t->exponent)) - 2;
}

static inline uint32_t narrow_sign(const struct narrow_truth *t) { return 1U << (t->fraction + t->exponent); }

static inline double narrow_size(const struct narrow_truth *t, uint32_t size)
{
    int field = (int)(size >> t->fraction), bias = (1 << (t->exponent - 1)) - 1;
    double fraction = size % (1U << t->fraction), hidden = field ? 1U << t->fraction : 0;
    return ldexp(hidden + fraction, (field ? field : 1) - bias - t->fraction);
}

static inline double narrow_value(const struct narrow_truth *t, uint32_t code)
{
    uint32_t size = code % narrow_sign(t), last = narrow_last(t);
    double x = size <= last                            ? narrow_size(t, size)
               : t->has_infinities && size == last + 1 ? (double)INFINITY
                                                       : (double)NAN;
    return code >= narrow_sign(t) ? -x : x;
}

/* The middle above the number with this code, which need not be the last: the next one may exist for that only. */
static inline double narrow_middle(const struct narrow_truth *t, uint32_t size)
{
    return (narrow_size(t, size) + narrow_size(t, size + 1)) / 2;
}

/* The code of the number nearest to x, ties to the even code; beyond the last one that of infinity, else of NaN. */
static inline uint32_t narrow_code(const struct narrow_truth *t, double x)
{
    uint32_t low = 0, high = narrow_last(t) + 1, sign = signbit(x) ? narrow_sign(t) : 0;
    while (low < high) { /* the first code whose middle above is not below |x| */
        uint32_t at = (low + high) / 2;
        if (at <= narrow_last(t) && narrow_middle(t, at) < fabs(x))
            low = at + 1;
        else
            high = at;
    }
    if (low <= narrow_last(t) && narrow_middle(t, low) == fabs(x))
        low += low % 2;
    return sign | low;
}

#endif
