/* One float to f16 or bf16, ties to even, in plain integer arithmetic: used by core/numeric/dtype.c for single
 * values and by narrow.c for whole rows. */
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

/* f16 from a float: add a half of the last kept bit less one, and the bit itself (round half to even); what is below
 * the normal range is rounded by the adder of a float whose ulp is f16's smallest step, 2^-24. All cases are computed
 * and one chosen, so that loops over it vectorise. */
static inline uint16_t f16_of_float(float x)
{
    union float_bits v = {.f = x}, a = {.u = v.u & 0x7fffffff}, tiny = {.f = a.f + 0.5f};
    uint32_t normal = (a.u + 0xfff + (a.u >> 13 & 1) - 0x38000000) >> 13;
    uint32_t bits = a.u < 0x38800000 ? tiny.u - 0x3f000000 : normal;
    bits = a.u >= 0x477ff000 ? 0x7c00 : bits; /* 65520 and above round to infinity */
    bits = a.u > 0x7f800000 ? 0x7e00 : bits;  /* NaN */
    return (uint16_t)((v.u >> 16 & 0x8000) | bits);
}

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

/* Below the normal range a middle is an odd multiple of 2^-25: what remains beside the next lower multiple of 2^-24. */
static inline bool f16_is_middle(float x)
{
    union float_bits v = {.f = x}, a = {.u = v.u & 0x7fffffff};
    float steps = a.f * 0x1p24f, rest = steps - (float)(int32_t)(a.u < 0x38800000 ? steps : 0.0f);
    return a.u < 0x38800000 ? rest == 0.5f : (a.u & 0x1fff) == 0x1000;
}

static inline bool bf16_is_middle(float x)
{
    union float_bits v = {.f = x};
    return (v.u & 0xffff) == 0x8000;
}

#endif
