/* The sines of a lone table of cosines, and the reverse: waves are computed here. */
#include "core/diagnosis/measure/profile.h"
#include "tests/support/cmocka.h"

#include <math.h>

enum { ROWS = 64, PAIRS = 32 };

/* How far the other one may be off: roundings of cosines hide an angle near 0, those of sines one near a quarter. */
static double allowed(double other) { return 0x1p-22 / fmax(fabs(other), 0x1p-12); }

/* Waves of base 31337 from `first` on, in float32. */
static void check(double first, double length, bool are_sines)
{
    float sent[ROWS], other[ROWS];
    double room[ROWS];
    for (size_t k = 0; k < PAIRS; k++) {
        double w = pow(31337, -(double)k / PAIRS);
        for (size_t i = 0; i < ROWS; i++) {
            double angle = w * (first + (double)i);
            sent[i] = (float)(length * (are_sines ? sin(angle) : cos(angle)));
        }
        if (k == 0)
            assert_true(fabs(pe_quadrature_length(sent, ROWS, room) - length) < 1e-6);
        pe_quadrature(sent, ROWS, length, are_sines, other);
        for (size_t i = 0; i < ROWS; i++) {
            double angle = w * (first + (double)i), wanted = length * (are_sines ? cos(angle) : sin(angle));
            assert_true(fabs((double)other[i] - wanted) <= allowed(wanted));
        }
    }
}

TEST(sines_of_cosines)
{
    check(0, 1, false);
    check(100, 1, false);
    check(100, 1.25, false);
}

TEST(cosines_of_sines)
{
    check(0, 1, true);
    check(7.5, 1, true);
    check(100, 1.25, true);
}

/* One row has no steps: its sine is positive. */
TEST(one_row)
{
    const float cosine = 0.6F;
    float sine;
    pe_quadrature(&cosine, 1, 1, false, &sine);
    assert_true(fabs((double)sine - 0.8) < 1e-6);
}
