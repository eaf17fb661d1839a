/* Geometric lists of frequencies, which sinusoidal and rotary schemes share, in double-double. */
#ifndef PE_FREQ_H
#define PE_FREQ_H

#include "core/numeric/dd.h"

#include <stddef.h>

/* out[i] = base^(-i/denominator), i < n. Relative error about 2^-102, tested to be below 2^-99. base > 0. */
void pe_ladder(double base, double denominator, size_t n, struct pe_dd *out);

/* The same for a base that is given by its natural logarithm because the base itself is not a double. */
void pe_ladder_dd(struct pe_dd log_base, double denominator, size_t n, struct pe_dd *out);

/* The same as the frameworks compute it in float32: exponent, power and reciprocal each rounded to f32, i counted in
 * pairs over 2·pairs channels: f32(1 / f32(base^f32(i/denominator))). */
void pe_ladder_float32(double base, double denominator, size_t n, struct pe_dd *out);

/* One step of that: f32(base^f32(i/denominator)) from log_base = ln(f32(base)). */
float pe_power_float32(struct pe_dd log_base, size_t i, double denominator);

/* Radians to quarter turns: × 2/π. */
struct pe_dd pe_quarter_turns(struct pe_dd radians);

#endif
