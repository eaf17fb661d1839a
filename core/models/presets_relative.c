/* Models whose logits have terms that depend on distance and content: DeBERTa, Transformer-XL, XLNet, Conformer,
 * NEZHA (weights not included). `causal` comes from the request, except where a scheme requires it. */
#include "core/models/field.h"

#define HEADS(n_, head_dim_) PE_INT("num_heads", n_), PE_INT("head_dim", head_dim_)

/* ---- DeBERTa ---- */

static const struct pe_value both_terms[] = {{.kind = PE_STRING, .string = "c2p"},
                                             {.kind = PE_STRING, .string = "p2c"}};
#define DEBERTA(heads_, buckets_, shared_and_normed_)                                                                  \
    PE_WORD("scheme", "deberta"), HEADS(heads_, 64), PE_INT("position_buckets", buckets_),                             \
        PE_INT("max_relative_positions", 512),                                                                         \
        {.name = "pos_att_type", .value = {.kind = PE_LIST, .list = {both_terms, 2}}},                                 \
        PE_FLAG("share_att_key", shared_and_normed_), PE_FLAG("norm_rel_ebd", shared_and_normed_)

#define DEBERTA_SCALE "Logits are divided by sqrt(3·64). "
#define DEBERTA_SCALE_ZH "logits 除以 sqrt(3·64)。"
#define DEBERTA_V1(name_, label_, aliases_, heads_)                                                                    \
    {                                                                                                                  \
        .name = name_, .label = label_, .aliases = aliases_, .source = "microsoft/DeBERTa; arXiv 2006.03654",          \
        .certainty = PE_SEEN_CHECKPOINT,                                                                               \
        .note = {DEBERTA_SCALE                                                                                         \
                 "Keys and queries of positions have their own weights: pos_proj (no bias), pos_q_proj; of content "   \
                 "in_proj.weight, by heads [q|k|v], with q_bias and v_bias. encoder.rel_embeddings.weight [1024, "     \
                 "hidden].",                                                                                           \
                 DEBERTA_SCALE_ZH "位置的键和查询有自己的权重：pos_proj（无偏置）、pos_q_proj；"  \
                                  "内容的是 in_proj.weight，按头排列 [q|k|v]，带 q_bias 和 v_bias。"      \
                                  "encoder.rel_embeddings.weight [1024, hidden]。"},                                   \
        PE_ALL_LAYERS(DEBERTA(heads_, -1, false))                                                                      \
    }
#define DEBERTA_V2(name_, label_, aliases_, source_, heads_, more_, more_zh_)                                          \
    {                                                                                                                  \
        .name = name_, .label = label_, .aliases = aliases_, .source = source_, .certainty = PE_SEEN_CHECKPOINT,       \
        .note = {DEBERTA_SCALE                                                                                         \
                 "encoder.rel_embeddings.weight [512, hidden] goes through encoder.LayerNorm (eps 1e-7) "              \
                 "and the layer's own query_proj and key_proj, with their biases." more_,                              \
                 DEBERTA_SCALE_ZH "encoder.rel_embeddings.weight [512, hidden] 先经过 "                             \
                                  "encoder.LayerNorm（eps 1e-7），再经过该层自己的 query_proj 和 "         \
                                  "key_proj，连同它们的偏置。" more_zh_},                                              \
        PE_ALL_LAYERS(DEBERTA(heads_, 256, true))                                                                      \
    }
#define V2_SOURCE "microsoft/DeBERTa; config.json of microsoft/deberta-v2-xxlarge, as printed in public notebooks"
#define V3_SOURCE                                                                                                      \
    "config.json of microsoft/deberta-v3-small and -large, in public copies; microsoft/DeBERTa; arXiv 2111.09543"

/* ---- Transformer-XL's family ---- */

#define XL(scheme_, d_model_, heads_) PE_WORD("scheme", scheme_), HEADS(heads_, 64), PE_INT("d_model", d_model_)
#define XLNET(name_, label_, aliases_, d_model_, heads_)                                                               \
    {                                                                                                                  \
        .name = name_, .label = label_, .aliases = aliases_,                                                           \
        .source = "zihangdai/xlnet; config.json of xlnet-base-cased and -large-cased; arXiv 1906.08237",               \
        .certainty = PE_SEEN_CHECKPOINT,                                                                               \
        .note = {"attn_type bi: a key may come before or after the query. Every layer has its own r_w_bias (u), "      \
                 "r_r_bias (v), r_s_bias, seg_embed; rel_attn.q, k, v, o, r are [d_model, num_heads, 64]: transpose "  \
                 "r for w_r. No positions are added to the input.",                                                    \
                 "attn_type 为 bi：键可以在查询之前或之后。每层有自己的 r_w_bias"                  \
                 "（u）、r_r_bias（v）、r_s_bias、seg_embed；rel_attn.q、k、v、o、r "                      \
                 "的形状为 [d_model, num_heads, 64]：r 转置后即为 w_r。"                                    \
                 "输入不加位置编码。"},                                                                                \
        PE_ALL_LAYERS(XL("xlnet", d_model_, heads_), PE_INT("clamp_len", -1))                                          \
    }

