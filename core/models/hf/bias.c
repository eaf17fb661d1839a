/* What attention adds to its scores, from a config: ALiBi, buckets of distances (T5 and its relatives), biases of
 * windows, terms that depend on distance and content. Fields have the schemes' names, and the schemes check their
 * values. */
#include "core/models/hf/hf.h"
#include "core/params.h"

#include <stdio.h>
#include <string.h>

/* ---- ALiBi ---- */

enum pe_status pe_hf_alibi(struct pe_hf_reader *r)
{
    int64_t heads = 0;
    pe_hf_put_word(r->out, "scheme", "alibi");
    if (pe_hf_needed(&r->config, PE_HF_HEADS, "num_heads", &heads, r->err))
        return r->err->status;
    pe_hf_put_integer(r->out, "num_heads", heads);
    pe_hf_put_word(r->out, "form", r->model->form ? r->model->form : "symmetric");
    return PE_OK;
}

/* The models were trained with their config's bias_max, though transformers' class always takes 8. */
enum pe_status pe_hf_mpt(struct pe_hf_reader *r)
{
    struct pe_hf_place attention;
    bool rope = false, alibi = true;
    double bias_max = 8;
    if (pe_hf_object(&r->config, "attn_config", &attention, r->err) || pe_hf_flag(&attention, "rope", &rope, r->err) ||
        pe_hf_flag(&attention, "alibi", &alibi, r->err) ||
        pe_hf_number(&attention, "alibi_bias_max", &bias_max, r->err))
        return r->err->status;
    if (!pe_hf_says(&attention, "alibi_bias_max"))
        pe_hf_mark_default(r->config.marks, "alibi_bias_max", pe_real(bias_max));
    if (rope)
        return pe_hf_wrong_value(&attention, "rope", "false: MPT with RoPE is not read; use scheme \"rope\"", r->err);
    if (!alibi)
        return pe_hf_wrong_value(&attention, "alibi",
                                 "true: transformers' code has ALiBi even so, the vendor's code a learned table",
                                 r->err);
    pe_hf_put_number(r->out, "bias_max", bias_max);
    return pe_hf_alibi(r);
}

/* Falcon's bias is multiplied by the softmax scale too. */
enum pe_status pe_hf_falcon(struct pe_hf_reader *r)
{
    bool alibi = false;
    if (pe_hf_flag(&r->config, "alibi", &alibi, r->err))
        return r->err->status;
    if (!alibi)
        return pe_hf_rope(r);
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
    if (pe_hf_put_heads(r, head_dim_names) || pe_hf_integer(&r->config, buckets_name, &buckets, r->err) ||
        pe_hf_integer(&r->config, distance_name, &distance, r->err))
        return r->err->status;
    pe_hf_put_integer(r->out, "num_buckets", buckets);
    pe_hf_put_integer(r->out, "max_distance", distance);
    pe_hf_put_flag(r->out, "bidirectional", bidirectional);
    return PE_OK;
}

static enum pe_status put_buckets(struct pe_hf_reader *r, const char *head_dim_names, bool bidirectional)
{
    const struct pe_hf_model *row = r->model;
    return put_table(r, head_dim_names, row->buckets ? row->buckets : "relative_attention_num_buckets",
                     row->distance ? row->distance : "relative_attention_max_distance", bidirectional);
}

/* A config of one stack has is_decoder, a config of both has is_encoder_decoder. */
enum pe_status pe_hf_t5(struct pe_hf_reader *r)
{
    bool decoder = false, both = false;
    if (pe_hf_flag(&r->config, "is_decoder", &decoder, r->err) ||
        pe_hf_flag(&r->config, "is_encoder_decoder", &both, r->err))
        return r->err->status;
    decoder = r->layer_type ? strcmp(r->layer_type, "decoder") == 0 : decoder && !both;
    return put_buckets(r, "d_kv", !decoder);
}

enum pe_status pe_hf_buckets(struct pe_hf_reader *r) { return put_buckets(r, NULL, true); }

