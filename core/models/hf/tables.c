/* Positions that are added to the input: learned tables of positions or of patches, sinusoids. */
#include "core/models/hf/hf.h"
#include "core/params.h"

#include <math.h>
#include <string.h>

/* A number, or a list of two that are equal. */
static enum pe_status read_side(const struct pe_hf_reader *r, const char *name, int64_t *out)
{
    const struct pe_field *field = pe_hf_find(&r->config, name);
    if (!field || field->value.kind != PE_ARRAY)
        return pe_hf_needed(&r->config, name, name, out, r->err);
    struct pe_reals list = {.array = field->value.array};
    bool is_pair = list.array.rank == 1 && list.array.shape[0] == 2;
    double side = is_pair ? pe_real_at(&list, 0) : 0;
    if (!is_pair || !(side >= 1 && side <= PE_HF_SIDE_MAX) || side != pe_real_at(&list, 1))
        return pe_hf_wrong_list(&r->config, field, "a number, or two that are equal", r->err);
    *out = (int64_t)side;
    return PE_OK;
}

/* SigLIP 2 states how many patches its square table has. */
static enum pe_status root_of_patches(const struct pe_hf_reader *r, int64_t *side)
{
    int64_t n = 0;
    if (pe_hf_needed(&r->config, "num_patches", "rows of the table", &n, r->err))
        return r->err->status;
    *side = (int64_t)sqrt((double)n);
    if (*side * *side != n || *side > PE_HF_SIDE_MAX)
        return pe_hf_wrong_value(&r->config, "num_patches", "a square, up to 65536^2", r->err);
    return PE_OK;
}

enum pe_status pe_hf_side(const struct pe_hf_reader *r, int64_t *side)
{
    int64_t image = 0, patch = 1;
    const char *step = pe_hf_has_default(r->model, "patch_stride") ? "patch_stride" : "patch_size";
    if (pe_hf_has_default(r->model, "num_patches"))
        return root_of_patches(r, side);
    if (read_side(r, "image_size", &image) || read_side(r, step, &patch))
        return r->err->status;
    *side = image / patch;
    if (*side < 1 || *side > PE_HF_SIDE_MAX)
        return pe_fail(r->err, r->config.at, "image_size %lld / %s %lld is %lld; allowed: 1 to %d patches",
                       (long long)image, step, (long long)patch, (long long)*side, PE_HF_SIDE_MAX);
    return PE_OK;
}

/* The field of the width of what positions are added to. ALBERT's and ELECTRA's tables are narrower than the model;
 * those that decode masks have a width for each part. */
static const char *width_names(const struct pe_hf_reader *r)
{
    static const char *const of_parts[] = {"hidden_dim", "feature_size", "conv_dim"};
    for (size_t i = 0; i < sizeof of_parts / sizeof *of_parts; i++)
        if (pe_hf_has_default(r->model, of_parts[i]))
            return of_parts[i];
    bool own = pe_hf_find(&r->config, "embedding_size|input_embedding_size") != NULL;
    return own ? "embedding_size|input_embedding_size" : PE_HF_WIDTH;
}

static enum pe_status put_dim(struct pe_hf_reader *r)
{
    int64_t dim = 0;
    const char *names = width_names(r);
    if (pe_hf_needed(&r->config, names, "dim", &dim, r->err))
        return r->err->status;
    pe_hf_put_integer(r->out, "dim", dim);
    return PE_OK;
}

/* PE_HF_AFTER_PADDING becomes pad_token_id + 1: fairseq's kin count from the row after the padding's. 0 if there is
 * none. */
static enum pe_status after_padding(const struct pe_hf_reader *r, int64_t *first)
{
    if (*first != PE_HF_AFTER_PADDING)
        return PE_OK;
    enum pe_status status = pe_hf_integer(&r->config, "pad_token_id", first, r->err);
    (*first)++;
    return status;
}

/* RoBERTa and its family. */
static enum pe_status put_row_offset(struct pe_hf_reader *r)
{
    int64_t offset = r->model->row_offset;
    if (offset == PE_HF_AFTER_PADDING && !pe_hf_find(&r->config, "pad_token_id"))
        return pe_fail(r->err, r->config.at,
                       "pad_token_id is missing; needed: the row before that of the first position");
    if (after_padding(r, &offset))
        return r->err->status;
    if (offset)
        pe_hf_put_integer(r->out, "row_offset", offset);
    return PE_OK;
}

