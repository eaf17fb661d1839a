/* Biases of windows of patches from a config: Swin's stages, which differ in heads and perhaps in window, and BEiT.
 * The window becomes the field grid. */
#include "core/models/hf/hf.h"
#include "core/params.h"

#include <string.h>

/* ---- Lists, an element for each stage ---- */

/* *out is unchanged if the config has no list of that name. */
static enum pe_status read_element(const struct pe_hf_reader *r, const char *name, uint64_t stage, int64_t low,
                                   int64_t *out)
{
    const struct pe_field *field = pe_hf_find(&r->config, name);
    if (!field)
        return PE_OK;
    struct pe_reals list = {.array = field->value.array};
    if (field->value.kind != PE_ARRAY || list.array.rank != 1)
        return pe_hf_wrong(&r->config, field, "a list of integers, one for each stage", r->err);
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

/* ---- Sizes ---- */

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
    enum pe_status status = pe_hf_needed(&r->config, "window_size", "window_size", window, r->err);
    if (!status)
        status = pe_hf_side(r, &side);
    for (uint64_t i = 0; i < stage; i++)
        side = (side + 1) / 2;
    if (*window > side)
        *window = side;
    return status;
}

/* The width doubles from stage to stage. */
static enum pe_status put_stage_heads(struct pe_hf_reader *r, uint64_t stage)
{
    int64_t heads = 1, width = 0;
    enum pe_status status = needed_element(r, "num_heads", stage, &heads);
    if (!status)
        status = pe_hf_needed(&r->config, "embed_dim", "embed_dim", &width, r->err);
    if (status)
        return status;
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
    enum pe_status status = read_element(r, "pretrained_window_sizes", stage, 0, &side);
    if (side > 0)
        put_square(r, "pretrained_grid", r->out->numbers + 2, side);
    return status;
}

static enum pe_status read_swin(struct pe_hf_reader *r, const char *scheme, uint64_t stage)
{
    int64_t window = 0;
    pe_hf_put_word(r->out, "scheme", scheme);
    enum pe_status status = put_stage_heads(r, stage);
    if (!status)
        status = read_window(r, stage, &window);
    if (!status)
        put_square(r, "grid", r->out->numbers, window);
    return status;
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
    enum pe_status status = pe_hf_flag(&r->config, "use_relative_position_bias", &own, r->err);
    if (!status)
        status = pe_hf_flag(&r->config, "use_shared_relative_position_bias", &shared, r->err);
    if (!status)
        status = pe_hf_flag(&r->config, "use_absolute_position_embeddings", &table, r->err);
    if (!status && !own && !shared && table)
        return pe_hf_patches(r);
    if (!status && !own && !shared)
        return pe_hf_nothing(r);
    pe_hf_put_word(r->out, "scheme", "beit");
    if (!status)
        status = pe_hf_put_heads(r, NULL);
    if (!status)
        status = pe_hf_side(r, &side);
    put_square(r, "grid", r->out->numbers, side);
    return status;
}
