/* Element types inside the core: single elements by dtype, and the 16-bit formats by their bits. */
#ifndef PE_DTYPE_H
#define PE_DTYPE_H

#include "core/posenc.h"

double pe_element(enum pe_dtype dtype, const void *src, size_t i); /* src[i], exact but for 64-bit integers */
void pe_store(enum pe_dtype dtype, void *dst, size_t i, double x); /* dst[i] = x, one rounding */

extern const char *const pe_dtypes_by_bits[]; /* the names of the four real ones, most bits first, then NULL */

uint16_t pe_f16_round(double x);  /* bits of the nearest f16, ties to even */
uint16_t pe_bf16_round(double x); /* bits of the nearest bf16 */
double pe_f16_value(uint16_t bits);
double pe_bf16_value(uint16_t bits);
double pe_round_to(enum pe_dtype dtype, double x); /* the nearest number of a real dtype; x for an integer one */

/* True if a and b round to the same number of a real dtype. */
static inline bool pe_rounds_alike(enum pe_dtype dtype, double a, double b)
{
    switch (dtype) {
    case PE_F32: return (float)a == (float)b;
    case PE_F16: return pe_f16_round(a) == pe_f16_round(b);
    case PE_BF16: return pe_bf16_round(a) == pe_bf16_round(b);
    default: return a == b;
    }
}

/* Narrows n floats (ties to even). Returns true if one of them was the midpoint between two numbers of the narrower
 * type. */
bool pe_f16_narrow(const float *from, size_t n, uint16_t *to);
bool pe_bf16_narrow(const float *from, size_t n, uint16_t *to);
bool pe_f16_is_middle(float x);
bool pe_bf16_is_middle(float x);

#endif
