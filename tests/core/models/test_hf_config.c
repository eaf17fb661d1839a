/* Position encodings read from config.json: excerpts of real configs (the position fields and some others) and the
 * expected fields, which are the numbers of the released models. */
#include "core/models/models.h"
#include "tests/support/cmocka.h"
#include "tests/support/request.h"

#include <stdio.h>
#include <string.h>

static enum pe_status read_config(struct test_request *r, const char *json, const char *layer_type,
                                  struct pe_model_fields *out, struct pe_failure *err)
{
    test_request_parse(r, json);
    struct pe_value config = {.kind = PE_OBJECT, .object = {r->fields, r->n}};
    struct pe_hf_asked asked = {.layer_type = layer_type};
    return pe_hf_config_read(&config, &asked, out, err);
}

/* ---- Configs that are read ---- */

#define GEMMA_3                                                                                                        \
    "{'architectures':['Gemma3ForConditionalGeneration'],'model_type':'gemma3','text_config':{'hidden_size':2560,"     \
    "'intermediate_size':10240,'model_type':'gemma3_text','num_hidden_layers':34,'rope_scaling':{'factor':8.0,"        \
    "'rope_type':'linear'},'sliding_window':1024},'vision_config':{'hidden_size':1152,"                                \
    "'model_type':'siglip_vision_model','num_attention_heads':16}}"
#define GEMMA_3_V5                                                                                                     \
    "{'model_type':'gemma3_text','head_dim':256,'hidden_size':1152,'num_attention_heads':4,'layer_types':["            \
    "'sliding_attention','full_attention'],'rope_parameters':{'full_attention':{'rope_theta':1000000,"                 \
    "'rope_type':'default'},'sliding_attention':{'rope_theta':10000,'rope_type':'default'}}}"
#define GEMMA_4                                                                                                        \
    "{'model_type':'gemma4','text_config':{'model_type':'gemma4_text','global_head_dim':512,'head_dim':256,"           \
    "'hidden_size':5376,'num_attention_heads':32,'rope_parameters':{'full_attention':{'partial_rotary_factor':0.25,"   \
    "'rope_theta':1000000.0,'rope_type':'proportional'},'sliding_attention':{'rope_theta':10000.0,"                    \
    "'rope_type':'default'}}}}"
#define MODERNBERT                                                                                                     \
    "{'architectures':['ModernBertForMaskedLM'],'model_type':'modernbert','hidden_size':768,'num_attention_heads':12," \
    "'global_attn_every_n_layers':3,'global_rope_theta':160000.0,'local_attention':128,'local_rope_theta':10000.0,"    \
    "'max_position_embeddings':8192,'position_embedding_type':'absolute'}"
#define COHERE_2                                                                                                       \
    "{'model_type':'cohere2','head_dim':128,'hidden_size':4096,'num_attention_heads':32,'rope_theta':50000,"           \
    "'sliding_window':4096,'sliding_window_pattern':4}"

#define T5_SMALL                                                                                                       \
    "{'architectures':['T5ForConditionalGeneration'],'d_ff':2048,'d_kv':64,'d_model':512,'is_encoder_decoder':true,"   \
    "'model_type':'t5','n_positions':512,'num_heads':8,'num_layers':6,'relative_attention_num_buckets':32}"
#define LAYOUTLM_V3                                                                                                    \
    "{'model_type':'layoutlmv3','has_relative_attention_bias':true,'has_spatial_attention_bias':true,"                 \
    "'hidden_size':768,'max_2d_position_embeddings':1024,'max_rel_2d_pos':256,'max_rel_pos':128,"                      \
    "'num_attention_heads':12,"                                                                                        \
    "'rel_2d_pos_bins':64,'rel_pos_bins':32}"
#define SWIN_TINY                                                                                                      \
    "{'model_type':'swin','depths':[2,2,6,2],'embed_dim':96,'hidden_size':768,'image_size':224,'num_heads':["          \
    "3,6,12,24],'patch_size':4,'window_size':7}"
#define SWINV2_BASE                                                                                                    \
    "{'model_type':'swinv2','depths':[2,2,18,2],'embed_dim':128,'image_size':384,'num_heads':[4,8,16,32],"             \
    "'patch_size':4,'pretrained_window_sizes':[12,12,12,6],'window_size':24}"

