/* Transformer-XL (Dai et al. 2019, arXiv 1901.02860): relative_sinusoid.c with R's sines before its cosines, and
 * distances clamped from above. A query may see any key here. The model's own shift leaves invalid values above the
 * diagonal, which its causal mask hides. */
#include "core/schemes/relative/relative.h"

static const struct pe_param params[] = {
    PE_REL_SIN_PARAMS,
    PE_P_END,
};

static const struct pe_input_row inputs[] = {
    PE_REL_SIN_INPUTS,
    {.name = NULL},
};

/* k_len - 1 … 0: the distances that a causal model can see. */
static void list(const struct pe_rel_sin_fields *c, double most, double least, double *first, double *last)
{
    (void)c;
    (void)least;
    *first = most > 0 ? most : 0;
    *last = 0;
}

static const struct pe_rel_sin_style style = {.list = list};

static const struct pe_formula_line formula[] = {
    PE_REL_SIN_FORMULA,
    {"d = { min(delta, clamp_len) if clamp_len > 0; delta }", "the distance, clamped from above"},
    {"R[j] = { sin(d*w[j]) if j < d_model/2; cos(d*w[j - d_model/2]) }", "its encoding: all sines, then all cosines"},
    {"S[m, n] = softmax_scale*sum(c, 0, head_dim - 1, (Q[h, m, c] + u[h, c])*K[h, n, c] + (Q[h, m, c] + v_bias[h, "
     "c])*e[c])",
     "the logit: by content, and by distance, each with a learned query of its own"},
    {NULL, NULL},
};

const struct pe_scheme pe_scheme_transformer_xl = {
    .info =
        {
            .name = "transformer_xl",
            .family = "relative",
            .about = {"Transformer-XL",
                      "products of queries with a projected sinusoid of the distance, and two learned query biases"},
            .paper = "Dai et al. 2019, arXiv 1901.02860, section 3.3",
            .formula = formula,
            .example = "{\"scheme\":\"transformer_xl\",\"len\":4,\"mem_len\":2,\"num_heads\":2,\"head_dim\":4}",
            .picture = "len=64&num_heads=4&head_dim=16",
            .worked = "num_heads=2&head_dim=4&len=4&index=1,1",
            .traps = "All sines precede all cosines, and rows go down from the largest distance. The "
                     "published code multiplies with all distances and then shifts each row, which leaves "
                     "invalid values above the diagonal: they are right only under its causal mask.",
            .params = params,
            .outputs = pe_rel_sin_outputs,
            .inputs = inputs,
        },
    .style = &style,
    PE_REL_SIN_SCHEME,
};
