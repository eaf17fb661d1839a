/* How model_types differ from the usual: rotary, layout half over whole heads of hidden_size / num_attention_heads,
 * base 10000. Source: transformers' models/<type>/configuration_*.py and modeling_*.py. */
#include "core/models/hf.h"
#include "core/params.h"

#define INTERLEAVED .layout = "interleaved"
#define MROPE(style_) .channels = "mrope", .style = style_
#define MROPE_INTERLEAVED(style_) .channels = "mrope_interleaved", .style = style_
#define LEARNED .kind = PE_HF_LEARNED
#define PATCHES .kind = PE_HF_PATCHES
#define SINUSOIDAL .kind = PE_HF_SINUSOIDAL
#define BUCKETS .kind = PE_HF_BUCKETS
#define LAYOUTLM .kind = PE_HF_LAYOUTLM, .layers = "rel_pos|rel_pos_x|rel_pos_y"
#define SWIN(scheme_) .kind = PE_HF_SWIN, .style = scheme_, .layers = "stage1|stage2|stage3|stage4"

static const double section_of_64[] = {24, 20, 20}, section_of_32[] = {11, 11, 10};

/* A type of the usual kind needs a row only so that configs without rope_theta can be read, which older configs
 * omit. */
static const struct pe_hf_model models[] = {
    {.types = "llama|mistral|qwen2|qwen2_moe|olmo|olmo2|olmoe|starcoder2|granite|granitemoe|internlm2|minicpm|bitnet"},
    /* Other bases, widths and shares. */
    {.types = "mixtral", .base = 1e6},
    {.types = "smollm3", .base = 2e6},
    {.types = "qwen3", .head_dim = 128},
    {.types = "gemma|gemma2", .head_dim = 256},
    {.types = "gemma3|gemma3_text", .base = 1e6, .local_base = 1e4, .head_dim = 256},
    {.types = "modernbert", .base = 160000, .local_base = 1e4},
    {.types = "phi", .share = 0.5},
    {.types = "phi3|phi3_v|phimoe|phi4mm|phi4_multimodal", .yarn_is_longrope = true},
    {.types = "gpt_neox|stablelm|stablelm_epoch", .share = 0.25},
    {.types = "persimmon", .base = 25000, .share = 0.5},
    {.types = "nemotron|glm4_moe", .share = 0.5},
    {.types = "qwen3_next", .head_dim = 256, .share = 0.25},
    {.types = "falcon", .kind = PE_HF_FALCON, .style = "key_mask"},
    {.types = "exaone4", .full_has_none = true},
    {.types = "minicpm3", .layout = "half"}, /* latent attention, but not DeepSeek's pairs */
    /* Neighbouring channels form pairs. */
    {.types = "gptj|codegen|roformer|helium", INTERLEAVED},
    {.types = "deepseek_v2|deepseek_v3|deepseek_v32|kimi_k2|glm_moe_dsa|mistral4", INTERLEAVED},
    {.types = "cohere", INTERLEAVED, .base = 5e5},
    {.types = "cohere2", INTERLEAVED, .full_has_none = true},
    {.types = "glm|glm4", INTERLEAVED, .head_dim = 128, .share = 0.5},
    {.types = "chatglm", INTERLEAVED, .share = 0.5},
    {.types = "ernie4_5|ernie4_5_moe|llama4|llama4_text", INTERLEAVED, .base = 5e5},
    /* Three axes. */
    {.types = "qwen2_vl|qwen2_vl_text", MROPE("qwen2_vl"), .base = 1e6},
    {.types = "qwen2_5_vl|qwen2_5_vl_text", MROPE("qwen2_5_vl"), .base = 1e6},
    {.types = "qwen2_5_omni|qwen2_5_omni_thinker|qwen2_5_omni_text", MROPE("qwen2_5_omni"), .base = 1e6},
    {.types = "qwen3_vl|qwen3_vl_text|qwen3_vl_moe|qwen3_vl_moe_text",
     MROPE_INTERLEAVED("qwen3_vl"),
     .base = 5e5,
     .head_dim = 128,
     .section = section_of_64},
    {.types = "qwen3_omni_moe|qwen3_omni_moe_thinker|qwen3_omni_moe_text",
     MROPE_INTERLEAVED("qwen3_omni"),
     .base = 1e6,
     .head_dim = 128,
     .section = section_of_64},
    {.types = "qwen3_5|qwen3_5_text|qwen3_5_moe|qwen3_5_moe_text",
     MROPE_INTERLEAVED("qwen3_vl"),
     .head_dim = 256,
     .share = 0.25,
     .section = section_of_32},
    {.types = "glm4v|glm4v_text", INTERLEAVED, .channels = "mrope"},
    /* Vision towers with a rotation of their own. */
    {.types = "pixtral", .channels = "pixtral"},
    {.types = "dinov3_vit", .channels = "dinov3", .base = 100},
    /* Tables; BERT's family may have another position_embedding_type. */
    {.types = "bert|distilbert|albert|electra|ernie|openai-gpt|gpt2|gpt_bigcode|gpt_neo|clip|clip_text_model", LEARNED},
    {.types = "roberta|xlm-roberta|xlm-roberta-xl|roberta-prelayernorm|camembert|longformer|esm",
     LEARNED,
     .row_offset = -1},
    {.types = "opt|bart|mbart|plbart", LEARNED, .extra_rows = 2, .row_offset = 2},
    {.types = "vit", PATCHES, .extra_rows = 1},
    {.types = "deit", PATCHES, .extra_rows = 2},
    /* Sinusoids. Positions of fairseq's family begin at padding_idx + 1 = 2: the request's offset. */
    {.types = "whisper", SINUSOIDAL, .freq_shift = 1},
    {.types = "marian|pegasus", SINUSOIDAL},
    {.types = "m2m_100|nllb-moe|xglm|speech_to_text|fsmt", SINUSOIDAL, .freq_shift = 1, .odd = "pad"},
    /* Biases. */
    {.types = "bloom", .kind = PE_HF_ALIBI, .style = "key_mask"},
    {.types = "mpt", .kind = PE_HF_MPT, .style = "key_end"},
    {.types = "t5|mt5|umt5|longt5|switch_transformers", .kind = PE_HF_T5, .layers = "encoder|decoder", .head_dim = 64},
    {.types = "mpnet|wavlm", BUCKETS},
    {.types = "layoutlmv2", LAYOUTLM},
    {.types = "layoutlmv3", LAYOUTLM, .style = "scaled"},
    {.types = "swin", SWIN("swin")},
    {.types = "swinv2", SWIN("swinv2")},
    {.types = "beit", .kind = PE_HF_BEIT, .extra_rows = 1},
    /* Terms that depend on distance and content. */
    {.types = "deberta", .kind = PE_HF_DEBERTA, .style = "own"},
    {.types = "deberta-v2", .kind = PE_HF_DEBERTA},
    {.types = "nezha", .kind = PE_HF_NEZHA},
    {.types = "transfo-xl", .kind = PE_HF_TRANSFO_XL},
    {.types = "xlnet", .kind = PE_HF_XLNET},
    {.types = "wav2vec2-conformer", .kind = PE_HF_CONFORMER},
};

const struct pe_hf_model *pe_hf_model_find(const char *model_type)
{
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        if (pe_is_among(models[i].types, model_type))
            return &models[i];
    return NULL;
}
