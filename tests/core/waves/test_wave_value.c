/* Single values in double-double against mpmath (500 bits, cut to two doubles), at the frequencies' own two doubles. */
#include "core/waves/waves.h"
#include "tests/support/cmocka.h"

/* Short and long phases; next to zeros (sin 355, and the double that comes nearest to one); along the table's steps;
 * phases near 2^51. */
static const struct value {
    double fh, fl, p;
    int quarter;
    double high, low;
} values[] = {
    {0x1.45f306dc9c883p-1, -0x1.6b01ec5417056p-55, 0x1.0000000000000p+0, 0, 0x1.aed548f090ceep-1,
     0x1.06374f484e28cp-59},
    {0x1.45f306dc9c883p-1, -0x1.6b01ec5417056p-55, 0x1.6000000000000p+4, 0, -0x1.220a29f6eb9f4p-7,
     0x1.504b8bc40cf02p-62},
    {0x1.45f306dc9c883p-1, -0x1.6b01ec5417056p-55, 0x1.6300000000000p+8, 0, -0x1.f9bd0307d1de3p-16,
     0x1.894874cc42697p-70},
    {0x1.45f306dc9c883p-1, -0x1.6b01ec5417056p-55, 0x1.9639000000000p+16, 0, -0x1.40efdf1eb8de7p-16,
     0x1.f636f19559e80p-70},
    {0x1.3458e2f590243p-14, -0x1.b24fffd1e4115p-68, 0x1.0000000000000p+0, 3, -0x1.ffffffc6b9c6ep-1,
     0x1.76efae3306f09p-56},
    {0x1.3458e2f590243p-14, -0x1.b24fffd1e4115p-68, 0x1.fffffffffe000p+39, 3, -0x1.ef473fa2fe9d8p-1,
     0x1.1dde8dd5566eap-55},
    {0x1.45f306dc9c883p-1, -0x1.6b01ec5417056p-55, 0x1.fffffffffe000p+39, 0, 0x1.198d16f110c40p-1,
     -0x1.18da594caf82cp-55},
    {0x1.c39de5111d052p-5, -0x1.04167d6e4b803p-59, 0x1.e847e00000000p+19, 1, 0x1.5b943235700acp-4,
     -0x1.24deafdb8fee1p-60},
    {0x1.07deb99a0e17ap-9, 0x1.c2f9d727cad14p-64, -0x1.e240c9fbe76c9p+16, 0, -0x1.7fb179e69e112p-1,
     -0x1.022c2011b6631p-55},
    {0x1.3d7416a896a29p-2, -0x1.56cfb796a37bbp-56, 0x1.0000000000000p-1, 1, 0x1.f0e5e5e434bb4p-1,
     0x1.1a9da8b0ed4a9p-55},
    {0x1.e1cae29fb1388p-8, 0x1.96300480ba4f1p-66, 0x1.0000000000000p-30, 3, -0x1.0000000000000p+0,
     0x1.17a8e301c4436p-74},
    {0x1.45f306dc9c883p-1, -0x1.6b01ec5417056p-55, 0x1.6ac5b262ca1ffp+52, 0, -0x1.29e22e425cb7dp-1,
     0x1.895450b2590e3p-55},
    {0x1.45f306dc9c883p-1, -0x1.6b01ec5417056p-55, 0x1.6300000000000p+8, 1, -0x1.fffffffc18e4cp-1,
     0x1.862265016699cp-57},
    {0x1.45f306dc9c883p-1, -0x1.6b01ec5417056p-55, 0x1.6300000000000p+8, 2, 0x1.f9bd0307d1de3p-16,
     -0x1.894874cc42697p-70},
    {0x1.45f306dc9c883p-1, -0x1.6b01ec5417056p-55, 0x1.6ac5b262ca1ffp+52, 3, -0x1.a06caf98845eep-1,
     -0x1.0859bbc36d95dp-56},
    {0x1.2000000000000p-6, 0x0.0p+0, 0x1.0000000000000p+0, 1, 0x1.ffce09ce2a679p-1, -0x1.7bd62ab5ee228p-55},
    {0x1.8800000000000p-4, 0x0.0p+0, 0x1.0000000000000p+0, 2, -0x1.32b7bf94516a7p-3, -0x1.2a24e2431ef29p-57},
    {0x1.6400000000000p-3, 0x0.0p+0, 0x1.0000000000000p+0, 3, -0x1.ed0835e999009p-1, -0x1.499d188aa32fap-57},
    {0x1.0200000000000p-2, 0x0.0p+0, 0x1.0000000000000p+0, 0, 0x1.8ac4b86d5ed44p-2, 0x1.17fa7f944ad5bp-56},
    {0x1.5200000000000p-2, 0x0.0p+0, 0x1.0000000000000p+0, 1, 0x1.bcb54cb0d2327p-1, 0x1.410923c55523ep-62},
    {0x1.a200000000000p-2, 0x0.0p+0, 0x1.0000000000000p+0, 2, -0x1.32421ec49a61fp-1, -0x1.65e25cc951bfep-55},
    {0x1.f200000000000p-2, 0x0.0p+0, 0x1.0000000000000p+0, 3, -0x1.71bac960e41bfp-1, 0x1.b858d90b0f7d8p-56},
    {0x1.2100000000000p-1, 0x0.0p+0, 0x1.0000000000000p+0, 0, 0x1.8cc6a75184655p-1, -0x1.e18b3657e2285p-55},
    {0x1.4900000000000p-1, 0x0.0p+0, 0x1.0000000000000p+0, 1, 0x1.1097248d0a957p-1, -0x1.7a58759ba80ddp-55},
    {0x1.7100000000000p-1, 0x0.0p+0, 0x1.0000000000000p+0, 2, -0x1.cf830e8ce467bp-1, 0x1.7b9202780d49dp-55},
    {0x1.9900000000000p-1, 0x0.0p+0, 0x1.0000000000000p+0, 3, -0x1.3e39be96ec271p-2, -0x1.814c6de9aaaf6p-56},
    {0x1.c100000000000p-1, 0x0.0p+0, 0x1.0000000000000p+0, 0, 0x1.f677556883ceep-1, 0x1.ef696a8d070f4p-57},
    {0x1.e900000000000p-1, 0x0.0p+0, 0x1.0000000000000p+0, 1, 0x1.20c9674ed444dp-4, -0x1.f9d48faba7974p-58},
    {0x1.45f306dc9c883p-1, -0x1.6b01ec5417056p-55, 0x1.027dd9f120b27p+46, 0, -0x1.cc752d8221233p-1,
     -0x1.f92ae43ead4cap-55},
    {0x1.1d34a60108f72p+2, 0x1.425e51366bdb4p-52, 0x1.02f797022de48p+46, 1, -0x1.5035a5046bbbcp-1,
     0x1.5e142821f5d05p-55},
    {0x1.f31c2281cfb08p+4, 0x1.a12870f9e5fdep-53, 0x1.032e4738d8609p+46, 2, -0x1.65e61434e7b0fp-2,
     0x1.9212bfd038227p-57},
    {0x1.5555555555555p-2, 0x1.5555555555555p-56, 0x1.8000000000000p+1, 0, 0x1.0000000000000p+0,
     -0x1.3bd3cc9be45dep-216},
    {0x1.5555555555555p-2, 0x1.5555555555555p-56, 0x1.8000000000000p+2, 1, -0x1.0000000000000p+0,
     0x1.3bd3cc9be45dep-214},
};
enum { N_VALUES = sizeof values / sizeof *values };

