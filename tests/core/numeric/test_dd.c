/* Double-double: exactness of the error-free steps, exponential and logarithm against mpmath (300 bits, cut to two
 * doubles). */
#include "core/numeric/numeric.h"
#include "core/waves/waves.h"
#include "tests/support/cmocka.h"

static const double exponentials_of[][4] = {
    /* a.hi, a.lo, e^a */
    {0x0.0p+0, 0x0.0p+0, 0x1.0000000000000p+0, 0x0.0p+0},
    {0x1.5555555555555p-2, 0x1.5aaaaaaaaaaabp-56, 0x1.6546db1ba2d13p+0, 0x1.11f0e65510b05p-56},
    {-0x1.5555555555555p-2, -0x1.5aaaaaaaaaaabp-56, 0x1.6edd3122f2ea5p-1, -0x1.7a0cb58bc0e19p-56},
    {0x1.5555555555555p-3, 0x1.5aaaaaaaaaaabp-57, 0x1.2e6da2d20c08bp+0, -0x1.d09405d91beccp-54},
    {-0x1.2666666666667p+3, 0x1.50bbbbbbbbbbcp-51, 0x1.a7ca3b4bbd15bp-14, 0x1.a2b4c1fde20f1p-68},
    {0x1.2666666666667p+3, -0x1.50bbbbbbbbbbcp-51, 0x1.3549084ff3633p+13, 0x1.d93b77bf7bb2fp-41},
    {0x1.6e80fe033c8c7p-32, -0x1.4f9b515d48632p-86, 0x1.000000016e810p+0, -0x1.fbbd190995cfep-56},
    {-0x1.88f97a4f1c6c5p+1, -0x1.5b793b3e91c70p-53, 0x1.7c3d2c4d63ffbp-5, 0x1.28dc8b867144ep-60},
    {0x1.0198470a4d153p+2, -0x1.514ef4392c210p-52, 0x1.bfce6b2420cfep+5, -0x1.7e02bd4b03d59p-50},
    {0x1.e9e8b1f5fb600p-1, 0x1.e9e8b1f5fb600p-61, 0x1.4d3f360c6a091p+1, 0x1.eb95bfae5deb5p-55},
    {-0x1.8aab9d76d5115p+3, -0x1.5b8003cb30a9ap-51, 0x1.2769f87f28191p-18, -0x1.f9fdbc81467afp-73},
    {-0x1.5d421b4538bc8p+3, -0x1.5d421b4538bc8p-57, 0x1.31465ffd318efp-16, 0x1.4f6fdefb5ae5ep-70},
};
static const double logarithms_of[][3] = {
    /* a, ln a */
    {0x1.3880000000000p+13, 0x1.26bb1bbb55516p+3, -0x1.f48ad494ea3e9p-51},
    {0x1.e848000000000p+18, 0x1.a3ea669a05c01p+3, 0x1.43d1720303e20p-51},
    {0x1.0000000000000p+1, 0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56},
    {0x1.d1a94a2000000p+39, 0x1.ba18a998fffa0p+4, 0x1.112fc120a0a22p-50},
    {0x1.0624dd2f1a9fcp-10, -0x1.ba18a998fffa0p+2, -0x1.f25f824141444p-53},
    {0x1.000001ad7f29bp+0, 0x1.ad7f2847b6492p-24, 0x1.d7f4a57fcf3ddp-80},
    {0x1.7d78400000000p+25, 0x1.1ba3fa3bd8346p+4, 0x1.26301ee23b0adp-53},
    {0x1.8000000000000p+1, 0x1.193ea7aad030bp+0, -0x1.a256f99caabebp-54},
};
static const double rungs[][5] = {
    /* base, denominator, i, base^(-i/denominator) */
    {0x1.3880000000000p+13, 0x1.0000000000000p+6, 1, 0x1.bb5fad00ab22cp-1, 0x1.a1cecee7dcb25p-58},
    {0x1.3880000000000p+13, 0x1.0000000000000p+6, 63, 0x1.e459c57e28a47p-14, -0x1.0c68548856221p-68},
    {0x1.e848000000000p+18, 0x1.0000000000000p+6, 37, 0x1.09fb7de6f8595p-11, -0x1.b2e6cab93e465p-65},
    {0x1.e848000000000p+19, 0x1.0000000000000p+8, 255, 0x1.1b51f1bd39a7bp-20, 0x1.0efb916ce8864p-74},
    {0x1.24f8000000000p+17, 0x1.0000000000000p+5, 31, 0x1.44a5a6386947dp-17, 0x1.184e046b207a5p-80},
    {0x1.d1a94a2000000p+39, 0x1.8000000000000p+8, 383, 0x1.2e79a796b1a54p-40, -0x1.22e5ec4bfc89ep-95},
    {0x1.0624dd2f1a9fcp-10, 0x1.0000000000000p+4, 9, 0x1.8592f2fbc126bp+5, 0x1.a6a79917647eep-49},
    {0x1.3880000000000p+13, 0x1.4000000000000p+1, 2, 0x1.4acda94717d68p-11, 0x1.c95ebbbe1e4cep-65},
    {0x1.3880000000000p+13, 0x1.fe00000000000p+7, 254, 0x1.b2db5190aa9e6p-14, -0x1.5d9652b68366cp-70},
    {0x1.0000000000000p+1, 0x1.0000000000000p+9, 511, 0x1.0058c86da1c0ap-1, -0x1.5e00e62d6b30dp-57},
};

