/* vLLM with transformers 5: --hf-overrides. Its own code computes the frequencies: it multiplies m(s, 1) by attn_factor
 * and does not read attention_factor, and mscale only with latent attention, whose classes name their rule
 * deepseek_yarn: cos and sin have m(s, mscale)/m(s, mscale_all_dim) · attn_factor (1 and 0 for what is missing), the
 * scale of scores m(s, mscale_all_dim)^2. A config may have that word itself. longrope has a factor for each list, and
 * of the two one at every length: the long one where the server is started for more than the original length
 * (max_model_len). Source: vllm, vllm/model_executor/layers/rotary_embedding/__init__.py at 07b12f1b16d5 (get_rope),
 * phi3_long_rope_scaled_rope.py at 17d618bcbd3c, deepseek_scaling_rope.py at 00d678e109f0, models/deepseek_v2.py at
 * 002d6073aa03 (DeepseekV2Attention); transformers_utils/config.py at 0036026e7171 (patch_rope_parameters). */
#include "core/tools/lens.h"

static const struct pe_lens lenses[] = {
    {"hf_overrides", "overrides", PE_LENS_OBJECT},
    {"max_model_len", "length", PE_LENS_LENGTH, .when = "longrope", .direction = PE_EXPORT_ONLY},
    PE_LENS_END,
};

static const struct pe_rope_rule rules[] = {
    {.name = "default"},
    {.name = "linear"},
    {.name = "ntk_fixed", .word = "ntk", .has_convention = true},
    {.name = "dynamic", .has_convention = true},
    {.name = "yarn",
     .original = PE_OUTSIDE_ELSE,
     .words_need_original = true,
     .unread = "attention_factor|mscale|mscale_all_dim",
     .unread_latent = "attention_factor|truncate",
     .has_convention = true},
    {.name = "longrope",
     .original = PE_OUTSIDE_ELSE,
     .has_one_list = true,
     .words_need_original = true,
     .unread = "attention_factor|factor",
     .has_convention = true},
    {.name = "llama3", .original = PE_OUTSIDE_ELSE, .words_need_original = true},
    {.name = "proportional"}, /* of Gemma 4 */
    {.name = NULL},
};

/* Overrides, config/model.py at 0052a5b81898 (__post_init__, _apply_dict_overrides, _update_nested) and
 * transformers_utils/config.py at 0036026e7171 (get_config, patch_rope_parameters). Numbers are set on the outer
 * config, then transformers 5 completes rope_parameters, in which the file's base is already and stays; then objects
 * are set: one that the outer config has as a config of its own, text_config, is merged member by member, any other one
 * replaced whole and not completed. A model reads its text_config only. Bases: set_default_rope_theta in qwen2.py,
 * qwen3.py (newest copies as stored) and ernie45_moe.py; of a class that is not here the default of get_rope is taken.
 */
static const struct pe_class_base bases[] = {
    {"qwen2|qwen3", 1000000},
    {"ernie4_5_moe", 500000},
    {NULL, 0},
};

const struct pe_tool pe_tool_vllm = {
    .name = "vllm",
    .label = "vLLM",
    .source = "vllm 07b12f1",
    .info = {.about = {"vLLM", "flags of vLLM with transformers 5"},
             .certainty = "code",
             .form = PE_TARGET_SHELL,
             .command = {PE_COMMAND_VLLM},
             .takes = PE_TAKES_OVERRIDES,
             .outer = "hf_overrides",
             .inner = "rope_parameters",
             .is_loaded_first = true,
             .bases = bases},
    .lenses = lenses,
    .carries = "share",
    .has_kinds = true,
    .convention = "vllm",
    .rules = rules,
    .words = "deepseek_yarn",
    .base = PE_INSIDE_ELSE,
    .share = PE_OUTSIDE_ELSE,
    .unread = "attention_factor",
    .reads = {"as vLLM reads it", "vLLM with transformers 5: its own code computes the frequencies"},
    .objects = "rope_scaling|rope_parameters",
    .refuses_two_types = true,
};
