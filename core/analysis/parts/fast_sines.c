/* Both functions of a list of angles, in a loop that the compiler makes vectors of. */
#include "core/analysis/parts/fast_sines.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/* π/2 as a sum; multiples of the first two parts are exact up to FAST_TURNS quarter turns. */
#define HALF_PI_HIGH 0x1.921fb544p0
#define HALF_PI_MIDDLE 0x1.0b4611a6p-34
#define HALF_PI_LOW 0x1.3198a2e037073p-69
#define TO_INTEGER 0x1.8p52
#define FAST_TURNS 0x1p20

/* Polynomials of fdlibm on [-π/4, π/4], within 2^-57. */
static inline double sine_near_0(double r, double z)
{
    double high =
        8.33333333332248946124e-03 +
        z * (-1.98412698298579493134e-04 +
             z * (2.75573137070700676789e-06 + z * (-2.50507602534068634195e-08 + z * 1.58969099521155010221e-10)));
    return r + z * r * (-1.66666666666666324348e-01 + z * high);
}

static inline double cosine_near_0(double z)
{
    double high = 4.16666666666666019037e-02 +
                  z * (-1.38888888888741095749e-03 +
                       z * (2.48015872894767294178e-05 +
                            z * (-2.75573143513906633035e-07 +
                                 z * (2.08757232129817482790e-09 + z * -1.13596475577881948265e-11))));
    return 1 - (0.5 * z - z * z * high);
}

/* a if swap is 0, b if it is -1; negated where sign has its upper bit. */
static inline double choose(double a, double b, int64_t swap, int64_t sign)
{
    int64_t x, y;
    memcpy(&x, &a, sizeof x);
    memcpy(&y, &b, sizeof y);
    x = ((x & ~swap) | (y & swap)) ^ sign;
    memcpy(&a, &x, sizeof a);
    return a;
}

static void sincos_near(const double *angles, size_t n, double *cosines, double *sines)
{
    for (size_t i = 0; i < n; i++) {
        double shifted = angles[i] * (2 / M_PI) + TO_INTEGER, k = shifted - TO_INTEGER;
        double r = ((angles[i] - k * HALF_PI_HIGH) - k * HALF_PI_MIDDLE) - k * HALF_PI_LOW, z = r * r;
        double s = sine_near_0(r, z), c = cosine_near_0(z);
        int64_t quarter;
        memcpy(&quarter, &shifted, sizeof quarter);
        int64_t swap = -(quarter & 1), half = quarter & 2, odd_half = (quarter + 1) & 2;
        cosines[i] = choose(c, s, swap, (int64_t)((uint64_t)odd_half << 62));
        sines[i] = choose(s, c, swap, (int64_t)((uint64_t)half << 62));
    }
}

void pe_fast_sines(const double *angles, size_t n, double *cosines, double *sines)
{
    double most = 0;
    for (size_t i = 0; i < n; i++)
        most = fabs(angles[i]) > most ? fabs(angles[i]) : most;
    if (most < FAST_TURNS) {
        sincos_near(angles, n, cosines, sines);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        cosines[i] = cos(angles[i]);
        sines[i] = sin(angles[i]);
    }
}
