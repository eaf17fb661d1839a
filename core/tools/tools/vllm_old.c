/* vLLM before 0.11.1: --rope-scaling and --rope-theta, by the same code; the share of a head is the model's. Source:
 * vllm, rotary_embedding/__init__.py at 07b12f1b16d5 (get_rope). */
#include "core/tools/lens.h"

static const struct pe_lens lenses[] = {
    {"rope_scaling", "rope", PE_LENS_OBJECT},
    {"rope_theta", "base", PE_LENS_BASE, .otherwise = 10000},
    PE_LENS_END,
};

static const struct pe_rope_rule rules[] = {
    {.name = "default"},
    {.name = "linear"},
    {.name = "ntk_fixed", .word = "ntk"},
    {.name = "dynamic"},
    {.name = "yarn",
     .words_need_original = true,
     .unread = "attention_factor|mscale|mscale_all_dim",
     .unread_latent = "attention_factor|truncate"},
    {.name = "longrope", .words_need_original = true, .unread = "attention_factor|factor"},
    {.name = "llama3", .words_need_original = true},
    {.name = NULL},
};

const struct pe_tool pe_tool_vllm_old = {
    .name = "vllm_old",
    .label = "vLLM before 0.11.1",
    .source = "vllm 07b12f1",
    .info = {.about = {"vLLM before 0.11.1", "flags of vLLM before 0.11.1"},
             .certainty = "code",
             .form = PE_TARGET_SHELL,
             .command = {PE_COMMAND_VLLM},
             .takes = PE_TAKES_OPTIONS,
             .inner = "rope_scaling"},
    .lenses = lenses,
    .convention = "vllm",
    .rules = rules,
    .words = "deepseek_yarn",
    .base = PE_OUTSIDE,
    .share = PE_OUTSIDE,
    .unread = "attention_factor",
};
