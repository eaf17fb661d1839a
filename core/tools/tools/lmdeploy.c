/* LMDeploy's PyTorch engine with transformers 5, which hands it rope_parameters: it computes the frequencies itself,
 * has no rule of other names, and of longrope takes the factor from the two lengths whatever is stated. Source:
 * lmdeploy, lmdeploy/pytorch/nn/rotary_embedding.py (build_rotary_params) and backends/default/rotary_embedding.py at
 * 1263d5cd889b; the classes that build their rotation by it: lmdeploy/pytorch/models. */
#include "core/tools/lens.h"

static const struct pe_rope_rule rules[] = {
    {.name = "default"},
    {.name = "linear"},
    {.name = "dynamic"},
    {.name = "yarn", .original = PE_OUTSIDE_ELSE},
    {.name = "longrope", .original = PE_OUTSIDE_ELSE, .unread = "attention_factor|factor"},
    {.name = "llama3", .original = PE_OUTSIDE_ELSE},
    {.name = NULL},
};

const struct pe_tool pe_tool_lmdeploy = {
    .name = "lmdeploy",
    .label = "LMDeploy",
    .rules = rules,
    .base = PE_INSIDE_ELSE,
    .share = PE_OUTSIDE_ELSE,
    .unread = "attn_factor",
    .reads = {"as LMDeploy reads it", "LMDeploy's PyTorch engine with transformers 5"},
    .reads_source = "lmdeploy 1263d5c",
    .objects = "rope_scaling|rope_parameters",
    .types = "llama|mistral|mixtral|qwen2|qwen2_moe|qwen3|qwen3_moe|qwen3_next|qwen2_vl|qwen2_vl_text|qwen3_vl|"
             "qwen3_vl_text|qwen3_vl_moe|qwen3_vl_moe_text|phi3|gpt_oss|internlm2|internlm3|glm4|glm4_moe|gemma|gemma2",
};