struct accepted {
    const char *config, *layer_type, *fields;
};
static const struct accepted accepted[] = {
    /* Llama 3.1 8B */
    {"{'architectures':['LlamaForCausalLM'],'attention_bias':false,'hidden_size':4096,'max_position_embeddings':131072,"
     "'model_type':'llama','num_attention_heads':32,'num_key_value_heads':8,'rope_scaling':{'factor':8.0,"
     "'low_freq_factor':1.0,'high_freq_factor':4.0,'original_max_position_embeddings':8192,'rope_type':'llama3'},"
     "'rope_theta':500000.0,'vocab_size':128256}",
     NULL,
     "{'scheme':'rope','head_dim':128,'base':500000,'layout':'half','scaling':{'type':'llama3','factor':8,"
     "'low_freq_factor':1,'high_freq_factor':4,'original_max_position_embeddings':8192}}"},
    /* Llama 2 7B says no rope_theta */
    {"{'hidden_size':4096,'max_position_embeddings':4096,'model_type':'llama','num_attention_heads':32}", NULL,
     "{'scheme':'rope','head_dim':128,'base':10000,'layout':'half'}"},
    /* Qwen2.5-VL 7B */
    {"{'architectures':['Qwen2_5_VLForConditionalGeneration'],'hidden_size':3584,'max_position_embeddings':128000,"
     "'model_type':'qwen2_5_vl','num_attention_heads':28,'num_key_value_heads':4,'rope_theta':1000000.0,"
     "'sliding_window':32768,'vision_config':{'depth':32,'hidden_size':1280,'num_heads':16,'patch_size':14,"
     "'spatial_merge_size':2,'tokens_per_second':2,'window_size':112},'rope_scaling':{'type':'mrope','mrope_section':["
     "16,24,24]}}",
     NULL,
     "{'scheme':'rope','head_dim':128,'base':1000000,'layout':'half','channels':'mrope','mrope_section':[16,24,24],"
     "'position_style':'qwen2_5_vl','spatial_merge_size':2,'tokens_per_second':2}"},
    /* The same as later versions save it: both words of the type, a nested text_config */
    {"{'model_type':'qwen2_5_vl','text_config':{'model_type':'qwen2_5_vl_text','hidden_size':2048,"
     "'num_attention_heads':16,'rope_scaling':{'mrope_section':[16,24,24],'rope_type':'default','type':'default'},"
     "'rope_theta':1000000.0},'vision_config':{'model_type':'qwen2_5_vl','spatial_merge_size':2,"
     "'tokens_per_second':2}}",
     NULL,
     "{'scheme':'rope','head_dim':128,'base':1000000,'layout':'half','channels':'mrope','mrope_section':[16,24,24],"
     "'position_style':'qwen2_5_vl','spatial_merge_size':2,'tokens_per_second':2}"},
    /* Qwen2-VL 7B */
    {"{'model_type':'qwen2_vl','hidden_size':3584,'num_attention_heads':28,'rope_theta':1000000.0,'vision_config':{"
     "'embed_dim':1280,'spatial_patch_size':14},'rope_scaling':{'type':'mrope','mrope_section':[16,24,24]}}",
     NULL,
     "{'scheme':'rope','head_dim':128,'base':1000000,'layout':'half','channels':'mrope','mrope_section':[16,24,24],"
     "'position_style':'qwen2_vl'}"},
    /* Qwen2.5-Omni */
    {"{'model_type':'qwen2_5_omni','talker_config':{'hidden_size':896},"
     "'thinker_config':{'model_type':'qwen2_5_omni_thinker','position_id_per_seconds':25,'seconds_per_chunk':2,"
     "'text_config':{'model_type':"
     "'qwen2_5_omni_text','hidden_size':3584,'num_attention_heads':28,'rope_scaling':{'mrope_section':[16,24,24],"
     "'rope_type':'default','type':'default'},'rope_theta':1000000.0},'vision_config':{'spatial_merge_size':2}}}",
     NULL,
     "{'scheme':'rope','head_dim':128,'base':1000000,'layout':'half','channels':'mrope','mrope_section':[16,24,24],"
     "'position_style':'qwen2_5_omni','spatial_merge_size':2,'position_id_per_seconds':25,'seconds_per_chunk':2}"},
    /* Qwen3-VL 8B */
    {"{'architectures':['Qwen3VLForConditionalGeneration'],'model_type':'qwen3_vl','text_config':{'head_dim':128,"
     "'hidden_size':4096,'max_position_embeddings':262144,'model_type':'qwen3_vl_text','num_attention_heads':32,"
     "'rope_scaling':{'mrope_interleaved':true,'mrope_section':[24,20,20],'rope_type':'default'},'rope_theta':5000000},"
     "'vision_config':{'model_type':'qwen3_vl','spatial_merge_size':2}}",
     NULL,
     "{'scheme':'rope','head_dim':128,'base':5000000,'layout':'half','channels':'mrope_interleaved',"
     "'mrope_section':[24,20,20],'position_style':'qwen3_vl','spatial_merge_size':2}"},
    /* Qwen3-Omni's thinker, whose text_config does not say the section */
    {"{'model_type':'qwen3_omni_moe','thinker_config':{'model_type':'qwen3_omni_moe_thinker',"
     "'position_id_per_seconds':13,'text_config':{'model_type':'qwen3_omni_moe_text','head_dim':128,'hidden_size':2048,"
     "'num_attention_heads':32,'rope_theta':1000000},'vision_config':{'spatial_merge_size':2}}}",
     NULL,
     "{'scheme':'rope','head_dim':128,'base':1000000,'layout':'half','channels':'mrope_interleaved',"
     "'mrope_section':[24,20,20],'position_style':'qwen3_omni','spatial_merge_size':2,'position_id_per_seconds':13}"},
    /* Qwen3.5 in the form of transformers 5 */
    {"{'model_type':'qwen3_5_text','head_dim':256,'hidden_size':4096,'num_attention_heads':16,'rope_parameters':{"
     "'mrope_interleaved':true,'mrope_section':[11,11,10],'partial_rotary_factor':0.25,'rope_theta':10000000,"
     "'rope_type':'default'},'layer_types':['linear_attention','full_attention']}",
     NULL,
     "{'scheme':'rope','head_dim':256,'partial_rotary_factor':0.25,'base':10000000,'layout':'half',"
     "'channels':'mrope_interleaved','mrope_section':[11,11,10],'position_style':'qwen3_vl'}"},
    /* DeepSeek-V3 */
    {"{'architectures':['DeepseekV3ForCausalLM'],'hidden_size':7168,'kv_lora_rank':512,"
     "'max_position_embeddings':163840,'model_type':'deepseek_v3','num_attention_heads':128,'q_lora_rank':1536,"
     "'qk_nope_head_dim':128,"
     "'qk_rope_head_dim':64,'rope_scaling':{'beta_fast':32,'beta_slow':1,'factor':40,'mscale':1.0,'mscale_all_dim':1.0,"
     "'original_max_position_embeddings':4096,'type':'yarn'},'rope_theta':10000,'v_head_dim':128}",
     NULL,
     "{'scheme':'rope','head_dim':192,'rotary_dim':64,'rotary_offset':128,'base':10000,'layout':'interleaved',"
     "'scaling':{'type':'yarn','beta_fast':32,'beta_slow':1,'factor':40,'mscale':1,'mscale_all_dim':1,"
     "'original_max_position_embeddings':4096}}"},
    /* Gemma 3 4B, which leaves most to the class; 1B of transformers 5; Gemma 4 */
    {GEMMA_3, "full_attention",
     "{'scheme':'rope','head_dim':256,'base':1000000,'layout':'half','scaling':{'type':'linear','factor':8},'softmax_"
     "scale':0.0625}"},
    {GEMMA_3, "sliding_attention",
     "{'scheme':'rope','head_dim':256,'base':10000,'layout':'half','softmax_scale':0.0625}"},
    {GEMMA_3_V5, "full_attention",
     "{'scheme':'rope','head_dim':256,'base':1000000,'layout':'half','softmax_scale':0.0625}"},
    {GEMMA_3_V5, "sliding_attention",
     "{'scheme':'rope','head_dim':256,'base':10000,'layout':'half','softmax_scale':0.0625}"},
    {GEMMA_4, "full_attention",
     "{'scheme':'rope','head_dim':512,'base':1000000,'layout':'half','scaling':{'type':'proportional',"
     "'partial_rotary_factor':0.25},'softmax_scale':1}"},
    {GEMMA_4, "sliding_attention", "{'scheme':'rope','head_dim':256,'base':10000,'layout':'half','softmax_scale':1}"},
    /* Phi-3 128k: lengths stand outside, "su" is longrope; lists cut to four pairs (head_dim 8) */
    {"{'hidden_size':256,'max_position_embeddings':131072,'model_type':'phi3','num_attention_heads':32,"
     "'original_max_position_embeddings':4096,'rope_scaling':{'long_factor':[1.03,1.05,1.05,1.08],'short_factor':[1.05,"
     "1.05,1.05,1.1],'type':'su'},'rope_theta':10000.0,'sliding_window':262144}",
     NULL,
     "{'scheme':'rope','head_dim':8,'base':10000,'layout':'half','scaling':{'type':'longrope','long_factor':[1.03,1.05,"
     "1.05,1.08],'short_factor':[1.05,1.05,1.05,1.1],'max_position_embeddings':131072,"
     "'original_max_position_embeddings':4096}}"},
    /* Phi-4-mini, lists cut likewise; Phi-3's "yarn" */
    {"{'hidden_size':3072,'max_position_embeddings':131072,'model_type':'phi3','num_attention_heads':24,"
     "'original_max_position_embeddings':4096,'partial_rotary_factor':0.75,'rope_scaling':{'long_factor':[1,"
     "1.118320672]"
     ",'short_factor':[1.0,1.0],'type':'longrope'},'rope_theta':10000.0}",
     NULL,
     "{'scheme':'rope','head_dim':128,'partial_rotary_factor':0.75,'base':10000,'layout':'half','scaling':{"
     "'type':'longrope','long_factor':[1,1.118320672],'short_factor':[1,1],'max_position_embeddings':131072,"
     "'original_max_position_embeddings':4096}}"},
    {"{'hidden_size':64,'max_position_embeddings':131072,'model_type':'phi3','num_attention_heads':8,"
     "'original_max_position_embeddings':4096,'rope_scaling':{'long_factor':[2,2,2,2],'short_factor':[1,1,1,1],"
     "'type':'yarn'}}",
     NULL,
     "{'scheme':'rope','head_dim':8,'base':10000,'layout':'half','scaling':{'type':'longrope','long_factor':[2,2,2,2],"
     "'short_factor':[1,1,1,1],'max_position_embeddings':131072,'original_max_position_embeddings':4096}}"},
    /* gpt-oss 20B */
    {"{'architectures':['GptOssForCausalLM'],'head_dim':64,'hidden_size':2880,'initial_context_length':4096,"
     "'layer_types':['sliding_attention','full_attention'],'max_position_embeddings':131072,'model_type':'gpt_oss',"
     "'num_attention_heads':64,'rope_scaling':{'beta_fast':32.0,'beta_slow':1.0,'factor':32.0,"
     "'original_max_position_embeddings':4096,'rope_type':'yarn','truncate':false},'rope_theta':150000,"
     "'sliding_window':128}",
     "sliding_attention",
     "{'scheme':'rope','head_dim':64,'base':150000,'layout':'half','scaling':{'type':'yarn','beta_fast':32,"
     "'beta_slow':1,'factor':32,'original_max_position_embeddings':4096,'truncate':false}}"},
    /* GPT-NeoX-20B, GPT-J-6B */
    {"{'architectures':['GPTNeoXForCausalLM'],'hidden_size':6144,'max_position_embeddings':2048,"
     "'model_type':'gpt_neox','num_attention_heads':64,'rotary_emb_base':10000,'rotary_pct':0.25}",
     NULL, "{'scheme':'rope','head_dim':96,'partial_rotary_factor':0.25,'base':10000,'layout':'half'}"},
    {"{'architectures':['GPTJForCausalLM'],'model_type':'gptj','n_embd':4096,'n_head':16,'n_positions':2048,"
     "'rotary':true,'rotary_dim':64}",
     NULL, "{'scheme':'rope','head_dim':256,'rotary_dim':64,'base':10000,'layout':'interleaved'}"},
    /* InternLM3 8B: dynamic scaling needs the length outside */
    {"{'head_dim':128,'hidden_size':4096,'max_position_embeddings':32768,'model_type':'internlm3',"
     "'num_attention_heads':32,'rope_scaling':{'factor':6.0,'rope_type':'dynamic'},'rope_theta':50000000}",
     NULL,
     "{'scheme':'rope','head_dim':128,'base':50000000,'layout':'half','scaling':{'type':'dynamic','factor':6,"
     "'max_position_embeddings':32768}}"},
    /* Qwen2.5 with the documented yarn, the length it was trained on left out: max_position_embeddings */
    {"{'hidden_size':3584,'max_position_embeddings':32768,'model_type':'qwen2','num_attention_heads':28,"
     "'rope_scaling':{'factor':4.0,'type':'yarn'},'rope_theta':1000000.0}",
     NULL,
     "{'scheme':'rope','head_dim':128,'base':1000000,'layout':'half','scaling':{'type':'yarn','factor':4,"
     "'original_max_position_embeddings':32768}}"},
    /* Ministral 3 in the form of transformers 5 */
    {"{'model_type':'mistral3','text_config':{'model_type':'ministral3','head_dim':128,'hidden_size':4096,"
     "'max_position_embeddings':262144,'num_attention_heads':32,'rope_parameters':{'beta_fast':32.0,'beta_slow':1.0,"
     "'factor':16.0,'llama_4_scaling_beta':0.1,'mscale':1.0,'mscale_all_dim':1.0,"
     "'original_max_position_embeddings':16384,'rope_theta':1000000.0,'rope_type':'yarn','type':'yarn'}}}",
     NULL,
     "{'scheme':'rope','head_dim':128,'base':1000000,'layout':'half','scaling':{'type':'yarn','beta_fast':32,"
     "'beta_slow':1,'factor':16,'llama_4_scaling_beta':0.1,'mscale':1,'mscale_all_dim':1,'softmax_scale_factor':1,"
     "'original_max_position_embeddings':16384},'query_scale':{'type':'ministral','beta':0.1,'original_max_position_"
     "embeddings':16384}}"},
    /* ModernBERT base */
    {MODERNBERT, "full_attention", "{'scheme':'rope','head_dim':64,'base':160000,'layout':'half'}"},
    {MODERNBERT, "sliding_attention", "{'scheme':'rope','head_dim':64,'base':10000,'layout':'half'}"},
    /* GLM-4 9B chat as its vendor writes it, and Command R7B's layers with positions */
    {"{'model_type':'chatglm','hidden_size':4096,'kv_channels':128,'num_attention_heads':32,'rope_ratio':500,"
     "'seq_length':131072}",
     NULL, "{'scheme':'rope','head_dim':128,'partial_rotary_factor':0.5,'base':5000000,'layout':'interleaved'}"},
    {COHERE_2, "sliding_attention", "{'scheme':'rope','head_dim':128,'base':50000,'layout':'interleaved'}"},
    /* Layers without positions, named */
    {COHERE_2, "full_attention", "{'scheme':'none','dim':4096}"},
    {"{'model_type':'qwen3_next','rope_theta':1e7}", "linear_attention", "{'scheme':'none','dim':2048}"},
    {"{'model_type':'gemma3_text','layer_types':['full_attention','sliding_attention'],'rope_parameters':{"
     "'full_attention':null,'sliding_attention':{'rope_theta':1e4,'rope_type':'default'}}}",
     "full_attention", "{'scheme':'none','dim':2304,'softmax_scale':0.0625}"},
    {"{'model_type':'mamba','hidden_size':2560}", NULL, "{'scheme':'none','dim':2560}"},
    /* Tables */
    {"{'architectures':['BertForMaskedLM'],'hidden_size':768,'max_position_embeddings':512,'model_type':'bert',"
     "'num_attention_heads':12,'pad_token_id':0,'position_embedding_type':'absolute','type_vocab_size':2}",
     NULL, "{'scheme':'learned','rows':512,'dim':768}"},
    {"{'hidden_size':768,'max_position_embeddings':514,'model_type':'roberta','pad_token_id':1}", NULL,
     "{'scheme':'learned','rows':514,'dim':768,'row_offset':2}"},
    {"{'hidden_size':768,'max_position_embeddings':2048,'model_type':'opt','word_embed_proj_dim':768}", NULL,
     "{'scheme':'learned','rows':2050,'dim':768,'row_offset':2}"},
    {"{'d_model':1024,'max_position_embeddings':1024,'model_type':'bart','scale_embedding':false}", NULL,
     "{'scheme':'learned','rows':1026,'dim':1024,'row_offset':2}"},
    {"{'model_type':'gpt2','n_ctx':1024,'n_embd':768,'n_head':12,'n_positions':1024}", NULL,
     "{'scheme':'learned','rows':1024,'dim':768}"},
    {"{'model_type':'vit','hidden_size':768,'image_size':224,'patch_size':16}", NULL,
     "{'scheme':'learned','rows':197,'dim':768,'interpolate':'bicubic','table_grid':[14,14],'num_prefix':1}"},
    {"{'model_type':'clip','text_config':{'hidden_size':512,'max_position_embeddings':77,"
     "'model_type':'clip_text_model'},'vision_config':{'hidden_size':768}}",
     NULL, "{'scheme':'learned','rows':77,'dim':512}"},
    /* ESM-2 650M is of BERT's family, and rotary */
    {"{'model_type':'esm','hidden_size':1280,'num_attention_heads':20,'max_position_embeddings':1026,"
     "'position_embedding_type':'rotary','pad_token_id':1}",
     NULL, "{'scheme':'rope','head_dim':64,'base':10000,'layout':'half'}"},
    /* Sinusoids */
    {"{'model_type':'whisper','d_model':768,'max_source_positions':1500,'scale_embedding':false}", "encoder",
     "{'scheme':'sinusoidal','dim':768,'layout':'half','freq_shift':1}"},
    {"{'model_type':'m2m_100','d_model':1024,'scale_embedding':true,'max_position_embeddings':1024}", NULL,
     "{'scheme':'sinusoidal','dim':1024,'layout':'half','freq_shift':1,'odd':'pad','x_scale':'sqrt_dim'}"},
    {"{'model_type':'marian','d_model':512,'scale_embedding':true}", NULL,
     "{'scheme':'sinusoidal','dim':512,'layout':'half','freq_shift':0,'x_scale':'sqrt_dim'}"},
    /* ALiBi */
    {"{'model_type':'bloom','n_head':112,'hidden_size':14336}", NULL,
     "{'scheme':'alibi','num_heads':112,'form':'key_mask'}"},
    {"{'model_type':'mpt','d_model':4096,'n_heads':32,'max_seq_len':65536,'attn_config':{'alibi':true,"
     "'alibi_bias_max':16}}",
     NULL, "{'scheme':'alibi','num_heads':32,'form':'key_end','bias_max':16}"},
    {"{'model_type':'falcon','alibi':true,'hidden_size':2048,'num_attention_heads':32}", NULL,
     "{'scheme':'alibi','num_heads':32,'form':'key_mask','bias_scaled':true}"},
    {"{'model_type':'falcon','alibi':false,'hidden_size':4544,'num_attention_heads':71,'rope_theta':10000.0}", NULL,
     "{'scheme':'rope','head_dim':64,'base':10000,'layout':'half'}"},
    {"{'model_type':'bert','hidden_size':768,'num_attention_heads':12,'position_embedding_type':'alibi'}", NULL,
     "{'scheme':'alibi','num_heads':12,'form':'symmetric'}"},
    /* Jina v2 base is a BERT with ALiBi; MPT 7B; Falcon-RW 1B as its vendor writes it */
    {"{'architectures':['JinaBertForMaskedLM'],'model_type':'bert','hidden_size':768,'num_attention_heads':12,"
     "'max_position_embeddings':8192,'position_embedding_type':'alibi','feed_forward_type':'geglu'}",
     NULL, "{'scheme':'alibi','num_heads':12,'form':'symmetric'}"},
    {"{'model_type':'mpt','d_model':4096,'n_heads':32,'n_layers':32,'max_seq_len':2048,'attn_config':{'alibi':true,"
     "'alibi_bias_max':8,'attn_type':'multihead_attention'}}",
     NULL, "{'scheme':'alibi','num_heads':32,'form':'key_end','bias_max':8}"},
    /* T5 small (which says no distance), its decoder, and the decoder alone; mT5 xxl; Flan-T5 base */
    {T5_SMALL, "encoder",
     "{'scheme':'t5','num_heads':8,'head_dim':64,'num_buckets':32,'max_distance':128,'bidirectional':true,"
     "'softmax_scale':1}"},
    {T5_SMALL, "encoder",
     "{'scheme':'t5','num_heads':8,'head_dim':64,'num_buckets':32,'max_distance':128,'bidirectional':true,"
     "'softmax_scale':1}"},
    {T5_SMALL, "decoder",
     "{'scheme':'t5','num_heads':8,'head_dim':64,'num_buckets':32,'max_distance':128,'bidirectional':false,"
     "'softmax_scale':1}"},
    {"{'model_type':'t5','d_model':512,'d_kv':64,'num_heads':6,'is_decoder':true,'is_encoder_decoder':false,"
     "'relative_attention_max_distance':64,'relative_attention_num_buckets':16}",
     NULL,
     "{'scheme':'t5','num_heads':6,'head_dim':64,'num_buckets':16,'max_distance':64,'bidirectional':false,"
     "'softmax_scale':1}"},
    {"{'architectures':['MT5ForConditionalGeneration'],'model_type':'mt5','d_model':4096,'d_ff':10240,'d_kv':64,"
     "'is_encoder_decoder':true,'num_heads':64,'num_layers':24,'relative_attention_num_buckets':32}",
     "decoder",
     "{'scheme':'t5','num_heads':64,'head_dim':64,'num_buckets':32,'max_distance':128,'bidirectional':false,"
     "'softmax_scale':1}"},
    {"{'model_type':'umt5','d_model':512,'d_kv':64,'num_heads':6,'relative_attention_max_distance':128,"
     "'relative_attention_num_buckets':32,'is_encoder_decoder':true}",
     "encoder",
     "{'scheme':'t5','num_heads':6,'head_dim':64,'num_buckets':32,'max_distance':128,'bidirectional':true,"
     "'softmax_scale':1}"},
    /* MPNet base, WavLM large, LayoutLMv3 base and LayoutLMv2 */
    {"{'model_type':'mpnet','hidden_size':768,'max_position_embeddings':514,'num_attention_heads':12,"
     "'relative_attention_num_buckets':32,'pad_token_id':1}",
     NULL,
     "{'scheme':'t5','num_heads':12,'head_dim':64,'num_buckets':32,'max_distance':128,'bidirectional':true,'softmax_"
     "scale':0.125}"},
    {"{'model_type':'wavlm','hidden_size':1024,'num_attention_heads':16,'num_buckets':320,'max_bucket_distance':800}",
     NULL,
     "{'scheme':'t5','num_heads':16,'head_dim':64,'num_buckets':320,'max_distance':800,'bidirectional':true,'softmax_"
     "scale':0.125}"},
    {LAYOUTLM_V3, "rel_pos",
     "{'scheme':'t5','num_heads':12,'head_dim':64,'num_buckets':32,'max_distance':128,'bidirectional':true,'softmax_"
     "scale':0.125,"
     "'table_scale':0.125}"},
    {LAYOUTLM_V3, "rel_pos_y",
     "{'scheme':'t5','num_heads':12,'head_dim':64,'num_buckets':64,'max_distance':256,'bidirectional':true,'softmax_"
     "scale':0.125,"
     "'table_scale':0.125}"},
    {"{'model_type':'layoutlmv2','hidden_size':768,'num_attention_heads':12}", "rel_pos_x",
     "{'scheme':'t5','num_heads':12,'head_dim':64,'num_buckets':64,'max_distance':256,'bidirectional':true,'softmax_"
     "scale':0.125}"},
    /* BERT with distances; NEZHA base */
    {"{'model_type':'bert','hidden_size':768,'num_attention_heads':12,'max_position_embeddings':512,"
     "'position_embedding_type':'relative_key'}",
     NULL, "{'scheme':'shaw','num_heads':12,'head_dim':64,'table_style':'relative_key','max_relative':511}"},
    {"{'model_type':'bert','hidden_size':1024,'num_attention_heads':16,'max_position_embeddings':512,"
     "'position_embedding_type':'relative_key_query'}",
     NULL, "{'scheme':'shaw','num_heads':16,'head_dim':64,'table_style':'relative_key_query','max_relative':511}"},
    {"{'model_type':'nezha','embedding_size':128,'hidden_size':768,'max_position_embeddings':512,"
     "'max_relative_position':64,'num_attention_heads':12,'use_relative_position':true}",
     NULL,
     "{'scheme':'shaw','num_heads':12,'head_dim':64,'table_style':'sinusoidal','max_relative':64,"
     "'direction':'key_minus_query'}"},
    /* DeBERTa base, v2 xxlarge and v3 small; without relative attention it is a table */
    {"{'model_type':'deberta','attention_probs_dropout_prob':0.1,'hidden_size':768,'max_position_embeddings':512,"
     "'max_relative_positions':-1,'num_attention_heads':12,'pos_att_type':'c2p|p2c','position_biased_input':false,"
     "'relative_attention':true}",
     NULL,
     "{'scheme':'deberta','num_heads':12,'head_dim':64,'position_buckets':-1,'max_relative_positions':512,"
     "'pos_att_type':'c2p|p2c','share_att_key':false,'norm_rel_ebd':false}"},
    {"{'model_type':'deberta-v2','attention_head_size':64,'conv_kernel_size':3,'hidden_size':1536,"
     "'max_position_embeddings':512,'max_relative_positions':-1,'norm_rel_ebd':'layer_norm','num_attention_heads':24,"
     "'pos_att_type':['p2c','c2p'],'position_biased_input':false,'position_buckets':256,'relative_attention':true,"
     "'share_att_key':true}",
     NULL,
     "{'scheme':'deberta','num_heads':24,'head_dim':64,'position_buckets':256,'max_relative_positions':512,"
     "'pos_att_type':['p2c','c2p'],'share_att_key':true,'norm_rel_ebd':true}"},
    {"{'model_type':'deberta-v2','hidden_size':768,'max_position_embeddings':512,'relative_attention':true,"
     "'position_buckets':256,'norm_rel_ebd':'layer_norm','share_att_key':true,'pos_att_type':'p2c|c2p',"
     "'max_relative_positions':-1,'position_biased_input':false,'num_attention_heads':12,'vocab_size':128100}",
     NULL,
     "{'scheme':'deberta','num_heads':12,'head_dim':64,'position_buckets':256,'max_relative_positions':512,"
     "'pos_att_type':'p2c|c2p','share_att_key':true,'norm_rel_ebd':true}"},
    {"{'model_type':'deberta-v2','hidden_size':768,'max_position_embeddings':512,'num_attention_heads':12}", NULL,
     "{'scheme':'learned','rows':512,'dim':768}"},
    /* Transformer-XL of WikiText-103; XLNet base (mem_len null), and one that looks back only */
    {"{'architectures':['TransfoXLLMHeadModel'],'model_type':'transfo-xl','clamp_len':1000,'d_embed':1024,'d_head':64,"
     "'d_model':1024,'mem_len':1600,'n_head':16,'n_layer':18,'same_length':true,'untie_r':true}",
     NULL,
     "{'scheme':'transformer_xl','num_heads':16,'head_dim':64,'d_model':1024,'mem_len':1600,'clamp_len':1000,"
     "'same_length':true,'causal':true}"},
    {"{'model_type':'transfo-xl','d_model':512,'n_head':8,'d_head':64,'mem_len':0,'clamp_len':-1,'same_length':false}",
     NULL, "{'scheme':'transformer_xl','num_heads':8,'head_dim':64,'d_model':512,'clamp_len':-1,'causal':true}"},
    {"{'architectures':['XLNetLMHeadModel'],'attn_type':'bi','bi_data':false,'clamp_len':-1,'d_head':64,'d_model':768,"
     "'model_type':'xlnet','n_head':12,'n_layer':12,'same_length':false,'untie_r':true}",
     NULL, "{'scheme':'xlnet','num_heads':12,'head_dim':64,'d_model':768,'clamp_len':-1}"},
    {"{'model_type':'xlnet','attn_type':'uni','d_model':1024,'n_head':16,'mem_len':384,'clamp_len':400}", NULL,
     "{'scheme':'xlnet','num_heads':16,'head_dim':64,'d_model':1024,'mem_len':384,'clamp_len':400,'causal':true}"},
    {"{'model_type':'wav2vec2-conformer','hidden_size':1024,'num_attention_heads':16,'max_source_positions':5000,"
     "'position_embeddings_type':'relative','rotary_embedding_base':10000}",
     NULL, "{'scheme':'conformer','num_heads':16,'head_dim':64,'d_model':1024}"},
    /* Swin tiny and its last stage; v2 base from 12 to 24, whose last stage has 12 patches; BEiT base, at 384 too */
    {SWIN_TINY, "stage1", "{'scheme':'swin','num_heads':3,'head_dim':32,'grid':[7,7]}"},
    {SWIN_TINY, "stage4", "{'scheme':'swin','num_heads':24,'head_dim':32,'grid':[7,7]}"},
    {SWINV2_BASE, "stage1", "{'scheme':'swinv2','num_heads':4,'head_dim':32,'grid':[24,24],'pretrained_grid':[12,12]}"},
    {SWINV2_BASE, "stage4", "{'scheme':'swinv2','num_heads':32,'head_dim':32,'grid':[12,12],'pretrained_grid':[6,6]}"},
    {"{'model_type':'swinv2','embed_dim':96,'image_size':256,'num_heads':[3,6,12,24],'patch_size':4,"
     "'pretrained_window_sizes':[0,0,0,0],'window_size':16}",
     "stage4", "{'scheme':'swinv2','num_heads':24,'head_dim':32,'grid':[8,8]}"},
    {"{'model_type':'beit','hidden_size':768,'image_size':224,'num_attention_heads':12,'patch_size':16,"
     "'use_absolute_position_embeddings':false,'use_relative_position_bias':true,"
     "'use_shared_relative_position_bias':false}",
     NULL, "{'scheme':'beit','num_heads':12,'head_dim':64,'grid':[14,14]}"},
    {"{'model_type':'beit','hidden_size':1024,'image_size':384,'num_attention_heads':16,'patch_size':16,"
     "'use_relative_position_bias':false,'use_shared_relative_position_bias':true}",
     NULL, "{'scheme':'beit','num_heads':16,'head_dim':64,'grid':[24,24]}"},
    {"{'model_type':'beit','hidden_size':768,'image_size':224,'num_attention_heads':12,'patch_size':16,"
     "'use_absolute_position_embeddings':true,'use_relative_position_bias':false}",
     NULL, "{'scheme':'learned','rows':197,'dim':768,'interpolate':'bicubic','table_grid':[14,14],'num_prefix':1}"},
};

