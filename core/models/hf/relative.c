/* Reads attention terms that depend on distance and content from a config: Shaw's tables (BERT, NEZHA), DeBERTa,
 * Transformer-XL and its family. Fields have the schemes' names, and the schemes check their values. */
#include "core/models/hf/hf.h"

#include <string.h>

/* ---- Shaw's tables ---- */

/* A row for each distance that max_position_embeddings positions can have. */
enum pe_status pe_hf_relative_key(struct pe_hf_reader *r, const char *type)
{
    int64_t positions = 0;
    pe_hf_put_word(r->out, "scheme", "shaw");
    enum pe_status status = pe_hf_put_heads(r, NULL);
    if (!status)
        status = pe_hf_needed(&r->config, PE_HF_LENGTH, "number of positions", &positions, r->err);
    pe_hf_put_word(r->out, "table_style", type);
    pe_hf_put_integer(r->out, "max_relative", positions - 1);
    return status;
}

enum pe_status pe_hf_nezha(struct pe_hf_reader *r)
{
    int64_t most = 64;
    pe_hf_put_word(r->out, "scheme", "shaw");
    enum pe_status status = pe_hf_put_heads(r, NULL);
    if (!status)
        status = pe_hf_integer(&r->config, "max_relative_position", &most, r->err);
    pe_hf_put_word(r->out, "table_style", "sinusoidal");
    pe_hf_put_integer(r->out, "max_relative", most);
    pe_hf_put_word(r->out, "direction", "key_minus_query");
    return status;
}

/* ---- DeBERTa ---- */

/* norm_rel_ebd is a word, as in "none" or "layer_norm". */
static enum pe_status put_norm(struct pe_hf_reader *r)
{
    const char *norm = "none";
    enum pe_status status = pe_hf_word(&r->config, "norm_rel_ebd", &norm, r->err);
    if (!status && strcmp(norm, "none") != 0 && strcmp(norm, "layer_norm") != 0)
        return pe_hf_wrong(&r->config, pe_hf_find(&r->config, "norm_rel_ebd"), "none, layer_norm", r->err);
    pe_hf_put_flag(r->out, "norm_rel_ebd", strcmp(norm, "none") != 0);
    return status;
}

/* The additions of the second version: buckets, projections shared with the content, a LayerNorm. */
static enum pe_status put_version_2(struct pe_hf_reader *r)
{
    int64_t buckets = -1;
    bool shared = false;
    enum pe_status status = pe_hf_signed(&r->config, "position_buckets", &buckets, r->err);
    if (!status)
        status = pe_hf_flag(&r->config, "share_att_key", &shared, r->err);
    pe_hf_put_integer(r->out, "position_buckets", buckets > 0 ? buckets : -1);
    pe_hf_put_flag(r->out, "share_att_key", shared);
    return status ? status : put_norm(r);
}

/* A list of words, or words between bars. Without either, transformers' class has no terms. */
static enum pe_status put_terms(struct pe_hf_reader *r)
{
    const struct pe_field *field = pe_hf_find(&r->config, "pos_att_type");
    if (!field)
        return pe_fail(r->err, r->config.at, "pos_att_type is missing; needed: the terms, as in [\"c2p\",\"p2c\"]");
    if (field->value.kind != PE_LIST && field->value.kind != PE_STRING)
        return pe_hf_wrong(&r->config, field, "a list of c2p, p2c, or \"c2p|p2c\"", r->err);
    pe_hf_put(r->out, "pos_att_type", field->value);
    return PE_OK;
}

static enum pe_status put_span(struct pe_hf_reader *r)
{
    int64_t most = -1, positions = 512;
    enum pe_status status = pe_hf_signed(&r->config, "max_relative_positions", &most, r->err);
    if (!status)
        status = pe_hf_integer(&r->config, PE_HF_LENGTH, &positions, r->err);
    pe_hf_put_integer(r->out, "max_relative_positions", most < 1 ? positions : most);
    return status;
}

static enum pe_status put_version_1(struct pe_hf_reader *r)
{
    pe_hf_put_integer(r->out, "position_buckets", -1);
    pe_hf_put_flag(r->out, "share_att_key", false);
    pe_hf_put_flag(r->out, "norm_rel_ebd", false);
    return PE_OK;
}

