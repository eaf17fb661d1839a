/* SGLang: --json-model-override-args with the rope_parameters of transformers 5. Source: the flag in public recipes;
 * what its code reads was not seen. So the object is that of transformers 5. */
#include "core/tools/lens.h"

static const struct pe_lens lenses[] = {
    {"json_model_override_args", "overrides", PE_LENS_OBJECT},
    {"context_length", "length", PE_LENS_LENGTH, .direction = PE_EXPORT_ONLY},
    PE_LENS_END,
};

static const struct pe_rope_rule rules[] = {
    {.name = "default"},  {.name = "linear"}, {.name = "dynamic"},      {.name = "yarn"},
    {.name = "longrope"}, {.name = "llama3"}, {.name = "proportional"}, {.name = NULL},
};

const struct pe_tool pe_tool_sglang = {
    .name = "sglang",
    .label = "SGLang",
    .source = "public recipes",
    .info = {.about = {"SGLang", "flags of SGLang"},
             .certainty = "unverified",
             .form = PE_TARGET_SHELL,
             .command = {.programs = "sglang|sglang.launch_server|sglang:*|sglang.bench_*",
                         .calls = "Engine|ServerArgs",
                         .models = "model-path|model|model_path"},
             .takes = PE_TAKES_OVERRIDES,
             .outer = "json_model_override_args",
             .inner = "rope_parameters"},
    .lenses = lenses,
    .carries = "share",
    .rules = rules,
    .unread = "attn_factor",
};