enum pe_status pe_hf_layoutlm(struct pe_hf_reader *r)
{
    bool flat = r->layer_type && strcmp(r->layer_type, "rel_pos") != 0, has = true;
    const char *switched = flat ? "has_spatial_attention_bias" : "has_relative_attention_bias";
    if (pe_hf_flag(&r->config, switched, &has, r->err))
        return r->err->status;
    if (!has)
        return pe_hf_wrong_value(&r->config, switched, "true, for this table to exist", r->err);
    return put_table(r, NULL, flat ? "rel_2d_pos_bins" : "rel_pos_bins", flat ? "max_rel_2d_pos" : "max_rel_pos", true);
}

/* ---- Shaw's tables: BERT, NEZHA ---- */

/* A row for each distance that max_position_embeddings positions can have. */
enum pe_status pe_hf_relative_key(struct pe_hf_reader *r, const char *type)
{
    int64_t positions = 0;
    pe_hf_put_word(r->out, "scheme", "shaw");
    if (pe_hf_put_heads(r, NULL) || pe_hf_needed(&r->config, PE_HF_LENGTH, "number of positions", &positions, r->err))
        return r->err->status;
    pe_hf_put_word(r->out, "table_style", type);
    pe_hf_put_integer(r->out, "max_relative", positions - 1);
    return PE_OK;
}

enum pe_status pe_hf_nezha(struct pe_hf_reader *r)
{
    int64_t most = 64;
    pe_hf_put_word(r->out, "scheme", "shaw");
    if (pe_hf_put_heads(r, NULL) || pe_hf_integer(&r->config, "max_relative_position", &most, r->err))
        return r->err->status;
    pe_hf_put_word(r->out, "table_style", "sinusoidal");
    pe_hf_put_integer(r->out, "max_relative", most);
    pe_hf_put_word(r->out, "direction", "key_minus_query");
    return PE_OK;
}

/* ---- DeBERTa ---- */

/* norm_rel_ebd is a word, as in "none" or "layer_norm". */
static enum pe_status put_norm(struct pe_hf_reader *r)
{
    const char *norm = "none";
    if (pe_hf_word(&r->config, "norm_rel_ebd", &norm, r->err))
        return r->err->status;
    if (!pe_is_among("none|layer_norm", norm))
        return pe_hf_wrong_value(&r->config, "norm_rel_ebd", "none, layer_norm", r->err);
    pe_hf_put_flag(r->out, "norm_rel_ebd", !pe_same(norm, "none"));
    return PE_OK;
}

/* The additions of the second version: buckets, projections shared with the content, a LayerNorm. */
static enum pe_status put_version_2(struct pe_hf_reader *r)
{
    int64_t buckets = -1;
    bool shared = false;
    if (pe_hf_signed(&r->config, "position_buckets", &buckets, r->err) ||
        pe_hf_flag(&r->config, "share_att_key", &shared, r->err))
        return r->err->status;
    pe_hf_put_integer(r->out, "position_buckets", buckets > 0 ? buckets : -1);
    pe_hf_put_flag(r->out, "share_att_key", shared);
    return put_norm(r);
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
    if (pe_hf_signed(&r->config, "max_relative_positions", &most, r->err) ||
        pe_hf_integer(&r->config, PE_HF_LENGTH, &positions, r->err))
        return r->err->status;
    pe_hf_put_integer(r->out, "max_relative_positions", most < 1 ? positions : most);
    return PE_OK;
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
    if (pe_hf_flag(&r->config, "relative_attention", &relative, r->err))
        return r->err->status;
    if (!relative)
        return pe_hf_learned(r);
    pe_hf_put_word(r->out, "scheme", "deberta");
    if (pe_hf_put_heads(r, "attention_head_size") || put_span(r) || put_terms(r))
        return r->err->status;
    return put_version(r);
}

enum pe_status pe_hf_deberta(struct pe_hf_reader *r) { return read_deberta(r, put_version_1); }
enum pe_status pe_hf_deberta_v2(struct pe_hf_reader *r) { return read_deberta(r, put_version_2); }

/* ---- Transformer-XL and its family ---- */

