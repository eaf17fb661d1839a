/* One value of a wave in double-double: the truth behind the kernels, and their fallback. */
#ifndef PE_WAVE_VALUE_H
#define PE_WAVE_VALUE_H

#include "core/numeric/dd.h"
#include "core/waves/waves.h"

/* The wave at position p. *phase: |p·F| in quarter turns. Relative error below 2^-99 for F as its two doubles say; F's
 * own error adds phase·2^-100·amplitude, absolute. */
struct pe_dd pe_wave_value(const struct pe_wave *wave, double p, double *phase);

/* A double that rounds to dtype (f32, f16, bf16) as the exact value does. If even this arithmetic cannot decide, it
 * rounds the value it has and counts the case (pe_undecided_count). A frequency is known to two doubles and no
 * better, so an f32 is open with a chance of about 2^-72 times the larger of 1 and the phase, over all values and
 * not only those asked about: 2^-46 at phases of 2^26, 2^-32 at 2^40; and is then the wrong one of the two some ten
 * times less often. */
double pe_wave_decide(const struct pe_wave *wave, enum pe_dtype dtype, double p);

#endif
