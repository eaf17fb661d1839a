/* Rotary positions from a config: which part of a head is rotated, the base, the layout; then scaling and axes. Where
 * layers differ (Gemma 3, ModernBERT, rope_parameters keyed by layer type) the layer type chooses. */
#include "core/models/hf/hf.h"
#include "core/params.h"
#include "core/schemes/scalings/scaling.h"

#include <string.h>

static const char local_base_names[] = "rope_local_base_freq|local_rope_theta";
static const char share_names[] = "partial_rotary_factor|rotary_pct|rotary_percent|rotary_emb_fraction|rope_pct";

static const char *local_names(const struct pe_hf_reader *r)
{
    return r->model->local_base ? r->model->local_base : local_base_names;
}
static bool is_full(const struct pe_hf_reader *r) { return strcmp(pe_hf_layer_type(r), PE_HF_FULL) == 0; }
static bool is_sliding(const struct pe_hf_reader *r) { return strstr(pe_hf_layer_type(r), "sliding") != NULL; }

/* ---- Where the rope object is ---- */

/* rope_parameters of one object per layer type: null is a layer type without positions. */
static enum pe_status choose_layer(struct pe_hf_reader *r, bool *has_positions)
{
    struct pe_hf_place chosen = {.object = NULL};
    const char *key = pe_hf_layer_type(r);
    if (!r->layer_type && r->model->layers)
        key = r->model->layers; /* the first */
    if (pe_hf_says(&r->rope, "main|compress"))
        key = is_sliding(r) ? "main" : "compress"; /* DeepSeek V4 */
    if (!pe_field_find(r->rope.object->object.fields, r->rope.object->object.n, key))
        return pe_fail(r->err, r->rope.at, "no object for layers of type \"%.40s\", though there is one for others",
                       key);
    *has_positions = pe_hf_says(&r->rope, key);
    if (!*has_positions)
        return PE_OK;
    enum pe_status status = pe_hf_object(&r->rope, key, &chosen, r->err);
    r->rope = chosen;
    return status;
}

static bool is_per_layer(const struct pe_hf_reader *r)
{
    const struct pe_value *rope = r->rope.object;
    for (size_t i = 0; i < rope->object.n; i++)
        if (pe_hf_is_layer(r, rope->object.fields[i].name))
            return true;
    return false;
}

/* An object that is of no layer type, so that its meaning is not known. */
static const struct pe_field *stray_object(const struct pe_value *rope)
{
    for (size_t i = 0; i < rope->object.n; i++)
        if (rope->object.fields[i].value.kind == PE_OBJECT)
            return &rope->object.fields[i];
    return NULL;
}

/* Where a config has both, rope_scaling counts, unless it is empty. */
const char *pe_hf_rope_names(const struct pe_hf_reader *r)
{
    struct pe_hf_place unmarked = r->config;
    unmarked.marks = NULL;
    const struct pe_field *old = pe_hf_find(&unmarked, "rope_scaling");
    bool is_empty = old && old->value.kind == PE_OBJECT && old->value.object.n == 0;
    return is_empty ? "rope_parameters|rope_scaling" : "rope_scaling|rope_parameters";
}

/* Gemma 3's rope_scaling applies to its full-attention layers only. */
void pe_hf_sliding_usual(struct pe_hf_reader *r, bool has_own_base)
{
    if (has_own_base)
        r->rope.object = NULL;
    r->base = r->rope;
}

static enum pe_status find_rope(struct pe_hf_reader *r, bool *has_positions)
{
    if (pe_hf_object(&r->config, pe_hf_rope_names(r), &r->rope, r->err))
        return r->err->status;
    if (!r->rope.object)
        return PE_OK;
    if (is_per_layer(r)) {
        enum pe_status status = choose_layer(r, has_positions);
        r->base = r->rope;
        return status;
    }
    const struct pe_field *stray = stray_object(r->rope.object);
    if (stray)
        return pe_hf_wrong(&r->rope, stray, "objects only under the names of this model's layer types", r->err);
    bool has_own_base = pe_hf_find(&r->config, local_names(r)) != NULL;
    r->base = r->rope;
    if (is_sliding(r))
        (r->model->sliding ? r->model->sliding : pe_hf_sliding_usual)(r, has_own_base);
    return PE_OK;
}

/* ---- Widths ---- */

/* What a request states beside a config of unknown type need not be in the config. */
enum pe_status pe_hf_head_dim(struct pe_hf_reader *r, int64_t *head_dim)
{
    const char *names = r->model->head_dim ? r->model->head_dim : "head_dim|kv_channels|attention_head_dim";
    /* Gemma 4's full layers have wider heads. */
    if (is_full(r) && pe_hf_find(&r->config, "global_head_dim"))
        names = "global_head_dim";
    if (pe_hf_find(&r->config, names))
        return pe_hf_needed(&r->config, names, "head_dim", head_dim, r->err);
    if (r->scheme_is_given && !(pe_hf_says(&r->config, PE_HF_WIDTH) && pe_hf_says(&r->config, PE_HF_HEADS)))
        return PE_OK;
    enum pe_status status = pe_hf_divide_width(r, head_dim);
    if (r->model->heads)
        r->model->heads(head_dim);
    return status;
}

