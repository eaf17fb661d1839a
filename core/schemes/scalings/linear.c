/* Position interpolation (Chen et al. 2023, arXiv 2306.15595): w' = w/factor, as if positions were divided. */
#include "core/schemes/scalings/scaling.h"

/* TGI accepts the type and ignores it. */
static struct pe_dd frequency(const struct pe_scaling_pair *p)
{
    return p->s->convention == PE_CONVENTION_TGI ? p->w : num_div(p, p->w, dd(p->s->factor));
}

static void steps(const struct pe_scaling_pair *p, struct pe_ggml_steps *g)
{
    if (p->s->convention != PE_CONVENTION_TGI)
        g->scale = 1 / (float)p->s->factor;
}

static const struct pe_formula_line formula[] = {
    {"w'_c = { w_c if convention is tgi; w_c/factor }",
     "as if every position were divided by the factor; TGI ignores it"},
    {NULL, NULL},
};

const struct pe_scaling_rule pe_scaling_linear = {
    .name = "linear",
    .formula = formula,
    .about = "w/factor (position interpolation)",
    .convention_about = "tgi ignores it",
    .object = {"factor"},
    .needs = {{.name = "factor"}},
    .takes = "convention|divisors",
    .factor_is_ratio = true,
    .in_transformers = true,
    .frequency = frequency,
    .steps = steps,
    .tried = PE_TRIED,
    /* Any factor is mistaken for the next power of two. */
    .trials = {{.name = "factor", .n = 2, .values = {0.5, 2}, .are_multiples = true}},
};
