/* What llama.cpp does with the positions of each architecture. The rows follow a description of its code at this commit
 * (llama-model.cpp: llama_model_rope_type, load_hparams; src/models: the graphs; the converter for the order of rows);
 * rows of the certainty `unverified` are from memory. The keys are in keys.h. An architecture that is not
 * here is refused: a file of another one would be answered by guessing. */
#include "core/models/gguf/gguf.h"
#include "core/params.h"

const char pe_gguf_source[] = "llama.cpp 6c8dcaa";

/* What multiplies and caps scores (load_hparams; the graphs' build_attn; llama-graph.cpp: build_attn_mha) was read in
 * the code of April 2026, which lacks these. */
const char pe_gguf_scores_unread[] = "nanbeige|eagle3|cohere2moe|deepseek32|deepseek4|deepseek2-ocr|mellum|laguna|"
                                     "gemma4-assistant|hunyuan_vl|hy_v3|minimax-m3|talkie";

static const char memory[] = "unverified";

/* Llama 3.1 and later. Its 3.0 has the same base, and 8192 positions. */
static const struct pe_gguf_expected llama_3_1 = {
    .base = 500000, .longer_than = 8192, .rule = "llama3", .factor = 8, .low = 1, .high = 4, .original = 8192};

#define DEEPSEEK2                                                                                                      \
    .turns_last = true, .log_multiplier = 10, .has_softmax_factor = true, .temperature = PE_GGUF_TEMPERATURE_LENGTH_OF

#define HALF .is_half = true
#define PERMUTED .is_permuted = true
/* Sliding layers turn by a base of their own, by default 10000, or by that of the others; unscaled. */
#define OWN_BASE .local_base = PE_GGUF_BASE_10000, .local_is_unscaled = true
#define FULL_BASE .local_base = PE_GGUF_BASE_FULL, .local_is_unscaled = true, .local_is_plain = true
#define SECTIONS_IF .sections = PE_GGUF_SECTIONS_IF, .channels = "mrope"

