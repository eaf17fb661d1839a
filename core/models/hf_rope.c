/* Rotary positions from a config: which part of a head is rotated, the base, the layout; then scaling and axes. Where
 * layers differ (Gemma 3, ModernBERT, rope_parameters keyed by layer type) the layer type chooses. */
#include "core/models/hf.h"
#include "core/params.h"

#include <stdio.h>
#include <string.h>

static const char full[] = "full_attention", sliding[] = "sliding_attention";
static const char base_names[] = "rope_theta|rotary_emb_base|global_rope_theta|rotary_base";
static const char local_base_names[] = "rope_local_base_freq|local_rope_theta";
static const char share_names[] = "partial_rotary_factor|rotary_pct|rotary_percent|rotary_emb_fraction";

static const char *layer_type(const struct pe_hf_reader *r) { return r->layer_type ? r->layer_type : full; }
static bool is_full(const struct pe_hf_reader *r) { return strcmp(layer_type(r), full) == 0; }
static bool is_sliding(const struct pe_hf_reader *r) { return strcmp(layer_type(r), sliding) == 0; }

/* ---- Which layers ---- */

static enum pe_status no_positions(const struct pe_hf_reader *r)
{
    return pe_fail(r->err, "/layer_type",
                   "layers of type \"%.40s\"%s have no positions in this model: use scheme \"none\" for them, or name "
                   "another layer_type",
                   layer_type(r), r->layer_type ? "" : " (the default)");
}

static bool is_listed(const struct pe_value *list, const char *word)
{
    for (size_t i = 0; i < list->list.n; i++)
        if (list->list.items[i].kind == PE_STRING && strcmp(list->list.items[i].string, word) == 0)
            return true;
    return false;
}

static enum pe_status check_layer_type(const struct pe_hf_reader *r)
{
    const struct pe_field *types = pe_hf_find(&r->config, "layer_types");
    bool listed = types && types->value.kind == PE_LIST;
    if (r->model->full_has_none && is_full(r) && pe_hf_find(&r->config, "sliding_window"))
        return no_positions(r);
    if (strcmp(layer_type(r), "linear_attention") == 0)
        return no_positions(r);
    if (!r->layer_type || (listed && is_listed(&types->value, r->layer_type)) || is_full(r) || is_sliding(r))
        return PE_OK;
    return pe_fail(r->err, "/layer_type",
                   "layer_type is \"%.40s\"; allowed: \"%s\", \"%s\" or one of the config's "
                   "layer_types",
                   r->layer_type, full, sliding);
}

/* rope_parameters of one object per layer type: a layer type without an object has no positions. */
static enum pe_status choose_layer(struct pe_hf_reader *r)
{
    struct pe_hf_place chosen = {.object = NULL};
    if (!pe_hf_find(&r->rope, layer_type(r)))
        return no_positions(r);
    enum pe_status status = pe_hf_object(&r->rope, layer_type(r), &chosen, r->err);
    r->rope = chosen;
    return status;
}

/* Gemma 3's rope_scaling applies to its full-attention layers only. */
static enum pe_status find_rope(struct pe_hf_reader *r)
{
    enum pe_status status = pe_hf_object(&r->config, "rope_parameters|rope_scaling", &r->rope, r->err);
    if (status || !r->rope.object)
        return status;
    const struct pe_value *rope = r->rope.object;
    if (rope->object.n > 0 && rope->object.fields[0].value.kind == PE_OBJECT)
        return choose_layer(r);
    bool local = pe_hf_find(&r->config, local_base_names) || r->model->local_base != 0;
    if (local && is_sliding(r))
        r->rope.object = NULL;
    return PE_OK;
}

/* ---- Widths ---- */

/* DeepSeek's latent attention: a head has first channels without positions, then rotated channels. */
static enum pe_status put_latent_widths(struct pe_hf_reader *r)
{
    int64_t rotary = 0, rest = 0;
    enum pe_status status = pe_hf_needed(&r->config, "qk_rope_head_dim", "qk_rope_head_dim", &rotary, r->err);
    if (!status)
        status = pe_hf_needed(&r->config, "qk_nope_head_dim", "qk_nope_head_dim", &rest, r->err);
    if (status)
        return status;
    pe_hf_put_integer(r->out, "head_dim", rest + rotary);
    pe_hf_put_integer(r->out, "rotary_dim", rotary);
    pe_hf_put_integer(r->out, "rotary_offset", rest);
    return PE_OK;
}

static enum pe_status put_head_dim(struct pe_hf_reader *r)
{
    /* Gemma 4's full layers have wider heads. */
    const char *names = is_full(r) ? "global_head_dim|head_dim|kv_channels" : "head_dim|kv_channels";
    int64_t head_dim = r->model->head_dim;
    enum pe_status status = PE_OK;
    if (pe_hf_find(&r->config, names))
        status = pe_hf_needed(&r->config, names, "head_dim", &head_dim, r->err);
    else if (head_dim)
        pe_hf_mark_default(r->config.marks, "head_dim", (struct pe_value){.kind = PE_INTEGER, .integer = head_dim});
    else
        status = pe_hf_divide_width(r, &head_dim);
    if (!status)
        pe_hf_put_integer(r->out, "head_dim", head_dim);
    return status;
}

