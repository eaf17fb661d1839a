/* The weights that a request can use, and their names in public checkpoints. */
#include "core/models/models.h"
#include "core/request/request.h"
#include "core/operation.h"
#include "core/scheme.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- Names in public checkpoints ---- */

/* Only tensors whose layout in the file fits our formulas. XLNet's r [d_model, H, head_dim], Transformer-XL's
 * qkv_net and DeBERTa v1's in_proj would have to be transposed or cut first. */
static const struct {
    const char *scheme, *input, *names;
    const char *beside; /* without this field the scheme refuses the tensor, so it is not loaded */
} rows[] = {
    {"t5", "table", "relative_attention_bias.weight", NULL}, /* T5's, MPNet's, WavLM's */
    {"deberta", "rel_embeddings", "encoder.rel_embeddings.weight", NULL},
    {"deberta", "norm_weight", "encoder.LayerNorm.weight", NULL},
    {"deberta", "norm_bias", "encoder.LayerNorm.bias", NULL},
    {"deberta", "w_q", "attention.self.query_proj.weight", NULL},
    {"deberta", "w_k", "attention.self.key_proj.weight", NULL},
    {"deberta", "w_v", "attention.self.value_proj.weight", NULL},
    {"deberta", "b_q", "attention.self.query_proj.bias|attention.self.q_bias", NULL},
    {"deberta", "b_k", "attention.self.key_proj.bias", NULL},
    {"deberta", "b_v", "attention.self.value_proj.bias|attention.self.v_bias", NULL},
    {"deberta", "w_pos_q", "attention.self.pos_query_proj.weight|attention.self.pos_q_proj.weight", NULL},
    {"deberta", "w_pos_k", "attention.self.pos_key_proj.weight|attention.self.pos_proj.weight", NULL},
    {"deberta", "b_pos_q", "attention.self.pos_query_proj.bias|attention.self.pos_q_proj.bias", NULL},
    {"deberta", "b_pos_k", "attention.self.pos_key_proj.bias", NULL},
    {"shaw", "rel_k", "distance_embedding.weight", NULL}, /* BERT's */
    {"xlnet", "u", "rel_attn.r_w_bias", NULL},
    {"xlnet", "v_bias", "rel_attn.r_r_bias", NULL},
    {"xlnet", "seg_embed", "rel_attn.seg_embed", "token_type_ids"},
    {"xlnet", "r_s_bias", "rel_attn.r_s_bias", "token_type_ids"},
    {"transformer_xl", "u", "r_w_bias", NULL},
    {"transformer_xl", "v_bias", "r_r_bias", NULL},
    {"transformer_xl", "w_r", "dec_attn.r_net.weight", NULL},
    {"swin", "table", "relative_position_bias_table", NULL},
    {"beit", "table", "relative_position_bias_table", NULL},
    {"swinv2", "w1", "cpb_mlp.0.weight", NULL},
    {"swinv2", "b1", "cpb_mlp.0.bias", NULL},
    {"swinv2", "w2", "cpb_mlp.2.weight", NULL},
    {"swinv2", "logit_scale", "logit_scale", NULL},
};

const char *pe_weight_elsewhere(const char *scheme, const struct pe_request *request, const char *input)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].scheme, scheme) == 0 && strcmp(rows[i].input, input) == 0)
            return !rows[i].beside || pe_request_has(request, rows[i].beside) ? rows[i].names : NULL;
    return NULL;
}

static void add_name(struct pe_weight_name *names, size_t *n, const struct pe_request *request, const char *scheme,
                     const char *input)
{
    assert(*n < PE_WEIGHT_NAMES_MAX);
    names[(*n)++] = (struct pe_weight_name){input, pe_weight_elsewhere(scheme, request, input)};
}

static size_t list(const struct pe_scheme *scheme, const struct pe_request *request, struct pe_weight_name *names)
{
    const struct pe_scheme_info *info = &scheme->info;
    const struct pe_operation *operation = pe_operation_get(request->operation);
    size_t n = 0;
    for (const struct pe_input_row *row = info->inputs; row && row->name; row++)
        if (pe_weights_takes(row, operation))
            add_name(names, &n, request, info->name, row->name);
    for (const struct pe_input_row *row = operation->info.inputs; row && operation->takes_weight && row->name; row++)
        if (operation->takes_weight(scheme, request, row->name))
            add_name(names, &n, request, info->name, row->name);
    return n;
}

enum pe_status pe_request_weights(const struct pe_request *request, const struct pe_scheme_info **scheme,
                                  struct pe_weight_name *names, size_t *n, struct pe_failure *err)
{
    struct pe_inheritance *model = calloc(1, sizeof *model);
    enum pe_status status = model ? pe_inherit(model, request, err) : pe_no_memory(err);
    if (!status) {
        *scheme = &model->scheme->info;
        *n = list(model->scheme, request, names);
    }
    free(model);
    return status;
}
