/* The tools whose reading of a config.json is known: what each takes, and from where. */
#include "core/models/readers/readers.h"

/* ---- llama.cpp ---- */

/* llama.cpp's converter, which writes GGUF keys; core/models/gguf has what the program takes from them.
 * Source: llama.cpp, conversion/base.py at 00bd27a621f9 (TextModel: rope_parameters, set_gguf_parameters), llama.py at
 * 0274f0fc7d7f (generate_extra_tensors), phi.py at 051139f51130, gemma.py at 061b8c5f9188, mistral3.py at 32e9e0448790,
 * llama4.py at 2bbcf7fc93a4; the names of classes and architectures: gguf-py/gguf/constants.py. */

/* attention_factor is written as yarn_attn_factor, which the program does not read; of the magnitudes only
 * mscale_all_dim is written, for latent attention. */
static const struct pe_reader_rule llama_cpp_rules[] = {
    {.name = "default"},
    {.name = "linear"},
    {.name = "yarn",
     .original = PE_INSIDE,
     .original_is_needed = true,
     .unread = "attention_factor|mscale|mscale_all_dim|truncate|attn_factor",
     .unread_latent = "attention_factor|truncate|attn_factor"},
    {.name = "longrope", .original = PE_INSIDE_ELSE, .unread = "attention_factor|factor"},
    {.name = "llama3", .original = PE_OUTSIDE, .original_else = 8192},
    {.name = "proportional"}, /* of Gemma 4: as divisors */
    {.name = NULL},
};

/* The classes of Gemma, Gemma 2 and Phi-2 write their own few keys, without rope.freq_base. */
static const struct pe_reader_type llama_cpp_types[] = {
    {.types = "llama|mistral|mixtral", .architecture = "llama"},
    {.types = "llama4_text", .architecture = "llama4"},
    {.types = "ministral3", .architecture = "mistral3"},
    {.types = "mistral4", .architecture = "mistral4"},
    {.types = "qwen", .architecture = "qwen"},
    {.types = "qwen2", .architecture = "qwen2"},
    {.types = "qwen2_moe", .architecture = "qwen2moe"},
    {.types = "qwen3", .architecture = "qwen3"},
    {.types = "qwen3_moe", .architecture = "qwen3moe"},
    {.types = "qwen3_next", .architecture = "qwen3next"},
    {.types = "qwen3_5_text|qwen3_5", .architecture = "qwen35"},
    {.types = "qwen3_5_moe_text|qwen3_5_moe", .architecture = "qwen35moe"},
    {.types = "qwen2_vl|qwen2_vl_text|qwen2_5_vl|qwen2_5_vl_text", .architecture = "qwen2vl"},
    {.types = "qwen3_vl|qwen3_vl_text", .architecture = "qwen3vl"},
    {.types = "qwen3_vl_moe|qwen3_vl_moe_text", .architecture = "qwen3vlmoe"},
    {.types = "gemma", .architecture = "gemma", .has_no_rope = true},
    {.types = "gemma2", .architecture = "gemma2", .has_no_rope = true},
    {.types = "gemma3|gemma3_text", .architecture = "gemma3"},
    {.types = "gemma3n|gemma3n_text", .architecture = "gemma3n"},
    {.types = "gemma4|gemma4_text", .architecture = "gemma4"},
    {.types = "deepseek_v2|deepseek_v3|kimi_k2|glm4_moe_lite", .architecture = "deepseek2"},
    {.types = "deepseek_v32", .architecture = "deepseek32"},
    {.types = "deepseek_v4", .architecture = "deepseek4"},
    {.types = "gpt_oss", .architecture = "gpt-oss"},
    {.types = "phi", .architecture = "phi2", .has_no_rope = true},
    {.types = "phi3", .architecture = "phi3", .has_lists_only = true},
    {.types = "phimoe", .architecture = "phimoe", .has_lists_only = true},
    {.types = "stablelm", .architecture = "stablelm"},
    {.types = "gpt_neox", .architecture = "gptneox"},
    {.types = "falcon", .architecture = "falcon"},
    {.types = "starcoder2", .architecture = "starcoder2"},
    {.types = "cohere", .architecture = "command-r"},
    {.types = "cohere2", .architecture = "cohere2"},
    {.types = "olmo", .architecture = "olmo"},
    {.types = "olmo2|olmo3", .architecture = "olmo2"},
    {.types = "olmoe", .architecture = "olmoe"},
    {.types = "granite", .architecture = "granite"},
    {.types = "granitemoe|granitemoeshared", .architecture = "granitemoe"},
    {.types = "glm4", .architecture = "glm4"},
    {.types = "glm4_moe", .architecture = "glm4moe"},
    {.types = "chatglm|glm", .architecture = "chatglm"},
    {.types = "smollm3", .architecture = "smollm3"},
    {.types = "exaone4", .architecture = "exaone4"},
    {.types = "minicpm3", .architecture = "minicpm3"},
    {.types = "internlm2", .architecture = "internlm2"},
    {.types = "nemotron", .architecture = "nemotron"},
    {.types = "dbrx", .architecture = "dbrx"},
    {.types = "seed_oss", .architecture = "seed_oss"},
    {.types = "ernie4_5", .architecture = "ernie4_5"},
    {.types = "ernie4_5_moe", .architecture = "ernie4_5-moe"},
    {.types = "hunyuan_v1_dense", .architecture = "hunyuan-dense"},
    {.types = "hunyuan_v1_moe", .architecture = "hunyuan-moe"},
    {.types = "dots1", .architecture = "dots1"},
    {.types = "arcee", .architecture = "arcee"},
    {.types = "apertus", .architecture = "apertus"},
    {.types = "lfm2", .architecture = "lfm2"},
    {.types = "minimax_m2", .architecture = "minimax-m2"},
    {.types = "modernbert", .architecture = "modern-bert"},
    {.types = "bloom", .architecture = "bloom"},
    {.types = "mpt", .architecture = "mpt"},
    {.types = "gpt2", .architecture = "gpt2"},
    {.types = NULL},
};

