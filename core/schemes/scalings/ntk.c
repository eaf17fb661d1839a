/* NTK-aware scaling (jquesnelle's formula; lucidrains' theta_rescale_factor): base' = base · factor^(r/(r - 2)). */
#include "core/schemes/scalings/scaling.h"

static enum pe_status resolve(struct pe_scaling_resolved *s, const struct pe_scaling_use *use, struct pe_failure *err)
{
    (void)s;
    return pe_scaling_check_exponent("ntk", use, err);
}

static struct pe_dd stretch(const struct pe_scaling_resolved *s) { return dd(s->factor); }

static const struct pe_formula_line formula[] = {
    {"B = base*factor^(r/(r - 2))", "a larger base: the last pair is slowed by the whole factor, the first not at all"},
    {"w'_c = B^(-2*c/r)", "the frequency of pair c under the new base"},
    {NULL, NULL},
};

const struct pe_scaling_rule pe_scaling_ntk = {
    .name = "ntk",
    .formula = formula,
    .about = "base becomes base·factor^(r/(r-2)), r the rotated channels",
    .object = {"factor"},
    .needs = {{.name = "factor"}},
    .factor_is_ratio = true,
    .resolve = resolve,
    .stretch = stretch,
    .tried = PE_TRIED,
};
