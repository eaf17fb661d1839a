/* One float to a type with fewer bits, ties to even, and back, in plain integer arithmetic: used by
 * core/numeric/dtype.c for single values and by narrow.c for whole rows.
 *
 * A type is three numbers: the bits of its fraction, those of its exponent, and whether it has infinities. A type
 * without them (e4m3fn) has finite numbers under its largest exponent too, except for the last code, which is NaN; what
 * rounds beyond the largest number is NaN then, as ml_dtypes and PyTorch convert where they do not saturate. */
#ifndef PE_NARROW_H
#define PE_NARROW_H

#include <stdbool.h>
#include <stdint.h>

union float_bits {
    float f;
    uint32_t u;
};

/* The bits of a double's fraction that a float lacks, and the bits of a float's fraction that the narrow types lack. */
enum { DROPPED_F32 = 29, DROPPED_F16 = 13, DROPPED_BF16 = 16 };

/* 2^exponent. */
static inline float power_of_two(int exponent)
{
    union float_bits v = {.u = (uint32_t)(127 + exponent) << 23};
    return v.f;
}

/* The exponents of a type's smallest normal value and of its smallest one. */
static inline int narrow_least_normal(int exponent_bits) { return 2 - (1 << (exponent_bits - 1)); }
static inline int narrow_least(int fraction_bits, int exponent_bits)
{
    return narrow_least_normal(exponent_bits) - fraction_bits;
}

/* Adds a half of the last kept bit less one, and the bit itself (round half to even); what is below the normal range is
 * rounded by the adder of a float whose ulp is the type's smallest step. All cases are computed and one chosen, so that
 * loops over it vectorise; the arguments behind x are constants. */
static inline uint32_t narrow_of_float(float x, int fraction_bits, int exponent_bits, bool has_infinities)
{
    const int dropped = 23 - fraction_bits, n_bits = fraction_bits + exponent_bits;
    const uint32_t above_normal = ((1U << exponent_bits) - 1) << fraction_bits, last = (1U << n_bits) - 1;
    const uint32_t overflow = has_infinities ? above_normal : last;
    const uint32_t nan = has_infinities ? above_normal | 1U << (fraction_bits - 1) : last;
    union float_bits from = {.f = power_of_two(narrow_least_normal(exponent_bits))}; /* the normal range */
    union float_bits adder = {.f = power_of_two(narrow_least(fraction_bits, exponent_bits) + 23)};
    union float_bits v = {.f = x}, a = {.u = v.u & 0x7fffffff}, tiny = {.f = a.f + adder.f};
    uint32_t offset = from.u - (1U << 23), half = 1U << (dropped - 1);
    uint32_t normal = (a.u + half - 1 + (a.u >> dropped & 1) - offset) >> dropped;
    uint32_t bits = normal > overflow ? overflow : normal;
    bits = a.u < from.u ? tiny.u - adder.u : bits;
    bits = a.u > 0x7f800000 ? nan : bits;
    return (v.u >> 31) << n_bits | bits;
}

/* The bits moved to where a float has them. Below the normal range the fraction counts the type's smallest steps. */
static inline float float_of_narrow(uint32_t bits, int fraction_bits, int exponent_bits, bool has_infinities)
{
    const int dropped = 23 - fraction_bits, n_bits = fraction_bits + exponent_bits;
    const uint32_t normal = 1U << fraction_bits, infinity = ((1U << exponent_bits) - 1) << fraction_bits;
    union float_bits from = {.f = power_of_two(narrow_least_normal(exponent_bits))};
    uint32_t size = bits & ((1U << n_bits) - 1), sign = bits >> n_bits << 31;
    union float_bits small = {.f = (float)(int32_t)size * power_of_two(narrow_least(fraction_bits, exponent_bits))};
    union float_bits v = {.u = (size << dropped) + (from.u - (1U << 23))};
    v.u = size < normal ? small.u : v.u;
    if (has_infinities) {
        v.u = size >= infinity ? 0x7f800000 | size << dropped : v.u;
        v.u = size > infinity ? v.u | 0x400000 : v.u; /* a signalling NaN becomes quiet, as with the instruction */
    } else {
        v.u = size == (1U << n_bits) - 1 ? 0x7fc00000 : v.u;
    }
    v.u |= sign;
    return v.f;
}

/* Is x the midpoint between two numbers? Below the normal range that is an odd multiple of half of the smallest step:
 * what remains beside the next lower multiple of the step. */
static inline bool narrow_is_middle(float x, int fraction_bits, int exponent_bits)
{
    const int dropped = 23 - fraction_bits;
    union float_bits from = {.f = power_of_two(narrow_least_normal(exponent_bits))};
    union float_bits v = {.f = x}, a = {.u = v.u & 0x7fffffff};
    float steps = a.f * power_of_two(-narrow_least(fraction_bits, exponent_bits));
    float rest = steps - (float)(int32_t)(a.u < from.u ? steps : 0.0f);
    return a.u < from.u ? rest == 0.5f : (a.u & ((1U << dropped) - 1)) == 1U << (dropped - 1);
}

#define NARROW_TYPE(name, T, fraction_bits, exponent_bits, has_infinities)                                             \
    static inline T name##_of_float(float x)                                                                           \
    {                                                                                                                  \
        return (T)narrow_of_float(x, fraction_bits, exponent_bits, has_infinities);                                    \
    }                                                                                                                  \
    static inline float float_of_##name(T bits)                                                                        \
    {                                                                                                                  \
        return float_of_narrow(bits, fraction_bits, exponent_bits, has_infinities);                                    \
    }                                                                                                                  \
    static inline bool name##_is_middle(float x) { return narrow_is_middle(x, fraction_bits, exponent_bits); }

NARROW_TYPE(f16, uint16_t, 10, 5, true)
NARROW_TYPE(f8_e4m3, uint8_t, 3, 4, false)
NARROW_TYPE(f8_e5m2, uint8_t, 2, 5, true)

/* bf16 is the upper half of a float. */

static inline uint16_t bf16_of_number(float x) /* no NaN */
{
    union float_bits v = {.f = x};
    return (uint16_t)((v.u + 0x7fff + (v.u >> 16 & 1)) >> 16);
}

static inline uint16_t bf16_of_float(float x)
{
    union float_bits v = {.f = x};
    bool is_nan = (v.u & 0x7fffffff) > 0x7f800000;
    return is_nan ? (uint16_t)(v.u >> 16 | 0x40) : bf16_of_number(x); /* NaN stays NaN whatever its low bits */
}

static inline float float_of_bf16(uint16_t bits)
{
    union float_bits v = {.u = (uint32_t)bits << 16};
    return v.f;
}

static inline bool bf16_is_middle(float x)
{
    union float_bits v = {.f = x};
    return (v.u & 0xffff) == 0x8000;
}

#endif
