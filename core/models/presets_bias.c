/* Models that add a bias to their logits: ALiBi, T5's buckets, and the windows of Swin and BEiT (tables not
 * included).
 *
 * A row states how positions are encoded, not which keys a query sees: `causal` comes from the request. head_dim and
 * softmax_scale are used by attention only. Where a model has several tables with numbers of their own, each is a
 * layer type with its name in the model's code: the stacks of T5, the stages of Swin (which differ in heads and, at
 * the end, in window), the three tables of LayoutLM. So a checkpoint stays one name, as for Gemma's sliding layers. */
#include "core/models/field.h"

#define HEADS(n_, head_dim_) PE_INT("num_heads", n_), PE_INT("head_dim", head_dim_)

/* ---- ALiBi ---- */

#define ALIBI(form_, heads_, head_dim_)                                                                                \
    PE_WORD("scheme", "alibi"), HEADS(heads_, head_dim_), PE_WORD("form", form_), PE_NUMBER("bias_max", 8)

#define BLOOM_NOTE                                                                                                     \
    "A decoder: send causal true (and key_mask for padding: the count restarts at the first key seen). The code "      \
    "makes slopes in float32."
#define BLOOM_NOTE_ZH                                                                                                  \
    "解码器：请把 causal 设为 true（有填充时还有 key_mask："                                           \
    "从第一个可见的键重新计数）。其代码用 float32 计算斜率。"
#define BLOOM(name_, label_, aliases_, heads_, head_dim_)                                                              \
    {                                                                                                                  \
        .name = name_, .label = label_, .aliases = aliases_,                                                           \
        .source = "config.json of bigscience/" name_ "; form: " TF("bloom/modeling_bloom.py"),                         \
        .certainty = PE_SEEN_CHECKPOINT, .note = {BLOOM_NOTE, BLOOM_NOTE_ZH},                                          \
        PE_ALL_LAYERS(ALIBI("key_mask", heads_, head_dim_))                                                            \
    }

#define MPT_CODE "; form: mosaicml/llm-foundry layers/attention.py"

#define FALCON_RW(size_, label_, heads_)                                                                               \
    {                                                                                                                  \
        .name = "falcon-rw-" size_, .label = "Falcon RW " label_, .aliases = NULL,                                     \
        .source = "sizes from memory; form and bias_scaled: " TF("falcon/modeling_falcon.py"),                         \
        .certainty = PE_UNVERIFIED,                                                                                    \
        .note = {"A decoder: send causal true. Attention scales the bias too, (q·k + bias)/sqrt(64), and slopes and " \
                 "positions are bfloat16 there. 2048 positions. The other Falcons are rotary.",                        \
                 "解码器：请把 causal 设为 true。注意力也缩放偏置，即 (q·k + "                     \
                 "bias)/sqrt(64)，斜率和位置在其中为 bfloat16。2048 个位置。其他 "                    \
                 "Falcon 用旋转位置编码。"},                                                                           \
        PE_ALL_LAYERS(ALIBI("key_mask", heads_, 64), PE_FLAG("bias_scaled", true))                                     \
    }

#define JINA_CODE "; form: text-embeddings-inference's Jina BERT"
#define JINA_NOTE "An encoder: both sides fall. 8192 tokens."
#define JINA_NOTE_ZH "编码器：偏置向两侧下降。8192 个 token。"

/* ---- T5's buckets ---- */

#define BUCKETS(heads_, head_dim_, buckets_, distance_, bidirectional_)                                                \
    PE_WORD("scheme", "t5"), HEADS(heads_, head_dim_), PE_INT("num_buckets", buckets_),                                \
        PE_INT("max_distance", distance_), PE_FLAG("bidirectional", bidirectional_)
#define T5_STACK(stack_, heads_, d_kv_, bidirectional_)                                                                \
    PE_LAYER(stack_, BUCKETS(heads_, d_kv_, 32, 128, bidirectional_), PE_NUMBER("softmax_scale", 1))
