/* Sines of phases that are given as sums of products or as fractions, correctly rounded.
 *
 * The problem: the sum over axes of position times frequency (Fourier features), or p·N/D of a turn, may cancel down to
 * a tiny remainder beside a huge number of whole turns. Rounded sums would lose that remainder, and with it every digit
 * of a sine near its zero.
 *
 * The idea: a product of two doubles is exactly a sum of two (Dekker 1971), and its whole quarters can be subtracted
 * without error. What is left of each term is at most 1/2, so the sum of the remainders is small; if it is so small
 * that cancellation shows, it is computed again as an expansion, a list of doubles whose sum is exact (Shewchuk 1997,
 * Adaptive Precision Floating-Point Arithmetic, grow-expansion).
 *
 * Invariant: whole + part is the phase, |part| ≤ 1/2, and part's error is relative to part. The phase is then the
 * frequency of a wave at position 1, and kernels/waves.c, wave_value.c and the levels of wave_table.c apply as they
 * are. */
#include "core/waves/waves.h"
#include "core/numeric/numeric.h"
#include "core/kernels/kernels.h"

/* ---- Taking apart ---- */

/* The nearest integer of |x| < 2^51, ties to even, without a call into the C library. */
static double nearest_integer(double x) { return (x + 0x1.8p52) - 0x1.8p52; }

/* a·b as whole quarters and a remainder of at most 1/2, without error: the whole quarters come from the product's
 * upper part, and the remainder is the unevaluated sum of what is left of the upper part and the lower part. */
static struct pe_phase product(double a, double b)
{
    struct pe_dd p = dd_two_prod(a, b);
    double whole = nearest_integer(p.hi);
    return (struct pe_phase){(int64_t)whole, dd_two_sum(p.hi - whole, p.lo)};
}

/* A sum kept exactly: doubles that do not overlap, the smallest first (Shewchuk 1997, grow-expansion). */
struct expansion {
    double parts[2 * PE_PHASE_TERMS + 1];
    size_t n;
};

static void add_to(struct expansion *e, double term)
{
    for (size_t i = 0; i < e->n; i++) {
        struct pe_dd s = dd_two_sum(term, e->parts[i]);
        term = s.hi;
        e->parts[i] = s.lo;
    }
    e->parts[e->n++] = term;
}

/* The remainder of a sum near the integer `near`: all terms are added exactly, so cancellation causes no error. */
static struct pe_dd exact_rest(const double *a, const double *b, size_t n, double near)
{
    struct expansion e = {.n = 0};
    struct pe_dd sum = {0, 0};
    add_to(&e, -near);
    for (size_t i = 0; i < n; i++) {
        struct pe_phase p = product(a[i], b[i]);
        add_to(&e, p.part.lo);
        add_to(&e, p.part.hi);
    }
    for (size_t i = e.n; i-- > 0;)
        sum = dd_add(sum, dd(e.parts[i]));
    return sum;
}

/* A sum of double-doubles has an error of 3·2^-106 of itself, and after k terms the sum is at most k/2: for sixteen
 * terms less than 2^-98 together, for four less than 2^-102. That matters only if the remainder is small. */
struct pe_phase pe_phase_of_products(const double *a, const double *b, size_t n)
{
    struct pe_phase sum = {0, {0, 0}};
    for (size_t i = 0; i < n; i++) {
        struct pe_phase p = product(a[i], b[i]);
        sum.whole += p.whole;
        sum.part = dd_add(sum.part, p.part);
    }
    /* Moves whole quarters from the remainder to `whole`. */
    double more = nearest_integer(sum.part.hi);
    struct pe_phase phase = {sum.whole + (int64_t)more, dd_sub(sum.part, dd(more))};
    if (n > 1 && fabs(phase.part.hi) < 0x1p-3)
        phase.part = exact_rest(a, b, n, (double)(phase.whole - sum.whole));
    return phase;
}

/* p·N/D = whole + (p·N - whole·D)/D: both products are exact, and their difference is right to 2^-104 of itself. */
struct pe_phase pe_phase_of_fraction(double p, double numerator, double denominator)
{
    double whole = nearest_integer(p * numerator / denominator);
    struct pe_dd rest = dd_sub(dd_two_prod(p, numerator), dd_two_prod(whole, denominator));
    return (struct pe_phase){(int64_t)whole, dd_div(rest, dd(denominator))};
}

/* ---- Sines ---- */

enum { GROUP = 256 }; /* phases at a time: a few KiB of doubles on the stack */
_Static_assert(GROUP % PE_WAVES_LANES == 0, "a group is whole lanes");

/* A phase is the wave of that frequency at position 1. */
static void fill_group(enum pe_dtype dtype, const struct pe_phase *phases, size_t n, void *dst, size_t first)
{
    _Alignas(64) double high[GROUP] = {0}, low[GROUP] = {0}, values[GROUP], bounds[GROUP];
    _Alignas(64) int64_t quarters[GROUP] = {0};
    for (size_t i = 0; i < n; i++) {
        high[i] = phases[i].part.hi;
        low[i] = phases[i].part.lo;
        quarters[i] = phases[i].whole & 3;
    }
    pe_kernels()->waves(1, high, low, NULL, NULL, quarters, false, n, values, NULL, bounds);
    for (size_t i = 0; i < n; i++) {
        struct pe_wave wave = {.fh = high[i], .fl = low[i], .ah = 1, .quarter = (int)quarters[i]};
        bool decided = dtype == PE_F64 || pe_rounds_alike(dtype, values[i] - bounds[i], values[i] + bounds[i]);
        pe_store(dtype, dst, first + i, decided ? values[i] : pe_wave_decide(&wave, dtype, 1));
    }
}

void pe_phases_fill(enum pe_dtype dtype, const struct pe_phase *phases, size_t n, void *dst, size_t first)
{
    for (size_t at = 0; at < n; at += GROUP)
        fill_group(dtype, phases + at, n - at < GROUP ? n - at : GROUP, dst, first + at);
}
