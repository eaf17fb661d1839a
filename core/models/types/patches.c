/* Learned tables of the patches of an image. A row holds what the class does where the config.json has no value
 * (core/models/hf/hf.h). Sources: transformers' models/. */
#include "core/models/hf/hf.h"

/* After the types, the fields and the rows beyond the patches: the source, and other members of the row. */
#define PATCHES(types_, fields_, extra_rows_, ...)                                                                     \
    {                                                                                                                  \
        .types = types_, .kind = PE_HF_PATCHES, .fields = fields_, .extra_rows = extra_rows_, .source = __VA_ARGS__    \
    }

static const struct pe_hf_model rows[] = {
    PATCHES("clip_vision_model", "image_size=224 patch_size=32 hidden_size=768", 1,
            "clip/modeling_clip.py: CLIPVisionEmbeddings; configuration_clip.py: CLIPVisionConfig"),
    PATCHES("dinov2", "image_size=224 patch_size=14 hidden_size=768", 1, "dinov2/modeling_dinov2.py: Dinov2Embeddings"),
    PATCHES("aimv2_vision_model", "hidden_size=1024 image_size=224 patch_size=14", 0,
            "aimv2/modeling_aimv2.py: Aimv2VisionEmbeddings", .refuses = "is_native=true"),
    PATCHES("dinov2_with_registers", "image_size=224 patch_size=16 hidden_size=768", 1,
            "dinov2_with_registers/modular_dinov2_with_registers.py: Dinov2WithRegistersEmbeddings, "
            "Dinov2WithRegistersConfig"),
    PATCHES("bridgetower_vision_model", "image_size=288 patch_size=16 hidden_size=768", 1,
            "bridgetower/configuration_bridgetower.py: BridgeTowerVisionConfig"),
    PATCHES("altclip_vision_model", "image_size=224 patch_size=32 hidden_size=768", 1,
            "altclip/configuration_altclip.py: AltCLIPVisionConfig"),
    PATCHES("dpt", "image_size=384 patch_size=16 hidden_size=768", 1,
            "dpt/modeling_dpt.py: DPTViTEmbeddings._resize_pos_embed"),
    PATCHES("blip_vision_model", "image_size=384 patch_size=16 hidden_size=768", 1,
            "blip/configuration_blip.py: BlipVisionConfig"),
    PATCHES("blip_2_vision_model", "image_size=224 patch_size=14 hidden_size=1408", 1,
            "blip_2/configuration_blip_2.py: Blip2VisionConfig"),
    PATCHES("chinese_clip_vision_model", "image_size=224 patch_size=32 hidden_size=768", 1,
            "chinese_clip/configuration_chinese_clip.py: ChineseCLIPVisionConfig"),
    PATCHES("clipseg_vision_model", "image_size=224 patch_size=32 hidden_size=768", 1,
            "clipseg/configuration_clipseg.py: CLIPSegVisionConfig"),
    PATCHES("deit", "image_size=224 patch_size=16 hidden_size=768", 2, "deit/modeling_deit.py: DeiTEmbeddings"),
    PATCHES("glm_image_vision", "hidden_size=1536 image_size=2048 patch_size=16", 0,
            "glm_image/modular_glm_image.py: GlmImageVisionEmbeddings (Glm4vVisionEmbeddings, bilinear), "
            "GlmImageVisionAttention (no rotation)",
            .style = "bilinear"),
    PATCHES("janus_vision_model", "hidden_size=1024 image_size=384 patch_size=16", 0,
            "configuration_janus.py: JanusVisionConfig; inherits siglip embeddings"),
    PATCHES("internvl_vision", "hidden_size=1024 image_size=448 patch_size=14", 1,
            "configuration_internvl.py: InternVLVisionConfig; inherits beit/janus code"),
    PATCHES("instructblip_vision_model|instructblipvideo_vision_model", "hidden_size=1408 image_size=224 patch_size=14",
            1, "configuration_instructblip.py: InstructBlipVisionConfig"),
    PATCHES("kosmos_2_vision_model", "hidden_size=1024 image_size=224 patch_size=14", 1,
            "configuration_kosmos2.py: Kosmos2VisionConfig; modeling copies clip"),
    PATCHES("git_vision_model", "hidden_size=768 image_size=224 patch_size=16", 1,
            "configuration_git.py: GitVisionConfig"),
    PATCHES("idefics_vision", "embed_dim=768 image_size=224 patch_size=14", 1,
            "configuration_idefics.py: IdeficsVisionConfig (hidden_size is an alias of embed_dim)"),
    PATCHES("groupvit_vision_model", "hidden_size=384 image_size=224 patch_size=16", 0,
            "configuration_groupvit.py: GroupViTVisionConfig; modeling_groupvit.py: GroupViTVisionEmbeddings"),
    PATCHES("ijepa", "hidden_size=768 image_size=224 patch_size=16", 0,
            "ijepa/modular_ijepa.py: IJepaEmbeddings; configuration_ijepa.py: IJepaConfig"),
    PATCHES("flava_image_model", "hidden_size=768 image_size=224 patch_size=16", 1,
            "configuration_flava.py: FlavaImageConfig"),
    PATCHES("eomt", "hidden_size=1024 image_size=640 patch_size=16", 0,
            "eomt/modular_eomt.py: EomtEmbeddings (extract); configuration_eomt.py: EomtConfig"),
    PATCHES("owlvit_vision_model", "hidden_size=768 image_size=768 patch_size=32", 1,
            "owlvit/configuration_owlvit.py: OwlViTVisionConfig"),
    PATCHES("owlv2_vision_model", "hidden_size=768 image_size=768 patch_size=16", 1, "owlv2 (copy of owlvit)"),
    PATCHES("metaclip_2_vision_model", "hidden_size=768 image_size=224 patch_size=32", 1,
            "metaclip_2/configuration_metaclip_2.py: MetaClip2VisionConfig (CLIP kin)"),
    PATCHES("siglip_vision_model", "hidden_size=768 image_size=224 patch_size=16", 0, "siglip: SiglipVisionEmbeddings"),
    PATCHES("videomt", "hidden_size=1024 image_size=640 patch_size=16", 0,
            "modular_videomt.py: VideomtEmbeddings; config inherits eomt", .unread = true),
    PATCHES("vit", "hidden_size=768 image_size=224 patch_size=16", 1, "configuration_vit.py; ViTEmbeddings"),
    PATCHES("vit_msn", "hidden_size=768 image_size=224 patch_size=16", 1, "vit_msn: as vit"),
    PATCHES("xclip_vision_model", "hidden_size=768 image_size=224 patch_size=32", 1, "configuration_x_clip.py"),
    PATCHES("rf_detr_dinov2", "hidden_size=768 image_size=224 patch_size=14", 1,
            "rf_detr/modular_rf_detr.py: RfDetrDinov2Embeddings, RfDetrDinov2Config (Dinov2Config)",
            .style = "bicubic_antialias"),
    PATCHES("rf_detr/backbone", "hidden_size=384 image_size=518 patch_size=14", 1,
            "rf_detr/modular_rf_detr.py: RfDetrConfig", .style = "bicubic_antialias"),
    PATCHES("depth_anything/backbone", "hidden_size=384 image_size=518 patch_size=14", 1,
            "depth_anything/configuration_depth_anything.py: DepthAnythingConfig"),
};

const struct pe_hf_table pe_hf_types_patches = {rows, sizeof rows / sizeof *rows};