#define T5_NOTE                                                                                                        \
    "Logits are not divided by sqrt(head_dim). One table for each stack, in its first block and shared by all: "       \
    "encoder (decoder).block.0.layer.0.SelfAttention.relative_attention_bias.weight [32, num_heads]. The decoder "     \
    "is causal: send causal true with layer_type decoder. Cross-attention has no bias. Without layer_type: encoder."
#define T5_NOTE_ZH                                                                                                     \
    "logits 不除以 sqrt(head_dim)。编码器和解码器各有一张表，"                                        \
    "在第一个块中，由各块共用：encoder（decoder）"                                                      \
    ".block.0.layer.0.SelfAttention.relative_attention_bias.weight "                                                   \
    "[32, num_heads]。解码器是因果的：layer_type 为 decoder 时请把 "                                      \
    "causal 设为 true。交叉注意力没有偏置。不写 layer_type 时为 encoder。"
#define T5(name_, label_, aliases_, source_, heads_, d_kv_)                                                            \
    {                                                                                                                  \
        .name = name_, .label = label_, .aliases = aliases_, .source = source_, .certainty = PE_SEEN_CHECKPOINT,       \
        .note = {T5_NOTE, T5_NOTE_ZH},                                                                                 \
        PE_LAYERS(T5_STACK("encoder", heads_, d_kv_, true), T5_STACK("decoder", heads_, d_kv_, false))                 \
    }
#define T5_PAPER "arXiv 1910.10683, sections 2.1 and 3.7; " TF("t5/configuration_t5.py")
#define T5_V1_1 "T5 v1.1's and mT5's (arXiv 2010.11934) tables of sizes; " TF("t5/configuration_t5.py")

#define WAVLM(size_, aliases_, heads_)                                                                                 \
    {                                                                                                                  \
        .name = "wavlm-" size_, .label = "WavLM " size_, .aliases = aliases_,                                          \
        .source = "microsoft/unilm wavlm/modules.py, WavLM.py", .certainty = PE_SEEN_CHECKPOINT,                       \
        .note =                                                                                                        \
            {"One table, of layer 0: relative_attention_bias.weight [320, num_heads]. Each layer multiplies it by "    \
             "a gate of its input, which is not computed here: g = sigmoid of (x_head·grep_linear + its bias), "      \
             "summed by fours into a and b; a·(b·grep_a - 1) + 2.",                                                    \
             "只有第 0 层有一张表：relative_attention_bias.weight [320, "                                     \
             "num_heads]。每层把它乘以由输入得到的门控，此处不计算：g 为 "                      \
             "x_head·grep_linear 加其偏置的 sigmoid，每四个求和得到 a 和 b；"                          \
             "a·(b·grep_a - 1) + 2。"},                                                                                \
        PE_ALL_LAYERS(BUCKETS(heads_, 64, 320, 800, true))                                                             \
    }

/* (bias_1d + bias_x + bias_y)/sqrt(64) */
#define LAYOUTLM_V3(table_, buckets_, distance_)                                                                       \
    PE_LAYER(table_, BUCKETS(12, 64, buckets_, distance_, true), PE_NUMBER("table_scale", 0.125))

/* ---- Windows ---- */

#define WINDOW(scheme_, heads_, head_dim_, side_)                                                                      \
    PE_WORD("scheme", scheme_), HEADS(heads_, head_dim_), PE_LIST_OF("grid", side_, side_)
#define STAGES(STAGE, h1_, h2_, h3_, h4_)                                                                              \
    PE_LAYERS(PE_LAYER("stage1", STAGE(1, h1_)), PE_LAYER("stage2", STAGE(2, h2_)), PE_LAYER("stage3", STAGE(3, h3_)), \
              PE_LAYER("stage4", STAGE(4, h4_)))

