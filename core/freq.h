/* Frequencies: the geometric ladder that sinusoidal and rotary schemes share, in double-double. */
#ifndef PE_FREQ_H
#define PE_FREQ_H

#include "core/dd.h"

#include <stddef.h>

/* out[i] = base^(-i/denominator), i < n. Relative error below 2^-99. base > 0. */
void pe_ladder(double base, double denominator, size_t n, struct pe_dd *out);

/* The same as the frameworks compute it in float32: exponent, power and reciprocal each rounded to f32, i counted in
 * pairs over 2·pairs channels: f32(1 / f32(base^f32(i/denominator))). */
void pe_ladder_float32(double base, double denominator, size_t n, struct pe_dd *out);

/* Radians to quarter turns: × 2/π. */
struct pe_dd pe_quarter_turns(struct pe_dd radians);

#endif
