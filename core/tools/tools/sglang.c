/* SGLang with transformers 5, whose rope_parameters it takes: --json-model-override-args, and its reading of a
 * config.json. Its code came from vLLM's: one table of dynamic for the whole length, attn_factor and no
 * attention_factor, and of longrope a factor for each list. Unlike vLLM's it reads mscale and mscale_all_dim of yarn
 * where both are there, and takes the model's length for an original one that is missing. How overrides are merged into
 * a text_config was not seen. Source: sglang, python/sglang/srt/layers/rotary_embedding/factory.py at 108c36c00829
 * (get_rope), yarn.py at 0b1fd02d56f0; srt/utils/hf_transformers (get_rope_config), as stored. */
#include "core/tools/lens.h"

static const struct pe_lens lenses[] = {
    {"json_model_override_args", "overrides", PE_LENS_OBJECT},
    {"context_length", "length", PE_LENS_LENGTH, .when = "longrope", .direction = PE_EXPORT_ONLY},
    PE_LENS_END,
};

static const struct pe_rope_rule rules[] = {
    {.name = "default"},
    {.name = "linear"},
    {.name = "dynamic", .has_convention = true},
    {.name = "yarn", .unread = "attention_factor", .has_convention = true},
    {.name = "longrope", .unread = "attention_factor|factor", .has_convention = true},
    {.name = "llama3"},
    {.name = "proportional"}, /* of Gemma 4 */
    {.name = NULL},
};

/* Overrides without a base stop get_rope_config, but for a class with a number of its own: srt/models/qwen3.py at
 * 01b5f572. */
static const struct pe_class_base bases[] = {
    {"qwen3", 1000000},
    {NULL, 0},
};

const struct pe_tool pe_tool_sglang = {
    .name = "sglang",
    .label = "SGLang",
    .source = "sglang 108c36c",
    .info = {.about = {"SGLang", "flags of SGLang"},
             .certainty = "code",
             .form = PE_TARGET_SHELL,
             .command = {.programs = "sglang|sglang.launch_server|sglang:*|sglang.bench_*",
                         .calls = "Engine|ServerArgs",
                         .models = "model-path|model|model_path"},
             .takes = PE_TAKES_OVERRIDES,
             .outer = "json_model_override_args",
             .inner = "rope_parameters",
             .bases = bases},
    .lenses = lenses,
    .carries = "share",
    .has_kinds = true,
    .convention = "vllm",
    .rules = rules,
    .words = "deepseek_yarn",
    .base = PE_INSIDE_ELSE,
    .words_need_base = true,
    .share = PE_OUTSIDE_ELSE,
    .unread = "attention_factor",
    .reads = {"as SGLang reads it", "SGLang with transformers 5: its own code computes the frequencies"},
    .objects = "rope_scaling|rope_parameters",
    .types = "llama|mistral|mixtral|qwen2|qwen2_moe|qwen3|qwen3_moe|phi3|gemma2|glm4|glm4_moe",
};
