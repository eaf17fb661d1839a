/* Microsoft's Phi and MiniCPM4: the models with LongRoPE lists. */
#include "core/models/lists.h"
#include "core/models/rope_rows.h"

static const struct pe_preset rows[] = {
    {.name = "phi-2",
     .label = "Phi-2",
     .aliases = NULL,
     .source = "config.json of microsoft/phi-2 (partial_rotary_factor 0.4), in several public copies",
     .certainty = PE_SEEN_CHECKPOINT,
     .note = {"The class default of partial_rotary_factor is 0.5. 2048 positions.",
              "partial_rotary_factor 的类默认值为 0.5。2048 个位置。"},
     PE_ALL_LAYERS(ROPE(HALF, 80, 1e4), ROTARY(32))},
    {.name = "phi-3-mini-4k",
     .label = "Phi-3 mini 4k",
     .aliases = "phi-3-mini",
     .source = TF("phi3/configuration_phi3.py"),
     .certainty = PE_CLASS_DEFAULT,
     .note = {"4096 positions.", "4096 个位置。"},
     PE_ALL_LAYERS(ROPE(HALF, 96, 1e4))},
    {.name = "phi-3-mini-128k",
     .label = "Phi-3 mini 128k",
     .aliases = "phi-3-mini-128k-2024-04|phi-3-vision|phi-3-vision-128k",
     .source = "Blaizzy/mlx-vlm tests/test_models.py",
     .certainty = PE_SEEN_CHECKPOINT,
     .note =
         {"The release of April 2024. That of July 2024 has another long list (1.07, 1.12, 1.15, 1.42, …), of which "
          "no full public copy was found: paste its config.json as hf_config. 131072 positions.",
          "2024 年 4 月的版本。7 月的版本有另一个长列表（1.07, 1.12, 1.15, 1.42, …），"
          "没有找到完整的公开副本：请把它的 config.json 作为 hf_config 粘贴。131072 "
          "个位置。"},
     PE_ALL_LAYERS(ROPE(HALF, 96, 1e4), LONGROPE(pe_phi3_short, pe_phi3_long, PE_PHI3_PAIRS, 4096, 131072))},
    {.name = "phi-4-mini",
     .label = "Phi-4-mini",
     .aliases = "phi-4-mini-instruct",
     .source = "config.json of microsoft/Phi-4-mini-instruct, in keras-hub's presets and other public copies",
     .certainty = PE_SEEN_CHECKPOINT,
     .note = {"Three quarters of a head are rotated. 131072 positions.", "旋转头的四分之三。131072 个位置。"},
     PE_ALL_LAYERS(ROPE(HALF, 128, 1e4), ROTARY(96),
                   LONGROPE(pe_phi4_short, pe_phi4_long, PE_PHI4_PAIRS, 4096, 131072))},
    {.name = "minicpm4-8b",
     .label = "MiniCPM4 8B",
     .aliases = "minicpm4",
     .source = "OpenBMB/MiniCPM4 model card",
     .certainty = PE_SEEN_CHECKPOINT,
     .note = {"One list for short and long, for up to 131072 tokens; max_position_embeddings stays 32768, so "
              "attention_factor is 1.",
              "长短序列共用一个列表，至多 131072 个 token；max_position_embeddings 仍为 "
              "32768，所以 attention_factor 为 1。"},
     PE_ALL_LAYERS(ROPE(HALF, 128, 1e4), LONGROPE(pe_minicpm4, pe_minicpm4, PE_MINICPM4_PAIRS, 32768, 32768))},
};

const struct pe_preset_table pe_presets_phi = PE_PRESET_TABLE(rows);
