/* The axis of each pair of channels, and how positions of a multimodal sequence are counted: channels,
 * mrope_section, position_style and its numbers. */
#include "core/models/hf/hf.h"
#include "core/params.h"

#include <string.h>

/* The numbers of a position_style, and their places in a config. */
struct counted {
    const char *styles, *name;
    bool of_vision;    /* in vision_config, else beside text_config */
    double in_silence; /* transformers' default where the config has none; 0: the scheme's default */
};
static const struct counted counted[] = {
    {"qwen2_vl|qwen2_5_vl|qwen2_5_omni|qwen3_vl|qwen3_omni", "spatial_merge_size", true, 0},
    {"qwen2_5_vl", "tokens_per_second", true, 4}, /* released checkpoints have 2 */
    {"qwen2_5_omni|qwen3_omni", "position_id_per_seconds", false, 0},
    {"qwen2_5_omni", "seconds_per_chunk", false, 0},
};

static enum pe_status put_counted(struct pe_hf_reader *r, const struct counted *row)
{
    struct pe_hf_place place = r->around;
    if (row->of_vision && pe_hf_object(&r->around, "vision_config", &place, r->err))
        return r->err->status;
    const struct pe_field *field = pe_hf_find(&place, row->name);
    double x;
    if (field && !pe_hf_number(&place, row->name, &x, r->err))
        pe_hf_put(r->out, row->name, field->value);
    else if (field)
        return r->err->status;
    else if ((place.object || r->is_nested) && row->in_silence != 0) {
        struct pe_value value = {.kind = PE_REAL, .real = row->in_silence};
        pe_hf_put(r->out, row->name, value);
        pe_hf_mark_default(r->config.marks, row->name, value);
    }
    return PE_OK;
}

static enum pe_status put_style(struct pe_hf_reader *r)
{
    enum pe_status status = PE_OK;
    const char *style = r->model->position_style;
    if (!style)
        return PE_OK;
    pe_hf_put_word(r->out, "position_style", style);
    for (size_t i = 0; !status && i < sizeof counted / sizeof *counted; i++)
        if (pe_is_among(counted[i].styles, style))
            status = put_counted(r, &counted[i]);
    return status;
}

static enum pe_status put_mrope(struct pe_hf_reader *r, const struct pe_field *section)
{
    bool interleaved = r->model->channels && strcmp(r->model->channels, "mrope_interleaved") == 0;
    enum pe_status status = pe_hf_flag(&r->rope, "mrope_interleaved", &interleaved, r->err);
    if (status)
        return status;
    if (section && section->value.kind != PE_ARRAY)
        return pe_hf_wrong(&r->rope, section, "three numbers: pairs of channels for time, height and width", r->err);
    pe_hf_put_word(r->out, "channels", interleaved ? "mrope_interleaved" : "mrope");
    if (section)
        pe_hf_put(r->out, "mrope_section", section->value);
    return put_style(r);
}

/* Sections alone do not determine the axis of each pair: Ernie 4.5 VL orders them h, w, t, and GLM pairs
 * neighbouring channels. */
static enum pe_status fail_sections(const struct pe_hf_reader *r)
{
    char pointer[PE_POINTER_MAX];
    pe_pointer_join(pointer, sizeof pointer, r->rope.at, "mrope_section");
    return pe_fail(r->err, pointer,
                   "mrope_section of model_type \"%.64s\", which is not known here: write scheme rope with layout, "
                   "channels and mrope_section",
                   r->model_type);
}

/* Rows and columns of patches: each has half of the channels. Qwen's towers merge patches two by two, and count in
 * that order. */
static enum pe_status put_two_axes(struct pe_hf_reader *r)
{
    int64_t merge = 0;
    enum pe_status status = pe_hf_integer(&r->config, "spatial_merge_size", &merge, r->err);
    const struct pe_value *put = pe_field_find(r->out->fields, r->out->n, "head_dim");
    int64_t head_dim = put ? put->integer : 0;
    r->out->numbers[0] = (double)(head_dim / 2);
    r->out->numbers[1] = (double)(head_dim - head_dim / 2);
    pe_hf_put_list(r->out, "axes_dim", r->out->numbers, 2);
    if (!status && merge > 1) {
        pe_hf_put_word(r->out, "order", "merge");
        pe_hf_put_integer(r->out, "spatial_merge_size", merge);
    }
    return status;
}

enum pe_status pe_hf_axes(struct pe_hf_reader *r)
{
    const char *channels = r->model->channels;
    const struct pe_field *section = channels || r->is_told ? pe_hf_find(&r->rope, "mrope_section") : NULL;
    if (section && r->is_told)
        return r->says_channels ? PE_OK : fail_sections(r);
    if (!section)
        section = pe_hf_find(&r->config, "mrope_section");
    if (section || (channels && strncmp(channels, "mrope", 5) == 0))
        return put_mrope(r, section);
    if (channels && strcmp(channels, "two_axes") == 0)
        return put_two_axes(r);
    if (channels)
        pe_hf_put_word(r->out, "channels", channels);
    if (channels && strcmp(channels, "dinov3") == 0)
        pe_hf_put_word(r->out, "coords", "normalized");
    return PE_OK;
}
