/* llama.cpp: flags that replace what a file states. They have no word for divisors and lists, which are in the file,
 * nor for the base of sliding layers. 0 means the file's number, but for --rope-scale, by which it divides. What ramps
 * is --yarn-ext-factor, which follows from the type unless it is given: with a ramp --yarn-attn-factor is overwritten,
 * without one it multiplies cosines and sines. Source: llama.cpp 6c8dcaa7ae41 (b10256), common/arg.cpp,
 * llama-context.cpp.
 *
 * Its converter, which writes GGUF keys of a config.json; core/models/gguf has what the program takes from them.
 * Source: llama.cpp, conversion/base.py at 00bd27a621f9 (TextModel: rope_parameters, set_gguf_parameters), llama.py at
 * 0274f0fc7d7f (generate_extra_tensors), phi.py at 051139f51130, gemma.py at 061b8c5f9188, mistral3.py at 32e9e0448790,
 * llama4.py at 2bbcf7fc93a4, hunyuan.py (a stored copy, of no known commit); FalconH1Model, NemotronHModel,
 * GlmMoeDsaModel, InternLM3Model as stored (T5Model, BertModel from memory). GraniteHybridModel writes another
 * architecture, or no rotation, by which layers are Mamba's, which no row here states: granitemoehybrid is not known.
 * The names of classes and architectures: gguf-py/gguf/constants.py. */
#include "core/tools/lens.h"

static const struct pe_form forms[] = {
    {.word = "none", .decides = true},
    {.word = "linear", .rule = "linear"},
    {.word = "yarn", .rule = "yarn", .decides = true},
    {.word = NULL},
};

static const struct pe_need of_factor[] = {
    {"rope-scaling linear or yarn", "rope-scaling", "linear|yarn", "linear", NULL},
    {.what = NULL},
};
static const struct pe_need of_yarn[] = {
    {"rope-scaling yarn", "rope-scaling", "yarn", "linear", NULL},
    {.what = NULL},
};
static const struct pe_need of_no_ramp[] = {
    {"rope-scaling none or linear, or yarn-ext-factor 0", "rope-scaling", "none|linear", "linear", "yarn-ext-factor"},
    {.what = NULL},
};

#define OF_YARN PE_LENS_REAL, .min = -1, .when = "yarn", .is_quiet = true, .needs = of_yarn

static const struct pe_lens lenses[] = {
    {"rope-scaling", PE_LENS_KIND, .otherwise = PE_UNSET_WORD},
    {"rope-scale", "scaling.factor", PE_LENS_FACTOR, .otherwise = PE_UNSET, .when = "linear|yarn", .is_rule = true,
     .needs = of_factor},
    {"rope-freq-scale", "scaling.factor", PE_RECIPROCAL, PE_LENS_FACTOR, .direction = PE_IMPORT_ONLY,
     .otherwise = PE_UNSET, .when = "linear|yarn", .is_rule = true, .is_none_at_0 = true, .needs = of_factor},
    {"rope-freq-base", "base", PE_LENS_BASE, .otherwise = 10000, .is_of_file = true, .is_none_at_0 = true},
    {"yarn-orig-ctx", "scaling.original_max_position_embeddings", PE_LENS_LENGTH, .otherwise = PE_UNSET, .when = "yarn",
     .is_none_at_0 = true, .needs = of_yarn},
    {"yarn-ext-factor", "scaling.extrapolation_factor", OF_YARN, .max = 1, .otherwise = -1, .usual = 1,
     .is_none_below_0 = true},
    {"yarn-attn-factor", NULL, PE_LENS_REAL, .min = -1, .max = 1000, .otherwise = 1, .direction = PE_IMPORT_ONLY,
     .is_none_below_0 = true, .needs = of_no_ramp},
    {"yarn-beta-fast", "scaling.beta_fast", OF_YARN, .max = 1e9, .otherwise = 32, .is_none_below_0 = true,
     .is_divisor = true},
    {"yarn-beta-slow", "scaling.beta_slow", OF_YARN, .max = 1e9, .otherwise = 1, .is_none_below_0 = true,
     .is_divisor = true},
    PE_LENS_END,
};

