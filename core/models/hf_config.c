/* A model's config.json read for its positions: which object speaks of the language model, which kind of positions its
 * model_type has, and the kinds that are not rotary. Everything else in the config is ignored. */
#include "core/models/hf.h"
#include "core/params.h"

#include <string.h>

/* ---- Where to read ---- */

enum { NESTING_MAX = 4 };

/* Multimodal configs keep the language model in an object of its own. */
static enum pe_status descend(struct pe_hf_reader *r)
{
    for (int depth = 0; depth < NESTING_MAX; depth++) {
        struct pe_hf_place inner;
        enum pe_status status =
            pe_hf_object(&r->config, "thinker_config|text_config|llm_config|language_config", &inner, r->err);
        if (status || !inner.object)
            return status;
        r->around = r->config;
        r->config = inner;
    }
    return PE_OK;
}

/* The innermost model_type that has a row here; else the innermost one. */
static enum pe_status find_model(struct pe_hf_reader *r)
{
    static const struct pe_hf_model usual = {.types = NULL};
    const char *outer = "";
    enum pe_status status = pe_hf_word(&r->around, "model_type", &outer, r->err);
    r->model_type = outer;
    if (!status)
        status = pe_hf_word(&r->config, "model_type", &r->model_type, r->err);
    r->model = pe_hf_model_find(r->model_type);
    if (!r->model)
        r->model = pe_hf_model_find(outer);
    if (!r->model)
        r->model = &usual;
    return status;
}

/* ---- Tables ---- */

/* dim of the table; ALBERT's and ELECTRA's are narrower than the model. */
static enum pe_status put_dim(struct pe_hf_reader *r)
{
    int64_t dim = 0;
    enum pe_status status = pe_hf_needed(&r->config, "embedding_size|" PE_HF_WIDTH, "dim", &dim, r->err);
    if (!status)
        pe_hf_put_integer(r->out, "dim", dim);
    return status;
}

static enum pe_status read_learned(struct pe_hf_reader *r)
{
    int64_t rows = 0, offset = r->model->row_offset, padding = 1;
    pe_hf_put_word(r->out, "scheme", "learned");
    enum pe_status status = put_dim(r);
    if (!status)
        status = pe_hf_needed(&r->config, PE_HF_LENGTH, "number of rows", &rows, r->err);
    if (!status)
        status = pe_hf_integer(&r->config, "pad_token_id", &padding, r->err);
    if (status)
        return status;
    pe_hf_put_integer(r->out, "rows", rows + r->model->extra_rows);
    if (offset)
        pe_hf_put_integer(r->out, "row_offset", offset < 0 ? padding + 1 : offset);
    return PE_OK;
}

/* A row per patch of the picture it was trained on, after the class token and the like. */
static enum pe_status read_patches(struct pe_hf_reader *r)
{
    int64_t image = 0, patch = 0, prefix = r->model->extra_rows;
    pe_hf_put_word(r->out, "scheme", "learned");
    enum pe_status status = put_dim(r);
    if (!status)
        status = pe_hf_needed(&r->config, "image_size", "image_size", &image, r->err);
    if (!status)
        status = pe_hf_needed(&r->config, "patch_size", "patch_size", &patch, r->err);
    if (status)
        return status;
    int64_t side = image / patch;
    if (side < 1 || side > 65536)
        return pe_fail(r->err, r->config.at, "image_size %lld / patch_size %lld is %lld; allowed: 1 to 65536 patches",
                       (long long)image, (long long)patch, (long long)side);
    r->out->numbers[0] = r->out->numbers[1] = (double)side;
    pe_hf_put_integer(r->out, "rows", prefix + side * side);
    pe_hf_put_word(r->out, "interpolate", "bicubic");
    pe_hf_put_list(r->out, "table_grid", r->out->numbers, 2);
    pe_hf_put_integer(r->out, "num_prefix", prefix);
    return PE_OK;
}

static enum pe_status read_sinusoidal(struct pe_hf_reader *r)
{
    bool scaled = false;
    pe_hf_put_word(r->out, "scheme", "sinusoidal");
    enum pe_status status = put_dim(r);
    if (!status)
        status = pe_hf_flag(&r->config, "scale_embedding", &scaled, r->err);
    if (status)
        return status;
    pe_hf_put_word(r->out, "layout", "half");
    pe_hf_put_number(r->out, "freq_shift", r->model->freq_shift);
    if (r->model->odd)
        pe_hf_put_word(r->out, "odd", r->model->odd);
    if (scaled)
        pe_hf_put_word(r->out, "x_scale", "sqrt_dim");
    return PE_OK;
}

/* ---- Biases ---- */

static enum pe_status put_alibi(struct pe_hf_reader *r, const char *form)
{
    int64_t heads = 0;
    pe_hf_put_word(r->out, "scheme", "alibi");
    enum pe_status status = pe_hf_needed(&r->config, PE_HF_HEADS, "num_heads", &heads, r->err);
    if (!status) {
        pe_hf_put_integer(r->out, "num_heads", heads);
        pe_hf_put_word(r->out, "form", form);
    }
    return status;
}

static enum pe_status read_alibi(struct pe_hf_reader *r) { return put_alibi(r, r->model->style); }

