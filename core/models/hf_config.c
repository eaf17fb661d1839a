/* Reads positions from a model's config.json: finds the object of the language model and the kind of positions of
 * its model_type. Everything else in the config is ignored. */
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

/* ---- Which kind ---- */

static enum pe_status (*const kinds[])(struct pe_hf_reader *) = {
    [PE_HF_ROPE] = pe_hf_rope,
    [PE_HF_LEARNED] = pe_hf_learned,
    [PE_HF_PATCHES] = pe_hf_patches,
    [PE_HF_SINUSOIDAL] = pe_hf_sinusoidal,
    [PE_HF_ALIBI] = pe_hf_alibi,
    [PE_HF_MPT] = pe_hf_mpt,
    [PE_HF_FALCON] = pe_hf_falcon,
    [PE_HF_T5] = pe_hf_t5,
    [PE_HF_BUCKETS] = pe_hf_buckets,
    [PE_HF_LAYOUTLM] = pe_hf_layoutlm,
    [PE_HF_NEZHA] = pe_hf_nezha,
    [PE_HF_DEBERTA] = pe_hf_deberta,
    [PE_HF_TRANSFO_XL] = pe_hf_transfo_xl,
    [PE_HF_XLNET] = pe_hf_xlnet,
    [PE_HF_CONFORMER] = pe_hf_conformer,
    [PE_HF_SWIN] = pe_hf_swin,
    [PE_HF_BEIT] = pe_hf_beit,
};

/* In BERT's family a word chooses the kind: Jina's ALiBi, ESM's RoPE, or distances with a table for keys. */
static enum pe_status read_table_or_other(struct pe_hf_reader *r)
{
    const char *type = "absolute";
    enum pe_status status = pe_hf_word(&r->config, "position_embedding_type", &type, r->err);
    if (status || strcmp(type, "absolute") == 0)
        return status ? status : pe_hf_learned(r);
    if (pe_is_among("rotary|rope", type))
        return pe_hf_rope(r);
    if (strcmp(type, "alibi") == 0)
        return pe_hf_alibi(r);
    if (pe_is_among("relative_key|relative_key_query", type))
        return pe_hf_relative_key(r, type);
    return pe_hf_wrong(&r->config, pe_hf_find(&r->config, "position_embedding_type"),
                       "absolute, rotary, alibi, relative_key, relative_key_query", r->err);
}

static enum pe_status read_kind(struct pe_hf_reader *r)
{
    return r->model->kind == PE_HF_LEARNED ? read_table_or_other(r) : kinds[r->model->kind](r);
}

/* Models that are not rotary have one layer type, unless their row names several. */
static enum pe_status check_layer_type(const struct pe_hf_reader *r)
{
    const char *layers = r->model->layers;
    bool usual = !layers && r->layer_type && strcmp(r->layer_type, "full_attention") == 0;
    if (r->model->kind == PE_HF_ROPE || !r->layer_type || usual || pe_is_among(layers, r->layer_type))
        return PE_OK;
    if (layers)
        return pe_fail(r->err, "/layer_type", "layer_type is \"%.40s\"; model_type \"%.64s\" has %s", r->layer_type,
                       r->model_type, layers);
    return pe_fail(r->err, "/layer_type",
                   "layer_type is \"%.40s\"; layers of model_type \"%.64s\" do not differ: leave it out", r->layer_type,
                   r->model_type);
}

static void note_model(struct pe_hf_marks *marks, const struct pe_hf_reader *r)
{
    if (!marks)
        return;
    marks->model_type = r->model_type;
    marks->has_row = r->model->types;
}

enum pe_status pe_hf_config_read(const struct pe_value *config, const char *layer_type, struct pe_model_fields *out,
                                 struct pe_error *err)
{
    return pe_hf_config_read_marked(config, layer_type, out, NULL, err);
}

enum pe_status pe_hf_config_read_marked(const struct pe_value *config, const char *layer_type,
                                        struct pe_model_fields *out, struct pe_hf_marks *marks, struct pe_error *err)
{
    struct pe_hf_reader r = {.layer_type = layer_type, .out = out, .err = err};
    r.config = (struct pe_hf_place){.object = config, .at = "/hf_config", .marks = marks};
    r.around = r.config;
    out->n = 0;
    if (config->kind != PE_OBJECT)
        return pe_fail(err, "/hf_config", "hf_config is not an object; allowed: a model's config.json as an object");
    pe_hf_mark_seen(marks, config, r.config.at);
    enum pe_status status = descend(&r);
    if (!status)
        status = find_model(&r);
    if (!status) {
        note_model(marks, &r);
        status = check_layer_type(&r);
    }
    return status ? status : read_kind(&r);
}
