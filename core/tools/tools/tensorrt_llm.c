/* TensorRT-LLM's PyTorch backend: it has neither attention_factor nor truncate, takes 1024 for an original length that
 * is not stated, and of longrope the long list at every length. Source: TensorRT-LLM,
 * tensorrt_llm/_torch/attention_backend/interface.py at 000a01de66f0 (RopeParams.from_config), and as stored later,
 * with get_hf_rope_theta; functional.py (RopeEmbeddingUtils), as stored. Which classes use it is unverified but for
 * those named here. */
#include "core/tools/lens.h"

static const struct pe_rope_rule rules[] = {
    {.name = "default"},
    {.name = "linear"},
    {.name = "dynamic", .needed = "alpha", .unread = "factor"}, /* Hunyuan's, another base at every length */
    {.name = "yarn", .original = PE_OUTSIDE_ELSE, .original_else = 1024, .unread = "attention_factor|truncate"},
    {.name = "longrope",
     .original = PE_OUTSIDE_ELSE,
     .original_else = 1024,
     .unread = "attention_factor|factor",
     .has_convention = true},
    {.name = "llama3", .original = PE_OUTSIDE_ELSE, .original_else = 1024},
    {.name = NULL},
};

const struct pe_tool pe_tool_tensorrt_llm = {
    .name = "tensorrt_llm",
    .label = "TensorRT-LLM",
    .convention = "vllm",
    .rules = rules,
    .base = PE_OUTSIDE_ELSE,
    .share = PE_OUTSIDE,
    .unread = "attn_factor",
    .reads = {"as TensorRT-LLM reads it", "TensorRT-LLM's PyTorch backend"},
    .reads_source = "TensorRT-LLM 000a01d",
    .objects = "rope_scaling|rope_parameters",
    .types = "llama|mistral|mixtral|qwen2|qwen3|qwen3_moe",
};
