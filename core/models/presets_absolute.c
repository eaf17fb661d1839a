/* Models whose positions are added to the input: sinusoidal, Fourier and learned tables (weights not included). */
#include "core/models/field.h"

#define SINUSOIDAL(dim_, layout_)                                                                                      \
    PE_WORD("scheme", "sinusoidal"), PE_INT("dim", dim_), PE_NUMBER("base", 1e4), PE_WORD("layout", layout_)
#define LEARNED(rows_, dim_) PE_WORD("scheme", "learned"), PE_INT("dim", dim_), PE_INT("rows", rows_)
#define TWO_PI 6.283185307179586

#define WHISPER(name_, dim_)                                                                                           \
    {                                                                                                                  \
        .name = "whisper-" name_, .label = "Whisper " name_, .aliases = "whisper-" name_ "-encoder",                   \
        .source = "openai/whisper whisper/model.py; widths: arXiv 2212.04356, table 1",                                \
        .certainty = PE_SEEN_CHECKPOINT,                                                                               \
        .note = {"The encoder: 1500 positions. The decoder has a learned table of 448 rows.",                          \
                 "编码器：1500 个位置。解码器用 448 行的可学习表。"},                                                  \
        PE_ALL_LAYERS(SINUSOIDAL(dim_, "half"), PE_NUMBER("freq_shift", 1))                                            \
    }

