/* One value of a wave in double-double: the truth behind the kernels, and their fallback. */
#ifndef PE_WAVE_VALUE_H
#define PE_WAVE_VALUE_H

#include "core/dd.h"
#include "core/waves.h"

/* The wave at position p. *phase: |p·F| in quarter turns. Relative error about 2^-96, and phase·2^-100·amplitude
 * absolute. */
struct pe_dd pe_wave_value(const struct pe_wave *wave, double p, double *phase);

/* A double that rounds to dtype (f32, f16, bf16) as the exact value does. Counts where even double-double cannot tell.
 */
double pe_wave_decide(const struct pe_wave *wave, enum pe_dtype dtype, double p);

#endif