static enum pe_status read_mpt(struct pe_hf_reader *r)
{
    struct pe_hf_place attention;
    bool alibi = false, rope = false;
    double bias_max = 8;
    enum pe_status status = pe_hf_object(&r->config, "attn_config", &attention, r->err);
    if (!status)
        status = pe_hf_flag(&attention, "alibi", &alibi, r->err);
    if (!status)
        status = pe_hf_flag(&attention, "rope", &rope, r->err);
    if (!status)
        status = pe_hf_number(&attention, "alibi_bias_max", &bias_max, r->err);
    if (status)
        return status;
    if (rope)
        return pe_hf_wrong(&attention, pe_hf_find(&attention, "rope"),
                           "false: MPT with RoPE is not read; use scheme "
                           "\"rope\"",
                           r->err);
    if (!alibi)
        return read_learned(r);
    pe_hf_put_number(r->out, "bias_max", bias_max);
    return put_alibi(r, r->model->style);
}

/* Falcon's bias is multiplied by the softmax scale too. */
static enum pe_status read_falcon(struct pe_hf_reader *r)
{
    bool alibi = false;
    enum pe_status status = pe_hf_flag(&r->config, "alibi", &alibi, r->err);
    if (status || !alibi)
        return status ? status : pe_hf_rope(r);
    pe_hf_put(r->out, "bias_scaled", (struct pe_value){.kind = PE_BOOLEAN, .boolean = true});
    return put_alibi(r, r->model->style);
}

static enum pe_status read_elsewhere(struct pe_hf_reader *r)
{
    char pointer[PE_POINTER_MAX];
    pe_pointer_join(pointer, sizeof pointer, r->config.at, "model_type");
    return pe_fail(r->err, pointer,
                   "model_type \"%.64s\" has relative attention biases, which are not read from a config: write the "
                   "parameters of scheme \"%s\" (see /schemes)",
                   r->model_type, r->model->style);
}

static enum pe_status read_t5(struct pe_hf_reader *r)
{
    int64_t heads = 0, buckets = 32, distance = 128;
    if (!pe_scheme_find(r->model->style))
        return read_elsewhere(r);
    enum pe_status status = pe_hf_needed(&r->config, PE_HF_HEADS, "num_heads", &heads, r->err);
    if (!status)
        status = pe_hf_integer(&r->config, "relative_attention_num_buckets", &buckets, r->err);
    if (!status)
        status = pe_hf_integer(&r->config, "relative_attention_max_distance", &distance, r->err);
    pe_hf_put_word(r->out, "scheme", r->model->style);
    pe_hf_put_integer(r->out, "num_heads", heads);
    pe_hf_put_integer(r->out, "num_buckets", buckets);
    pe_hf_put_integer(r->out, "max_distance", distance);
    return status;
}

/* ---- Which kind ---- */

static enum pe_status (*const kinds[])(struct pe_hf_reader *) = {
    [PE_HF_ROPE] = pe_hf_rope,          [PE_HF_LEARNED] = read_learned,
    [PE_HF_PATCHES] = read_patches,     [PE_HF_SINUSOIDAL] = read_sinusoidal,
    [PE_HF_ALIBI] = read_alibi,         [PE_HF_MPT] = read_mpt,
    [PE_HF_FALCON] = read_falcon,       [PE_HF_T5] = read_t5,
    [PE_HF_ELSEWHERE] = read_elsewhere,
};

/* BERT's family chooses by a word: Jina's ALiBi, ESM's RoPE. */
static enum pe_status read_table_or_other(struct pe_hf_reader *r)
{
    const char *type = "absolute";
    enum pe_status status = pe_hf_word(&r->config, "position_embedding_type", &type, r->err);
    if (status || strcmp(type, "absolute") == 0)
        return status ? status : read_learned(r);
    if (pe_is_among("rotary|rope", type))
        return pe_hf_rope(r);
    if (strcmp(type, "alibi") == 0)
        return put_alibi(r, "symmetric");
    return pe_hf_wrong(&r->config, pe_hf_find(&r->config, "position_embedding_type"),
                       "absolute, rotary, alibi; relative_key and relative_key_query are scheme \"shaw\"", r->err);
}

static enum pe_status read_kind(struct pe_hf_reader *r)
{
    return r->model->kind == PE_HF_LEARNED ? read_table_or_other(r) : kinds[r->model->kind](r);
}

/* Layers of models that are not rotary are all alike. */
static enum pe_status check_layer_type(const struct pe_hf_reader *r)
{
    if (r->model->kind == PE_HF_ROPE || !r->layer_type || strcmp(r->layer_type, "full_attention") == 0)
        return PE_OK;
    return pe_fail(r->err, "/layer_type",
                   "layer_type is \"%.40s\"; layers of model_type \"%.64s\" do not differ: leave it out", r->layer_type,
                   r->model_type);
}

enum pe_status pe_hf_config_read(const struct pe_value *config, const char *layer_type, struct pe_model_fields *out,
                                 struct pe_error *err)
{
    struct pe_hf_reader r = {.layer_type = layer_type, .out = out, .err = err};
    r.config = (struct pe_hf_place){.object = config, .at = "/hf_config"};
    r.around = r.config;
    out->n = 0;
    if (config->kind != PE_OBJECT)
        return pe_fail(err, "/hf_config", "hf_config is not an object; allowed: a model's config.json as an object");
    enum pe_status status = descend(&r);
    if (!status)
        status = find_model(&r);
    if (!status)
        status = check_layer_type(&r);
    return status ? status : read_kind(&r);
}
