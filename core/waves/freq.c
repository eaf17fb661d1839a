/* Computes base^(-i/D), i = 0, 1, …, in double-double: an exponential for every ANCHOR_EVERY-th value, products in
 * between.
 *
 * A table at position 2^40 multiplies a frequency's relative error by up to 2^40 quarter turns, so a double's 2^-53 is
 * useless there: F needs about a hundred bits. An exponential is some thirty operations of double-double, a product is
 * one, and errors add up along a chain of products; sixteen is a compromise.
 *
 * Error: a product has at most 5·2^-106 (wave_value.c cites the bound), the step's own error, about 2^-102, enters each
 * time, and the chain has fifteen: 2^-97.6 if all were at their worst and of one sign. Measured against 300-bit
 * arithmetic for ten pairs of base and D, the largest error of all is 2^-102.3; a test requires 2^-99. */
#include "core/waves/waves.h"

enum { ANCHOR_EVERY = 16 };

/* base^(-i/denominator), with the exponent's quotient in double-double. */
static struct pe_dd rung(struct pe_dd log_base, double i, double denominator)
{
    return pe_dd_exp(dd_neg(dd_mul(dd_div(dd(i), dd(denominator)), log_base)));
}

void pe_ladder_dd(struct pe_dd log_base, double denominator, size_t n, struct pe_dd *out)
{
    struct pe_dd step = {1, 0};
    if (n > 1)
        step = rung(log_base, 1, denominator);
    for (size_t i = 0; i < n; i++) {
        if (i == 0)
            out[i] = dd(1); /* also if the denominator is 0, because then there is only this value */
        else if (i % ANCHOR_EVERY == 0)
            out[i] = rung(log_base, (double)i, denominator);
        else
            out[i] = dd_mul(out[i - 1], step);
    }
}

void pe_ladder(double base, double denominator, size_t n, struct pe_dd *out)
{
    pe_ladder_dd(pe_dd_log(dd(base)), denominator, n, out);
}

float pe_power_float32(struct pe_dd log_base, size_t i, double denominator)
{
    float exponent = i ? (float)((double)i / denominator) : 0;
    return (float)dd_round_odd(pe_dd_exp(dd_mul_d(log_base, (double)exponent)));
}

void pe_ladder_float32(double base, double denominator, size_t n, struct pe_dd *out)
{
    struct pe_dd log_base = pe_dd_log(dd((double)(float)base));
    for (size_t i = 0; i < n; i++)
        out[i] = dd((double)(1.0f / pe_power_float32(log_base, i, denominator)));
}

struct pe_dd pe_quarter_turns(struct pe_dd radians)
{
    static const struct pe_dd two_over_pi = {0x1.45f306dc9c883p-1, -0x1.6b01ec5417056p-55};
    return dd_mul(radians, two_over_pi);
}