/* DeepSeek's latent attention: a head has first channels without positions, then rotated channels. */
static enum pe_status put_latent_widths(struct pe_hf_reader *r)
{
    int64_t rotary = 0, rest = 0;
    if (pe_hf_needed(&r->config, "qk_rope_head_dim", "qk_rope_head_dim", &rotary, r->err) ||
        (r->model->before ? r->model->before(r, rotary, &rest)
                          : pe_hf_needed(&r->config, "qk_nope_head_dim", "qk_nope_head_dim", &rest, r->err)))
        return r->err->status;
    pe_hf_put_integer(r->out, "head_dim", rest + rotary);
    pe_hf_put_integer(r->out, "rotary_dim", rotary);
    pe_hf_put_integer(r->out, "rotary_offset", rest);
    return PE_OK;
}

static enum pe_status put_head_dim(struct pe_hf_reader *r)
{
    int64_t head_dim = 0;
    if (pe_hf_head_dim(r, &head_dim))
        return r->err->status;
    if (head_dim > 0)
        pe_hf_put_integer(r->out, "head_dim", head_dim);
    return PE_OK;
}

/* Llama's code takes the whole head, whatever share a config has. */
static bool reads_share(const struct pe_hf_reader *r)
{
    bool has_default = pe_hf_has_default(r->model, "partial_rotary_factor") ||
                       pe_hf_has_default(r->model, "rotary_pct") || pe_hf_has_default(r->model, "rotary_emb_fraction");
    return r->scheme_is_given || has_default || pe_is_among(r->model->reads, "partial_rotary_factor");
}

/* The share of a rule of the whole head (p-RoPE) does not set rotary_dim: it stays in scaling. */
static enum pe_status put_share(struct pe_hf_reader *r)
{
    const char *type = "";
    double share = 1;
    enum pe_status status = pe_hf_word(&r->rope, "rope_type|type", &type, r->err);
    const struct pe_scaling_rule *rule = pe_scaling_find(type);
    bool is_default = *type == '\0' || rule == pe_scaling_at(0);
    bool is_read = !is_default || reads_share(r);
    if (!status && is_read && pe_hf_says(&r->rope, "partial_rotary_factor"))
        status = pe_hf_number(&r->rope, "partial_rotary_factor", &share, r->err);
    else if (!status && is_sliding(r) && pe_hf_find(&r->config, "local_partial_rotary_factor"))
        status = pe_hf_number(&r->config, "local_partial_rotary_factor", &share, r->err);
    else if (!status && is_read)
        status = pe_hf_number(&r->config, share_names, &share, r->err);
    if (!status && share != 1 && !(rule && rule->has_whole_head))
        pe_hf_put_number(r->out, "partial_rotary_factor", share);
    return status;
}

static enum pe_status put_widths(struct pe_hf_reader *r)
{
    if (pe_hf_find(&r->config, "qk_rope_head_dim"))
        return put_latent_widths(r);
    int64_t rotary = 0;
    if (put_head_dim(r))
        return r->err->status;
    if (!pe_hf_find(&r->config, "rotary_dim"))
        return put_share(r);
    if (pe_hf_needed(&r->config, "rotary_dim", "rotary_dim", &rotary, r->err))
        return r->err->status;
    pe_hf_put_integer(r->out, "rotary_dim", rotary);
    return PE_OK;
}

/* ---- Base and layout ---- */

static enum pe_status read_base(struct pe_hf_reader *r, double *base)
{
    if (pe_hf_says(&r->base, "rope_theta"))
        return pe_hf_number(&r->base, "rope_theta", base, r->err);
    bool local = is_sliding(r) && pe_hf_find(&r->config, local_names(r));
    struct pe_hf_place attention = {.object = NULL};
    if (pe_hf_says(&r->config, "attn_config") && pe_hf_object(&r->config, "attn_config", &attention, r->err))
        return r->err->status;
    if (pe_hf_says(&attention, "rope_theta")) /* DBRX */
        return pe_hf_number(&attention, "rope_theta", base, r->err);
    const char *names = local ? local_names(r) : r->model->base ? r->model->base : PE_HF_BASES;
    if (pe_hf_find(&r->config, names))
        return pe_hf_number(&r->config, names, base, r->err);
    pe_hf_mark_default(r->config.marks, "rope_theta", pe_real(*base));
    return PE_OK;
}