const struct pe_gguf_architecture pe_gguf_architectures[] = {
    /* ---- Neighbours are a pair ---- */
    {.names = "command-r|chatglm|neo-bert|ernie4_5|ernie4_5-moe"},
    {.names = "deepseek", PERMUTED},
    {.names = "baichuan", PERMUTED, .alibi_of_40_layers = true, .certainty = memory},
    {.names = "internlm2|xverse|olmo|arctic|chameleon|bailingmoe|llada|maincoder", PERMUTED, .certainty = memory},
    {.names = "nanbeige", PERMUTED, .divisors = PE_GGUF_FREQS, .certainty = memory},
    {.names = "llama", PERMUTED, .divisors = PE_GGUF_BY_TYPE, .turns_whole_head = true, .expected = &llama_3_1},
    {.names = "llama-embed|deci", PERMUTED, .divisors = PE_GGUF_BY_TYPE, .turns_whole_head = true},
    {.names = "minicpm", PERMUTED, .divisors = PE_GGUF_BY_TYPE},
    {.names = "mistral3",
     PERMUTED,
     .divisors = PE_GGUF_BY_TYPE,
     .log_multiplier = 1,
     .beta_fast = 32,
     .temperature = PE_GGUF_TEMPERATURE_ORIGINAL},
    {.names = "granite|granitemoe",
     PERMUTED,
     .divisors = PE_GGUF_BY_TYPE,
     .needs_finetuned = true,
     .scale = PE_GGUF_SCALE_BY_KEY},
    {.names = "granitehybrid",
     PERMUTED,
     .divisors = PE_GGUF_FREQS,
     .needs_finetuned = true,
     .scale = PE_GGUF_SCALE_BY_KEY},
    {.names = "arcee|eagle3", PERMUTED, .divisors = PE_GGUF_FREQS},
    {.names = "smollm3", PERMUTED, .still = PE_GGUF_EVERY_FOURTH},
    {.names = "llama4",
     .divisors = PE_GGUF_FREQS,
     .period = 4,
     .is_chunked = true,
     .still = PE_GGUF_EVERY_FOURTH,
     .temperature = PE_GGUF_TEMPERATURE_OF_STILL},
    {.names = "cohere2", .period = 4, .still = PE_GGUF_FULL_LAYERS},
    {.names = "cohere2moe",
     .period = 4,
     .full_is_first = true,
     .pattern = PE_GGUF_PATTERN_OPTIONAL,
     .still = PE_GGUF_FULL_BEHIND_DENSE},
    {.names = "plm", .turns_last = true},
    {.names = "deepseek2", .log_multiplier_is_scale = true, DEEPSEEK2},
    {.names = "deepseek32|mistral4", DEEPSEEK2},
    {.names = "glm-dsa", .turns_last = true, .has_softmax_factor = true},
    {.names = "deepseek4", .turns_last = true, .is_compressed = true},
    {.names = "glm4", SECTIONS_IF},

    /* ---- Halves are a pair ---- */
    {.names = "falcon-h1|dbrx|jina-bert-v3|nomic-bert|nomic-bert-moe|eurobert|stablelm|bitnet|qwen|qwen2|dream|"
              "qwen2moe|qwen3|qwen3moe|llada-moe|rnd1|olmoe|phi2|plamo|plamo2|gemma|starcoder2|openelm|gptneox|"
              "codeshell|orion|nemotron|bailingmoe2|dots1|hunyuan-moe|jais2|hunyuan-dense|hy_v3|lfm2|lfm2moe|seed_oss|"
              "grovemoe|minimax-m2|minimax-m3|cogvlm|pangu-embedded|qwen3next|talkie",
     HALF},
    {.names = "falcon", HALF, .turns_whole_head = true},
    {.names = "grok", HALF, .beta_fast = 8, .reads_ext = true, .scale = PE_GGUF_SCALE_OUT, .cap = 30},
    {.names = "apertus", HALF, .divisors = PE_GGUF_BY_TYPE},
    {.names = "exaone", HALF, .divisors = PE_GGUF_FREQS},
    {.names = "phi3|phimoe", HALF, .divisors = PE_GGUF_LISTS}, /* phi3's window is ignored */
    {.names = "minicpm3", HALF, .divisors = PE_GGUF_LISTS, .turns_last = true},
    {.names = "deepseek2-ocr", HALF, .is_never_scaled = true},
    {.names = "modern-bert", HALF, .period = 3, .full_is_first = true, OWN_BASE},
    {.names = "plamo3", HALF, .period = 8, OWN_BASE},
    {.names = "olmo2", HALF, .period = 4, FULL_BASE},
    {.names = "mellum", HALF, .period = 4, .pattern = PE_GGUF_PATTERN_OPTIONAL, FULL_BASE},
    {.names = "laguna", HALF, .period = 4, .full_is_first = true, .local_is_unscaled = true, .local_is_plain = true},
    {.names = "gemma2", HALF, .period = 2, .scale = PE_GGUF_SCALE_OF_27B, .layers_of_27b = 46, .cap = 50},
    {.names = "gpt-oss", HALF, .period = 2, .sinks = "attn_sinks.weight"},
    {.names = "gemma3", HALF, .period = 6, OWN_BASE, .scale = PE_GGUF_SCALE_OF_27B, .layers_of_27b = 62},
    {.names = "gemma-embedding", HALF, .period = 6, OWN_BASE},
    {.names = "gemma3n", HALF, .period = 5, OWN_BASE, .scale = PE_GGUF_SCALE_ONE},
    {.names = "gemma4|gemma4-assistant",
     HALF,
     .scale = PE_GGUF_SCALE_ONE,
     .divisors = PE_GGUF_FREQS,
     .period = 6,
     .pattern = PE_GGUF_PATTERN_NEEDED,
     OWN_BASE},
    {.names = "mimo2", HALF, .period = 6, .pattern = PE_GGUF_PATTERN_NEEDED, OWN_BASE},
    {.names = "step35",
     HALF,
     .divisors = PE_GGUF_BY_TYPE,
     .full_turns_half = true,
     .period = 4,
     .pattern = PE_GGUF_PATTERN_NEEDED,
     OWN_BASE},
    {.names = "afmoe", HALF, .period = 4, .still = PE_GGUF_EVERY_FOURTH},
    {.names = "exaone-moe", HALF, .divisors = PE_GGUF_FREQS, .period = 4, .still = PE_GGUF_FULL_LAYERS},
    {.names = "exaone4",
     HALF,
     .divisors = PE_GGUF_FREQS,
     .period = 4,
     .layers_of_period = 64,
     .still = PE_GGUF_FULL_LAYERS},
    {.names = "smallthinker", HALF, .period = 4, .full_is_first = true, .still = PE_GGUF_FIRST_OF_FOUR},
    {.names = "glm4moe", HALF, SECTIONS_IF},
    {.names = "hunyuan_vl", HALF, SECTIONS_IF, .reads_alpha = true},
    {.names = "qwen2vl|paddleocr", HALF, .sections = PE_GGUF_SECTIONS, .channels = "mrope"},
    {.names = "qwen3vl|qwen3vlmoe|qwen35|qwen35moe", HALF, .sections = PE_GGUF_SECTIONS, .channels = "imrope"},

    /* ---- Other positions, or none ---- */
    {.names = "bloom|refact|jina-bert-v2", .kind = PE_GGUF_ALIBI, .alibi_is_8 = true},
    {.names = "mpt", .kind = PE_GGUF_ALIBI},
    {.names = "jais", .kind = PE_GGUF_ALIBI, .scale = PE_GGUF_SCALE_OF_WIDTH},
    {.names = "t5", .kind = PE_GGUF_T5, .is_decoder = true, .scale = PE_GGUF_SCALE_ONE},
    {.names = "t5encoder", .kind = PE_GGUF_T5, .scale = PE_GGUF_SCALE_ONE},
    {.names = "gpt2|starcoder|bert", .kind = PE_GGUF_LEARNED},
    {.names = "mamba|mamba2|jamba|rwkv6|rwkv6qwen2|rwkv7|arwkv7|nemotron_h|nemotron_h_moe|kimi-linear",
     .kind = PE_GGUF_NONE},
};