TEST(configs_give_their_models_numbers)
{
    for (size_t i = 0; i < sizeof accepted / sizeof *accepted; i++) {
        struct test_request r;
        struct pe_model_fields out;
        struct pe_failure err = {.detail = ""};
        if (read_config(&r, accepted[i].config, accepted[i].layer_type, &out, &err))
            fail_msg("%s: refused at %s: %s", accepted[i].config, err.pointer, err.detail);
        test_fields_equal(accepted[i].config, out.fields, out.n, accepted[i].fields);
        test_request_drop(&r);
    }
}

/* ---- Refusals ---- */

#define DEBERTA "'hidden_size':768,'num_attention_heads':12,'relative_attention':true"

struct refused {
    const char *config, *layer_type, *pointer, *word;
};
static const struct refused refused[] = {
    {"{'model_type':'llama','hidden_size':100,'num_attention_heads':3}", NULL, "/hf_config", "do not divide"},
    {"{'model_type':'llama','hidden_size':'4096','num_attention_heads':32}", NULL, "/hf_config/hidden_size",
     "\"4096\"; allowed: an integer"},
    {"{'model_type':'llama','head_dim':0}", NULL, "/hf_config/head_dim", "is 0"},
    {"{'model_type':'llama','head_dim':1e300}", NULL, "/hf_config/head_dim", "2^40"},
    {"{'model_type':'llama','head_dim':64,'rope_theta':'x'}", NULL, "/hf_config/rope_theta", "a number"},
    {"{'model_type':'llama','head_dim':64,'rope_scaling':2}", NULL, "/hf_config/rope_scaling", "an object"},
    {"{'model_type':'llama','head_dim':64,'rope_scaling':{'factor':2.0}}", NULL, "/hf_config/rope_scaling",
     "no rope_type"},
    {"{'model_type':'llama','head_dim':64,'rope_scaling':{'type':3}}", NULL, "/hf_config/rope_scaling/type", "a word"},
    {"{'model_type':'x','text_config':{'model_type':'llama','head_dim':true}}", NULL, "/hf_config/text_config/head_dim",
     "is true"},
    {"{'model_type':'x','text_config':7}", NULL, "/hf_config/text_config", "an object"},
    {"{'model_type':3}", NULL, "/hf_config/model_type", "a word"},
    {"{'model_type':'qwen9','rope_theta':1e6}", NULL, "/hf_config/model_type", "nearest: \"qwen2\""},
    {"{'model_type':'outer','text_config':{'model_type':'brand_new','rope_theta':1e6}}", NULL,
     "/hf_config/text_config/model_type", "\"brand_new\" is not known"},
    {"{'hidden_size':2560,'rope_theta':1e6}", NULL, "/hf_config/model_type", "model_type is missing"},
    {"{'model_type':'wav2vec2','hidden_size':768}", NULL, "/hf_config/model_type", "convolution"},
    {"{'model_type':'qwen2_vl','head_dim':128,'rope_scaling':{'type':'mrope','mrope_section':'x'}}", NULL,
     "/hf_config/rope_scaling/mrope_section", "three numbers"},
    {"{'model_type':'qwen2_5_vl','head_dim':128,'vision_config':{'tokens_per_second':'2'}}", NULL,
     "/hf_config/vision_config/tokens_per_second", "a number"},
    {"{'model_type':'bert','hidden_size':768,'position_embedding_type':'relative'}", NULL,
     "/hf_config/position_embedding_type", "relative_key_query"},
    {"{'model_type':'vit','hidden_size':768,'image_size':8,'patch_size':16}", NULL, "/hf_config", "is 0"},
    {"{'model_type':'vit','hidden_size':768,'image_size':224,'patch_size':0}", NULL, "/hf_config/patch_size", "from 1"},
    {"{'model_type':'swinv2','embed_dim':96,'image_size':256,'num_heads':[3],'patch_size':0,'window_size':16}", NULL,
     "/hf_config/patch_size", "from 1"},
    {"{'model_type':'mpt','d_model':4096,'n_heads':32,'attn_config':{'rope':true}}", NULL,
     "/hf_config/attn_config/rope", "is true"},
    {"{'model_type':'mpt','d_model':768,'n_heads':12,'attn_config':'linear'}", NULL, "/hf_config/attn_config",
     "an object"},
    {"{'model_type':'mpt','d_model':768,'n_heads':12,'attn_config':{'alibi':false}}", NULL,
     "/hf_config/attn_config/alibi", "is false"},
    {"{'model_type':'mpnet','hidden_size':512,'num_attention_heads':6}", NULL, "/hf_config", "do not divide"},
    {"{'model_type':'t5','d_kv':64,'num_heads':8,'relative_attention_num_buckets':'32'}", NULL,
     "/hf_config/relative_attention_num_buckets", "an integer"},
    {"{'model_type':'t5','d_kv':64,'num_heads':8,'is_decoder':1}", NULL, "/hf_config/is_decoder", "true or false"},
    {"{'model_type':'layoutlmv3','hidden_size':768,'num_attention_heads':12,'has_spatial_attention_bias':false}",
     "rel_pos_x", "/hf_config/has_spatial_attention_bias", "is false"},
    {"{'model_type':'deberta-v2'," DEBERTA "}", NULL, "/hf_config", "pos_att_type is missing"},
    {"{'model_type':'deberta-v2'," DEBERTA ",'pos_att_type':2}", NULL, "/hf_config/pos_att_type", "c2p|p2c"},
    {"{'model_type':'deberta-v2'," DEBERTA ",'pos_att_type':'c2p','norm_rel_ebd':'batch_norm'}", NULL,
     "/hf_config/norm_rel_ebd", "none, layer_norm"},
    {"{'model_type':'deberta-v2'," DEBERTA ",'pos_att_type':'c2p','position_buckets':0.5}", NULL,
     "/hf_config/position_buckets", "from -2^40"},
    {"{'model_type':'nezha','hidden_size':768,'num_attention_heads':12,'max_relative_position':-1}", NULL,
     "/hf_config/max_relative_position", "from 0"},
    {"{'model_type':'xlnet','d_model':768,'n_head':12,'attn_type':'two'}", NULL, "/hf_config/attn_type", "bi, uni"},
    {"{'model_type':'wav2vec2-conformer','hidden_size':1024,'num_attention_heads':16,"
     "'position_embeddings_type':'rotary'}",
     NULL, "/hf_config/position_embeddings_type", "before the projections"},
    {"{'model_type':'swin','embed_dim':96,'image_size':224,'patch_size':4,'window_size':7,'num_heads':3}", NULL,
     "/hf_config/num_heads", "one for each stage"},
    {"{'model_type':'swin','embed_dim':96,'image_size':224,'patch_size':4,'window_size':7,'num_heads':[3,0]}", "stage2",
     "/hf_config/num_heads", "from 1"},
    {"{'model_type':'swin','embed_dim':96,'image_size':224,'patch_size':4,'window_size':7,'num_heads':[3,6]}", "stage3",
     "/layer_type", "has 2 stages"},
    {"{'model_type':'swin','embed_dim':96,'image_size':2,'patch_size':4,'window_size':7,'num_heads':[3,6]}", NULL,
     "/hf_config", "is 0"},
    /* Types of layers */
    {COHERE_2, NULL, "/layer_type", "no positions"},
    {GEMMA_3_V5, "chunked_attention", "/layer_type", "chunked_attention"},
    {"{'model_type':'gemma3_text','layer_types':['full_attention','sliding_attention'],'rope_parameters':{"
     "'full_attention':null,'sliding_attention':{'rope_theta':1e4,'rope_type':'default'}}}",
     NULL, "/layer_type", "no positions"},
    {"{'model_type':'gemma3_text','layer_types':['full_attention','sliding_attention'],'rope_parameters':{"
     "'sliding_attention':{'rope_theta':1e4,'rope_type':'default'}}}",
     NULL, "/hf_config/rope_parameters", "no object for layers of type \"full_attention\""},
    {"{'model_type':'llama','head_dim':64}", "first", "/layer_type", "has no layers of type \"first\""},
    {"{'model_type':'bert','hidden_size':768,'max_position_embeddings':512}", "sliding_attention", "/layer_type",
     "do not differ"},
    {T5_SMALL, "full_attention", "/layer_type", "encoder, decoder"},
    {SWIN_TINY, "stage5", "/layer_type", "stage1, stage2, stage3, stage4"},
};