static bool is_yarn(const struct pe_import *m)
{
    int word = pe_import_member(m, "rope-scaling")->word;
    return word != PE_UNSET_WORD && pe_same(forms[word].word, "yarn");
}

static bool is_none(const struct pe_import *m)
{
    int word = pe_import_member(m, "rope-scaling")->word;
    return word != PE_UNSET_WORD && pe_same(forms[word].word, "none");
}

static enum pe_status check(const struct pe_import *m)
{
    double scale = pe_import_number(m, "rope-scale"), inverse = pe_import_number(m, "rope-freq-scale");
    if (scale == scale && inverse == inverse) /* no NaN */
        return pe_import_wrong(m, "rope-freq-scale",
                               "rope-scale and rope-freq-scale are one number and its inverse; give one");
    if (pe_import_number(m, "yarn-ext-factor") > 0 && !is_yarn(m) && !is_none(m))
        return pe_import_wrong(m, "yarn-ext-factor",
                               "yarn-ext-factor above 0 makes it yarn, whatever the type is; write rope-scaling yarn");
    if (is_yarn(m) && pe_import_member(m, "yarn-orig-ctx")->integer == PE_UNSET_INT)
        return pe_import_wrong(m, "yarn-orig-ctx", "yarn-orig-ctx is missing; the ends of yarn's ramp need it");
    return PE_OK;
}

/* Without a factor it is 1. */
static enum pe_status import(struct pe_import *m)
{
    double scale = pe_import_number(m, "rope-scale"), inverse = pe_import_number(m, "rope-freq-scale");
    double attention = pe_import_number(m, "yarn-attn-factor");
    bool ramps = is_yarn(m) && pe_import_number(m, "yarn-ext-factor") != 0;
    if (!ramps && attention != 1)
        pe_hf_put_number(m->out, "attention_factor", attention);
    if (is_yarn(m) && scale != scale && inverse != inverse)
        pe_import_scaling(m, "factor", pe_real(1));
    return PE_OK;
}

/* attention_factor is written as yarn_attn_factor, which the program does not read; of the magnitudes only
 * mscale_all_dim is written, for latent attention and by the converter of Ministral 3. */
static const struct pe_rope_rule rules[] = {
    {.name = "default"},
    {.name = "linear", .needed = "factor"},
    {.name = "yarn",
     .needed = "factor",
     .original = PE_INSIDE,
     .original_is_needed = true,
     .unread = "attention_factor|mscale|mscale_all_dim|truncate|attn_factor",
     .unread_latent = "attention_factor|truncate|attn_factor"},
    {.name = "longrope", .original = PE_INSIDE_ELSE, .unread = "attention_factor|factor"},
    {.name = "llama3", .original = PE_OUTSIDE, .original_else = 8192},
    {.name = "proportional"}, /* of Gemma 4: as divisors */
    /* Hunyuan: base·alpha^(d/(d-2)) as the base, and no rule. */
    {.name = "dynamic", .needed = "alpha", .types = "hunyuan_v1_dense|hunyuan_v1_moe", .is_of_config = true},
    {.name = NULL},
};

/* Architectures by model_type: those of the same name, and others. */
static const char same_name[] = "llama|mistral4|qwen|qwen2|qwen3|gemma|gemma2|gemma3|gemma3n|gemma4|phi3|phimoe|"
                                "stablelm|falcon|starcoder2|cohere2|olmo|"
                                "olmo2|olmoe|granite|granitemoe|glm4|chatglm|smollm3|exaone4|minicpm3|internlm2|"
                                "nemotron|dbrx|seed_oss|ernie4_5|dots1|"
                                "arcee|apertus|lfm2|bloom|mpt|gpt2|bert|t5|nemotron_h";
