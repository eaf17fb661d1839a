/* BEiT's relative position bias (Bao et al. 2021, arXiv 2106.08254; unilm's beit/modeling_finetune.py): Swin's bias
 * over all patches, plus a class token in front that has three rows of its own after the M = (2h-1)·(2w-1) rows of
 * the patches.
 *
 *     index[i, j] = (y_i - y_j + h - 1)·(2w - 1) + (x_i - x_j + w - 1)          patches
 *     index[0, j] = M;   index[i, 0] = M + 1;   index[0, 0] = M + 2             class to patch, patch to class, itself
 *     bias[head, i, j] = table[index[i, j], head] */
#include "core/schemes/bias/bias.h"

static const struct pe_input_row inputs[] = {
    PE_INPUT("table", "(2h-1)*(2w-1)+3,num_heads", PE_ENCODE, false, "table",
             "relative_position_bias_table: a row per relative position, then class to patch, patch to class, class to "
             "class"),
    {.name = NULL},
};

static const struct pe_formula_line formula[] = {
    {"H = grid[0]", "the height of the grid in patches"},
    {"W = grid[1]", "the width of the grid in patches"},
    {"y[t] = floor((t - 1)/W)", "the row of token t; token 0 is the class token"},
    {"x[t] = (t - 1) mod W", "its column"},
    {"M = (2*H - 1)*(2*W - 1)", "the relative positions of patches"},
    {"index[m, n] = { M + 2 if m = 0 and n = 0; M if m = 0; M + 1 if n = 0; (y[m] - y[n] + H - 1)*(2*W - 1) + x[m] - "
     "x[n] + W - 1 }",
     "the row of the table; the class token has three rows of its own"},
    {"bias[h, m, n] = table[index[m, n], h]",
     "added to the logits: a learned number for each relative position and head"},
    {NULL, NULL},
};

const struct pe_scheme pe_scheme_beit = {
    .info =
        {
            .name = "beit",
            .family = "bias",
            .about = {"BEiT window bias",
                      "a learned bias for each relative position of patches, with a class token in front"},
            .paper = "Bao et al. 2021, arXiv 2106.08254",
            .formula = formula,
            .example = "{\"scheme\":\"beit\",\"grid\":[3,4],\"num_heads\":2,\"seed\":0}",
            .picture = "grid=6,6&outputs=index",
            .worked = "grid=2,2&num_heads=2&seed=0&index=1,4,1",
            .traps = "The class token is the first token, but its three rows are the last of the table: from "
                     "it to patches, from patches to it, and to itself. Another grid resizes the rows of "
                     "patches only.",
            .params = pe_window_params,
            .outputs = pe_window_outputs,
            .inputs = inputs,
        },
    .config_bytes = sizeof(struct pe_window_fields),
    .tables_bytes = sizeof(struct pe_window),
    .n_class = 1,
    .has_axes = true,
    .cost = pe_window_cost,
    .plan = pe_window_plan,
    .drop = pe_window_drop,
    .fill = pe_window_fill,
    .derive = pe_window_derive,
};