static enum pe_status put_base(struct pe_hf_reader *r)
{
    double base = 10000, ratio = 1; /* ChatGLM's rope_ratio multiplies 10000 */
    if (read_base(r, &base) || pe_hf_number(&r->config, "rope_ratio", &ratio, r->err))
        return r->err->status;
    pe_hf_put_number(r->out, "base", base * ratio);
    return PE_OK;
}

/* Of a type that has no row the request states the layout, unless the config does. */
static enum pe_status put_layout(struct pe_hf_reader *r)
{
    bool latent = pe_hf_find(&r->config, "qk_rope_head_dim") != NULL;
    const char *layout = r->model->layout ? r->model->layout : latent ? "interleaved" : "half";
    bool interleaved = strcmp(layout, "interleaved") == 0;
    if (r->scheme_is_given && !pe_hf_says(&r->config, PE_HF_LAYOUT_FLAGS))
        return PE_OK;
    if (pe_hf_flag(&r->config, PE_HF_LAYOUT_FLAGS, &interleaved, r->err))
        return r->err->status;
    pe_hf_put_word(r->out, "layout", interleaved ? "interleaved" : "half");
    pe_hf_give(r);
    return PE_OK;
}

enum pe_status pe_hf_rope(struct pe_hf_reader *r)
{
    bool has_positions = !r->model->rope_if || pe_hf_holds(&r->config, r->model->rope_if);
    if (has_positions && find_rope(r, &has_positions))
        return r->err->status;
    if (!has_positions)
        return pe_hf_nothing(r);
    pe_hf_put_word(r->out, "scheme", "rope");
    if (put_widths(r) || put_base(r) || put_layout(r) || pe_hf_scaling(r))
        return r->err->status;
    return pe_hf_axes(r);
}

/* ---- Axes ---- */

/* The axis of each pair of channels, and how positions of a multimodal sequence are counted: channels,
 * mrope_section, position_style and its numbers. */

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
        pe_hf_put_number(r->out, row->name, row->in_silence);
        pe_hf_mark_default(r->config.marks, row->name, pe_real(row->in_silence));
    }
    return PE_OK;
}

static enum pe_status put_style(struct pe_hf_reader *r)
{
    const char *style = r->model->position_style;
    if (!style)
        return PE_OK;
    pe_hf_put_word(r->out, "position_style", style);
    for (size_t i = 0; i < sizeof counted / sizeof *counted; i++)
        if (pe_is_among(counted[i].styles, style) && put_counted(r, &counted[i]))
            return r->err->status;
    return PE_OK;
}

static enum pe_status put_mrope(struct pe_hf_reader *r, const struct pe_field *section)
{
    bool interleaved = r->model->channels && strcmp(r->model->channels, "mrope_interleaved") == 0;
    if (pe_hf_flag(&r->rope, "mrope_interleaved", &interleaved, r->err))
        return r->err->status;
    if (section && section->value.kind != PE_ARRAY)
        return pe_hf_wrong_list(&r->rope, section, "three numbers: pairs of channels for time, height and width",
                                r->err);
    pe_hf_put_word(r->out, "channels", interleaved ? "mrope_interleaved" : "mrope");
    if (section)
        pe_hf_put(r->out, "mrope_section", section->value);
    return put_style(r);
}

/* Sections alone do not determine the axis of each pair: Ernie 4.5 VL orders them h, w, t, and GLM pairs
 * neighbouring channels. */
static enum pe_status fail_sections(const struct pe_hf_reader *r)
{
    return pe_fail_at(r->err, r->rope.at, "mrope_section",
                      "mrope_section of model_type \"%.64s\", which is not known here: write scheme rope with layout, "
                      "channels and mrope_section",
                      r->model_type);
}

/* Rows and columns of patches: each has half of the channels. Qwen's towers merge patches two by two, and count in
 * that order. */
static enum pe_status put_two_axes(struct pe_hf_reader *r)
{
    int64_t merge = 0;
    if (pe_hf_integer(&r->config, "spatial_merge_size", &merge, r->err))
        return r->err->status;
    const struct pe_value *put = pe_field_find(r->out->fields, r->out->n, "head_dim");
    int64_t head_dim = put ? put->integer : 0;
    r->out->numbers[0] = (double)(head_dim / 2);
    r->out->numbers[1] = (double)(head_dim - head_dim / 2);
    pe_hf_put_list(r->out, "axes_dim", r->out->numbers, 2);
    if (merge > 1) {
        pe_hf_put_word(r->out, "order", "merge");
        pe_hf_put_integer(r->out, "spatial_merge_size", merge);
    }
    return PE_OK;
}

enum pe_status pe_hf_axes(struct pe_hf_reader *r)
{
    const char *channels = r->model->channels;
    const struct pe_field *section = channels || r->scheme_is_given ? pe_hf_find(&r->rope, "mrope_section") : NULL;
    if (section && r->scheme_is_given)
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