/* Without relative_attention it is a BERT with a table. */
static enum pe_status read_deberta(struct pe_hf_reader *r, enum pe_status (*put_version)(struct pe_hf_reader *))
{
    bool relative = false;
    enum pe_status status = pe_hf_flag(&r->config, "relative_attention", &relative, r->err);
    if (status || !relative)
        return status ? status : pe_hf_learned(r);
    pe_hf_put_word(r->out, "scheme", "deberta");
    status = pe_hf_put_heads(r, "attention_head_size");
    if (!status)
        status = put_span(r);
    if (!status)
        status = put_terms(r);
    if (!status)
        status = put_version(r);
    return status;
}

enum pe_status pe_hf_deberta(struct pe_hf_reader *r) { return read_deberta(r, put_version_1); }
enum pe_status pe_hf_deberta_v2(struct pe_hf_reader *r) { return read_deberta(r, put_version_2); }

/* ---- Transformer-XL and its family ---- */

static enum pe_status put_family(struct pe_hf_reader *r, const char *scheme, const char *head_dim_names)
{
    int64_t width = 0;
    pe_hf_put_word(r->out, "scheme", scheme);
    enum pe_status status = pe_hf_put_heads(r, head_dim_names);
    if (!status)
        status = pe_hf_needed(&r->config, PE_HF_WIDTH, "d_model", &width, r->err);
    pe_hf_put_integer(r->out, "d_model", width);
    return status;
}

static enum pe_status put_memory(struct pe_hf_reader *r)
{
    int64_t mem_len = 0, clamp_len = -1;
    bool same_length = false;
    enum pe_status status = pe_hf_integer(&r->config, "mem_len", &mem_len, r->err);
    if (!status)
        status = pe_hf_signed(&r->config, "clamp_len", &clamp_len, r->err);
    if (!status)
        status = pe_hf_flag(&r->config, "same_length", &same_length, r->err);
    if (mem_len > 0)
        pe_hf_put_integer(r->out, "mem_len", mem_len);
    pe_hf_put_integer(r->out, "clamp_len", clamp_len > 0 ? clamp_len : -1);
    if (same_length)
        pe_hf_put_flag(r->out, "same_length", true);
    return status;
}

enum pe_status pe_hf_transfo_xl(struct pe_hf_reader *r)
{
    enum pe_status status = put_family(r, "transformer_xl", "d_head");
    pe_hf_put_flag(r->out, "causal", true);
    return status ? status : put_memory(r);
}

enum pe_status pe_hf_xlnet(struct pe_hf_reader *r)
{
    const char *type = "bi";
    enum pe_status status = pe_hf_word(&r->config, "attn_type", &type, r->err);
    if (!status && strcmp(type, "bi") != 0 && strcmp(type, "uni") != 0)
        return pe_hf_wrong(&r->config, pe_hf_find(&r->config, "attn_type"), "bi, uni", r->err);
    if (!status)
        status = put_family(r, "xlnet", "d_head");
    if (!status && strcmp(type, "uni") == 0)
        pe_hf_put_flag(r->out, "causal", true);
    return status ? status : put_memory(r);
}

/* Keys only, the distance clamped on either side. */
static enum pe_status put_relative_key(struct pe_hf_reader *r)
{
    int64_t left = 0, right = 0;
    pe_hf_put_word(r->out, "scheme", "shaw");
    enum pe_status status = pe_hf_put_heads(r, NULL);
    if (!status)
        status = pe_hf_needed(&r->config, "left_max_position_embeddings", "left distance", &left, r->err);
    if (!status)
        status = pe_hf_needed(&r->config, "right_max_position_embeddings", "right distance", &right, r->err);
    pe_hf_put_word(r->out, "direction", "key_minus_query");
    pe_hf_put_integer(r->out, "p_min", -left);
    pe_hf_put_integer(r->out, "p_max", right);
    return status;
}

enum pe_status pe_hf_conformer(struct pe_hf_reader *r)
{
    const char *type = "relative";
    enum pe_status status = pe_hf_word(&r->config, "position_embeddings_type", &type, r->err);
    if (!status && pe_hf_has_default(r->model, "position_embeddings_type") &&
        !pe_hf_find(&r->config, "position_embeddings_type")) /* null */
        return pe_hf_nothing(r);
    if (!status && strcmp(type, "relative_key") == 0)
        return put_relative_key(r);
    if (!status && strcmp(type, "relative") != 0)
        return pe_hf_wrong(&r->config, pe_hf_find(&r->config, "position_embeddings_type"),
                           "relative, relative_key; rotary turns the input before the projections of q and k, which no "
                           "scheme here does",
                           r->err);
    return status ? status : put_family(r, "conformer", NULL);
}
