/* No position information: an encoding of zeros. The control of every experiment. */
#include "core/scheme.h"

#include <string.h>

struct none {
    int64_t dim;
    int arith;
};

static const struct pe_param params[] = {
    PE_P_INT(none, dim, 512, 1, PE_DIM_MAX, "width", "channels of the encoding", .group = PE_G_SIZE,
             .usual = {8, 1024}),
    PE_P_ARITH(none),
    PE_P_END,
};

static const struct pe_output_row outputs[] = {
    PE_OUTPUT("encoding", "n,dim", 1, PE_DTYPE_NONE, false, NULL, "encoding", "zeros"),
    {.name = NULL},
};

/* PE(p, j) = 0 */
static void none_fill(const struct pe_plan *plan, const struct pe_output *output, size_t id, const struct pe_block *b,
                      void *dst)
{
    (void)plan;
    (void)id;
    memset(dst, 0, b->n_rows * b->n_cols * pe_dtype_size(output->dtype));
}

static enum pe_status derive(const struct pe_plan *plan, size_t id, const struct pe_address *at,
                             struct pe_derivation *d, struct pe_failure *err)
{
    (void)plan, (void)id, (void)at, (void)err;
    pe_derived(d, "x", dd(0), "0");
    pe_derived_says(d, "no position is encoded: every number is 0");
    return PE_OK;
}

static const struct pe_formula_line formula[] = {
    {"PE[p, j] = 0", "every row is zero: no information on positions"},
    {NULL, NULL},
};

const struct pe_scheme pe_scheme_none = {
    .info =
        {
            .name = "none",
            .family = "absolute",
            .about = {"no encoding", "no position information: zeros"},
            .paper = "Haviv et al. 2022, arXiv 2203.16634 (language models without positional encodings)",
            .formula = formula,
            .example = "{\"scheme\":\"none\",\"len\":8,\"dim\":16}",
            .picture = "len=64&dim=64",
            .worked = "dim=8&position=3&channel=1",
            .traps = "Without a mask, attention cannot distinguish two orders of the same tokens. A causal "
                     "mask alone can: each query sees another number of keys.",
            .params = params,
            .outputs = outputs,
            .is_additive = true,
        },
    .config_bytes = sizeof(struct none),
    .is_neutral = true,
    .fill = none_fill,
    .derive = derive,
};