#define SWIN_7(stage_, heads_) WINDOW("swin", heads_, 32, 7)
#define SWIN_12(stage_, heads_) WINDOW("swin", heads_, 32, 12)
#define SWIN_NOTE                                                                                                      \
    "A table for each block, attn.relative_position_bias_table [(2·window-1)^2, num_heads]; logits are divided by "   \
    "sqrt(32). Every second block shifts its windows and adds -100 between regions, which is no part of the bias. "    \
    "Without layer_type: stage1."
#define SWIN_NOTE_ZH                                                                                                   \
    "每个块一张表，attn.relative_position_bias_table [(2·window-1)^2, "                                        \
    "num_heads]；logits 除以 sqrt(32)。每隔一个块移动窗口，"                                             \
    "并在区域之间加 -100，这不属于偏置。不写 layer_type 时为 stage1。"
#define SWIN(name_, label_, aliases_, WINDOW_, ...)                                                                    \
    {                                                                                                                  \
        .name = name_, .label = label_, .aliases = aliases_,                                                           \
        .source = "microsoft/Swin-Transformer configs/swin; arXiv 2103.14030", .certainty = PE_SEEN_CHECKPOINT,        \
        .note = {SWIN_NOTE, SWIN_NOTE_ZH}, STAGES(WINDOW_, __VA_ARGS__)                                                \
    }

#define SWINV2_WINDOW(heads_, side_) WINDOW("swinv2", heads_, 32, side_), PE_INT("hidden", 512)
#define SWINV2_FROM(heads_, side_, from_) SWINV2_WINDOW(heads_, side_), PE_LIST_OF("pretrained_grid", from_, from_)
/* The last stage has 8 x 8 patches for an image of 256 pixels and 12 x 12 for 384, which limits its window. */
#define SWINV2_W8(stage_, heads_) SWINV2_WINDOW(heads_, 8)
#define SWINV2_W16(stage_, heads_) SWINV2_WINDOW(heads_, (stage_) < 4 ? 16 : 8)
#define SWINV2_W12TO16(stage_, heads_) SWINV2_FROM(heads_, (stage_) < 4 ? 16 : 8, (stage_) < 4 ? 12 : 6)
#define SWINV2_W12TO24(stage_, heads_) SWINV2_FROM(heads_, (stage_) < 4 ? 24 : 12, (stage_) < 4 ? 12 : 6)
#define SWINV2_NOTE                                                                                                    \
    "Attention is by cosines: exp(min(logit_scale, ln 100))·cos(q, k) + bias, logit_scale of each block and head; k " \
    "has no bias. Of each block: attn.cpb_mlp.0.weight, .0.bias, .2.weight. Every second block shifts its windows "    \
    "and adds -100 between regions. Without layer_type: stage1."
#define SWINV2_NOTE_ZH                                                                                                 \
    "注意力用余弦：exp(min(logit_scale, ln(100)))·cos(q, k) + bias，"                                         \
    "每个块的每个头各有 logit_scale；k 没有偏置。每个块有 "                                         \
    "attn.cpb_mlp.0.weight、.0.bias、.2.weight。每隔一个块移动窗口，"                                     \
    "并在区域之间加 -100。不写 layer_type 时为 stage1。"
#define SWINV2(name_, label_, aliases_, WINDOW_, ...)                                                                  \
    {                                                                                                                  \
        .name = name_, .label = label_, .aliases = aliases_,                                                           \
        .source = "microsoft/Swin-Transformer configs/swinv2; arXiv 2111.09883", .certainty = PE_SEEN_CHECKPOINT,      \
        .note = {SWINV2_NOTE, SWINV2_NOTE_ZH}, STAGES(WINDOW_, __VA_ARGS__)                                            \
    }

