/* Logarithm, exponential and cosine to about 2^-58 in some tens of nanoseconds, by plain arithmetic: the same on
 * every machine. Accurate enough for f64 within 1 ulp, and to decide the rounding to narrower types for all but a
 * few values, for which core/numeric/dd.h has a hundred bits. */
#ifndef PE_DD_FAST_H
#define PE_DD_FAST_H

#include "core/numeric/dd.h"

struct pe_dd pe_dd_fast_log(struct pe_dd a);   /* ln(a), a > 0 */
struct pe_dd pe_dd_fast_log1p(struct pe_dd x); /* ln(1 + x), x ≥ 0 */
struct pe_dd pe_dd_fast_exp(struct pe_dd a);   /* e^a, |a| < 700; relative error also that of a, absolute */

/* cos(π/2·F·p), |p·F| < 2^51; absolute error below 2^-62. */
struct pe_dd pe_dd_fast_cos(struct pe_dd f, struct pe_dd p);

/* ln(1 + x), x ≥ 0, relative error about 2^-94. */
struct pe_dd pe_dd_log1p(struct pe_dd x);

#endif