TEST(refusals_name_what_was_looked_for)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct test_request r;
        struct pe_model_fields out;
        struct pe_failure err = {.detail = ""};
        if (!read_config(&r, refused[i].config, refused[i].layer_type, &out, &err))
            fail_msg("%s: was accepted", refused[i].config);
        if (strcmp(err.pointer, refused[i].pointer) != 0 || !strstr(err.detail, refused[i].word))
            fail_msg("%s: expected \"%s\" at %s, got \"%s\" at %s", refused[i].config, refused[i].word,
                     refused[i].pointer, err.detail, err.pointer);
        test_request_drop(&r);
    }
}

TEST(what_is_no_object_is_refused)
{
    struct pe_value config = {.kind = PE_INTEGER, .integer = 3};
    struct pe_model_fields out;
    struct pe_failure err;
    assert_int_equal(pe_hf_config_read(&config, &(struct pe_hf_asked){.scheme = NULL}, &out, &err), PE_INVALID);
    assert_string_equal(err.pointer, "/hf_config");
}

/* A rope object of more fields than the output has room for. */
TEST(too_many_fields_are_refused)
{
    char text[2048] = "{'model_type':'llama','head_dim':64,'rope_scaling':{'type':'linear'";
    for (int i = 0; i < PE_MODEL_FIELDS_MAX; i++)
        snprintf(text + strlen(text), 16, ",'f%d':1", i);
    strcat(text, "}}");
    struct test_request r;
    struct pe_model_fields out;
    struct pe_failure err = {.detail = ""};
    assert_int_equal(read_config(&r, text, NULL, &out, &err), PE_INVALID);
    assert_string_equal(err.pointer, "/hf_config/rope_scaling");
    test_request_drop(&r);
}
