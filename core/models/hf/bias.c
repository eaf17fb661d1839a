/* Biases from a config: ALiBi, and buckets of distances (T5 and its relatives). */
#include "core/models/hf/hf.h"
#include "core/params.h"

#include <string.h>

/* ---- ALiBi ---- */

enum pe_status pe_hf_alibi(struct pe_hf_reader *r)
{
    int64_t heads = 0;
    pe_hf_put_word(r->out, "scheme", "alibi");
    enum pe_status status = pe_hf_needed(&r->config, PE_HF_HEADS, "num_heads", &heads, r->err);
    if (!status) {
        pe_hf_put_integer(r->out, "num_heads", heads);
        pe_hf_put_word(r->out, "form", r->model->form ? r->model->form : "symmetric");
    }
    return status;
}

/* The models were trained with their config's bias_max, though transformers' class always takes 8. */
enum pe_status pe_hf_mpt(struct pe_hf_reader *r)
{
    struct pe_hf_place attention;
    bool rope = false, alibi = true;
    double bias_max = 8;
    enum pe_status status = pe_hf_object(&r->config, "attn_config", &attention, r->err);
    if (!status)
        status = pe_hf_flag(&attention, "rope", &rope, r->err);
    if (!status)
        status = pe_hf_flag(&attention, "alibi", &alibi, r->err);
    if (!status)
        status = pe_hf_number(&attention, "alibi_bias_max", &bias_max, r->err);
    if (!pe_hf_says(&attention, "alibi_bias_max"))
        pe_hf_mark_default(r->config.marks, "alibi_bias_max", (struct pe_value){.kind = PE_REAL, .real = bias_max});
    if (status)
        return status;
    if (rope)
        return pe_hf_wrong(&attention, pe_hf_find(&attention, "rope"),
                           "false: MPT with RoPE is not read; use scheme \"rope\"", r->err);
    if (!alibi)
        return pe_hf_wrong(&attention, pe_hf_find(&attention, "alibi"),
                           "true: transformers' code has ALiBi even so, the vendor's code a learned table", r->err);
    pe_hf_put_number(r->out, "bias_max", bias_max);
    return pe_hf_alibi(r);
}

/* Falcon's bias is multiplied by the softmax scale too. */
enum pe_status pe_hf_falcon(struct pe_hf_reader *r)
{
    bool alibi = false;
    enum pe_status status = pe_hf_flag(&r->config, "alibi", &alibi, r->err);
    if (status || !alibi)
        return status ? status : pe_hf_rope(r);
    pe_hf_put_flag(r->out, "bias_scaled", true);
    return pe_hf_alibi(r);
}

/* ---- Buckets ---- */

/* A table of distances; its two numbers are in these fields. */
static enum pe_status put_table(struct pe_hf_reader *r, const char *head_dim_names, const char *buckets_name,
                                const char *distance_name, bool bidirectional)
{
    int64_t buckets = 32, distance = 128; /* the published numbers */
    pe_hf_put_word(r->out, "scheme", "t5");
    enum pe_status status = pe_hf_put_heads(r, head_dim_names);
    if (!status)
        status = pe_hf_integer(&r->config, buckets_name, &buckets, r->err);
    if (!status)
        status = pe_hf_integer(&r->config, distance_name, &distance, r->err);
    pe_hf_put_integer(r->out, "num_buckets", buckets);
    pe_hf_put_integer(r->out, "max_distance", distance);
    pe_hf_put_flag(r->out, "bidirectional", bidirectional);
    return status;
}

static enum pe_status put_buckets(struct pe_hf_reader *r, const char *head_dim_names, bool bidirectional)
{
    const struct pe_hf_model *row = r->model;
    return put_table(r, head_dim_names, row->buckets ? row->buckets : "relative_attention_num_buckets",
                     row->distance ? row->distance : "relative_attention_max_distance", bidirectional);
}

/* T5's logits are not scaled. A config of one stack has is_decoder, a config of both has is_encoder_decoder. */
enum pe_status pe_hf_t5(struct pe_hf_reader *r)
{
    bool decoder = false, both = false;
    enum pe_status status = pe_hf_flag(&r->config, "is_decoder", &decoder, r->err);
    if (!status)
        status = pe_hf_flag(&r->config, "is_encoder_decoder", &both, r->err);
    if (!status && r->layer_type)
        decoder = strcmp(r->layer_type, "decoder") == 0;
    else
        decoder = decoder && !both;
    if (!status)
        status = put_buckets(r, "d_kv", !decoder);
    pe_hf_put_number(r->out, "softmax_scale", 1);
    return status;
}

enum pe_status pe_hf_buckets(struct pe_hf_reader *r) { return put_buckets(r, NULL, true); }

enum pe_status pe_hf_layoutlm(struct pe_hf_reader *r)
{
    bool flat = r->layer_type && strcmp(r->layer_type, "rel_pos") != 0, has = true;
    const char *switched = flat ? "has_spatial_attention_bias" : "has_relative_attention_bias";
    enum pe_status status = pe_hf_flag(&r->config, switched, &has, r->err);
    if (!status && !has)
        return pe_hf_wrong(&r->config, pe_hf_find(&r->config, switched), "true, for this table to exist", r->err);
    if (status)
        return status;
    return put_table(r, NULL, flat ? "rel_2d_pos_bins" : "rel_pos_bins", flat ? "max_rel_2d_pos" : "max_rel_pos", true);
}
