/* vLLM with transformers 5.
 * Source: vllm, vllm/model_executor/layers/rotary_embedding/__init__.py at 07b12f1b16d5: get_rope;
 * vllm/transformers_utils/ config.py: patch_rope_parameters, as stored. */
#include "core/models/readers/readers.h"

static const struct pe_reader_rule rules[] = {
    {.name = "default"},
    {.name = "linear"},
    {.name = "ntk"},
    {.name = "dynamic", .convention = "vllm"},
    {.name = "yarn",
     .original = PE_OUTSIDE_ELSE,
     .unread = "attention_factor|mscale|mscale_all_dim",
     .unread_latent = "attention_factor|truncate",
     .convention = "vllm"},
    {.name = "longrope", .original = PE_OUTSIDE_ELSE, .unread = "attention_factor|factor", .convention = "vllm"},
    {.name = "llama3", .original = PE_OUTSIDE_ELSE},
    {.name = "proportional"}, /* of Gemma 4 */
    {.name = NULL},
};

const struct pe_reader pe_reader_vllm = {
    .name = "vllm",
    .label = "vLLM",
    .about = {"as vLLM reads it", "vLLM with transformers 5: its own code computes the frequencies"},
    .source = "vllm 07b12f1",
    .objects = "rope_scaling|rope_parameters",
    .base = PE_INSIDE_ELSE,
    .share = PE_OUTSIDE_ELSE,
    .rules = rules,
    .refuses_two_types = true,
};