#define BEIT(name_, label_, aliases_, heads_, side_)                                                                   \
    {                                                                                                                  \
        .name = name_, .label = label_, .aliases = aliases_, .source = "microsoft/unilm beit; arXiv 2106.08254",       \
        .certainty = PE_SEEN_CHECKPOINT,                                                                               \
        .note = {"A class token, then the patches of 16. A table for each layer, "                                     \
                 "attn.relative_position_bias_table [(2·side-1)^2 + 3, num_heads]; in pre-training one for all "      \
                 "(rel_pos_bias). Another size of picture needs a table resized. q and v have biases, k has none.",    \
                 "先是一个类别 token，然后是边长 16 的图像块。每层一张表，"                     \
                 "attn.relative_position_bias_table [(2·side-1)^2 + 3, num_heads]；"                                 \
                 "预训练时各层共用一张（rel_pos_bias）。"                                                 \
                 "其他尺寸的图像需要缩放后的表。q 和 v 有偏置，k 没有。"},                                             \
        PE_ALL_LAYERS(WINDOW("beit", heads_, 64, side_))                                                               \
    }

static const struct pe_preset rows[] = {
    BLOOM("bloom-560m", "BLOOM 560M", "bloomz-560m", 16, 64),
    BLOOM("bloom-1b1", "BLOOM 1.1B", "bloomz-1b1", 16, 96),
    BLOOM("bloom-1b7", "BLOOM 1.7B", "bloomz-1b7", 16, 128),
    BLOOM("bloom-3b", "BLOOM 3B", "bloomz-3b", 32, 80),
    BLOOM("bloom-7b1", "BLOOM 7.1B", "bloomz-7b1", 32, 128),
    BLOOM("bloom", "BLOOM 176B", "bloom-176b|bloomz|bloomz-176b", 112, 128),
    {.name = "mpt-7b",
     .label = "MPT 7B",
     .aliases = "mpt-7b-instruct|mpt-7b-chat",
     .source = "config.json of mosaicml/mpt-7b" MPT_CODE,
     .certainty = PE_SEEN_CHECKPOINT,
     .note = {"A decoder: send causal true. 2048 positions.", "解码器：请把 causal 设为 true。2048 个位置。"},
     PE_ALL_LAYERS(ALIBI("key_end", 32, 128))},
    {.name = "mpt-7b-storywriter",
     .label = "MPT 7B StoryWriter",
     .aliases = NULL,
     .source = "config.json of mosaicml/mpt-7b-storywriter" MPT_CODE,
     .certainty = PE_SEEN_CHECKPOINT,
     .note = {"A decoder: send causal true. transformers' MptModel does not pass alibi_bias_max and computes with 8. "
              "65536 positions.",
              "解码器：请把 causal 设为 true。transformers 的 MptModel 不传递 "
              "alibi_bias_max，按 8 计算。65536 个位置。"},
     PE_ALL_LAYERS(PE_WORD("scheme", "alibi"), HEADS(32, 128), PE_WORD("form", "key_end"), PE_NUMBER("bias_max", 16))},
    {.name = "mpt-30b",
     .label = "MPT 30B",
     .aliases = "mpt-30b-instruct|mpt-30b-chat",
     .source = "sizes from memory" MPT_CODE,
     .certainty = PE_UNVERIFIED,
     .note = {"A decoder: send causal true. 8192 positions.", "解码器：请把 causal 设为 true。8192 个位置。"},
     PE_ALL_LAYERS(ALIBI("key_end", 64, 112))},
    FALCON_RW("1b", "1B", 32),
    FALCON_RW("7b", "7B", 64),
    {.name = "baichuan-13b",
     .label = "Baichuan 13B",
     .label_zh = "百川 Baichuan 13B",
     .aliases = "baichuan-13b-base|baichuan-13b-chat|baichuan2-13b|baichuan2-13b-base|baichuan2-13b-chat",
     .source = "sizes from memory; form: modeling_baichuan.py (_gen_alibi_mask), in several public copies",
     .certainty = PE_UNVERIFIED,
     .note = {"A decoder: send causal true. The slopes are multiplied by the key's index, every row alike. "
              "4096 positions. Baichuan 7B is rotary.",
              "解码器：请把 causal 设为 true。斜率乘以键的序号，每一行都相同。"
              "4096 个位置。Baichuan 7B 用旋转位置编码。"},
     PE_ALL_LAYERS(ALIBI("key", 40, 128))},
    {.name = "jina-embeddings-v2-small-en",
     .label = "Jina Embeddings v2 small",
     .aliases = "jina-embeddings-v2-small",
     .source = "sizes from memory" JINA_CODE,
     .certainty = PE_UNVERIFIED,
     .note = {JINA_NOTE, JINA_NOTE_ZH},
     PE_ALL_LAYERS(ALIBI("symmetric", 8, 64))},
    {.name = "jina-embeddings-v2-base-en",
     .label = "Jina Embeddings v2 base",
     .aliases = "jina-embeddings-v2-base",
     .source = "config.json of jinaai/jina-embeddings-v2-base-en" JINA_CODE,
     .certainty = PE_SEEN_CHECKPOINT,
     .note = {JINA_NOTE, JINA_NOTE_ZH},
     PE_ALL_LAYERS(ALIBI("symmetric", 12, 64))},

    T5("t5-small", "T5 small", NULL, T5_PAPER, 8, 64),
    T5("t5-base", "T5 base", "t5", T5_PAPER, 12, 64),
    T5("t5-large", "T5 large", NULL, T5_PAPER, 16, 64),
    T5("t5-3b", "T5 3B", NULL, T5_PAPER, 32, 128),
    T5("t5-11b", "T5 11B", NULL, T5_PAPER, 128, 128),
    T5("t5-v1.1-small", "T5 v1.1 small", "t5-v1_1-small|flan-t5-small|mt5-small", T5_V1_1, 6, 64),
    T5("t5-v1.1-base", "T5 v1.1 base", "t5-v1_1-base|flan-t5-base|mt5-base", T5_V1_1, 12, 64),
    T5("t5-v1.1-large", "T5 v1.1 large", "t5-v1_1-large|flan-t5-large|mt5-large", T5_V1_1, 16, 64),
    T5("t5-v1.1-xl", "T5 v1.1 XL", "t5-v1_1-xl|flan-t5-xl|mt5-xl", T5_V1_1, 32, 64),
    T5("t5-v1.1-xxl", "T5 v1.1 XXL", "t5-v1_1-xxl|flan-t5-xxl|mt5-xxl", T5_V1_1, 64, 64),
    {.name = "mpnet-base",
     .label = "MPNet base",
     .aliases = "mpnet",
     .source = TF("mpnet/configuration_mpnet.py, modeling_mpnet.py"),
     .certainty = PE_SEEN_CHECKPOINT,
     .note = {"One table for all layers, encoder.relative_attention_bias.weight [32, 12], added to logits divided by "
              "sqrt(64). The input also has a learned table of 514 rows, the first token at row 2.",
              "各层共用一张表 encoder.relative_attention_bias.weight [32, 12]，"
              "加到除以 sqrt(64) 之后的 logits 上。输入还有 514 行的可学习表，"
              "第一个 token 用第 2 行。"},
     PE_ALL_LAYERS(BUCKETS(12, 64, 32, 128, true))},
    WAVLM("base", "wavlm-base-plus", 12),
    WAVLM("large", NULL, 16),
    {.name = "layoutlmv3-base",
     .label = "LayoutLMv3 base",
     .aliases = "layoutlmv3",
     .source = TF("layoutlmv3/modeling_layoutlmv3.py"),
     .certainty = PE_SEEN_CHECKPOINT,
     .note = {"Three biases are summed: of the token's place, and of the left and lower edge of its box (positions: "
              "bbox[0], bbox[3]). The sum is divided by sqrt(64), which table_scale does; LayoutLMv2 does not divide. "
              "Weights are Linear's, encoder.rel_pos_bias.weight [12, 32], rel_pos_x_bias, rel_pos_y_bias [12, 64]: "
              "transpose them. Without layer_type: rel_pos.",
              "三个偏置相加：token 的序号，以及其边框的左边和下边（positions："
              "bbox[0]、bbox[3]）。和除以 sqrt(64)，由 table_scale 完成；"
              "LayoutLMv2 不除。权重是 Linear 的，encoder.rel_pos_bias.weight "
              "[12, 32]，rel_pos_x_bias、rel_pos_y_bias [12, 64]：需要转置。不写 layer_type 时为 rel_pos。"},
     PE_LAYERS(LAYOUTLM_V3("rel_pos", 32, 128), LAYOUTLM_V3("rel_pos_x", 64, 256), LAYOUTLM_V3("rel_pos_y", 64, 256))},

    SWIN("swin-tiny", "Swin tiny", "swin|swin-small|swin-tiny-patch4-window7-224|swin-small-patch4-window7-224", SWIN_7,
         3, 6, 12, 24),
    SWIN("swin-base", "Swin base", "swin-base-patch4-window7-224", SWIN_7, 4, 8, 16, 32),
    SWIN("swin-base-384", "Swin base 384", "swin-base-patch4-window12-384", SWIN_12, 4, 8, 16, 32),
    SWIN("swin-large", "Swin large", "swin-large-patch4-window7-224", SWIN_7, 6, 12, 24, 48),
    SWIN("swin-large-384", "Swin large 384", "swin-large-patch4-window12-384", SWIN_12, 6, 12, 24, 48),
    SWINV2("swinv2-tiny-w8", "Swin V2 tiny w8",
           "swinv2|swinv2-small-w8|swinv2-tiny-patch4-window8-256|swinv2-small-patch4-window8-256", SWINV2_W8, 3, 6, 12,
           24),
    SWINV2("swinv2-tiny-w16", "Swin V2 tiny w16",
           "swinv2-small-w16|swinv2-tiny-patch4-window16-256|swinv2-small-patch4-window16-256", SWINV2_W16, 3, 6, 12,
           24),
    SWINV2("swinv2-base-w8", "Swin V2 base w8", "swinv2-base-patch4-window8-256", SWINV2_W8, 4, 8, 16, 32),
    SWINV2("swinv2-base-w16", "Swin V2 base w16", "swinv2-base-patch4-window16-256", SWINV2_W16, 4, 8, 16, 32),
    SWINV2("swinv2-base-w12to16", "Swin V2 base w12to16", "swinv2-base-patch4-window12to16-192to256-22kto1k-ft",
           SWINV2_W12TO16, 4, 8, 16, 32),
    SWINV2("swinv2-base-w12to24", "Swin V2 base w12to24", "swinv2-base-patch4-window12to24-192to384-22kto1k-ft",
           SWINV2_W12TO24, 4, 8, 16, 32),
    SWINV2("swinv2-large-w12to16", "Swin V2 large w12to16", "swinv2-large-patch4-window12to16-192to256-22kto1k-ft",
           SWINV2_W12TO16, 6, 12, 24, 48),
    SWINV2("swinv2-large-w12to24", "Swin V2 large w12to24", "swinv2-large-patch4-window12to24-192to384-22kto1k-ft",
           SWINV2_W12TO24, 6, 12, 24, 48),
    BEIT("beit-base", "BEiT base", "beit|beit-base-patch16-224", 12, 14),
    BEIT("beit-base-384", "BEiT base 384", "beit-base-patch16-384", 12, 24),
    BEIT("beit-large", "BEiT large", "beit-large-patch16-224", 16, 14),
    BEIT("beit-large-384", "BEiT large 384", "beit-large-patch16-384", 16, 24),
};

const struct pe_preset_table pe_presets_bias = PE_PRESET_TABLE(rows);
