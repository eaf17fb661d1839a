/* The shortest decimal that names a binary number: Schubfach (Raffaello Giulietti, "The Schubfach
 * way to render doubles"), once with 128-bit powers for f64 and once with 64-bit powers for the
 * formats of at most 24 bits. Inline, because numbers_print.c wants it inside its loops. */
#ifndef API_NUMBERS_SHORTEST_H
#define API_NUMBERS_SHORTEST_H

#include "api/numbers/numbers_powers.h"

#include <math.h>
#include <stdbool.h>

/* Inlined even where the compiler finds it large: the small structs below then live in registers.
 * Passed through memory, field by field in and in whole words out, each load would wait for the
 * stores before it: measured, 55 ns a number instead of 31. */
#define IN_LOOP static inline __attribute__((always_inline))

/* A positive finite number of some binary format: c · 2^q. Reals nearer to it than to its
 * neighbours round to it; its lower neighbour is half a step away, not a whole one, if lower_near
 * (c is the least of its binade). */
struct binary {
    uint64_t c;
    int q;
    bool lower_near;
};

struct decimal {
    uint64_t digits; /* may end in zeros */
    int exponent;    /* value = digits × 10^exponent */
};

/* The number and the ends of its rounding interval in quarters of 10^k, where 10^k is the largest
 * power of ten that is not wider than the interval: so at least one multiple of 10^k lies inside,
 * and at most one of 10^(k+1). Each is "rounded to odd": an odd quarter represents everything
 * strictly between its even neighbours, so that comparing with even numbers is exact. An open end
 * has been moved inward by one. */
struct interval {
    uint64_t low, value, high;
    int k;
};

/* floor(log10(2^q)), or of 3/4 · 2^q. */
static inline int interval_power(const struct binary *b)
{
    return (b->q * 1262611 - (b->lower_near ? 524031 : 0)) >> 22;
}

/* Of the two multiples of 10^k around the value the one inside; if both are, the nearer, ties to
 * the even digit. */
IN_LOOP struct decimal fine_pick(const struct interval *v)
{
    uint64_t ones = v->value / 4, middle = 4 * ones + 2;
    bool below = v->low <= 4 * ones, above = 4 * ones + 4 <= v->high;
    bool up = (v->value > middle) | ((v->value == middle) & (ones & 1));
    return (struct decimal){ones + (below != above ? above : up), v->k};
}

/* The multiple of 10^(k+1) inside if there is one, for that saves a digit; else one of 10^k. Below
 * ten units that has one digit already. Both are computed and one is chosen, because which it is no
 * processor can guess. */
IN_LOOP struct decimal pick(const struct interval *v)
{
    uint64_t tens = v->value / 40;
    bool below = v->low <= 40 * tens, above = 40 * tens + 40 <= v->high;
    bool is_coarse = (v->value >= 40) & (below != above);
    struct decimal fine = fine_pick(v);
    return (struct decimal){is_coarse ? tens + above : fine.digits, v->k + is_coarse};
}

/* quarters · 10^-k, to odd, where the power is an overestimate by less than one unit of its last
 * place: the paper shows that a fraction of one unit is then only this error. */
static inline uint64_t scale_wide(uint64_t high, uint64_t low, uint64_t quarters)
{
    unsigned __int128 x = (unsigned __int128)low * quarters;
    unsigned __int128 y = (unsigned __int128)high * quarters + (uint64_t)(x >> 64);
    return (uint64_t)(y >> 64) | ((uint64_t)y > 1);
}

static inline uint64_t scale_narrow(uint64_t power, uint32_t quarters)
{
    unsigned __int128 y = (unsigned __int128)power * quarters;
    return (uint64_t)(y >> 64) | ((uint32_t)(y >> 32) > 1);
}

/* Shortest for f64; nearest to the value among the shortest, as David Gay's mode 0 and so Python's
 * repr. */
IN_LOOP struct decimal shortest_wide(const struct binary *b)
{
    int k = interval_power(b), h = b->q + api_log2_of_power(-k) + 1;
    const struct api_power *power = api_power_of_ten(-k);
    uint64_t high = power->high, low = power->low + (-k < -27 || -k > 55), open = b->c & 1;
    struct interval v = {
        .low = scale_wide(high, low, (4 * b->c - 2 + b->lower_near) << h) + open,
        .value = scale_wide(high, low, 4 * b->c << h),
        .high = scale_wide(high, low, (4 * b->c + 2) << h) - open,
        .k = k,
    };
    return pick(&v);
}

/* Whether a decimal inside the interval of an odd c, but hardly, is read as a double that is the
 * very end of the interval: rounding that to the narrow format would go to the even neighbour. */
static inline bool is_read_as_end(const struct binary *b, struct decimal d)
{
    double x = api_decimal_value(d.digits, d.exponent), middle = ldexp((double)b->c, b->q), half = ldexp(1.0, b->q - 1);
    return x == middle - half || x == middle + half;
}

/* Shortest for c < 2^24 and the exponents of f32 among the decimals that give the number back both
 * if read directly into its format and if read as a double first. Only the coarse pick can lie that
 * near an end: the fine one keeps half a unit away, and the end is further. */
IN_LOOP struct decimal shortest_narrow(const struct binary *b)
{
    int k = interval_power(b), h = b->q + api_log2_of_power(-k) + 1;
    uint64_t power = api_power_of_ten(-k)->high + (api_power_of_ten(-k)->low != 0);
    uint32_t c = (uint32_t)b->c, open = c & 1;
    struct interval v = {
        .low = scale_narrow(power, (4 * c - 2 + b->lower_near) << h) + open,
        .value = scale_narrow(power, 4 * c << h),
        .high = scale_narrow(power, (4 * c + 2) << h) - open,
        .k = k,
    };
    struct decimal d = pick(&v);
    uint64_t quarters = 40 * d.digits;
    bool at_end = open & (d.exponent > k) & ((quarters == v.low) | (quarters == v.high));
    return __builtin_expect(at_end, 0) && is_read_as_end(b, d) ? fine_pick(&v) : d;
}

#endif
