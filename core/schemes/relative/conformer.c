/* Conformer (Gulati et al. 2020, arXiv 2005.08100; wav2vec2-conformer): relative_sinusoid.c in both directions, R's
 * sines and cosines interleaved. */
#include "core/schemes/relative/relative.h"

static const struct pe_param params[] = {
    PE_REL_SIN_PARAMS,
    PE_P_END,
};

static const struct pe_input_row inputs[] = {
    PE_REL_SIN_INPUTS,
    {.name = NULL},
};

/* k_len - 1 … -(q_len - 1). */
static void list(const struct pe_rel_sin_fields *c, double most, double least, double *first, double *last)
{
    (void)c;
    *first = most;
    *last = least;
}

static const struct pe_rel_sin_style style = {.is_interleaved = true, .clamps_both = true, .list = list};

static const struct pe_formula_line formula[] = {
    PE_REL_SIN_FORMULA,
    {"d = { max(min(delta, clamp_len), -clamp_len) if clamp_len > 0; delta }", "the distance, clamped on both sides"},
    {"R[j] = { sin(d*w[j/2]) if j mod 2 = 0; cos(d*w[(j - 1)/2]) }", "its encoding: sines and cosines alternate"},
    {"S[m, n] = softmax_scale*sum(c, 0, head_dim - 1, (Q[h, m, c] + u[h, c])*K[h, n, c] + (Q[h, m, c] + v_bias[h, "
     "c])*e[c])",
     "the logit: by content, and by distance, each with a learned query of its own"},
    {NULL, NULL},
};

const struct pe_scheme pe_scheme_conformer = {
    .info =
        {
            .name = "conformer",
            .family = "relative",
            .about = {"Conformer", "Transformer-XL's term in both directions, for speech"},
            .paper = "Gulati et al. 2020, arXiv 2005.08100",
            .formula = formula,
            .example = "{\"scheme\":\"conformer\",\"len\":4,\"num_heads\":2,\"head_dim\":4}",
            .picture = "len=64&num_heads=4&head_dim=16",
            .worked = "num_heads=2&head_dim=4&len=4&index=1,1",
            .traps = "Sines and cosines alternate, where Transformer-XL and XLNet have all sines first: "
                     "weights of one do not fit the other.",
            .params = params,
            .outputs = pe_rel_sin_outputs,
            .inputs = inputs,
        },
    .style = &style,
    PE_REL_SIN_SCHEME,
};
