/* mlx-lm: initialize_rope. A factor on cos and sin is stated by mscale and mscale_all_dim, longrope takes its long list
 * at every length. Source: mlx-lm d78bf58e217c, models/rope_utils.py. */
#include "core/tools/lens.h"

static const struct pe_lens lenses[] = {
    {"dims", "rotary_dim", PE_LENS_WIDTH},
    {"base", "base", PE_LENS_BASE, .otherwise = 10000},
    {"traditional", "layout", PE_NEIGHBOURS, PE_LENS_FLAG},
    {"scaling_config", "rope", PE_LENS_OBJECT},
    {"max_position_embeddings", "length", PE_LENS_LENGTH},
    PE_LENS_END,
};

static const struct pe_rope_rule rules[] = {
    {.name = "default"}, {.name = "linear"}, {.name = "yarn"}, {.name = "longrope", .unread = "factor"},
    {.name = "llama3"},  {.name = NULL},
};

const struct pe_tool pe_tool_mlx = {
    .name = "mlx",
    .label = "mlx-lm",
    .source = "mlx-lm d78bf58",
    .info = {.about = {"mlx-lm", "a call of mlx-lm"},
             .certainty = "code",
             .form = PE_TARGET_PYTHON,
             .called = "initialize_rope"},
    .lenses = lenses,
    .carries = "rotary_dim|layout",
    .convention = "mlx",
    .rules = rules,
    .base = PE_OUTSIDE,
    .share = PE_OUTSIDE,
    .unread = "attention_factor|attn_factor|short_mscale|long_mscale|truncate|mrope_section",
};