static enum pe_status put_family(struct pe_hf_reader *r, const char *scheme, const char *head_dim_names)
{
    int64_t width = 0;
    pe_hf_put_word(r->out, "scheme", scheme);
    if (pe_hf_put_heads(r, head_dim_names) || pe_hf_needed(&r->config, PE_HF_WIDTH, "d_model", &width, r->err))
        return r->err->status;
    pe_hf_put_integer(r->out, "d_model", width);
    return PE_OK;
}

static enum pe_status put_memory(struct pe_hf_reader *r)
{
    int64_t mem_len = 0, clamp_len = -1;
    bool same_length = false;
    if (pe_hf_integer(&r->config, "mem_len", &mem_len, r->err) ||
        pe_hf_signed(&r->config, "clamp_len", &clamp_len, r->err) ||
        pe_hf_flag(&r->config, "same_length", &same_length, r->err))
        return r->err->status;
    if (mem_len > 0)
        pe_hf_put_integer(r->out, "mem_len", mem_len);
    pe_hf_put_integer(r->out, "clamp_len", clamp_len > 0 ? clamp_len : -1);
    if (same_length)
        pe_hf_put_flag(r->out, "same_length", true);
    return PE_OK;
}

enum pe_status pe_hf_transfo_xl(struct pe_hf_reader *r)
{
    if (put_family(r, "transformer_xl", "d_head"))
        return r->err->status;
    pe_hf_put_flag(r->out, "causal", true);
    return put_memory(r);
}

enum pe_status pe_hf_xlnet(struct pe_hf_reader *r)
{
    const char *type = "bi";
    if (pe_hf_word(&r->config, "attn_type", &type, r->err))
        return r->err->status;
    if (!pe_is_among("bi|uni", type))
        return pe_hf_wrong_value(&r->config, "attn_type", "bi, uni", r->err);
    if (put_family(r, "xlnet", "d_head"))
        return r->err->status;
    if (pe_same(type, "uni"))
        pe_hf_put_flag(r->out, "causal", true);
    return put_memory(r);
}

/* Keys only, the distance clamped on either side. */
static enum pe_status put_relative_key(struct pe_hf_reader *r)
{
    int64_t left = 0, right = 0;
    pe_hf_put_word(r->out, "scheme", "shaw");
    if (pe_hf_put_heads(r, NULL) ||
        pe_hf_needed(&r->config, "left_max_position_embeddings", "left distance", &left, r->err) ||
        pe_hf_needed(&r->config, "right_max_position_embeddings", "right distance", &right, r->err))
        return r->err->status;
    pe_hf_put_word(r->out, "direction", "key_minus_query");
    pe_hf_put_integer(r->out, "p_min", -left);
    pe_hf_put_integer(r->out, "p_max", right);
    return PE_OK;
}

enum pe_status pe_hf_conformer(struct pe_hf_reader *r)
{
    const char *type = "relative";
    if (pe_hf_word(&r->config, "position_embeddings_type", &type, r->err))
        return r->err->status;
    if (pe_hf_has_default(r->model, "position_embeddings_type") &&
        !pe_hf_find(&r->config, "position_embeddings_type")) /* null */
        return pe_hf_nothing(r);
    if (pe_same(type, "relative_key"))
        return put_relative_key(r);
    if (!pe_same(type, "relative"))
        return pe_hf_wrong_value(
            &r->config, "position_embeddings_type",
            "relative, relative_key; rotary turns the input before the projections of q and k, which no "
            "scheme here does",
            r->err);
    return put_family(r, "conformer", NULL);
}

/* ---- Windows of patches, which become the field grid. Lists have an element for each of Swin's stages. ---- */

/* *out is unchanged if the config has no list of that name. */
static enum pe_status read_element(const struct pe_hf_reader *r, const char *name, uint64_t stage, int64_t low,
                                   int64_t *out)
{
    const struct pe_field *field = pe_hf_find(&r->config, name);
    if (!field)
        return PE_OK;
    struct pe_reals list = {.array = field->value.array};
    if (field->value.kind != PE_ARRAY || list.array.rank != 1)
        return pe_hf_wrong_list(&r->config, field, "a list of integers, one for each stage", r->err);
    if (stage >= list.array.shape[0])
        return pe_fail(r->err, "/layer_type", "layer_type is \"%.40s\"; %s of the config has %llu stages",
                       r->layer_type, name, (unsigned long long)list.array.shape[0]);
    double x = pe_real_at(&list, stage);
    if (!(x >= (double)low && x <= PE_HF_SIDE_MAX) || x != (double)(int64_t)x)
        return pe_hf_wrong(&r->config, field, low ? "integers from 1 to 65536" : "integers from 0 to 65536", r->err);
    *out = (int64_t)x;
    return PE_OK;
}