/* ---- NEZHA ---- */

#define NEZHA(size_, aliases_, source_, certainty_, heads_)                                                            \
    {                                                                                                                  \
        .name = "nezha-cn-" size_, .label = "NEZHA " size_, .aliases = aliases_, .source = source_,                    \
        .certainty = certainty_,                                                                                       \
        .note = {"Keys and values have the same fixed sinusoids, of the row number 0 to 128, not of the distance; no " \
                 "weights. Logits are divided by sqrt(64) after the sum. 512 tokens.",                                 \
                 "键和值用同样的固定正弦，按行号 0 到 128 而不是按距离；没有权重。"        \
                 "求和之后 logits 除以 sqrt(64)。512 个 token。"},                                                     \
        PE_ALL_LAYERS(PE_WORD("scheme", "shaw"), HEADS(heads_, 64), PE_WORD("table_style", "sinusoidal"),              \
                      PE_INT("max_relative", 64), PE_WORD("direction", "key_minus_query"))                             \
    }

static const struct pe_preset rows[] = {
    DEBERTA_V1("deberta-base", "DeBERTa base", "deberta", 12),
    DEBERTA_V1("deberta-large", "DeBERTa large", "deberta-xlarge", 16),
    DEBERTA_V2("deberta-v2-xlarge", "DeBERTa v2 xlarge", "deberta-v2|deberta-v2-xxlarge", V2_SOURCE, 24,
               " A convolution of 3 tokens after layer 1 is no part of the positions.",
               "第 1 层之后有 3 个 token 的卷积，不属于位置编码。"),
    DEBERTA_V2("deberta-v3-xsmall", "DeBERTa v3 xsmall", NULL, V3_SOURCE, 6, "", ""),
    DEBERTA_V2("deberta-v3-base", "DeBERTa v3 base", "deberta-v3|deberta-v3-small|mdeberta-v3-base", V3_SOURCE, 12, "",
               ""),
    DEBERTA_V2("deberta-v3-large", "DeBERTa v3 large", NULL, V3_SOURCE, 16, "", ""),
    {.name = "transfo-xl-wt103",
     .label = "Transformer-XL WikiText-103",
     .aliases = "transfo-xl|transformer-xl",
     .source = "kimiyoung/transformer-xl pytorch/run_wt103_large.sh; " TF("transfo_xl/configuration_transfo_xl.py"),
     .certainty = PE_SEEN_CHECKPOINT,
     .note =
         {"u and v of every layer are its own (untie_r): dec_attn.r_w_bias, r_r_bias; w_r is dec_attn.r_net.weight, "
          "q, k, v one matrix dec_attn.qkv_net.weight, all without biases. The memory holds 1600 hidden states, "
          "projected anew; same_length lets each query see as many keys, and needs causal.",
          "每层的 u 和 v 各自独立（untie_r）：dec_attn.r_w_bias、r_r_bias；"
          "w_r 为 dec_attn.r_net.weight，q、k、v 合为一个矩阵 "
          "dec_attn.qkv_net.weight，都没有偏置。记忆保存 1600 个隐状态，"
          "每次重新投影；same_length 使每个查询看到的键数相同，需要 causal。"},
     PE_ALL_LAYERS(XL("transformer_xl", 1024, 16), PE_INT("mem_len", 1600), PE_INT("clamp_len", 1000),
                   PE_FLAG("same_length", true), PE_FLAG("causal", true))},
    XLNET("xlnet-base-cased", "XLNet base cased", "xlnet|xlnet-base", 768, 12),
    XLNET("xlnet-large-cased", "XLNet large cased", "xlnet-large", 1024, 16),
    {.name = "wav2vec2-conformer-rel-pos-large",
     .label = "wav2vec 2.0 Conformer large",
     .aliases = "wav2vec2-conformer",
     .source = "sizes from memory; " TF("wav2vec2_conformer/modeling_wav2vec2_conformer.py"),
     .certainty = PE_UNVERIFIED,
     .note = {"Of each layer: self_attn.pos_bias_u (u), pos_bias_v, linear_pos.weight (w_r). At most 5000 positions.",
              "每层有 self_attn.pos_bias_u（u）、pos_bias_v、linear_pos.weight"
              "（w_r）。至多 5000 个位置。"},
     PE_ALL_LAYERS(XL("conformer", 1024, 16))},
    NEZHA("base", "nezha|nezha-base", TF("nezha/configuration_nezha.py, modeling_nezha.py"), PE_SEEN_CHECKPOINT, 12),
    NEZHA("large", "nezha-large", "sizes from memory; " TF("nezha/modeling_nezha.py"), PE_UNVERIFIED, 16),
};

const struct pe_preset_table pe_presets_relative = PE_PRESET_TABLE(rows);