const struct pe_reader pe_reader_llama_cpp = {
    .name = "llama.cpp",
    .label = "llama.cpp",
    .about = {"as llama.cpp reads it", "llama.cpp's converter, and the program that runs its file"},
    .source = "llama.cpp 00bd27a, 6c8dcaa",
    .objects = "rope_parameters|rope_scaling",
    .base = PE_INSIDE_ELSE,
    .share = PE_INSIDE_ELSE,
    .rules = llama_cpp_rules,
    .drops_rules = true,
    .factor_is_needed = true,
    .types = llama_cpp_types,
};

/* ---- transformers 4 ---- */

/* transformers 4.56 and 4.57.
 * Source: transformers, src/transformers/modeling_rope_utils.py at 3927ffed31e3: ROPE_INIT_FUNCTIONS; the explicit
 * factor of YaRN came with 6451294f6f. */

static const struct pe_reader_rule transformers4_rules[] = {
    {.name = "default"},
    {.name = "linear"},
    {.name = "dynamic"},
    {.name = "yarn", .original = PE_INSIDE},
    {.name = "longrope", .original = PE_OUTSIDE},
    {.name = "llama3", .original = PE_INSIDE, .original_is_needed = true},
    {.name = NULL},
};

const struct pe_reader pe_reader_transformers4 = {
    .name = "transformers4",
    .label = "transformers 4",
    .about = {"as transformers 4 reads it",
              "transformers 4.56 and 4.57: rope_theta beside rope_scaling, and no rope_parameters"},
    .source = "transformers 3927ffe",
    .objects = "rope_scaling",
    .unread_attention = "alibi_bias_max", /* mpt/modeling_mpt.py: build_mpt_alibi_tensor, called with its default */
    .base = PE_OUTSIDE,
    .share = PE_OUTSIDE,
    .rules = transformers4_rules,
    .before = "4.56",
    .unread_before = "factor",
    .rules_before = "yarn|longrope",
};

/* ---- transformers 5 ---- */

/* transformers 5.
 * Source: transformers, src/transformers/modeling_rope_utils.py: RotaryEmbeddingConfigMixin
 * (convert_rope_params_to_dict, standardize_rope_params), main as stored, and 5.0.0.dev0 at 23cf3ee4c77e. */

static const struct pe_reader_rule transformers5_rules[] = {
    {.name = "default"},
    {.name = "linear"},
    {.name = "dynamic"},
    {.name = "yarn", .original = PE_OUTSIDE_ELSE},
    {.name = "longrope", .original = PE_OUTSIDE_ELSE},
    {.name = "llama3", .original = PE_OUTSIDE_ELSE},
    {.name = "proportional"},
    {.name = NULL},
};

const struct pe_reader pe_reader_transformers5 = {
    .name = "transformers5",
    .label = "transformers 5",
    .about = {"as transformers 5 reads it", "transformers 5: rope_scaling or rope_parameters, which has the base too"},
    .source = "transformers 23cf3ee",
    .objects = "rope_scaling|rope_parameters",
    .base = PE_INSIDE_ELSE,
    .share = PE_OUTSIDE_ELSE,
    .unread_by_layer = "truncate",
    .unread_attention = "alibi_bias_max",
    .scaled_sliding = "olmo3", /* olmo3/modular_olmo3.py: one Olmo3RotaryEmbedding for all layers; pull request 45945 */
    .rules = transformers5_rules,
};

/* ---- vLLM ---- */

/* vLLM with transformers 5.
 * Source: vllm, vllm/model_executor/layers/rotary_embedding/__init__.py at 07b12f1b16d5: get_rope;
 * vllm/transformers_utils/ config.py: patch_rope_parameters, as stored. */

static const struct pe_reader_rule vllm_rules[] = {
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
    .rules = vllm_rules,
    .refuses_two_types = true,
};
