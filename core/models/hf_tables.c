/* Positions that are added to the input: learned tables of positions or of patches, sinusoids. */
#include "core/models/hf.h"

enum pe_status pe_hf_side(const struct pe_hf_reader *r, int64_t *side)
{
    int64_t image = 0, patch = 1;
    enum pe_status status = pe_hf_needed(&r->config, "image_size", "image_size", &image, r->err);
    if (!status)
        status = pe_hf_needed(&r->config, "patch_size", "patch_size", &patch, r->err);
    if (status)
        return status;
    *side = image / patch;
    if (*side < 1 || *side > PE_HF_SIDE_MAX)
        return pe_fail(r->err, r->config.at, "image_size %lld / patch_size %lld is %lld; allowed: 1 to %d patches",
                       (long long)image, (long long)patch, (long long)*side, PE_HF_SIDE_MAX);
    return PE_OK;
}

/* dim of the table; ALBERT's and ELECTRA's are narrower than the model. */
static enum pe_status put_dim(struct pe_hf_reader *r)
{
    int64_t dim = 0;
    enum pe_status status = pe_hf_needed(&r->config, "embedding_size|" PE_HF_WIDTH, "dim", &dim, r->err);
    if (!status)
        pe_hf_put_integer(r->out, "dim", dim);
    return status;
}

enum pe_status pe_hf_learned(struct pe_hf_reader *r)
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

/* A row per patch of the training image, after rows such as the class token's. */
enum pe_status pe_hf_patches(struct pe_hf_reader *r)
{
    int64_t side = 0, prefix = r->model->extra_rows;
    pe_hf_put_word(r->out, "scheme", "learned");
    enum pe_status status = put_dim(r);
    if (!status)
        status = pe_hf_side(r, &side);
    if (status)
        return status;
    r->out->numbers[0] = r->out->numbers[1] = (double)side;
    pe_hf_put_integer(r->out, "rows", prefix + side * side);
    pe_hf_put_word(r->out, "interpolate", "bicubic");
    pe_hf_put_list(r->out, "table_grid", r->out->numbers, 2);
    pe_hf_put_integer(r->out, "num_prefix", prefix);
    return PE_OK;
}

enum pe_status pe_hf_sinusoidal(struct pe_hf_reader *r)
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
