/* NTK-RoPE-fixed and -mixed (Su 2023, kexue.fm/archives/9706; vLLM's class NTKScalingRotaryEmbedding, whose word for
 * both is ntk). Pair i of r/2:
 *
 *     w'_i = w_i / s^(((i + 1)/(r/2))^b)
 *
 * With b = 1 that is (base·s)^(-2i/r)/s^(2/r): every pair is slowed, the last by the whole factor. */
#include "core/schemes/scalings/scaling.h"

struct ntk_fixed {
    double mixed_b;
};

static const struct pe_param fields[] = {
    PE_P_REAL(ntk_fixed, mixed_b, PE_UNSET, 1e-3, 1e3, "exponent of the pairs",
              "ntk_fixed: pair i of n is divided by factor^(((i + 1)/n)^mixed_b); default 1, NTK-RoPE-fixed; "
              "NTK-RoPE-mixed has 0.625",
              .usual = {0.25, 2}),
    PE_P_END,
};

static double mixed_b(const struct pe_scaling_pair *p) /* NaN: none is given */
{
    const struct ntk_fixed *own = PE_S_OWN(p->s, ntk_fixed);
    return own->mixed_b;
}

/* vLLM has a branch for each: without mixed_b it changes the base and divides by a Python number, with it a tensor
 * holds a = ln s/(r/2)^b, and exp(a·(i + 1)^b) is what it divides by. */
static struct pe_dd in_float32(const struct pe_scaling_pair *p)
{
    double half = p->use->dim / 2, s = p->s->factor, b = mixed_b(p);
    if (isnan(b)) {
        struct pe_dd log_base = pe_dd_log(dd((double)(float)(p->use->base * s)));
        double power = (double)pe_power_float32(log_base, p->c, half);
        struct pe_dd slowed = pe_dd_exp(dd_div(pe_dd_log(dd(s)), dd(half)));
        return num_div(p, num_div(p, dd(1), dd(power)), slowed);
    }
    struct pe_dd place = num(p, pe_dd_exp(dd_mul_d(pe_dd_log(dd((double)(p->c + 1))), b)));
    struct pe_dd a = num_div(p, pe_dd_log(dd(s)), pe_dd_exp(dd_mul_d(pe_dd_log(dd(half)), b)));
    return num_div(p, p->w, num(p, pe_dd_exp(num_mul(p, a, place))));
}

static struct pe_dd frequency(const struct pe_scaling_pair *p)
{
    if (p->use->float32)
        return in_float32(p);
    struct pe_dd share = dd_div(dd((double)(p->c + 1)), dd(p->use->dim / 2));
    struct pe_dd power = pe_dd_exp(dd_mul_d(pe_dd_log(share), isnan(mixed_b(p)) ? 1 : mixed_b(p)));
    return dd_div(p->w, pe_dd_exp(dd_mul(power, pe_dd_log(dd(p->s->factor)))));
}

static const struct pe_formula_line formula[] = {
    {"b = { mixed_b if mixed_b is given; 1 }", "the exponent of the pairs; 1 is NTK-RoPE-fixed"},
    {"w'_c = w_c/factor^(((c + 1)/(r/2))^b)", "every pair is slowed, the last by the whole factor"},
    {NULL, NULL},
};

const struct pe_scaling_rule pe_scaling_ntk_fixed = {
    .name = "ntk_fixed",
    .formula = formula,
    .about = "pair i of n is divided by factor^((i + 1)/n), or with mixed_b by another power (Su; vLLM's ntk)",
    .fields = fields,
    .object = {"factor", "mixed_b"},
    .needs = {{.name = "factor"}},
    .factor_is_ratio = true,
    .frequency = frequency,
    .tried = PE_TRIED_IF_BELIEVED,
};
