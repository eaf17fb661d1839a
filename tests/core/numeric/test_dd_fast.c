/* Fast double-double functions against the exact ones, which tests/core/numeric/test_dd.c checks: within the bounds
 * that the header states, from the tiniest to the largest arguments. */
#include "core/numeric/numeric.h"
#include "core/waves/waves.h"
#include "tests/support/cmocka.h"

static double apart(struct pe_dd a, struct pe_dd b) { return fabs(dd_sub(a, b).hi); }

static void assert_near(struct pe_dd got, struct pe_dd truth, double x)
{
    if (!(apart(got, truth) <= fabs(truth.hi) * 0x1p-57))
        fail_msg("at %.17g: %.17g is off by %.3g of itself", x, got.hi, apart(got, truth) / fabs(truth.hi));
}

TEST(logarithms)
{
    for (double x = 1e-200; x < 1e250; x *= 1.37) {
        if (x != 1)
            assert_near(pe_dd_fast_log(dd(x)), pe_dd_log(dd(x)), x);
        /* ln(1 + x) = x - x²/2 + x³/3 for the smallest; else 1 + x in double-double has what is needed */
        struct pe_dd square = dd_mul_d(dd(x), x), cube = dd_mul_d(square, x);
        struct pe_dd small = dd_add(dd_sub(dd(x), dd_div(square, dd(2))), dd_div(cube, dd(3)));
        struct pe_dd truth = x < 1e-20 ? small : pe_dd_log(dd_add(dd(1), dd(x)));
        if (x < 1e-20 || x > 1e-9) {
            assert_near(pe_dd_fast_log1p(dd(x)), truth, x);
            assert_true(apart(pe_dd_log1p(dd(x)), truth) <= fabs(truth.hi) * 0x1p-94 + (x < 1e-20 ? 0 : 0x1p-102));
        }
    }
    for (double x = 1 - 0x1p-10; x < 1 + 0x1p-10; x += 0x1.37p-20)
        assert_near(pe_dd_fast_log(dd(x)), pe_dd_log(dd(x)), x);
}

TEST(exponentials)
{
    for (double x = -600; x < 600; x += 0.0371)
        assert_near(pe_dd_fast_exp(dd(x)), pe_dd_exp(dd(x)), x);
    assert_true(pe_dd_fast_exp(dd(0)).hi == 1);
}

TEST(cosines)
{
    struct pe_dd f = {0x1.45f306dc9c883p-1, -0x1.6b01ec5417056p-55};
    struct pe_wave wave = {.fh = f.hi, .fl = f.lo, .ah = 1, .quarter = 1};
    double phase;
    for (double p = 1e-3; p < 0x1p41; p *= 1.0137) {
        assert_true(apart(pe_dd_fast_cos(f, dd(p)), pe_wave_value(&wave, p, &phase)) < 0x1p-62);
        assert_true(apart(pe_dd_fast_cos(f, dd(-p)), pe_wave_value(&wave, p, &phase)) < 0x1p-62);
    }
    for (double p = -8; p < 8; p += 0.0137) /* cos(a + b), b small: cos a - b·sin a - b²/2·cos a */
        assert_true(fabs(pe_dd_fast_cos(f, (struct pe_dd){p, p * 0x1p-60}).hi - cos(p)) < 1e-15);
    assert_true(pe_dd_fast_cos(f, dd(0)).hi == 1);
}