/* The share of p-RoPE (type proportional) does not set rotary_dim: it stays in scaling. */
static enum pe_status put_share(struct pe_hf_reader *r)
{
    const char *type = "";
    double share = r->model->share != 0 ? r->model->share : 1;
    enum pe_status status = pe_hf_word(&r->rope, "rope_type|type", &type, r->err);
    if (!status)
        status = pe_hf_number(&r->config, share_names, &share, r->err);
    if (!status)
        status = pe_hf_number(&r->rope, "partial_rotary_factor", &share, r->err);
    if (!status && r->model->share != 0 && !pe_hf_find(&r->config, share_names) &&
        !pe_hf_find(&r->rope, "partial_rotary_factor"))
        pe_hf_mark_default(r->config.marks, "partial_rotary_factor", (struct pe_value){.kind = PE_REAL, .real = share});
    if (!status && share != 1 && strcmp(type, "proportional") != 0)
        pe_hf_put_number(r->out, "partial_rotary_factor", share);
    return status;
}

static enum pe_status put_widths(struct pe_hf_reader *r)
{
    if (pe_hf_find(&r->config, "qk_rope_head_dim"))
        return put_latent_widths(r);
    int64_t rotary = 0;
    enum pe_status status = put_head_dim(r);
    if (!status && !pe_hf_find(&r->config, "rotary_dim"))
        return put_share(r);
    if (!status)
        status = pe_hf_needed(&r->config, "rotary_dim", "rotary_dim", &rotary, r->err);
    if (!status)
        pe_hf_put_integer(r->out, "rotary_dim", rotary);
    return status;
}

/* ---- Base and layout ---- */

static enum pe_status put_base(struct pe_hf_reader *r)
{
    bool local = is_sliding(r);
    double base = local && r->model->local_base != 0 ? r->model->local_base : r->model->base;
    double ratio = 1; /* ChatGLM's rope_ratio multiplies 10000 */
    base = base != 0 ? base : 10000;
    const char *names = local && (r->model->local_base != 0 || pe_hf_find(&r->config, local_base_names))
                            ? local_base_names
                            : base_names;
    enum pe_status status = pe_hf_number(&r->config, names, &base, r->err);
    if (!status)
        status = pe_hf_number(&r->rope, "rope_theta", &base, r->err);
    if (!status)
        status = pe_hf_number(&r->config, "rope_ratio", &ratio, r->err);
    if (!status && !pe_hf_find(&r->config, names) && !pe_hf_find(&r->rope, "rope_theta"))
        pe_hf_mark_default(r->config.marks, "rope_theta", (struct pe_value){.kind = PE_REAL, .real = base});
    if (!status)
        pe_hf_put_number(r->out, "base", base * ratio);
    return status;
}

static enum pe_status put_layout(struct pe_hf_reader *r)
{
    bool latent = pe_hf_find(&r->config, "qk_rope_head_dim") != NULL;
    const char *layout = r->model->layout ? r->model->layout : latent ? "interleaved" : "half";
    bool interleaved = strcmp(layout, "interleaved") == 0;
    enum pe_status status =
        pe_hf_flag(&r->config, "rope_interleave|rotary_emb_interleaved|rope_interleaved", &interleaved, r->err);
    if (!status)
        pe_hf_put_word(r->out, "layout", interleaved ? "interleaved" : "half");
    return status;
}

/* A config of unknown type is rotary if it has any of these keys. */
static enum pe_status check_is_rotary(const struct pe_hf_reader *r)
{
    if (r->model->types || pe_hf_find(&r->config, base_names) || pe_hf_find(&r->config, share_names) ||
        pe_hf_find(&r->config, "rope_parameters|rope_scaling|rotary_dim|rope_ratio|qk_rope_head_dim"))
        return PE_OK;
    char pointer[PE_POINTER_MAX];
    pe_pointer_join(pointer, sizeof pointer, r->config.at, "model_type");
    return pe_fail(r->err, pointer,
                   "model_type \"%.64s\" is not known here, and no field describes its positions: looked for "
                   "rope_theta, rope_parameters, rope_scaling, rotary_dim, rotary_pct, rotary_emb_base, "
                   "partial_rotary_factor",
                   r->model_type);
}

enum pe_status pe_hf_rope(struct pe_hf_reader *r)
{
    pe_hf_put_word(r->out, "scheme", "rope");
    static enum pe_status (*const steps[])(struct pe_hf_reader *) = {find_rope,  put_widths,    put_base,
                                                                     put_layout, pe_hf_scaling, pe_hf_axes};
    enum pe_status status = check_is_rotary(r);
    if (!status)
        status = check_layer_type(r);
    for (size_t i = 0; !status && i < sizeof steps / sizeof *steps; i++)
        status = steps[i](r);
    return status;
}