enum pe_status pe_hf_learned(struct pe_hf_reader *r)
{
    int64_t rows = 0;
    pe_hf_put_word(r->out, "scheme", "learned");
    if (put_dim(r) || pe_hf_needed(&r->config, PE_HF_LENGTH, "number of rows", &rows, r->err))
        return r->err->status;
    pe_hf_put_integer(r->out, "rows", rows + r->model->extra_rows);
    return put_row_offset(r);
}

/* A row per patch of the training image, after rows such as the class token's. */
enum pe_status pe_hf_patches(struct pe_hf_reader *r)
{
    int64_t side = 0, prefix = r->model->extra_rows;
    pe_hf_put_word(r->out, "scheme", "learned");
    if (put_dim(r) || pe_hf_side(r, &side))
        return r->err->status;
    r->out->numbers[0] = r->out->numbers[1] = (double)side;
    pe_hf_put_integer(r->out, "rows", prefix + side * side);
    pe_hf_put_word(r->out, "interpolate", r->model->interpolate ? r->model->interpolate : "bicubic");
    pe_hf_put_list(r->out, "table_grid", r->out->numbers, 2);
    pe_hf_put_integer(r->out, "num_prefix", prefix);
    return PE_OK;
}

/* Positions belong to the request, and begin at its offset: where the model's first token is, the answer only reports.
 */
static enum pe_status tell_first(struct pe_hf_reader *r)
{
    int64_t first = r->model->first;
    enum pe_status status = after_padding(r, &first);
    if (r->config.marks)
        r->config.marks->first = first;
    return status;
}

/* The formula is what the row gives. */
static enum pe_status put_sinusoids(struct pe_hf_reader *r, bool *scaled)
{
    pe_hf_put_word(r->out, "scheme", "sinusoidal");
    if (put_dim(r) || pe_hf_flag(&r->config, "scale_embedding", scaled, r->err) || tell_first(r))
        return r->err->status;
    pe_hf_give(r);
    return PE_OK;
}

enum pe_status pe_hf_sinusoidal(struct pe_hf_reader *r)
{
    bool scaled = false;
    if (put_sinusoids(r, &scaled))
        return r->err->status;
    if (scaled)
        pe_hf_put_word(r->out, "x_scale", "sqrt_dim");
    return PE_OK;
}

/* DETR's code does not scale what the sinusoids are added to. */
enum pe_status pe_hf_detr(struct pe_hf_reader *r)
{
    bool scaled = false;
    double temperature = 10000;
    if (put_sinusoids(r, &scaled) || (r->model->base && pe_hf_number(&r->config, r->model->base, &temperature, r->err)))
        return r->err->status;
    if (r->model->base)
        pe_hf_put_number(r->out, "temperature", temperature);
    return PE_OK;
}

/* DAB-DETR: a temperature for each axis, and the number that positions are multiplied by. */
enum pe_status pe_hf_same_temperature(struct pe_hf_reader *r)
{
    double rows = 0, columns = 0, scale = 0;
    if (pe_hf_number(&r->config, "temperature_height", &rows, r->err) ||
        pe_hf_number(&r->config, "temperature_width", &columns, r->err) ||
        pe_hf_number(&r->config, "sine_position_embedding_scale", &scale, r->err))
        return r->err->status;
    if (columns != rows)
        return pe_hf_wrong_value(&r->config, "temperature_width",
                                 "temperature_height, because style detr has one temperature", r->err);
    if (scale != 0)
        pe_hf_put_number(r->out, "angle_scale", scale);
    return PE_OK;
}

/* RT-DETR's code adds them to the last map of its encoder. */
enum pe_status pe_hf_rt_detr(struct pe_hf_reader *r)
{
    int64_t dim = 0;
    double base = 10000;
    pe_hf_put_word(r->out, "scheme", "sinusoidal");
    if (pe_hf_needed(&r->config, "encoder_hidden_dim", "width of the encoder", &dim, r->err) ||
        pe_hf_number(&r->config, "positional_encoding_temperature", &base, r->err))
        return r->err->status;
    pe_hf_put_integer(r->out, "dim", dim);
    pe_hf_put_number(r->out, "base", base);
    pe_hf_give(r);
    return PE_OK;
}

enum pe_status pe_hf_nothing(struct pe_hf_reader *r)
{
    int64_t dim = 0;
    pe_hf_put_word(r->out, "scheme", "none");
    if (pe_hf_integer(&r->config, PE_HF_WIDTH, &dim, r->err))
        return r->err->status;
    if (dim > 0)
        pe_hf_put_integer(r->out, "dim", dim);
    return PE_OK;
}
