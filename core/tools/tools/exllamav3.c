/* ExLlamaV3: it reads a config.json itself. Of yarn whose rope object states the original length the factor is the
 * ratio of max_position_embeddings to it, whatever factor is stated; longrope has its long list at every length, since
 * max_position_embeddings decides. Source: exllamav3, exllamav3/util/rope.py at 04458205486c (RoPE),
 * exllamav3/model/config.py at 00ad034c7888 (read_rope_settings_default). Which classes use it without settings of
 * their own is unverified but for those named here. */
#include "core/tools/lens.h"

static const struct pe_rope_rule rules[] = {
    {.name = "default"},
    {.name = "linear"},
    {.name = "yarn", .original = PE_INSIDE, .ratio_wins = true, .unread = "attn_factor"},
    {.name = "longrope",
     .original = PE_INSIDE_ELSE,
     .has_one_list = true,
     .unread = "attention_factor|factor|short_mscale|long_mscale"},
    {.name = "llama3", .original = PE_INSIDE, .original_else = 8192},
    {.name = "proportional"},
    {.name = NULL},
};

const struct pe_tool pe_tool_exllamav3 = {
    .name = "exllamav3",
    .label = "ExLlamaV3",
    .rules = rules,
    .base = PE_OUTSIDE_ELSE,
    .share = PE_OUTSIDE_ELSE,
    .reads = {"as ExLlamaV3 reads it", "ExLlamaV3, which reads the config.json itself"},
    .reads_source = "exllamav3 0445820",
    .objects = "rope_scaling|rope_parameters",
    .types = "llama|mixtral|qwen3|qwen3_moe|phi3|gemma2|seed_oss|arcee|apertus",
};
