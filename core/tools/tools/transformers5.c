/* transformers 5: rope_parameters, which has the base and the share too, and where kinds of layers differ one object
 * for each. Of these it reads truncate in the outer object, which has none. Source: transformers,
 * src/transformers/modeling_rope_utils.py, RotaryEmbeddingConfigMixin (convert_rope_params_to_dict,
 * standardize_rope_params), main as stored, and 5.0.0.dev0 at 23cf3ee4c77e. */
#include "core/tools/lens.h"

static const struct pe_lens lenses[] = {
    {"rope_parameters", "rope", PE_LENS_OBJECT},
    {"layer_types", "layer_types", PE_LENS_OBJECT, .direction = PE_EXPORT_ONLY},
    {"head_dim", "head_dim", PE_LENS_WIDTH},
    {"max_position_embeddings", "length", PE_LENS_LENGTH},
    PE_LENS_END,
};

static const struct pe_rope_rule rules[] = {
    {.name = "default"},
    {.name = "linear"},
    {.name = "dynamic"},
    {.name = "yarn", .original = PE_OUTSIDE_ELSE},
    {.name = "longrope", .original = PE_OUTSIDE_ELSE},
    {.name = "llama3", .original = PE_OUTSIDE_ELSE},
    {.name = "proportional"},
    {.name = NULL},
};

const struct pe_tool pe_tool_transformers5 = {
    .name = "transformers5",
    .label = "transformers 5",
    .source = "transformers 23cf3ee",
    .info = {.about = {"transformers 5", "fields of a config.json for transformers 5"},
             .certainty = "code",
             .form = PE_TARGET_JSON,
             .command = {PE_CALLS_TRANSFORMERS},
             .takes = PE_TAKES_OVERRIDES,
             .inner = "rope_parameters"},
    .lenses = lenses,
    .carries = "head_dim|share",
    .has_kinds = true,
    .rules = rules,
    .base = PE_INSIDE_ELSE,
    .share = PE_OUTSIDE_ELSE,
    .unread = "attn_factor",
    .unread_by_layer = "truncate",
    .reads = {"as transformers 5 reads it", "transformers 5: rope_scaling or rope_parameters, which has the base too"},
    .has_images = true,
    .objects = "rope_scaling|rope_parameters",
    .unread_attention = "alibi_bias_max",
    .scaled_sliding = "olmo3", /* olmo3/modular_olmo3.py: one Olmo3RotaryEmbedding for all layers; pull request 45945 */
};
