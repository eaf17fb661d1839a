/* Llama, Mistral and related rotary models: DeepSeek, gpt-oss. */
#include "core/models/rope_rows.h"

#define META "half: weights of transformers; Meta's own weights need layout interleaved. "
#define META_ZH                                                                                                        \
    "half 对应 transformers 的权重；Meta 自己的权重需要 layout 为 "                                      \
    "interleaved。"
#define MISTRAL "half: weights of transformers; Mistral's own weights need layout interleaved. "
#define MISTRAL_ZH "half 对应 transformers 的权重；Mistral 自己的权重需要 layout 为 interleaved。"

static const struct pe_preset rows[] = {
    {.name = "llama-1",
     .label = "LLaMA 1",
     .aliases = "llama-7b|llama-13b|llama-33b|llama-65b",
     .source = TF("llama/configuration_llama.py"),
     .certainty = PE_CLASS_DEFAULT,
     .note = {META "2048 positions.", META_ZH "2048 个位置。"},
     PE_ALL_LAYERS(ROPE(HALF, 128, 1e4))},
    {.name = "llama-2",
     .label = "Llama 2",
     .aliases = "llama-2-7b|llama-2-13b|llama-2-70b",
     .source = "config.json of meta-llama/Llama-2-7b-hf, in several public copies",
     .certainty = PE_SEEN_CHECKPOINT,
     .note = {META "4096 positions. The first releases of config.json leave rope_theta out: 10000.",
              META_ZH "4096 个位置。最早发布的 config.json 没有 rope_theta，即 10000。"},
     PE_ALL_LAYERS(ROPE(HALF, 128, 1e4))},
    {.name = "llama-3",
     .label = "Llama 3",
     .aliases = "llama-3-8b|llama-3-70b",
     .source = "config.json of meta-llama/Meta-Llama-3-8B",
     .certainty = PE_SEEN_CHECKPOINT,
     .note = {META "8192 positions.", META_ZH "8192 个位置。"},
     PE_ALL_LAYERS(ROPE(HALF, 128, 5e5))},
    {.name = "llama-3.1",
     .label = "Llama 3.1",
     .aliases = "llama-3.1-8b|llama-3.1-70b|llama-3.1-405b|llama-3.3|llama-3.3-70b",
     .source = "config.json of meta-llama/Llama-3.1-8B",
     .certainty = PE_SEEN_CHECKPOINT,
     .note = {META "131072 positions.", META_ZH "131072 个位置。"},
     PE_ALL_LAYERS(ROPE(HALF, 128, 5e5), LLAMA3(8, 1, 4))},
    {.name = "llama-3.2-1b",
     .label = "Llama 3.2 1B",
     .aliases = NULL,
     .source = "config.json of meta-llama/Llama-3.2-1B",
     .certainty = PE_SEEN_CHECKPOINT,
     .note = {META "131072 positions; factor 32 where Llama 3.1 has 8.",
              META_ZH "131072 个位置；factor 为 32，Llama 3.1 为 8。"},
     PE_ALL_LAYERS(ROPE(HALF, 64, 5e5), LLAMA3(32, 1, 4))},
    {.name = "llama-3.2-3b",
     .label = "Llama 3.2 3B",
     .aliases = "llama-3.2",
     .source = "config.json of meta-llama/Llama-3.2-3B",
     .certainty = PE_SEEN_CHECKPOINT,
     .note = {META "131072 positions; factor 32 where Llama 3.1 has 8.",
              META_ZH "131072 个位置；factor 为 32，Llama 3.1 为 8。"},
     PE_ALL_LAYERS(ROPE(HALF, 128, 5e5), LLAMA3(32, 1, 4))},
    {.name = "llama-4-scout",
     .label = "Llama 4 Scout",
     .aliases = "llama-4|llama-4-scout-17b-16e",
     .source = "meta-llama/llama-models models/llama4/args.py",
     .certainty = PE_SEEN_CHECKPOINT,
     .note = {"Every 4th layer ((layer + 1) % 4 == 0) has no positions: scheme none; its queries are multiplied by "
              "1 + 0.1·ln(1 + floor((p + 1)/8192)). Low and high frequency factor are both 1, so no pair is blended. "
              "10485760 positions.",
              "每 4 层中有一层（(layer + 1) % 4 == 0）没有位置编码，即 scheme 为 none；"
              "该层的查询乘以 1 + 0.1·ln(1 + floor((p + 1)/8192))。低频和高频系数都为 1，"
              "所以没有需要混合的对。10485760 个位置。"},
     PE_ALL_LAYERS(ROPE(INTERLEAVED, 128, 5e5), LLAMA3(16, 1, 1))},
    {.name = "mistral-7b-v0.1",
     .label = "Mistral 7B v0.1",
     .aliases = "mistral-7b",
     .source = "config.json of mistralai/Mistral-7B-v0.1",
     .certainty = PE_SEEN_CHECKPOINT,
     .note = {MISTRAL "32768 positions, attention window 4096.", MISTRAL_ZH "32768 个位置，注意力窗口为 4096。"},
     PE_ALL_LAYERS(ROPE(HALF, 128, 1e4))},
    {.name = "mistral-7b-v0.2",
     .label = "Mistral 7B v0.2",
     .aliases = "mistral-7b-instruct-v0.2",
     .source = "config.json of mistralai/Mistral-7B-Instruct-v0.2",
     .certainty = PE_SEEN_CHECKPOINT,
     .note = {MISTRAL "32768 positions, no window.", MISTRAL_ZH "32768 个位置，没有窗口。"},
     PE_ALL_LAYERS(ROPE(HALF, 128, 1e6))},
    {.name = "mistral-7b-v0.3",
     .label = "Mistral 7B v0.3",
     .aliases = "mistral-7b-instruct-v0.3",
     .source = "as v0.2, whose config.json was read; v0.3's own from memory",
     .certainty = PE_UNVERIFIED,
     .note = {MISTRAL "32768 positions, no window.", MISTRAL_ZH "32768 个位置，没有窗口。"},
     PE_ALL_LAYERS(ROPE(HALF, 128, 1e6))},
    {.name = "mixtral",
     .label = "Mixtral",
     .aliases = "mixtral-8x7b|mixtral-8x22b",
     .source = TF("mixtral/configuration_mixtral.py"),
     .certainty = PE_CLASS_DEFAULT,
     .note = {MISTRAL "32768 positions.", MISTRAL_ZH "32768 个位置。"},
     PE_ALL_LAYERS(ROPE(HALF, 128, 1e6))},
    {.name = "ministral-3",
     .label = "Ministral 3",
     .aliases = "ministral-3-3b|ministral-3-8b|ministral-3-14b",
     .source = TF("ministral3/configuration_ministral3.py (checkpoint mistralai/Ministral-3-8B-Base-2512)"),
     .certainty = PE_CLASS_DEFAULT,
     .note = {MISTRAL
              "llama_4_scaling_beta 0.1: queries are multiplied by 1 + 0.1·ln(1 + floor(p/16384)), which is not "
              "part of cos and sin. mscale and mscale_all_dim, both 1, give cos and sin the factor 1; the code does "
              "not multiply the softmax scale by them. 262144 positions.",
              MISTRAL_ZH "llama_4_scaling_beta 为 0.1：查询乘以 1 + 0.1·ln(1 + floor(p/16384))，"
                         "这不属于 cos 和 sin。mscale 与 mscale_all_dim 都是 1，cos 和 sin 的系数因此为 1；"
                         "代码不用它们乘 softmax 的缩放。262144 个位置。"},
     PE_ALL_LAYERS(ROPE(HALF, 128, 1e6),
                   SCALING("yarn", PE_NUMBER("factor", 16), TRAINED_ON(16384), PE_NUMBER("beta_fast", 32),
                           PE_NUMBER("beta_slow", 1), PE_NUMBER("attention_factor", 1)))},
    {.name = "deepseek-v3",
     .label = "DeepSeek-V3",
     .aliases = "deepseek-r1|deepseek-v3.1",
     .source = "deepseek-ai/DeepSeek-V3 inference/model.py",
     .certainty = PE_SEEN_CHECKPOINT,
     .note = {"The last 64 of a head's 192 channels are rotated. The softmax scale is multiplied by 1.87385 "
              "(m(40, 1)^2) while attention_factor is 1. transformers writes the rotated pairs in half order "
              "(layout interleaved_to_half), which permutes q and k alike. The vendor's code scales only beyond 4096 "
              "positions, transformers always. 163840 positions.",
              "旋转每个头 192 个通道中的最后 64 个。softmax 的缩放再乘以 1.87385（即 m(40, "
              "1)^2），而 attention_factor 为 1。transformers 按 half 的顺序写出旋转后的对"
              "（layout 为 interleaved_to_half），q 和 k 的排列相同。官方代码只在 4096 "
              "个位置以上才缩放，transformers 总是缩放。163840 个位置。"},
     PE_ALL_LAYERS(ROPE(INTERLEAVED, 192, 1e4), ROTARY(64), PE_INT("rotary_offset", 128), YARN_MSCALE(40, 4096, 1))},
    {.name = "deepseek-v2",
     .label = "DeepSeek-V2",
     .aliases = "deepseek-v2-lite|deepseek-coder-v2|deepseek-coder-v2-lite",
     .source = "config.json of deepseek-ai/DeepSeek-V2 and DeepSeek-V2-Lite",
     .certainty = PE_SEEN_CHECKPOINT,
     .note = {"The last 64 of a head's 192 channels are rotated. The softmax scale is multiplied by m(40, 0.707)^2. "
              "163840 positions.",
              "旋转每个头 192 个通道中的最后 64 个。softmax 的缩放再乘以 m(40, 0.707)^2。"
              "163840 个位置。"},
     PE_ALL_LAYERS(ROPE(INTERLEAVED, 192, 1e4), ROTARY(64), PE_INT("rotary_offset", 128),
                   YARN_MSCALE(40, 4096, 0.707))},
    {.name = "gpt-oss",
     .label = "gpt-oss",
     .aliases = "gpt-oss-20b|gpt-oss-120b",
     .source = "openai/gpt-oss (its ntk_beta is beta_fast, its ntk_alpha beta_slow)",
     .certainty = PE_SEEN_CHECKPOINT,
     .note = {"truncate false: the ramp's ends are not rounded. Every other layer has a window of 128; positions are "
              "the same in both. 131072 positions.",
              "truncate 为 false：斜坡的两端不取整。每隔一层有 128 的窗口，两种层的位置相同。"
              "131072 个位置。"},
     PE_ALL_LAYERS(ROPE(HALF, 64, 150000),
                   SCALING("yarn", PE_NUMBER("factor", 32), TRAINED_ON(4096), PE_NUMBER("beta_fast", 32),
                           PE_NUMBER("beta_slow", 1), PE_FLAG("truncate", false)))},
};

const struct pe_preset_table pe_presets_llama = PE_PRESET_TABLE(rows);
