/* p-RoPE (Barbero et al. 2024, arXiv 2410.06205; Gemma 4): only the pairs of the highest frequencies turn. Every
 * channel of the head is rotated, the others by angle 0, so the exponent's denominator is head_dim. */
#include "core/schemes/scalings/scaling.h"

static enum pe_status resolve(struct pe_scaling_resolved *s, const struct pe_scaling_use *use, struct pe_failure *err)
{
    if (isnan(s->factor))
        s->factor = 1;
    if (use->dim != use->head_dim)
        return pe_fail(err, "/scaling/type",
                       "type is \"proportional\", which rotates the whole head, %.0f channels, but %.0f are rotated; "
                       "partial_rotary_factor goes inside scaling here",
                       use->head_dim, use->dim);
    return PE_OK;
}

/* transformers keeps int(share · head_dim // 2) pairs, the product in double. */
static struct pe_dd frequency(const struct pe_scaling_pair *p)
{
    double kept = floor(p->s->partial_rotary_factor * p->use->head_dim / 2);
    return (double)p->c < kept ? num_div(p, p->w, dd(p->s->factor)) : dd(0);
}

static const struct pe_formula_line formula[] = {
    {"K = floor(partial_rotary_factor*head_dim/2)", "the pairs that turn: those of the highest frequencies"},
    {"w'_c = { w_c/factor if c < K; 0 }", "the others do not turn"},
    {NULL, NULL},
};

const struct pe_scaling_rule pe_scaling_proportional = {
    .name = "proportional",
    .formula = formula,
    .about = "the lowest frequencies become 0 (Gemma 4)",
    .object = {"factor", "partial_rotary_factor"},
    .needs = {{.name = "partial_rotary_factor"}},
    .takes = "factor",
    .has_whole_head = true,
    .in_transformers = true,
    .resolve = resolve,
    .frequency = frequency,
};
