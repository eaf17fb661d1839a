/* Layer types: which a model has, and which of them have no positions. */
#include "core/models/hf/hf.h"
#include "core/params.h"

#include <stdio.h>
#include <string.h>

/* Layers that are no attention, in whatever model a config lists them. */
static const char never[] = "linear_attention|mamba|mamba2|recurrent|conv|moe|mlp|sparse|dense";

bool pe_hf_is_no_attention(const char *layer_type) { return pe_is_among(never, layer_type); }

bool pe_hf_has_other_layers(const struct pe_hf_model *row)
{
    const char *names = row->none, *word;
    for (size_t n; pe_hf_next_name(&names, &word, &n);) {
        char one[PE_HF_KIND_BYTES];
        snprintf(one, sizeof one, "%.*s", (int)n, word);
        if (pe_hf_is_no_attention(one))
            return true;
    }
    return false;
}

const char *pe_hf_layer_type(const struct pe_hf_reader *r) { return r->layer_type ? r->layer_type : PE_HF_FULL; }

/* Without a layer_type: the model has layers of its own names, of which the first is meant. */
static bool is_own_default(const struct pe_hf_reader *r) { return !r->layer_type && r->model->layers; }

static bool is_listed(const struct pe_hf_reader *r, const char *word)
{
    const struct pe_field *types = pe_hf_find(&r->config, PE_HF_LAYER_LISTS);
    const struct pe_value *list = types ? &types->value : NULL;
    for (size_t i = 0; list && list->kind == PE_LIST && i < list->list.n; i++)
        if (list->list.items[i].kind == PE_STRING && strcmp(list->list.items[i].string, word) == 0)
            return true;
    return false;
}

bool pe_hf_is_layer(const struct pe_hf_reader *r, const char *name)
{
    struct pe_hf_reader unmarked = *r;
    unmarked.config.marks = NULL;
    return pe_is_among("full_attention|sliding_attention|chunked_attention|main|compress", name) ||
           pe_is_among(r->model->layers, name) || pe_is_among(r->model->none, name) || is_listed(&unmarked, name);
}

/* Models that are not rotary have one layer type, unless their row names several. */
static enum pe_status check_named(const struct pe_hf_reader *r)
{
    const char *layers = r->model->layers;
    char spelled[96];
    bool usual = !layers && strcmp(r->layer_type, PE_HF_FULL) == 0;
    if (usual || pe_is_among(layers, r->layer_type))
        return PE_OK;
    if (layers) {
        pe_hf_spell(layers, spelled, sizeof spelled);
        return pe_fail(r->err, "/layer_type", "layer_type is \"%.40s\"; model_type \"%.64s\" has %s", r->layer_type,
                       r->model_type, spelled);
    }
    return pe_fail(r->err, "/layer_type",
                   "layer_type is \"%.40s\"; layers of model_type \"%.64s\" do not differ: leave it out", r->layer_type,
                   r->model_type);
}

bool pe_hf_is_by_layer(const struct pe_hf_model *row) { return row->kind == PE_HF_ROPE || row->kind == PE_HF_NONE; }

/* ---- Layers that are marked as rotated ---- */

bool pe_hf_marks_rotation(const struct pe_hf_model *row) { return pe_is_among(row->none, "nope"); }

struct pe_hf_rotations pe_hf_rotations_of(const struct pe_hf_reader *r)
{
    struct pe_hf_rotations rotations = {.interval = 0};
    if (!pe_hf_marks_rotation(r->model))
        return rotations;
    rotations.marks = pe_hf_numbers(&r->config, "no_rope_layers");
    rotations.interval = rotations.marks.n ? 0 : pe_hf_count(&r->config, "no_rope_layer_interval");
    return rotations;
}

bool pe_hf_is_rotated(const struct pe_hf_rotations *rotations, int64_t layer)
{
    const struct pe_reals *marks = &rotations->marks;
    if (marks->n)
        return (uint64_t)layer >= marks->n || pe_real_at(marks, (uint64_t)layer) != 0;
    return rotations->interval == 0 || (layer + 1) % rotations->interval != 0;
}

static bool is_none_rotated(const struct pe_hf_reader *r)
{
    struct pe_hf_rotations rotations = pe_hf_rotations_of(r);
    for (uint64_t l = 0; l < rotations.marks.n; l++)
        if (pe_hf_is_rotated(&rotations, (int64_t)l))
            return false;
    return rotations.marks.n || rotations.interval == 1;
}

static bool has_none(const struct pe_hf_reader *r, const char *type)
{
    return pe_is_among(r->model->none, type) && (!r->model->none_if || pe_hf_holds(&r->config, r->model->none_if));
}

enum pe_status pe_hf_layer_check(const struct pe_hf_reader *r, bool *has_positions)
{
    const char *type = pe_hf_layer_type(r);
    *has_positions = !is_none_rotated(r) && !has_none(r, type) && !(pe_is_among(never, type) && is_listed(r, type));
    if (is_own_default(r))
        return PE_OK;
    if (r->layer_type && !pe_hf_is_by_layer(r->model))
        return check_named(r);
    bool known = pe_is_among("full_attention|sliding_attention", type) || is_listed(r, type) ||
                 pe_is_among(r->model->layers, type) || pe_is_among(r->model->none, type);
    if (!known)
        return pe_fail(r->err, "/layer_type",
                       "\"%.48s\" has no layers of type \"%.40s\"; allowed: full_attention, sliding_attention, or what "
                       "its config lists",
                       r->model_type, type);
    return PE_OK;
}