static enum pe_status needed_element(const struct pe_hf_reader *r, const char *name, uint64_t stage, int64_t *out)
{
    if (!pe_hf_find(&r->config, name))
        return pe_fail(r->err, r->config.at, "%s is missing; needed: a list, one for each stage", name);
    return read_element(r, name, stage, 1, out);
}

static void put_square(struct pe_hf_reader *r, const char *name, double *numbers, int64_t side)
{
    numbers[0] = numbers[1] = (double)side;
    pe_hf_put_list(r->out, name, numbers, 2);
}

/* ---- Swin ---- */

/* Each stage merges patches two by two, and its window is at most as large as its grid of patches. */
static enum pe_status read_window(const struct pe_hf_reader *r, uint64_t stage, int64_t *window)
{
    int64_t side = 1;
    if (pe_hf_needed(&r->config, "window_size", "window_size", window, r->err) || pe_hf_side(r, &side))
        return r->err->status;
    for (uint64_t i = 0; i < stage; i++)
        side = (side + 1) / 2;
    if (*window > side)
        *window = side;
    return PE_OK;
}

/* The width doubles from stage to stage. */
static enum pe_status put_stage_heads(struct pe_hf_reader *r, uint64_t stage)
{
    int64_t heads = 1, width = 0;
    if (needed_element(r, "num_heads", stage, &heads) ||
        pe_hf_needed(&r->config, "embed_dim", "embed_dim", &width, r->err))
        return r->err->status;
    width <<= stage;
    if (width % heads)
        return pe_fail(r->err, r->config.at, "%lld channels do not divide into %lld heads", (long long)width,
                       (long long)heads);
    pe_hf_put_integer(r->out, "num_heads", heads);
    pe_hf_put_integer(r->out, "head_dim", width / heads);
    return PE_OK;
}

/* 0: the window itself. */
static enum pe_status put_pretrained(struct pe_hf_reader *r, uint64_t stage)
{
    int64_t side = 0;
    if (read_element(r, "pretrained_window_sizes", stage, 0, &side))
        return r->err->status;
    if (side > 0)
        put_square(r, "pretrained_grid", r->out->numbers + 2, side);
    return PE_OK;
}

static enum pe_status read_swin(struct pe_hf_reader *r, const char *scheme, uint64_t stage)
{
    int64_t window = 0;
    pe_hf_put_word(r->out, "scheme", scheme);
    if (put_stage_heads(r, stage) || read_window(r, stage, &window))
        return r->err->status;
    put_square(r, "grid", r->out->numbers, window);
    return PE_OK;
}

/* "stage1" … */
static uint64_t stage_of(const struct pe_hf_reader *r)
{
    return r->layer_type ? (uint64_t)(r->layer_type[5] - '1') : 0;
}

enum pe_status pe_hf_swin(struct pe_hf_reader *r) { return read_swin(r, "swin", stage_of(r)); }

enum pe_status pe_hf_swinv2(struct pe_hf_reader *r)
{
    enum pe_status status = read_swin(r, "swinv2", stage_of(r));
    return status ? status : put_pretrained(r, stage_of(r));
}

/* ---- BEiT ---- */

/* A table of distances for each layer or for all; else a table of positions. */
enum pe_status pe_hf_beit(struct pe_hf_reader *r)
{
    bool own = false, shared = false, table = false;
    int64_t side = 0;
    if (pe_hf_flag(&r->config, "use_relative_position_bias", &own, r->err) ||
        pe_hf_flag(&r->config, "use_shared_relative_position_bias", &shared, r->err) ||
        pe_hf_flag(&r->config, "use_absolute_position_embeddings", &table, r->err))
        return r->err->status;
    if (!own && !shared && !table)
        snprintf(pe_hf_note(r), PE_DETAIL_MAX, "%s",
                 pe_text("Without use_relative_position_bias, use_shared_relative_position_bias or "
                         "use_absolute_position_embeddings the class adds no positions."));
    if (!own && !shared)
        return table ? pe_hf_patches(r) : pe_hf_nothing(r);
    pe_hf_put_word(r->out, "scheme", "beit");
    if (pe_hf_put_heads(r, NULL) || pe_hf_side(r, &side))
        return r->err->status;
    put_square(r, "grid", r->out->numbers, side);
    return PE_OK;
}