/* |a - b| of two sums of doubles that agree to about 100 bits: exact, for their high parts are equal or neighbours. */
static double distance(struct pe_dd a, struct pe_dd b) { return fabs((a.hi - b.hi) + (a.lo - b.lo)); }

TEST(exponentials)
{
    for (size_t i = 0; i < sizeof exponentials_of / sizeof *exponentials_of; i++) {
        struct pe_dd e = pe_dd_exp((struct pe_dd){exponentials_of[i][0], exponentials_of[i][1]});
        struct pe_dd right = {exponentials_of[i][2], exponentials_of[i][3]};
        assert_true(distance(e, right) <= 0x1p-102 * right.hi);
    }
}

/* A fitted base may be no number, or too large for a power of two that an int counts. */
TEST(exponentials_without_a_number)
{
    assert_true(isnan(pe_dd_exp(dd((double)NAN)).hi) != 0);
    assert_true(isnan(pe_dd_fast_exp(dd((double)NAN)).hi) != 0);
    const double far[] = {1e10, 1e300, (double)INFINITY};
    for (size_t i = 0; i < sizeof far / sizeof *far; i++)
        assert_true(isfinite(pe_dd_exp(dd(far[i])).hi) == 0);
}

TEST(logarithms)
{
    for (size_t i = 0; i < sizeof logarithms_of / sizeof *logarithms_of; i++) {
        struct pe_dd right = {logarithms_of[i][1], logarithms_of[i][2]};
        assert_true(distance(pe_dd_log(dd(logarithms_of[i][0])), right) <= 0x1p-102 * fmax(1, fabs(right.hi)));
    }
}

TEST(ladders)
{
    for (size_t i = 0; i < sizeof rungs / sizeof *rungs; i++) {
        struct pe_dd ladder[512], right = {rungs[i][3], rungs[i][4]};
        size_t n = (size_t)rungs[i][2] + 1;
        pe_ladder(rungs[i][0], rungs[i][1], n, ladder);
        assert_true(distance(ladder[n - 1], right) <= 0x1p-99 * right.hi);
    }
}

TEST(products_and_sums_are_exact)
{
    double a = 1 + 0x1p-30, b = 1 - 0x1p-30; /* (1+e)(1-e) = 1 - e² */
    struct pe_dd p = dd_two_prod(a, b), s = dd_two_sum(1e20, 1.5);
    assert_true(p.hi == 1 && p.lo == -0x1p-60);
    assert_true(s.hi == 1e20 && s.lo == 1.5);
    struct pe_dd third = dd_div(dd(1), dd(3)), one = dd_mul_d(third, 3);
    assert_true(fabs((one.hi - 1) + one.lo) < 0x1p-104);
}

/* hi + lo to odd, then to float: as the sum itself would round, where hi alone is a tie. */
TEST(odd_rounding_breaks_ties)
{
    double tie = 1 + 0x1p-24;
    assert_true((float)dd_round_odd((struct pe_dd){tie, 0}) == 1);
    assert_true((float)dd_round_odd((struct pe_dd){tie, 0x1p-90}) == 1 + 0x1p-23f);
    assert_true((float)dd_round_odd((struct pe_dd){tie, -0x1p-90}) == 1);
    assert_true((float)dd_round_odd((struct pe_dd){-tie, -0x1p-90}) == -1 - 0x1p-23f);
    assert_true((float)dd_round_odd((struct pe_dd){-tie, 0x1p-90}) == -1);
}
