/* Megatron-LM: arguments. The base and the linear factor are integers, Llama 3's rule is that of 3.1 but for its
 * factor, and yarn turns the whole head, in halves. Source: Megatron-LM d98e8a64ddf3, training/arguments.py,
 * core/models/common/embeddings. */
#include "core/tools/lens.h"

static const struct pe_form forms[] = {
    {.word = "rope"},
    {.word = "yarn", .rule = "yarn", .decides = true, .layout = "half"},
    {.word = "none", .scheme = "none"},
    {.word = NULL},
};

static const struct pe_need of_rope[] = {
    {"position-embedding-type rope", "position-embedding-type", "rope", "rope", NULL},
    {.what = NULL},
};
static const struct pe_need of_llama3[] = {
    {"use-rope-scaling", "use-rope-scaling", "true", "false", NULL},
    {"position-embedding-type rope", "position-embedding-type", "rope", "rope", NULL},
    {.what = NULL},
};
static const struct pe_need of_yarn[] = {
    {"position-embedding-type yarn", "position-embedding-type", "yarn", "rope", NULL},
    {.what = NULL},
};

#define OF_YARN PE_LENS_REAL, .when = "yarn", .needs = of_yarn

static const struct pe_lens lenses[] = {
    {"position-embedding-type", PE_LENS_KIND},
    {"rotary-base", "base", PE_WHOLE, .type = PE_T_INT, .max = 1e12, .otherwise = 10000},
    {"rotary-percent", "share", PE_LENS_SHARE, .unless = "yarn", .direction = PE_IMPORT_ONLY, .needs = of_rope},
    {"kv-channels", "head_dim", PE_LENS_WIDTH},
    {"rotary-percent", "share", PE_LENS_SHARE, .unless = "yarn", .direction = PE_EXPORT_ONLY, .is_quiet = true},
    {"rotary-interleaved", "layout", PE_NEIGHBOURS, PE_LENS_FLAG, .unless = "yarn", .is_quiet = true, .needs = of_rope},
    {"rotary-seq-len-interpolation-factor", "scaling.factor", PE_WHOLE, .type = PE_T_INT, .max = PE_SCALING_FACTOR_MAX,
     .otherwise = 1, .when = "linear", .is_rule = true, .needs = of_rope},
    {"use-rope-scaling", NULL, PE_LENS_FLAG, .when = "llama3", .is_rule = true, .needs = of_rope},
    {"rope-scaling-factor", "scaling.factor", PE_LENS_FACTOR, .otherwise = 8, .when = "llama3", .needs = of_llama3},
    {NULL, "scaling.low_freq_factor", PE_LENS_REAL, .otherwise = 1, .when = "llama3"},
    {NULL, "scaling.high_freq_factor", PE_LENS_REAL, .otherwise = 4, .when = "llama3"},
    {NULL, "scaling.original_max_position_embeddings", PE_LENS_REAL, .otherwise = 8192, .when = "llama3"},
    {"rotary-scaling-factor", "scaling.factor", PE_LENS_FACTOR, .otherwise = 1, .when = "yarn", .needs = of_yarn},
    {"yarn-original-max-position-embeddings", "scaling.original_max_position_embeddings", PE_LENS_LENGTH,
     .otherwise = 4096, .when = "yarn", .needs = of_yarn},
    {"yarn-beta-fast", "scaling.beta_fast", OF_YARN, .max = 1e9, .otherwise = 32, .is_quiet = true, .is_divisor = true},
    {"yarn-beta-slow", "scaling.beta_slow", OF_YARN, .max = 1e9, .otherwise = 1, .is_quiet = true, .is_divisor = true},
    {"mscale", "magnitude", PE_UNLESS_ZERO, OF_YARN, .max = 1000, .otherwise = 1},
    {"mscale-all-dim", "magnitude_all_dim", PE_UNLESS_ZERO, OF_YARN, .max = 1000},
    {"no-yarn-correction-range-round-to-int", "scaling.truncate", PE_NOT, PE_LENS_FLAG, .when = "yarn",
     .is_quiet = true, .needs = of_yarn},
    {"no-rope-freq", "still_period", PE_LENS_OBJECT, .direction = PE_EXPORT_ONLY}, /* layers with positions are meant */
    PE_LENS_END,
};

/* The factor on cos and sin, also where one of the two is 0. */
static enum pe_status import(struct pe_import *m)
{
    double k = pe_import_number(m, "mscale"), l = pe_import_number(m, "mscale-all-dim");
    if (pe_same(m->rule, "yarn"))
        pe_import_scaling(m, "attention_factor",
                          pe_real(pe_magnitude_ratio(pe_import_number(m, "rotary-scaling-factor"), k, l)));
    return PE_OK;
}

const struct pe_tool pe_tool_megatron = {
    .name = "megatron",
    .label = "Megatron-LM",
    .source = "megatron-lm d98e8a6",
    .info = {.about = {"Megatron-LM", "arguments of Megatron-LM"},
             .certainty = "code",
             .form = PE_TARGET_SHELL,
             .command = {.programs = "pretrain_*|megatron*|Megatron*|train_gpt.py", .models = ""},
             .width = {"kv-channels", "hidden-size", "num-attention-heads"}},
    .lenses = lenses,
    .forms = forms,
    .carries = "head_dim|share|layout",
    .states_none = true,
    .import = import,
};
