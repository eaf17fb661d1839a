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

const struct pe_scheme pe_scheme_conformer = {
    .info =
        {
            .name = "conformer",
            .family = "relative",
            .about = {"Conformer", "Transformer-XL's term in both directions, for speech"},
            .paper = "Gulati et al. 2020, arXiv 2005.08100",
            .example = "{\"scheme\":\"conformer\",\"len\":4,\"num_heads\":2,\"head_dim\":4}",
            .picture = "len=64&num_heads=4&head_dim=16",
            .params = params,
            .outputs = pe_rel_sin_outputs,
            .inputs = inputs,
        },
    .style = &style,
    PE_REL_SIN_SCHEME,
};
