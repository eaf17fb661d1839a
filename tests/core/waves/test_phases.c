/* Phase reduction: fractions against integers of 128 bits, sums that cancel, and their sines against long double. */
#include "core/waves/waves.h"
#include "core/numeric/numeric.h"
#include "tests/support/cmocka.h"

#include <math.h>
#include <stdlib.h>

static unsigned long long state = 88172645463325252ULL;

static int64_t next_random(int64_t below) /* in -below … below */
{
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (int64_t)((state >> 8) % (unsigned long long)(2 * below + 1)) - below;
}

/* p·N/D = whole + rest/D with |rest| ≤ D/2, in integers. */
TEST(fractions_are_exact)
{
    for (int i = 0; i < 100000; i++) {
        int64_t p = next_random(1 << 20), d = 1 + llabs(next_random(INT64_C(1) << (i % 40)));
        int64_t n = next_random(d < (INT64_C(1) << 30) ? d << 10 : d);
        __int128 product = (__int128)p * n, whole = product / d, rest = product % d;
        struct pe_phase phase = pe_phase_of_fraction((double)p, (double)n, (double)d);
        __int128 moved = (__int128)phase.whole - whole; /* to the nearer integer */
        long double expected = (long double)(rest - moved * d) / (long double)d;
        long double got = (long double)phase.part.hi + (long double)phase.part.lo;
        assert_true(moved >= -1 && moved <= 1 && fabsl(got) <= 0.5000001L);
        assert_true((rest - moved * d == 0) == (phase.part.hi == 0 && phase.part.lo == 0));
        assert_true(fabsl(got - expected) <= fabsl(expected) * 0x1p-62L);
    }
}

/* Sums that cancel almost completely: the remainder is right to its own last bit. */
TEST(sums_that_cancel_are_exact)
{
    for (int i = 0; i < 10000; i++) {
        double a = (double)next_random(INT64_C(1) << 50) * 0x1p-20, b = (double)next_random(INT64_C(1) << 50) * 0x1p-41;
        double small = (double)next_random(INT64_C(1) << 50) * 0x1p-160, whole = (double)next_random(1000);
        const double left[] = {a, small, -b, whole}, right[] = {b, 1, a, 1};
        struct pe_phase phase = pe_phase_of_products(left, right, 4);
        assert_true(phase.whole == (int64_t)whole && phase.part.hi == small && phase.part.lo == 0);
    }
    const double halves[] = {0.5, 0.25, 0.25, 1}, ones[] = {1, 1, 1, 1};
    struct pe_phase two = pe_phase_of_products(halves, ones, 4);
    assert_true(two.whole == 2 && two.part.hi == 0 && two.part.lo == 0);
}

/* The sine of each quarter, by the long double of the C library, which leaves 11 bits more than a double. */
TEST(sines_are_right)
{
    enum { N = 1000 };
    static struct pe_phase phases[N];
    static float floats[N];
    static double doubles[N];
    const long double half_pi = 1.57079632679489661923132169163975144L;
    for (int i = 0; i < N; i++)
        phases[i] = (struct pe_phase){next_random(1000), {(double)next_random(INT64_C(1) << 52) * 0x1p-53, 0}};
    pe_phases_fill(PE_F32, phases, N, floats, 0);
    pe_phases_fill(PE_F64, phases, N - 1, doubles, 1);
    for (int i = 0; i < N; i++) {
        long double angle = (long double)phases[i].part.hi * half_pi,
                    v = phases[i].whole & 1 ? cosl(angle) : sinl(angle);
        v = phases[i].whole & 2 ? -v : v;
        assert_true(fabsl((long double)floats[i] - v) <= fabsl(v) * 0x1.0001p-24L);
        if (i < N - 1)
            assert_true(fabsl((long double)doubles[i + 1] - v) <= fabsl(v) * 0x1p-52L);
    }
}

TEST(whole_quarters_are_exact)
{
    static const enum pe_dtype dtypes[] = {PE_F32, PE_F64, PE_F16, PE_BF16, PE_F8_E4M3, PE_F8_E5M2};
    const double expected[] = {0, 1, 0, -1, 0, -1, 0, 1};
    struct pe_phase phases[8];
    for (int i = 0; i < 8; i++)
        phases[i] = (struct pe_phase){i < 4 ? i : 4 - i, {0, 0}};
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
        double storage[8];
        pe_phases_fill(dtypes[d], phases, 8, storage, 0);
        for (size_t i = 0; i < 8; i++) {
            double v = pe_element(dtypes[d], storage, i);
            assert_true(v == expected[i] && (v != 0 || !signbit(v)));
        }
    }
}
