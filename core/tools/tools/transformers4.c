/* transformers 4.56 and 4.57: fields of a config.json. The base is beside rope_scaling, and so is the original length
 * of longrope; rope_parameters is not read. Source: transformers, src/transformers/modeling_rope_utils.py at
 * 3927ffed31e3 (ROPE_INIT_FUNCTIONS); the explicit factor of YaRN came with 6451294f6f. */
#include "core/tools/lens.h"

static const struct pe_lens lenses[] = {
    {"rope_theta", "base", PE_LENS_BASE, .otherwise = 10000},
    {"rope_scaling", "rope", PE_LENS_OBJECT},
    {"head_dim", "head_dim", PE_LENS_WIDTH},
    {"partial_rotary_factor", "share", PE_LENS_SHARE, .is_quiet = true},
    {"max_position_embeddings", "length", PE_LENS_LENGTH},
    {"original_max_position_embeddings", "scaling.original_max_position_embeddings", PE_LENS_LENGTH,
     .when = "longrope"},
    PE_LENS_END,
};

static const struct pe_rope_rule rules[] = {
    {.name = "default"},
    {.name = "linear"},
    {.name = "dynamic"},
    {.name = "yarn", .original = PE_INSIDE},
    {.name = "longrope", .original = PE_OUTSIDE},
    {.name = "llama3", .original = PE_INSIDE, .original_is_needed = true},
    {.name = NULL},
};

/* Models of 2026, whose classes are in version 5 only; from memory of their release notes. Types that are not here may
 * be missing, too. */
static const char later[] = "gemma4|gemma4_text|qwen3_5|qwen3_5_text|qwen3_5_moe|qwen3_5_moe_text|deepseek_v4|"
                            "glm_moe_dsa";

const struct pe_tool pe_tool_transformers4 = {
    .name = "transformers4",
    .label = "transformers 4",
    .source = "transformers 3927ffe",
    .info = {.about = {"transformers 4", "fields of a config.json for transformers 4.56 and 4.57"},
             .certainty = "code",
             .form = PE_TARGET_JSON,
             .command = {PE_CALLS_TRANSFORMERS},
             .takes = PE_TAKES_OPTIONS,
             .inner = "rope_scaling"},
    .lenses = lenses,
    .carries = "head_dim|share",
    .rules = rules,
    .base = PE_OUTSIDE,
    .share = PE_OUTSIDE,
    .unread = "attn_factor",
    .reads = {"as transformers 4 reads it",
              "transformers 4.56 and 4.57: rope_theta beside rope_scaling, and no rope_parameters"},
    .has_images = true,
    .objects = "rope_scaling",
    .lacks = later,
    .needs_type = true,                   /* ROPE_INIT_FUNCTIONS has no rule of no name */
    .unread_attention = "alibi_bias_max", /* mpt/modeling_mpt.py: build_mpt_alibi_tensor, called with its default */
    .before = "4.56",
    .unread_before = "factor",
    .rules_before = "yarn|longrope",
};
