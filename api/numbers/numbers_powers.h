/* Powers of ten in 128 bits, and what is computed straight from them. Shared by the number reader and writer only. The
 * table is computed by powers.awk when the program is built. */
#ifndef API_NUMBERS_POWERS_H
#define API_NUMBERS_POWERS_H

#include <stdint.h>

enum { API_POWER_MIN = -342, API_POWER_MAX = 324 }; /* what doubles need: reading from -342, printing to 324 */

/* The leading 128 bits of 10^k, scaled so that the top bit is set: 10^k ≈ (high·2^64 + low) ·
 * 2^(api_log2_of_power(k) - 127). Exact for k in 0 … 55, rounded up in -27 … -1, truncated
 * elsewhere. The middle range is rounded up because only there can a product with a 64-bit integer
 * be meant exactly (5^27 < 2^64 < 5^28): a tie then shows as just above its bits, where the reader
 * looks for it, and not as a row of ones. */
struct api_power {
    uint64_t high, low;
};

extern const struct api_power api_powers[API_POWER_MAX - API_POWER_MIN + 1];

static inline const struct api_power *api_power_of_ten(int k) { return &api_powers[k - API_POWER_MIN]; }

/* floor(log2(10^k)): 1741647/2^19 is log2(10) to within what the range of k needs (tests/tools/powers_of_ten.py checks
 * every k). */
static inline int api_log2_of_power(int k) { return k * 1741647 >> 19; }

/* The double nearest digits × 10^exponent, ties to even; infinity if it overflows. */
double api_decimal_value(uint64_t digits, int64_t exponent);

#endif