/* ---- Decomposed positions: SAM, ViTDet, SegGPT ---- */

/* A number, or two: rows and columns. */
static enum pe_status read_sides(const struct pe_hf_reader *r, const char *name, double *out)
{
    const struct pe_field *field = pe_hf_find(&r->config, name);
    int64_t side = 0;
    if (!field || field->value.kind != PE_ARRAY) {
        if (pe_hf_needed(&r->config, name, name, &side, r->err))
            return r->err->status;
        out[0] = out[1] = (double)side;
        return PE_OK;
    }
    struct pe_reals list = {.array = field->value.array};
    bool is_pair = list.array.rank == 1 && list.array.shape[0] == 2;
    for (uint64_t a = 0; a < 2 && is_pair; a++) {
        out[a] = pe_real_at(&list, a);
        is_pair = out[a] >= 1 && out[a] <= PE_HF_SIDE_MAX && out[a] == floor(out[a]);
    }
    return is_pair ? PE_OK : pe_hf_wrong_list(&r->config, field, "a number, or two: rows and columns", r->err);
}

/* The table of patches beside them, which is all that a config without them has. */
enum pe_status pe_hf_decomposed_table(struct pe_hf_reader *r)
{
    bool has = true;
    if (pe_hf_flag(&r->config, "use_abs_pos|use_absolute_position_embeddings", &has, r->err))
        return r->err->status;
    return has ? pe_hf_patches(r) : pe_hf_nothing(r);
}

/* ViTDet's table is of another size than the image, and is resized without its class row: it has a part of its own. */
static enum pe_status without_relative(struct pe_hf_reader *r)
{
    return pe_hf_find(&r->config, "use_abs_pos") ? pe_hf_decomposed_table(r)
                                                 : pe_hf_wrong_value(&r->config, "use_relative_position_embeddings",
                                                                     "true, for this part to exist", r->err);
}

/* false in *has: the config has none. */
static enum pe_status begin_decomposed(struct pe_hf_reader *r, bool *has)
{
    *has = true;
    enum pe_status status = pe_hf_flag(&r->config, "use_rel_pos|use_relative_position_embeddings", has, r->err);
    if (status || !*has)
        return status;
    pe_hf_put_word(r->out, "scheme", "decomposed");
    return pe_hf_put_heads(r, NULL);
}

/* The layers whose queries see the whole image. */
enum pe_status pe_hf_decomposed(struct pe_hf_reader *r)
{
    double image[2], patch[2];
    bool has;
    enum pe_status status = begin_decomposed(r, &has);
    if (status || !has)
        return status ? status : without_relative(r);
    if (read_sides(r, "image_size", image) || read_sides(r, "patch_size", patch))
        return r->err->status;
    for (int a = 0; a < 2; a++) {
        r->out->numbers[a] = floor(image[a] / patch[a]);
        if (r->out->numbers[a] < 1)
            return pe_fail(r->err, r->config.at, "image_size %.0f / patch_size %.0f is less than a patch", image[a],
                           patch[a]);
    }
    pe_hf_put_list(r->out, "grid", r->out->numbers, 2);
    return PE_OK;
}

/* The layers whose queries see a window. */
enum pe_status pe_hf_decomposed_window(struct pe_hf_reader *r)
{
    int64_t side = 0;
    bool has;
    enum pe_status status = begin_decomposed(r, &has);
    if (status || !has)
        return status ? status : without_relative(r);
    if (pe_hf_needed(&r->config, "window_size", "window_size", &side, r->err))
        return r->err->status;
    put_square(r, "grid", r->out->numbers, side);
    return PE_OK;
}
