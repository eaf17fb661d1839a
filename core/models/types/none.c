/* Models whose code has no positions. A row holds what the class does where the config.json has no value
 * (core/models/hf/hf.h). Sources: transformers' models/. */
#include "core/models/hf/hf.h"

#define NONE(types_, fields_, source_)                                                                                 \
    {                                                                                                                  \
        .types = types_, .kind = PE_HF_NONE, .fields = fields_, .source = source_                                      \
    }

/* The same, from memory or by likeness. */
#define NONE_UNREAD(types_, fields_, source_)                                                                          \
    {                                                                                                                  \
        .types = types_, .kind = PE_HF_NONE, .fields = fields_, .unread = true, .source = source_                      \
    }

static const struct pe_hf_model rows[] = {
    NONE("chameleon_vqgan", "", "chameleon/configuration_chameleon.py"),
    NONE_UNREAD("bit|convnext|convnextv2|dinov3_convnext|dac|align_vision_model", "", "convolutional networks"),
    NONE("cvt", "", "cvt/configuration_cvt.py"),
    NONE("gemma4_unified_audio", "", "configuration_gemma4_unified.py"),
    NONE("emu3_vqgan", "hidden_size=1024", "configuration_emu3.py"),
    {.types = "inkling_audio", .kind = PE_HF_NONE, .unread = true, .source = "configuration_inkling.py"},
    NONE("glm_image_vqmodel", "embed_dim=2048", "configuration_glm_image.py"),
    NONE("janus_vqgan", "embed_dim=8", "configuration_janus.py"),
    NONE("idefics2_perceiver", "hidden_size=4096", "configuration_idefics2.py"),
    {.types = "jamba",
     .kind = PE_HF_NONE,
     .fields = "hidden_size=4096",
     .none = "mamba",
     .source = "configuration_jamba.py"},
    NONE("idefics_perciever", "", "configuration_idefics.py"),
    NONE("inkling_vision", "", "configuration_inkling.py"),
    NONE("flava_multimodal_model", "hidden_size=768", "configuration_flava.py"),
    NONE_UNREAD("gemma3n_vision", "hidden_size=2048", "gemma3n/configuration_gemma3n.py"),
    NONE_UNREAD("encodec", "hidden_size=128", "encodec/modeling_encodec.py"),
    NONE_UNREAD("falcon_mamba", "hidden_size=4096", "falcon_mamba/modeling_falcon_mamba.py: as mamba"),
    NONE_UNREAD("efficientnet|hgnet_v2|focalnet|glpn", "", "convolutions, modulations"),
    NONE("fastspeech2_conformer_hifigan|hifigan", "", "configuration_fastspeech2_conformer.py"),
    NONE("moshi_depth", "hidden_size=1024", "moshi/modeling_moshi.py"),
    {.types = "nemotron_h",
     .kind = PE_HF_NONE,
     .fields = "hidden_size=4096",
     .none = "mamba",
     .source = "nemotron_h/modular_nemotron_h.py"},
    NONE("moonshine_streaming_encoder", "hidden_size=320", "moonshine_streaming/modular_moonshine_streaming.py"),
    NONE("pp_ocrv5_server_rec", "hidden_size=120", "pp_ocrv5_server_rec/modular_pp_ocrv5_server_rec.py"),
    NONE("mamba", "hidden_size=768", "mamba/modeling_mamba.py"),
    NONE("mamba2", "hidden_size=4096", "mamba2/configuration_mamba2.py"),
    NONE_UNREAD(
        "mobilenet_v1|mobilenet_v2|poolformer|pp_lcnet|pp_lcnet_v3|pp_lcnet_v4|pp_ocrv5_mobile_det|pp_ocrv5_server_"
        "det|pp_ocrv6_medium_det|pp_ocrv6_small_det",
        "", "convolutional networks"),
    NONE_UNREAD("pp_ocrv5_mobile_rec|pp_ocrv6_small_rec|pp_ocrv6_tiny_rec", "hidden_size=120",
                "as pp_ocrv5_server_rec/modular_pp_ocrv5_server_rec.py"),
    NONE("mobilevit|mobilevitv2", "", "mobilevit (transformer blocks on unfolded patches)"),
    NONE("qwen2_5_omni_bigvgan", "", "configuration_qwen2_5_omni.py"),
    NONE("rwkv", "hidden_size=4096", "rwkv/configuration_rwkv.py"),
    NONE("rwkv7", "hidden_size=768", "rwkv7/configuration_rwkv7.py"),
    {.types = "zamba",
     .kind = PE_HF_NONE,
     .fields = "hidden_size=3712",
     .none = "mamba",
     .source = "zamba/modeling_zamba.py"},
    NONE("vibevoice_acoustic_tokenizer|vibevoice_acoustic_tokenizer_encoder|vibevoice_acoustic_tokenizer_decoder",
         "hidden_size=64", "vibevoice_asr/modular_vibevoice_asr.py, which holds them as parts"),
    NONE("speecht5_hifigan|univnet", "", "configuration_speecht5.py"),
    NONE("sam3_mask_decoder|sam3_lite_text_mask_decoder", "", "configuration_sam3.py"),
    NONE("slanet", "hidden_size=256", "slanet/configuration_slanet.py"),
    NONE_UNREAD("textnet|uvdoc|uvdoc_backbone|superpoint|regnet|resnet|rt_detr_resnet|swiftformer", "",
                "convolutional networks"),
    {.types = "timesfm",
     .kind = PE_HF_NONE,
     .fields = "hidden_size=1280",
     .refuses = "use_positional_embedding=true",
     .source = "configuration_timesfm.py"},
    NONE("segformer", "", "segformer/modeling_segformer.py"),
    NONE("xlstm", "", "xlstm/modeling_xlstm.py"),
    NONE("sapiens2_head", "", "modular_sapiens2.py"),
};

const struct pe_hf_table pe_hf_types_none = {rows, sizeof rows / sizeof *rows};
