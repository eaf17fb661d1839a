/* Sines of phases that are not a product of a position and a frequency: sums over axes, and exact fractions. */
#ifndef PE_PHASES_H
#define PE_PHASES_H

#include "core/numeric/dd.h"
#include "core/posenc.h"

/* A phase of whole + part quarter turns. The relative error of part is below 2^-95, and |part| ≤ 1/2 (slightly more
 * is allowed). So no accuracy is lost near a zero of the sine, and for a whole number of quarters part is exactly 0. */
struct pe_phase {
    int64_t whole; /* only its value modulo 4 matters */
    struct pe_dd part;
};

/* numerator/denominator quarter turns times p. Exact but for one division where |numerator|, denominator ≤ 2^53 are
 * integers; |p · numerator/denominator| < 2^51. */
struct pe_phase pe_phase_of_fraction(double p, double numerator, double denominator);

/* The sum of all a[i]·b[i], i < n ≤ PE_PHASE_TERMS, as if exactly; its magnitude is below 2^51. */
enum { PE_PHASE_TERMS = 16 };
struct pe_phase pe_phase_of_products(const double *a, const double *b, size_t n);

/* dst[first + i] = sin(π/2·phase_i), i < n, in dtype (f32, f16, bf16: correctly rounded; f64: within 1 ulp). The cosine
 * is the sine of a whole quarter more. Any thread; cannot fail. */
void pe_phases_fill(enum pe_dtype dtype, const struct pe_phase *phases, size_t n, void *dst, size_t first);

#endif
