/* XLNet (Yang et al. 2019, arXiv 1906.08237): relative_sinusoid.c with R's sines before its cosines, distances
 * clamped to both sides, and a term that depends on whether two tokens are in the same segment:
 *
 *     + softmax_scale · (q_i + r_s_bias_h)·seg_embed[token_type_ids differ ? 1 : 0, h] */
#include "core/schemes/relative/relative.h"

static const struct pe_param params[] = {
    PE_REL_SIN_PARAMS,
    PE_P_REALS(pe_rel_sin_fields, token_type_ids, 0, 255, "segment of each key",
               "segment of each key, [k_len]; a query has the segment of the key at its position"),
    PE_P_END,
};

static const struct pe_input_row inputs[] = {
    PE_REL_SIN_INPUTS,
    [PE_REL_SEG_EMBED] = PE_INPUT("seg_embed", "2,num_heads,head_dim", PE_ATTEND, false, "segment vectors",
                                  "rows: same segment, other segment; optional"),
    [PE_REL_SEG_BIAS] =
        PE_INPUT("r_s_bias", "num_heads,head_dim", PE_ATTEND, false, "segment query", "a query for segments"),
    {.name = NULL},
};

/* k_len … -q_len + 1, one more distance than occurs; causal ("uni"): k_len … 0. */
static void list(const struct pe_rel_sin_fields *c, double most, double least, double *first, double *last)
{
    *first = most + 1;
    *last = c->causal ? 0 : least;
}

static const struct pe_rel_sin_style style = {.clamps_both = true, .has_segments = true, .list = list};

static const struct pe_formula_line formula[] = {
    PE_REL_SIN_FORMULA,
    {"d = { max(min(delta, clamp_len), -clamp_len) if clamp_len > 0; delta }", "the distance, clamped on both sides"},
    {"R[j] = { sin(d*w[j]) if j < d_model/2; cos(d*w[j - d_model/2]) }", "its encoding: all sines, then all cosines"},
    {"z = { 0 if token_type_ids[m] = token_type_ids[n]; 1 }", "1: query and key are of different segments"},
    {"g = { sum(c, 0, head_dim - 1, (Q[h, m, c] + r_s_bias[h, c])*seg_embed[z, h, c]) if token_type_ids is given; 0 }",
     "the term of the segments"},
    {"S[m, n] = softmax_scale*sum(c, 0, head_dim - 1, (Q[h, m, c] + u[h, c])*K[h, n, c] + (Q[h, m, c] + v_bias[h, "
     "c])*e[c]) + softmax_scale*g",
     "the logit: by content, by distance and by segment, each with a learned query of its own"},
    {NULL, NULL},
};

const struct pe_scheme pe_scheme_xlnet = {
    .info =
        {
            .name = "xlnet",
            .family = "relative",
            .about = {"XLNet", "Transformer-XL's term in both directions, and one for tokens of the same segment"},
            .paper = "Yang et al. 2019, arXiv 1906.08237",
            .formula = formula,
            .example = "{\"scheme\":\"xlnet\",\"len\":4,\"num_heads\":2,\"head_dim\":4}",
            .picture = "len=64&num_heads=4&head_dim=16",
            .worked = "num_heads=2&head_dim=4&len=4&index=1,1",
            .traps = "The table begins one distance above the largest that occurs, so a row is not at the "
                     "place that Transformer-XL has it. Distances are clamped on both sides.",
            .params = params,
            .outputs = pe_rel_sin_outputs,
            .inputs = inputs,
        },
    .style = &style,
    PE_REL_SIN_SCHEME,
};