const size_t pe_n_gguf_architectures = sizeof pe_gguf_architectures / sizeof *pe_gguf_architectures;

const struct pe_gguf_architecture *pe_gguf_architecture_find(const char *name)
{
    for (size_t i = 0; i < pe_n_gguf_architectures; i++)
        if (pe_is_among(pe_gguf_architectures[i].names, name))
            return &pe_gguf_architectures[i];
    return NULL;
}

const char *const pe_gguf_tensor_names[] = {[PE_GGUF_ROPE_FREQS] = "rope_freqs.weight",
                                            [PE_GGUF_FACTORS_LONG] = "rope_factors_long.weight",
                                            [PE_GGUF_FACTORS_SHORT] = "rope_factors_short.weight",
                                            NULL};

/* ---- Keys by name ---- */

static const struct pe_gguf_key keys[] = {
#define KEY(id, name, types, fields) {name, types, fields},
#include "core/models/gguf/keys.h"
#undef KEY
};

const struct pe_gguf_key *pe_gguf_key_find(const char *name)
{
    for (size_t i = 0; i < PE_GGUF_N_KEYS; i++)
        if (pe_same(keys[i].name, name))
            return &keys[i];
    return NULL;
}

const struct pe_gguf_key *pe_gguf_key_at(enum pe_gguf_key_id id) { return &keys[id]; }
