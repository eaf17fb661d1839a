/* Single values of waves in double-double, and the decision how one rounds. */
#include "core/wave_value.h"
#include "core/dtype.h"
#include "core/freq.h"

#include <stdatomic.h>

static atomic_uint_fast64_t n_undecided;

uint64_t pe_undecided_count(void) { return atomic_load_explicit(&n_undecided, memory_order_relaxed); }

/* sin(x) or cos(x), |x| ≤ π/4, by the series: 1 - x²/(1·2)·(1 - x²/(3·4)·(…)), or x·(1 - x²/(2·3)·(…)). The last factor
 * is below 2^-110 of the first. */
static struct pe_dd series(struct pe_dd x, bool cosine)
{
    struct pe_dd square = dd_neg(dd_mul(x, x)), sum = {1, 0};
    for (int n = cosine ? 28 : 29; n > 1; n -= 2)
        sum = dd_add(dd(1), dd_mul(dd_div(square, dd((double)n * (n - 1))), sum));
    return cosine ? sum : dd_mul(x, sum);
}

/* The phase's distance from the nearest whole quarter turn; *quarters is their number. */
static struct pe_dd remainder_of(const struct pe_wave *wave, double p, int64_t *quarters, double *phase)
{
    struct pe_dd high = dd_two_prod(wave->fh, p), low = dd_two_prod(wave->fl, p);
    double whole = nearbyint(high.hi);
    *quarters = (int64_t)whole + wave->quarter;
    *phase = fabs(high.hi);
    return dd_add(dd_add(dd_two_sum(high.hi - whole, high.lo), dd(low.hi)), dd(low.lo));
}

struct pe_dd pe_wave_value(const struct pe_wave *wave, double p, double *phase)
{
    static const struct pe_dd half_pi = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54};
    int64_t quarters;
    struct pe_dd turn = remainder_of(wave, p, &quarters, phase);
    struct pe_dd v = series(dd_mul(turn, half_pi), quarters & 1);
    v = dd_mul(v, (struct pe_dd){wave->ah, wave->al});
    return quarters & 2 ? dd_sub(dd(0), v) : v; /* 0 - 0 is +0 */
}

static bool rounds_alike(enum pe_dtype dtype, double a, double b)
{
    switch (dtype) {
    case PE_F32: return (float)a == (float)b;
    case PE_F16: return pe_f16_round(a) == pe_f16_round(b);
    default: return pe_bf16_round(a) == pe_bf16_round(b);
    }
}

double pe_wave_decide(const struct pe_wave *wave, enum pe_dtype dtype, double p)
{
    /* No phase: the sines are +0, the cosines the amplitude. Every run that meets position 0 asks this of each sine. */
    if (p == 0 || wave->fh == 0) {
        double size = wave->quarter & 1 ? dd_round_odd((struct pe_dd){wave->ah, wave->al}) : 0;
        return wave->quarter & 2 ? 0 - size : size;
    }
    double phase;
    struct pe_dd v = pe_wave_value(wave, p, &phase);
    /* Too near zero to tell from it is zero: frequencies that are rational multiples of π (Fourier features, DINOv3)
     * meet whole turns, and their rounding to double-double is all that is left. */
    if (fabs(v.hi) <= phase * fabs(wave->ah) * 0x1p-100)
        return 0;
    double error = fabs(v.hi) * 0x1p-95 + phase * fabs(wave->ah) * 0x1p-100;
    double least = dd_round_odd(dd_sub(v, dd(error))), most = dd_round_odd(dd_add(v, dd(error)));
    if (phase > 0 && !rounds_alike(dtype, least, most)) /* with no phase v is exact, and may be a tie */
        atomic_fetch_add_explicit(&n_undecided, 1, memory_order_relaxed);
    return dd_round_odd(v);
}

void pe_sincos_f32(double angle, float *cos_out, float *sin_out)
{
    struct pe_dd f = pe_quarter_turns(dd(1));
    struct pe_wave sine = {f.hi, f.lo, 1, 0, 0, 0}, cosine = {f.hi, f.lo, 1, 0, 1, 0};
    *cos_out = (float)pe_wave_decide(&cosine, PE_F32, angle);
    *sin_out = (float)pe_wave_decide(&sine, PE_F32, angle);
}
