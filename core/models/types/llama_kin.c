/* Rotary positions as Llama has them: halves of the whole head. The types differ in their class's numbers. A row holds
 * what the class does where the config.json has no value (core/models/hf/hf.h). Sources: transformers' models/. */
#include "core/models/hf/hf.h"

#define LLAMA(types_, fields_, ...)                                                                                    \
    {                                                                                                                  \
        .types = types_, .fields = fields_, .source = __VA_ARGS__                                                      \
    }

static const struct pe_hf_model rows[] = {
    LLAMA("apertus",
          "hidden_size=4096 num_attention_heads=32 rope_theta=12000000 max_position_embeddings=65536 "
          "rope_parameters.rope_type=llama3 rope_parameters.factor=8.0 "
          "rope_parameters.original_max_position_embeddings=8192 rope_parameters.low_freq_factor=1.0 "
          "rope_parameters.high_freq_factor=4.0",
          "apertus/modular_apertus.py: ApertusConfig, ApertusAttention(LlamaAttention), "
          "ApertusRotaryEmbedding(LlamaRotaryEmbedding)"),
    LLAMA("arcee", "hidden_size=2560 num_attention_heads=32 rope_theta=10000 max_position_embeddings=4096",
          "arcee/modular_arcee.py: ArceeConfig(LlamaConfig), ArceeForCausalLM(LlamaForCausalLM)",
          .masks = PE_HF_MASKS_ALIKE),
    LLAMA("bitnet", "hidden_size=2560 num_attention_heads=20 rope_theta=500000 max_position_embeddings=2048",
          "bitnet/modular_bitnet.py: BitNetAttention(LlamaAttention), BitNetModel(LlamaModel); "
          "configuration_bitnet.py: BitNetConfig",
          .masks = PE_HF_MASKS_ALIKE),
    LLAMA("csm_depth_decoder_model",
          "hidden_size=1024 num_attention_heads=8 rope_theta=500000 max_position_embeddings=33",
          "csm/modular_csm.py: CsmDepthDecoderModel(LlamaModel); configuration_csm.py: CsmDepthDecoderConfig"),
    LLAMA("dots1", "hidden_size=4608 num_attention_heads=32 rope_theta=10000 max_position_embeddings=2048",
          "dots1/modular_dots1.py: Dots1Config, Dots1Attention(Qwen3Attention), "
          "Dots1RotaryEmbedding(Qwen3RotaryEmbedding)"),
    LLAMA("aria_text", "hidden_size=4096 num_attention_heads=32 rope_theta=10000 max_position_embeddings=2048",
          "aria/configuration_aria.py: AriaTextConfig (from LlamaConfig); modeling inherits Llama"),
    LLAMA("deepseek_ocr2_encoder",
          "hidden_size=4096 num_attention_heads=32 rope_theta=10000 max_position_embeddings=32768",
          "deepseek_ocr2/configuration_deepseek_ocr2.py: DeepseekOcr2VisionEncoderConfig"),
    LLAMA("cwm",
          "hidden_size=6144 num_attention_heads=48 head_dim=128 rope_theta=1000000 max_position_embeddings=131072 "
          "rope_parameters.rope_type=llama3 rope_parameters.factor=16.0 rope_parameters.low_freq_factor=1.0 "
          "rope_parameters.high_freq_factor=4.0 rope_parameters.original_max_position_embeddings=8192",
          "cwm/modular_cwm.py: CwmConfig(LlamaConfig), CwmAttention(Qwen2Attention), "
          "CwmRotaryEmbedding(Qwen2RotaryEmbedding)"),
    LLAMA("dia_encoder",
          "hidden_size=1024 num_attention_heads=16 head_dim=128 rope_theta=10000 max_position_embeddings=1024",
          "dia/modular_dia.py: DiaEncoder, DiaSelfAttention(LlamaAttention), DiaRotaryEmbedding(LlamaRotaryEmbedding)"),
    LLAMA("dia_decoder",
          "hidden_size=2048 num_attention_heads=16 head_dim=128 rope_theta=10000 max_position_embeddings=3072",
          "dia/modular_dia.py: DiaDecoder, DiaSelfAttention, DiaCrossAttention"),
    LLAMA("diffllama", "hidden_size=2048 num_attention_heads=32 rope_theta=10000 max_position_embeddings=2048",
          "diffllama/configuration_diffllama.py: DiffLlamaConfig", .masks = PE_HF_MASKS_ALIKE),
    LLAMA("doge", "hidden_size=1024 num_attention_heads=8 rope_theta=10000 max_position_embeddings=2048",
          "doge/configuration_doge.py: DogeConfig"),
    LLAMA(
        "gpt_oss",
        "hidden_size=2880 num_attention_heads=64 head_dim=64 rope_theta=150000 max_position_embeddings=131072 "
        "rope_parameters.rope_type=yarn rope_parameters.factor=32 rope_parameters.beta_fast=32 "
        "rope_parameters.beta_slow=1 rope_parameters.truncate=false "
        "rope_parameters.original_max_position_embeddings=4096",
        "gpt_oss/modular_gpt_oss.py: GptOssRotaryEmbedding, _apply_rotary_emb; configuration_gpt_oss.py: GptOssConfig",
        .masks = PE_HF_MASKS_DIFFER),
    LLAMA("falcon_h1", "hidden_size=4096 num_attention_heads=32 rope_theta=10000 max_position_embeddings=8192",
          "falcon_h1/modular_falcon_h1.py: FalconH1Attention (LlamaAttention, LlamaRotaryEmbedding); "
          "configuration_falcon_h1.py: FalconH1Config"),
    LLAMA("eurobert", "hidden_size=768 num_attention_heads=12 rope_theta=10000 max_position_embeddings=8192",
          "configuration_eurobert.py: EuroBertConfig (inherits llama), modular inherits llama"),
    LLAMA("gemma3n_text",
          "hidden_size=2048 num_attention_heads=8 head_dim=256 rope_theta=1000000 rope_local_base_freq=10000 "
          "max_position_embeddings=32768 sliding_window=512 num_hidden_layers=35 sliding_window_pattern=5",
          "configuration_gemma3n.py: Gemma3nTextConfig", .mixed = "sliding_attention|full_attention",
          .period = "sliding_window_pattern", .ignores = "sliding_window_pattern"),
    {.types = "hunyuan_v1_dense|hunyuan_v1_moe",
     .fields = "hidden_size=4096 num_attention_heads=32 rope_theta=10000 max_position_embeddings=2048",
     .style = "alpha",
     .source = "hunyuan_v1_dense/modular_hunyuan_v1_dense.py: HunYuanDenseV1RotaryEmbedding; "
               "configuration_hunyuan_v1_dense.py, configuration_hunyuan_v1_moe.py"},
    LLAMA("glm4_moe",
          "hidden_size=4096 num_attention_heads=96 partial_rotary_factor=0.5 rope_theta=10000 "
          "max_position_embeddings=131072",
          "modeling_glm4_moe.py: Glm4MoeRotaryEmbedding, rotate_half, apply_rotary_pos_emb; configuration_glm4_moe.py"),
    LLAMA("gemma", "hidden_size=3072 num_attention_heads=16 head_dim=256 rope_theta=10000 max_position_embeddings=8192",
          "configuration_gemma.py: GemmaConfig; inherits llama", .masks = PE_HF_MASKS_ALIKE),
    LLAMA("gemma2", "hidden_size=2304 num_attention_heads=8 head_dim=256 rope_theta=10000 max_position_embeddings=8192",
          "configuration_gemma2.py: Gemma2Config; inherits gemma", .masks = PE_HF_MASKS_DIFFER),
    LLAMA("gemma3_text",
          "hidden_size=2304 num_attention_heads=8 head_dim=256 rope_theta=1000000 rope_local_base_freq=10000 "
          "max_position_embeddings=131072 num_hidden_layers=26 sliding_window_pattern=6",
          "configuration_gemma3.py: Gemma3TextConfig", .mixed = "sliding_attention|full_attention",
          .period = "sliding_window_pattern"),
    LLAMA("gpt_neox",
          "hidden_size=6144 num_attention_heads=64 rotary_pct=0.25 rotary_emb_base=10000 max_position_embeddings=2048",
          "configuration_gpt_neox.py: GPTNeoXConfig.convert_rope_params_to_dict; modeling_gpt_neox.py: "
          "apply_rotary_pos_emb",
          .masks = PE_HF_MASKS_ALIKE),
    LLAMA("granite", "hidden_size=4096 num_attention_heads=32 rope_theta=10000 max_position_embeddings=2048",
          "configuration_granite.py: GraniteConfig; inherits llama", .masks = PE_HF_MASKS_ALIKE),
    LLAMA("granitemoe|granitemoeshared",
          "hidden_size=4096 num_attention_heads=32 rope_theta=10000 max_position_embeddings=2048",
          "configuration_granitemoe.py: GraniteMoeConfig; configuration_granitemoeshared.py: GraniteMoeSharedConfig "
          "(position_embedding_type fixed to rope)"),
    LLAMA("jina_embeddings_v3", "hidden_size=1024 num_attention_heads=16 rope_theta=20000 max_position_embeddings=8194",
          "jina_embeddings_v3/modular_jina_embeddings_v3.py: JinaEmbeddingsV3RotaryEmbedding (Llama)"),
    LLAMA("jetmoe", "kv_channels=128 hidden_size=2048 rope_theta=10000 max_position_embeddings=4096",
          "configuration_jetmoe.py: JetMoeConfig (attribute_map head_dim -> kv_channels)"),
    LLAMA("flex_olmo", "hidden_size=4096 num_attention_heads=32 rope_theta=500000 max_position_embeddings=4096",
          "configuration_flex_olmo.py: FlexOlmoConfig; inherits olmo2 (llama rotation, half)"),
    LLAMA("hrm_text",
          "hidden_size=1536 num_attention_heads=12 head_dim=128 rope_theta=10000 max_position_embeddings=2048",
          "hrm_text/modular_hrm_text.py: HrmTextConfig (LlamaConfig), HrmTextAttention"),
    LLAMA("hy_v3",
          "hidden_size=4096 num_attention_heads=64 head_dim=128 rope_theta=11158840 max_position_embeddings=131072",
          "hy_v3/modular_hy_v3.py: HYV3Config, HYV3RotaryEmbedding (Llama)"),
    LLAMA("hyperclovax", "hidden_size=4096 num_attention_heads=32 rope_theta=10000 max_position_embeddings=2048",
          "hyperclovax/modular_hyperclovax.py: HyperCLOVAXConfig (GraniteConfig)"),
    LLAMA("higgs_audio_v2",
          "hidden_size=3072 num_attention_heads=24 head_dim=128 rope_theta=500000 max_position_embeddings=2048 "
          "rope_parameters.rope_type=llama3 rope_parameters.factor=32 rope_parameters.low_freq_factor=0.125 "
          "rope_parameters.high_freq_factor=0.5 rope_parameters.original_max_position_embeddings=1024",
          "higgs_audio_v2/modular_higgs_audio_v2.py: HiggsAudioV2Config (LlamaConfig)"),
    LLAMA("esmc", "hidden_size=2560 num_attention_heads=40 rope_theta=10000 max_position_embeddings=2048",
          "esmc/modular_esmc.py: ESMCRotaryEmbedding (LlamaRotaryEmbedding), ESMCAttention; configuration_esmc.py: "
          "ESMCConfig"),
    LLAMA("emu3_text_model", "hidden_size=4096 num_attention_heads=32 rope_theta=1000000 max_position_embeddings=9216",
          "configuration_emu3.py: Emu3TextConfig; inherits llama", .masks = PE_HF_MASKS_ALIKE),
    LLAMA(
        "evolla|EvollaModel", "hidden_size=4096 num_attention_heads=32 rope_theta=500000 max_position_embeddings=8192",
        "configuration_evolla.py: EvollaConfig (model_type string 'EvollaModel' in an older version); inherits llama"),
    LLAMA("glmasr_encoder",
          "hidden_size=1280 num_attention_heads=20 partial_rotary_factor=0.5 rope_theta=10000 "
          "max_position_embeddings=1500",
          "configuration_glmasr.py: GlmAsrEncoderConfig; glmasr/modular_glmasr.py: apply_rotary_pos_emb (llama "
          "rotate_half), GlmAsrRotaryEmbedding (Glm)"),
    LLAMA("kyutai_speech_to_text",
          "hidden_size=2048 num_attention_heads=32 rope_theta=10000 max_position_embeddings=750",
          "configuration_kyutai_speech_to_text.py: KyutaiSpeechToTextConfig; inherits moshi (llama rotation, half)"),
    LLAMA("granite4_vision_text",
          "hidden_size=4096 num_attention_heads=32 rope_theta=10000 max_position_embeddings=2048",
          "configuration_granite4_vision.py: Granite4VisionTextConfig (copies granite)"),
    LLAMA("gpt_neox_japanese",
          "hidden_size=2560 num_attention_heads=32 rotary_pct=1.0 rotary_emb_base=10000 max_position_embeddings=2048",
          "configuration_gpt_neox_japanese.py: GPTNeoXJapaneseConfig.convert_rope_params_to_dict; inherits gpt_neox",
          .masks = PE_HF_MASKS_ALIKE),
    {.types = "minimax_m2",
     .fields = "hidden_size=3072 num_attention_heads=48 head_dim=128 rope_theta=5000000 partial_rotary_factor=1 "
               "max_position_embeddings=196608",
     .reads = "rotary_dim",
     .source = "minimax_m2/modeling_minimax_m2.py: MiniMaxM2RotaryEmbedding, apply_rotary_pos_emb; "
               "configuration_minimax_m2.py: MiniMaxM2Config"},
    LLAMA("moshi", "hidden_size=4096 num_attention_heads=32 rope_theta=10000 max_position_embeddings=3750",
          "moshi/configuration_moshi.py: MoshiConfig; modeling_moshi.py: MoshiAttention (use_rope)"),
    LLAMA("mimi", "hidden_size=512 num_attention_heads=8 rope_theta=10000 max_position_embeddings=8000",
          "mimi/configuration_mimi.py: MimiConfig; modeling_mimi.py: MimiRotaryEmbedding"),
    LLAMA("mllama_text_model",
          "hidden_size=4096 num_attention_heads=32 rope_theta=500000 max_position_embeddings=131072",
          "mllama/configuration_mllama.py: MllamaTextConfig; modeling_mllama.py: MllamaRotaryEmbedding, "
          "MllamaTextSelfAttention"),
    LLAMA(
        "ministral", "hidden_size=4096 num_attention_heads=32 rope_theta=10000 max_position_embeddings=131072",
        "ministral/modular_ministral.py: MinistralConfig, MinistralRotaryEmbedding(Qwen2), MinistralAttention(Qwen2)"),
    LLAMA("ministral3",
          "hidden_size=4096 num_attention_heads=32 head_dim=128 rope_theta=1000000 max_position_embeddings=262144 "
          "rope_parameters.type=yarn rope_parameters.factor=16 rope_parameters.original_max_position_embeddings=16384 "
          "rope_parameters.beta_fast=32 rope_parameters.beta_slow=1 rope_parameters.mscale=1 "
          "rope_parameters.mscale_all_dim=1 rope_parameters.llama_4_scaling_beta=0.1",
          "ministral3/modular_ministral3.py: Ministral3Attention(Mistral), _get_llama_4_attn_scale; "
          "configuration_ministral3.py: Ministral3Config"),
    LLAMA("modernbert-decoder",
          "hidden_size=768 num_attention_heads=12 max_position_embeddings=8192 global_rope_theta=160000 "
          "local_rope_theta=10000 num_hidden_layers=22 global_attn_every_n_layers=3",
          "modernbert_decoder/configuration_modernbert_decoder.py: ModernBertDecoderConfig (an intermediate version)",
          .mixed = "sliding_attention|full_attention", .period = "global_attn_every_n_layers", .turn = PE_HF_AT_START),
    {.types = "nomic_bert",
     .fields = "hidden_size=768 num_attention_heads=12 rope_theta=10000 max_position_embeddings=2048",
     .reads = "rotary_emb_base|rotary_emb_interleaved",
     .source = "nomic_bert/configuration_nomic_bert.py: NomicBertConfig; modular_nomic_bert.py (older version)"},
    LLAMA("lasr_encoder", "hidden_size=512 num_attention_heads=8 rope_theta=10000 max_position_embeddings=10000",
          "lasr/modular_lasr.py: LasrEncoderConfig(ParakeetEncoderConfig), LasrEncoderRotaryEmbedding(Llama), "
          "LasrEncoderAttention"),
    {.types = "minimax_m3_vl_text",
     .fields = "hidden_size=6144 num_attention_heads=64 head_dim=128 rope_theta=5000000 "
               "max_position_embeddings=524288",
     .ignores = "rotary_dim",
     .needs = "partial_rotary_factor|rope_parameters",
     .reads_share = true,
     .source = "minimax_m3_vl/modular_minimax_m3_vl.py: MiniMaxM3VLTextConfig(MiniMaxM2Config), "
               "MiniMaxM3VLRotaryEmbedding, MiniMaxM3VLAttention"},
    LLAMA("nemotron",
          "hidden_size=6144 num_attention_heads=48 rope_theta=10000 partial_rotary_factor=0.5 "
          "max_position_embeddings=4096",
          "nemotron/configuration_nemotron.py: NemotronConfig", .masks = PE_HF_MASKS_ALIKE),
    LLAMA("llama", "hidden_size=4096 num_attention_heads=32 rope_theta=10000 max_position_embeddings=2048",
          "llama/modeling_llama.py: LlamaRotaryEmbedding, apply_rotary_pos_emb", .masks = PE_HF_MASKS_ALIKE),
    LLAMA("mistral", "hidden_size=4096 num_attention_heads=32 rope_theta=10000 max_position_embeddings=131072",
          "mistral/modeling_mistral.py: MistralRotaryEmbedding, apply_rotary_pos_emb"),
    LLAMA("mixtral", "hidden_size=4096 num_attention_heads=32 rope_theta=1000000 max_position_embeddings=131072",
          "mixtral/modular_mixtral.py: MixtralRotaryEmbedding"),
    LLAMA("phi",
          "hidden_size=2048 num_attention_heads=32 rope_theta=10000 partial_rotary_factor=0.5 "
          "max_position_embeddings=2048",
          "phi/configuration_phi.py: PhiConfig; modeling_phi.py: PhiRotaryEmbedding, PhiAttention",
          .masks = PE_HF_MASKS_ALIKE),
    LLAMA("persimmon",
          "hidden_size=4096 num_attention_heads=64 rope_theta=25000 partial_rotary_factor=0.5 "
          "max_position_embeddings=16384",
          "persimmon/configuration_persimmon.py: PersimmonConfig; modeling_persimmon.py", .masks = PE_HF_MASKS_ALIKE),
    LLAMA("olmo", "hidden_size=4096 num_attention_heads=32 rope_theta=10000 max_position_embeddings=2048",
          "olmo/modular_olmo.py: OlmoRotaryEmbedding, apply_rotary_pos_emb", .masks = PE_HF_MASKS_ALIKE),
    LLAMA("olmo2", "hidden_size=4096 num_attention_heads=32 rope_theta=10000 max_position_embeddings=2048",
          "olmo2/modular_olmo2.py: Olmo2Attention", .masks = PE_HF_MASKS_ALIKE),
    LLAMA("olmoe", "hidden_size=2048 num_attention_heads=16 rope_theta=10000 max_position_embeddings=4096",
          "olmoe/modeling_olmoe.py: OlmoeRotaryEmbedding", .masks = PE_HF_MASKS_ALIKE),
    LLAMA("muse_glimmer_assistant",
          "hidden_size=6656 num_attention_heads=32 head_dim=128 rope_theta=500000 max_position_embeddings=131072",
          "muse_glimmer_assistant/configuration_muse_glimmer_assistant.py: MuseGlimmerAssistantConfig; "
          "modular_muse_glimmer_assistant.py (parent Exaone4)"),
    LLAMA("qwen2", "hidden_size=4096 num_attention_heads=32 rope_theta=10000 max_position_embeddings=32768",
          "qwen2/configuration_qwen2.py: Qwen2Config; llama's rotary"),
    LLAMA("qwen2_moe", "hidden_size=2048 num_attention_heads=16 rope_theta=10000 max_position_embeddings=32768",
          "configuration_qwen2_moe.py; llama's rotary"),
    LLAMA("qwen3",
          "hidden_size=4096 num_attention_heads=32 head_dim=128 rope_theta=10000 max_position_embeddings=32768",
          "configuration_qwen3.py: Qwen3Config; llama's rotary"),
    LLAMA("qwen3_moe", "hidden_size=2048 num_attention_heads=32 rope_theta=10000 max_position_embeddings=32768",
          "configuration_qwen3_moe.py: Qwen3MoeConfig; llama's rotary"),
    LLAMA("qwen3_omni_moe_talker_code_predictor",
          "hidden_size=1024 num_attention_heads=16 head_dim=128 rope_theta=10000 max_position_embeddings=32768",
          "configuration_qwen3_omni_moe.py; qwen3's rotary"),
    LLAMA("seed_oss",
          "hidden_size=4096 num_attention_heads=80 head_dim=128 rope_theta=10000 max_position_embeddings=524288",
          "configuration_seed_oss.py: SeedOssConfig; llama's rotary"),
    LLAMA("solar_open",
          "hidden_size=4096 num_attention_heads=64 head_dim=128 partial_rotary_factor=1.0 rope_theta=1000000 "
          "max_position_embeddings=131072",
          "modular_solar_open.py: config inherits glm4_moe, attention llama's"),
    LLAMA("timesfm2_5",
          "hidden_size=1280 num_attention_heads=16 head_dim=80 rope_theta=10000 max_position_embeddings=16384",
          "modular_timesfm2_5.py: TimesFm2_5RotaryEmbedding(Llama's), TimesFm2_5Attention"),
    LLAMA("voxtral_realtime_text",
          "hidden_size=4096 num_attention_heads=32 rope_theta=10000 max_position_embeddings=131072",
          "configuration_voxtral_realtime.py; mistral's kin"),
    LLAMA("voxtral_realtime_encoder",
          "hidden_size=1280 num_attention_heads=32 head_dim=64 rope_theta=10000 max_position_embeddings=1500",
          "configuration_voxtral_realtime.py, modular_voxtral_realtime.py: "
          "VoxtralRealtimeRotaryEmbedding(LlamaRotaryEmbedding)"),
    LLAMA("stablelm",
          "hidden_size=2560 num_attention_heads=32 partial_rotary_factor=0.25 rope_theta=10000 "
          "max_position_embeddings=4096",
          "configuration_stablelm.py", .masks = PE_HF_MASKS_ALIKE),
    LLAMA("starcoder2", "hidden_size=3072 num_attention_heads=24 rope_theta=10000 max_position_embeddings=4096",
          "configuration_starcoder2.py; mistral's kin"),
    LLAMA("vaultgemma",
          "hidden_size=2304 num_attention_heads=8 head_dim=256 rope_theta=10000 max_position_embeddings=8192",
          "configuration_vaultgemma.py; inherits gemma2", .masks = PE_HF_MASKS_DIFFER),
    LLAMA("t5_gemma_module",
          "hidden_size=2304 num_attention_heads=8 head_dim=256 rope_theta=10000 max_position_embeddings=8192",
          "configuration_t5gemma.py; inherits gemma2", .masks = PE_HF_MASKS_DIFFER),
    LLAMA("t5gemma2_text|t5gemma2_decoder|t5gemma2_module",
          "hidden_size=2304 num_attention_heads=8 head_dim=256 rope_theta=1000000 rope_local_base_freq=10000 "
          "max_position_embeddings=131072 num_hidden_layers=26 sliding_window_pattern=6",
          "configuration_t5gemma2.py: T5Gemma2ModuleConfig; default_theta global/local of the later class seen",
          .mixed = "sliding_attention|full_attention", .period = "sliding_window_pattern"),
    LLAMA("voxtral/text",
          "hidden_size=3072 num_attention_heads=32 head_dim=128 rope_theta=100000000 max_position_embeddings=131072",
          "voxtral/configuration_voxtral.py: VoxtralConfig"),
    LLAMA("voxtral_realtime/text",
          "hidden_size=3072 num_attention_heads=32 head_dim=128 rope_theta=1000000 max_position_embeddings=131072",
          "voxtral_realtime/configuration_voxtral_realtime.py"),
    LLAMA("lighton_ocr/text",
          "hidden_size=1024 num_attention_heads=16 head_dim=128 rope_theta=1000000 max_position_embeddings=32768",
          "lighton_ocr/configuration_lighton_ocr.py: LightOnOcrConfig"),
    LLAMA("mistral3/text",
          "hidden_size=5120 num_attention_heads=32 head_dim=128 rope_theta=1000000000 max_position_embeddings=131072",
          "mistral3/configuration_mistral3.py: Mistral3Config"),
    LLAMA("got_ocr2/text", "hidden_size=1024 num_attention_heads=16 rope_theta=1000000 max_position_embeddings=32768",
          "got_ocr2/configuration_got_ocr2.py: GotOcr2Config"),
    LLAMA("internlm2|internlm3|minicpm", "rope_theta=10000",
          "the vendors' modeling_internlm2.py, modeling_internlm3.py, modeling_minicpm.py: rotate_half"),
    {.types = "stablelm_epoch",
     .fields = "rope_pct=0.25 rope_theta=10000",
     .reads_share = true,
     .source = "the vendor's modeling_stablelm_epoch.py"},
};

const struct pe_hf_table pe_hf_types_llama_kin = {rows, sizeof rows / sizeof *rows};
