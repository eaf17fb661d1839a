/* Swin's relative position bias (Liu et al. 2021, arXiv 2103.14030, eq. 4): tokens of a window of h by w, row by
 * row; there is a learned number per head for each position of the key relative to the query.
 *
 *     index[i, j] = (y_i - y_j + h - 1)·(2w - 1) + (x_i - x_j + w - 1)
 *     bias[head, i, j] = table[index[i, j], head]
 *
 * Shifted windows also have a mask between regions (-100 in Microsoft's code), which is not part of the bias. */
#include "core/schemes/bias/bias.h"

static const struct pe_param params[] = {
    PE_P_INT(pe_window_fields, num_heads, 8, 1, PE_HEADS_MAX, "heads", "attention heads; if a table is sent, its own",
             .group = PE_G_SIZE, .usual = {1, 32}),
    PE_WINDOW_PARAMS,
    PE_P_END,
};

static const struct pe_input_row inputs[] = {
    PE_INPUT("table", "(2h-1)*(2w-1),num_heads", PE_ENCODE, false, "table",
             "relative_position_bias_table: a row per relative position"),
    {.name = NULL},
};

static enum pe_status plan(struct pe_plan *plan, struct pe_error *err) { return pe_window_plan(plan, false, err); }

const struct pe_scheme pe_scheme_swin = {
    .info =
        {
            .name = "swin",
            .family = "bias",
            .about = {"Swin window bias", "a learned bias for each relative position in a window of h by w"},
            .paper = "Liu et al. 2021, arXiv 2103.14030",
            .example = "{\"scheme\":\"swin\",\"grid\":[7,7],\"num_heads\":3,\"seed\":0}",
            .picture = "grid=7,7&outputs=index",
            .params = params,
            .outputs = pe_window_outputs,
            .inputs = inputs,
        },
    .config_bytes = sizeof(struct pe_window_fields),
    .has_axes = true,
    .cost = pe_window_cost,
    .plan = plan,
    .drop = pe_window_drop,
    .fill = pe_window_fill,
};