static const struct {
    const char *types, *architecture;
} architectures[] = {
    {"mistral|mixtral", "llama"},
    {"llama4_text", "llama4"},
    {"ministral3", "mistral3"},
    {"qwen2_moe", "qwen2moe"},
    {"qwen3_moe", "qwen3moe"},
    {"qwen3_next", "qwen3next"},
    {"qwen3_5_text|qwen3_5", "qwen35"},
    {"qwen3_5_moe_text|qwen3_5_moe", "qwen35moe"},
    {"qwen2_vl|qwen2_vl_text|qwen2_5_vl|qwen2_5_vl_text", "qwen2vl"},
    {"qwen3_vl|qwen3_vl_text", "qwen3vl"},
    {"qwen3_vl_moe|qwen3_vl_moe_text", "qwen3vlmoe"},
    {"gemma3_text", "gemma3"},
    {"gemma3n_text", "gemma3n"},
    {"gemma4_text", "gemma4"},
    {"deepseek_v2|deepseek_v3|kimi_k2|glm4_moe_lite", "deepseek2"},
    {"deepseek_v32", "deepseek32"},
    {"deepseek_v4", "deepseek4"},
    {"gpt_oss", "gpt-oss"},
    {"phi", "phi2"},
    {"gpt_neox", "gptneox"},
    {"cohere", "command-r"},
    {"olmo3", "olmo2"},
    {"granitemoeshared", "granitemoe"},
    {"glm4_moe", "glm4moe"},
    {"glm", "chatglm"},
    {"ernie4_5_moe", "ernie4_5-moe"},
    {"hunyuan_v1_dense", "hunyuan-dense"},
    {"hunyuan_v1_moe", "hunyuan-moe"},
    {"minimax_m2", "minimax-m2"},
    {"modernbert", "modern-bert"},
    {"falcon_h1", "falcon-h1"},
    {"glm_moe_dsa", "glm-dsa"},
    {"internlm3", "llama"},
};

static const char *architecture(const char *model_type)
{
    for (size_t i = 0; i < sizeof architectures / sizeof *architectures; i++)
        if (pe_is_among(architectures[i].types, model_type))
            return architectures[i].architecture;
    return pe_is_among(same_name, model_type) ? model_type : NULL;
}

const struct pe_tool pe_tool_llama_cpp = {
    .name = "llama.cpp",
    .label = "llama.cpp",
    .source = "llama.cpp 6c8dcaa",
    .info = {.about = {"llama.cpp", "flags of llama.cpp's programs, beside a GGUF file"},
             .certainty = "code",
             .form = PE_TARGET_SHELL,
             .command = {.programs = "llama-server|llama-cli|llama-run|llama-completion|llama-simple|llama-simple-chat|"
                                     "llama-perplexity|llama-bench|llama-batched|llama-batched-bench|llama-embedding|"
                                     "llama-imatrix|llama-mtmd-cli|llama-llava-cli|llama-gemma3-cli|llama-qwen2vl-cli|"
                                     "llama-minicpmv-cli|llama-speculative|llama-speculative-simple|llama-lookup|"
                                     "llama-lookahead|llama-parallel|llama-passkey|llama-retrieval|llama-tts|"
                                     "llama-save-load-state|llama-finetune|llama-cvector-generator|llama-diffusion-cli|"
                                     "llama-eval-callback|llama-quantize|llama-gguf-split|llama-export-lora|"
                                     "llama.cpp:*|llamafile|llama_cpp.server|ollama",
                         .before = "run",
                         .calls = "Llama",
                         .models = "m|model|hf|hfr|hf-repo|model_path"},
             .takes = PE_TAKES_FLAGS},
    .lenses = lenses,
    .forms = forms,
    .convention = "ggml",
    .is_beside_a_model = true,
    .check = check,
    .import = import,
    .rules = rules,
    .reads_magnitudes = "ministral3",
    .base = PE_INSIDE_ELSE,
    .share = PE_INSIDE_ELSE,
    .reads = {"as llama.cpp reads it", "llama.cpp's converter, and the program that runs its file"},
    .reads_source = "llama.cpp 00bd27a, 6c8dcaa",
    .objects = "rope_parameters|rope_scaling",
    .drops_rules = true,
    .architecture = architecture,
    .writes_no_rope = "gemma|gemma2|phi", /* these classes write their own few keys, without rope.freq_base */
    .writes_lists_only = "phi3|phimoe",
};
