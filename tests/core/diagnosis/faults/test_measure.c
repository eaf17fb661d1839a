/* Decimals and phases that are fitted to numbers: the cases that no table shows. What is read of tables is asked over
 * the socket. */
#include "core/diagnosis/diagnosis.h"
#include "tests/support/cmocka.h"
#include "tests/support/random.h"

#include <math.h>

static double real_in(double least, double most)
{
    return least + (most - least) * (double)(random_bits() >> 11) * 0x1p-53;
}

TEST(the_shortest_decimal_is_near_enough)
{
    assert_true(pe_shortest_decimal(10000.01, 3e-6) == 10000);
    assert_true(pe_shortest_decimal(1.13862943611, 5e-8) == 1.1386294);
    for (int trial = 0; trial < 1000; trial++) {
        double x = exp(real_in(-20, 20)), tolerance = exp(real_in(-30, -3));
        assert_true(fabs(pe_shortest_decimal(x, tolerance) - x) <= tolerance * x);
    }
}

/* Phases of waves in any order, each off by a little, give back what multiplied the frequencies. */
TEST(phases_give_back_their_factor)
{
    enum { PAIRS = 24 };
    for (int trial = 0; trial < 200; trial++) {
        double w[PAIRS], phase[PAIRS], weight[PAIRS], x = floor(real_in(-5000, 100000));
        for (size_t k = 0; k < PAIRS; k++) {
            w[k] = pow(10000, -(double)((k * 7) % PAIRS) / PAIRS);
            phase[k] = remainder(x * w[k] + real_in(-1e-3, 1e-3), 2 * acos(-1));
            weight[k] = real_in(0.5, 2);
        }
        struct pe_solved s = pe_solve_phases(w, phase, weight, PAIRS, 1e-3, 0x1p17);
        assert_true(fabs(s.x - x) < 0.01);
        assert_true(s.score > 0.999);
    }
}
