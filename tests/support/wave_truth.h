/* Tables of waves computed independently: the phase exactly, in 128-bit fractions of a turn from mpmath's frequencies,
 * the sine by the C library's long double (64 bits and more of fraction). Shares no formula and no constant with the
 * core. */
#ifndef TESTS_WAVE_TRUTH_H
#define TESTS_WAVE_TRUTH_H

#include "core/waves/waves.h"

#include <math.h>
#include <stdint.h>

#include "wave_frequencies.h" /* made by mpmath when this is built */

enum { N_WAVE_TABLES = sizeof wave_tables / sizeof *wave_tables };

/* sin (quarter 0) or cos (quarter 1) of p·2π·turns for an integer p. */
static inline long double wave_truth(const uint64_t turns[2], int64_t p, int quarter)
{
    const long double half_pi = 1.57079632679489661923132169163975144L;
    unsigned __int128 f = (unsigned __int128)turns[0] << 64 | turns[1];
    unsigned __int128 phase = f * (unsigned __int128)(p < 0 ? -p : p); /* whole turns overflow and vanish */
    unsigned q = (unsigned)(phase >> 126);
    unsigned __int128 rest = phase << 2; /* fraction of a quarter turn */
    bool back = rest >> 127;             /* nearer to the next quarter: measured back from it */
    if (back) {
        q++;
        rest = 0 - rest;
    }
    long double angle =
        ((long double)(uint64_t)(rest >> 64) * 0x1p-64L + (long double)(uint64_t)rest * 0x1p-128L) * half_pi;
    if (back)
        angle = -angle;
    if (p < 0) {
        angle = -angle;
        q = 0 - q;
    }
    q = (q + (unsigned)quarter) & 3;
    long double v = q & 1 ? cosl(angle) : sinl(angle);
    return q & 2 ? -v : v;
}

/* The columns of a table: all sines, then all cosines. */
static inline void wave_columns(const struct wave_table *table, struct pe_wave *columns)
{
    struct pe_dd w[128];
    pe_ladder(table->base, (double)table->n, table->n, w);
    for (size_t i = 0; i < table->n; i++) {
        struct pe_dd f = pe_quarter_turns(w[i]);
        columns[i] = (struct pe_wave){.fh = f.hi, .fl = f.lo, .ah = 1};
        columns[table->n + i] = (struct pe_wave){.fh = f.hi, .fl = f.lo, .ah = 1, .quarter = 1};
    }
}

/* 1: value is the double-rounded-to-odd of truth for formats of up to 30 bits, and truth is far enough from every
 * middle of a float (2^-60 of itself) that long double decides it; 0: long double does not suffice. */
static inline bool wave_judge(long double truth, double *odd)
{
    double d = (double)truth;
    if ((long double)d != truth) { /* truncated, then made odd */
        union {
            double d;
            uint64_t u;
        } bits = {.d = d};
        if (fabsl((long double)d) > fabsl(truth))
            bits.u--;
        bits.u |= 1;
        d = bits.d;
    }
    *odd = d;
    long double slack = truth * 0x1p-60L;
    return (float)(truth - slack) == (float)(truth + slack);
}

#endif