static struct pe_wave wave_of(const struct value *v)
{
    return (struct pe_wave){.fh = v->fh, .fl = v->fl, .ah = 1, .quarter = v->quarter};
}

TEST(values_of_mpmath)
{
    for (size_t i = 0; i < N_VALUES; i++) {
        double phase;
        struct pe_wave wave = wave_of(&values[i]);
        struct pe_dd got = pe_wave_value(&wave, values[i].p, &phase);
        double error = fabs((got.hi - values[i].high) + (got.lo - values[i].low)) / fabs(values[i].high);
        if (!(error <= 0x1p-99))
            fail_msg("%zu: %a + %a, not %a + %a: off by %g", i, got.hi, got.lo, values[i].high, values[i].low, error);
        assert_true(fabs(phase - fabs(values[i].fh * values[i].p)) <= phase * 0x1p-52);
    }
}

/* The amplitude is exact to its lower part, and a minus is a minus. */
TEST(amplitudes)
{
    for (size_t i = 0; i < N_VALUES; i++) {
        double phase;
        struct pe_wave wave = wave_of(&values[i]);
        wave.quarter += 2;
        wave.ah = 3;
        wave.al = 0x1p-60;
        struct pe_dd got = pe_wave_value(&wave, values[i].p, &phase);
        struct pe_dd want =
            dd_neg(dd_mul((struct pe_dd){values[i].high, values[i].low}, (struct pe_dd){wave.ah, wave.al}));
        assert_true(fabs((got.hi - want.hi) + (got.lo - want.lo)) <= fabs(want.hi) * 0x1p-98);
    }
}

/* A decided value rounds as the exact value does, and no value here is too near a middle to be decided. */
TEST(decisions)
{
    uint64_t before = pe_undecided_count();
    for (size_t i = 0; i < N_VALUES; i++) {
        struct pe_wave wave = wave_of(&values[i]);
        double odd = dd_round_odd((struct pe_dd){values[i].high, values[i].low});
        if (fabs(odd) > 0x1p-40)
            assert_true((float)pe_wave_decide(&wave, PE_F32, values[i].p) == (float)odd);
    }
    assert_int_equal(pe_undecided_count(), before);
}

/* +0 where a phase is none or a whole number of half turns, and the amplitude a quarter on. */
TEST(zeros)
{
    for (int quarter = 0; quarter < 4; quarter++)
        for (double p = 0; p < 12; p += 4) {
            struct pe_wave wave = {.fh = 0.5, .ah = 2, .quarter = quarter};
            double want = quarter % 2 ? 2 - quarter : 0, got = pe_wave_decide(&wave, PE_F32, p);
            bool turned = fmod(p, 8) != 0;
            assert_true(got == (turned ? -2 : 2) * want);
            assert_true(got != 0 || !signbit(got));
        }
}
