/* Swin's relative position bias (Liu et al. 2021, arXiv 2103.14030, eq. 4): tokens of a window of h by w, row by
 * row; there is a learned number per head for each position of the key relative to the query.
 *
 *     index[i, j] = (y_i - y_j + h - 1)·(2w - 1) + (x_i - x_j + w - 1)
 *     bias[head, i, j] = table[index[i, j], head]
 *
 * Shifted windows also have a mask between regions (-100 in Microsoft's code), which is not part of the bias. */
#include "core/schemes/bias/bias.h"

static const struct pe_input_row inputs[] = {
    PE_INPUT("table", "(2h-1)*(2w-1),num_heads", PE_ENCODE, false, "table",
             "relative_position_bias_table: a row per relative position"),
    {.name = NULL},
};

static const struct pe_formula_line formula[] = {
    {"H = grid[0]", "the height of the window"},
    {"W = grid[1]", "the width of the window"},
    {"y[t] = floor(t/W)", "the row of token t, counted line by line"},
    {"index[m, n] = (y[m] - y[n] + H - 1)*(2*W - 1) + m mod W - n mod W + W - 1",
     "the row of the table: query minus key, by rows and by columns"},
    {"bias[h, m, n] = table[index[m, n], h]",
     "added to the logits: a learned number for each relative position and head"},
    {NULL, NULL},
};

const struct pe_scheme pe_scheme_swin = {
    .info =
        {
            .name = "swin",
            .family = "bias",
            .about = {"Swin window bias", "a learned bias for each relative position in a window of h by w"},
            .paper = "Liu et al. 2021, arXiv 2103.14030",
            .formula = formula,
            .example = "{\"scheme\":\"swin\",\"grid\":[7,7],\"num_heads\":3,\"seed\":0}",
            .picture = "grid=7,7&outputs=index",
            .worked = "grid=2,2&num_heads=2&seed=0&index=1,3,0",
            .traps = "Height and width exchanged give a table of the same size, with the rows in another "
                     "order. The mask between the regions of a shifted window (-100 in Microsoft's code) is "
                     "not part of the bias.",
            .params = pe_window_params,
            .outputs = pe_window_outputs,
            .inputs = inputs,
        },
    .config_bytes = sizeof(struct pe_window_fields),
    .tables_bytes = sizeof(struct pe_window),
    .has_axes = true,
    .cost = pe_window_cost,
    .plan = pe_window_plan,
    .drop = pe_window_drop,
    .fill = pe_window_fill,
    .derive = pe_window_derive,
};