static const struct pe_preset rows[] = {
    {.name = "transformer-base",
     .label = "original Transformer, base",
     .label_zh = "原始 Transformer（base）",
     .aliases = "transformer",
     .source = "Vaswani et al. 2017, arXiv 1706.03762, sections 3.4, 3.5 and table 3",
     .certainty = PE_SEEN_CHECKPOINT,
     .note = {"Embeddings are multiplied by sqrt(512). tensor2tensor, its code, has layout half and freq_shift 1.",
              "嵌入乘以 sqrt(512)。其代码 tensor2tensor 的 layout 为 half，freq_shift 为 1。"},
     PE_ALL_LAYERS(SINUSOIDAL(512, "interleaved"), PE_WORD("x_scale", "sqrt_dim"))},
    {.name = "transformer-big",
     .label = "original Transformer, big",
     .label_zh = "原始 Transformer（big）",
     .aliases = NULL,
     .source = "Vaswani et al. 2017, arXiv 1706.03762, sections 3.4, 3.5 and table 3",
     .certainty = PE_SEEN_CHECKPOINT,
     .note = {"Embeddings are multiplied by sqrt(1024).", "嵌入乘以 sqrt(1024)。"},
     PE_ALL_LAYERS(SINUSOIDAL(1024, "interleaved"), PE_WORD("x_scale", "sqrt_dim"))},
    {.name = "fairseq-transformer",
     .label = "Transformer of fairseq",
     .label_zh = "fairseq 的 Transformer",
     .aliases = "fairseq|fairseq-sinusoidal",
     .source = "fairseq modules/sinusoidal_positional_embedding.py, as copied in xuanqing94/FLOATER",
     .certainty = PE_SEEN_CHECKPOINT,
     .note = {"The first token stands at position 2 (padding_idx + 1): send offset 2; padding gets zeros.",
              "第一个 token 在位置 2（padding_idx + 1）：请发送 offset 2；填充处为零。"},
     PE_ALL_LAYERS(SINUSOIDAL(512, "half"), PE_NUMBER("freq_shift", 1), PE_WORD("odd", "pad"),
                   PE_WORD("x_scale", "sqrt_dim"))},
    WHISPER("tiny", 384),
    WHISPER("base", 512),
    WHISPER("small", 768),
    WHISPER("medium", 1024),
    WHISPER("large", 1280),
    {.name = "bert-base",
     .label = "BERT base",
     .aliases = "bert|bert-base-uncased|bert-base-cased",
     .source = TF("bert/configuration_bert.py"),
     .certainty = PE_CLASS_DEFAULT,
     .note = {NULL, NULL},
     PE_ALL_LAYERS(LEARNED(512, 768))},
    {.name = "gpt-2",
     .label = "GPT-2",
     .aliases = "gpt2|gpt2-small",
     .source = TF("gpt2/configuration_gpt2.py"),
     .certainty = PE_CLASS_DEFAULT,
     .note = {"The larger sizes have 1024 rows of 1024, 1280 and 1600.",
              "更大的型号有 1024 行，宽度为 1024、1280 和 1600。"},
     PE_ALL_LAYERS(LEARNED(1024, 768))},
    {.name = "roberta-base",
     .label = "RoBERTa base",
     .aliases = "roberta|xlm-roberta-base",
     .source = TF("roberta/configuration_roberta.py"),
     .certainty = PE_CLASS_DEFAULT,
     .note =
         {"The first token uses row 2 (padding_idx 1, plus 1), so 514 rows serve 512 tokens; padding uses row 1 and "
          "is not counted.",
          "第一个 token 用第 2 行（padding_idx 为 1，再加 1），所以 514 行供 512 个 "
          "token 使用；填充用第 1 行，不计数。"},
     PE_ALL_LAYERS(LEARNED(514, 768), PE_INT("row_offset", 2))},
    {.name = "opt-125m",
     .label = "OPT 125M",
     .aliases = "opt",
     .source = TF("opt/configuration_opt.py, modeling_opt.py"),
     .certainty = PE_CLASS_DEFAULT,
     .note = {"2048 positions from row 2 on; padding uses row 1. Larger sizes have the same rows of other widths.",
              "从第 2 行起共 2048 个位置；填充用第 1 行。更大的型号行数相同，宽度不同。"},
     PE_ALL_LAYERS(LEARNED(2050, 768), PE_INT("row_offset", 2))},
    {.name = "bart-large",
     .label = "BART large",
     .aliases = "bart",
     .source = TF("bart/configuration_bart.py, modeling_bart.py"),
     .certainty = PE_CLASS_DEFAULT,
     .note = {"1024 positions from row 2 on; bart-base has dim 768.",
              "从第 2 行起共 1024 个位置；bart-base 的 dim 为 768。"},
     PE_ALL_LAYERS(LEARNED(1026, 1024), PE_INT("row_offset", 2))},
    {.name = "vit-b-16",
     .label = "ViT-B/16",
     .aliases = "vit|vit-base-patch16-224",
     .source = TF("vit/configuration_vit.py, modeling_vit.py"),
     .certainty = PE_CLASS_DEFAULT,
     .note = {"A class token, then 14 x 14 patches; other sizes of image interpolate the patches' rows (timm: "
              "bicubic_antialias).",
              "先是一个类别 token，然后是 14 x 14 个图像块；其他尺寸的图像对图像块的各行插值"
              "（timm：bicubic_antialias）。"},
     PE_ALL_LAYERS(LEARNED(197, 768), PE_WORD("interpolate", "bicubic"), PE_LIST_OF("table_grid", 14, 14),
                   PE_INT("num_prefix", 1))},
    {.name = "clip-text",
     .label = "CLIP, text encoder",
     .label_zh = "CLIP 文本编码器",
     .aliases = "clip-vit-b-32-text",
     .source = TF("clip/configuration_clip.py"),
     .certainty = PE_CLASS_DEFAULT,
     .note = {"77 positions; the text tower of ViT-L/14 has dim 768.", "77 个位置；ViT-L/14 的文本塔 dim 为 768。"},
     PE_ALL_LAYERS(LEARNED(77, 512))},
    {.name = "detr-sine",
     .label = "DETR, sine table",
     .label_zh = "DETR 正弦表",
     .aliases = "detr",
     .source = "facebookresearch/detr models/position_encoding.py",
     .certainty = PE_SEEN_CHECKPOINT,
     .note = {"128 channels for y, then 128 for x. Positions count the valid pixels from 1 and are normalized to 2 pi.",
              "先是 y 的 128 个通道，再是 x 的 128 个。位置对有效像素从 1 计数，并归一化到 "
              "2π。"},
     PE_ALL_LAYERS(PE_WORD("scheme", "sinusoidal"), PE_INT("dim", 256), PE_WORD("style", "detr"),
                   PE_NUMBER("temperature", 1e4), PE_FLAG("normalize", true), PE_NUMBER("angle_scale", TWO_PI))},
    {.name = "detr-learned",
     .label = "DETR, learned table",
     .label_zh = "DETR 可学习表",
     .aliases = NULL,
     .source = "facebookresearch/detr models/position_encoding.py, built with hidden_dim/2",
     .certainty = PE_SEEN_CHECKPOINT,
     .note = {"Two tables, row_table and col_table [50, 128], uniform in [0, 1) at first; x (column) channels come "
              "first. The class default is 256 channels each. Grids of at most 50 x 50.",
              "两张表 row_table 和 col_table，形状 [50, 128]，初值在 [0, 1) 上均匀分布；x"
              "（列）的通道在前。类的默认值为各 256 个通道。网格至多 50 x 50。"},
     PE_ALL_LAYERS(LEARNED(50, 256))},
    {.name = "mae-vit-b-16",
     .label = "MAE ViT-B/16",
     .aliases = "mae",
     .source = "facebookresearch/mae util/pos_embed.py",
     .certainty = PE_SEEN_CHECKPOINT,
     .note =
         {"The table of 197 rows is a row of zeros for the class token, then the grid 14 x 14; the column's channels "
          "come first.",
          "表共 197 行：类别 token 的一行零，然后是 14 x 14 的网格；列的通道在前。"},
     PE_ALL_LAYERS(PE_WORD("scheme", "sinusoidal"), PE_INT("dim", 768), PE_WORD("style", "mae"),
                   PE_NUMBER("base", 1e4))},
    {.name = "perceiver-image",
     .label = "Perceiver for images",
     .label_zh = "Perceiver 图像模型",
     .aliases = "perceiver",
     .source = TF("perceiver/configuration_perceiver.py, modeling_perceiver.py"),
     .certainty = PE_CLASS_DEFAULT,
     .note = {"Grid 224 x 224; 2·(2·64 + 1) = 258 channels.", "网格为 224 x 224；2·(2·64 + 1) = 258 个通道。"},
     PE_ALL_LAYERS(PE_WORD("scheme", "fourier"), PE_WORD("style", "perceiver"), PE_INT("num_bands", 64),
                   PE_LIST_OF("max_resolution", 224, 224), PE_FLAG("concat_pos", true))},
};

const struct pe_preset_table pe_presets_absolute = PE_PRESET_TABLE(rows);
