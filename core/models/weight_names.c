/* What public checkpoints call the weights of our schemes (BR §15), and which of them a request can take. */
#include "core/attention/attend.h"
#include "core/models/inherit.h"
#include "core/scheme.h"
#include "core/request/weights.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Only tensors that stand in the file as our formulas want them: XLNet's r [d_model, H, head_dim], Transformer-XL's
 * qkv_net and DeBERTa v1's in_proj would have to be turned or cut first. */
static const struct {
    const char *scheme, *input, *names;
    const char *beside; /* a field without which the scheme refuses the tensor; it is then left in its file */
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

static bool has_field(const struct pe_request *request, const char *name)
{
    for (size_t i = 0; i < request->n_fields; i++)
        if (strcmp(request->fields[i].name, name) == 0)
            return true;
    return false;
}

static const char *elsewhere(const char *scheme, const struct pe_request *request, const char *input)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].scheme, scheme) == 0 && strcmp(rows[i].input, input) == 0)
            return !rows[i].beside || has_field(request, rows[i].beside) ? rows[i].names : NULL;
    return NULL;
}

/* Projections make queries, keys and values out of x; one scheme projects its own table with two of them. */
static bool takes_projection(const struct pe_scheme *scheme, const struct pe_request *request, const char *name)
{
    if (strncmp(name, "w_", 2) != 0 && strncmp(name, "b_", 2) != 0)
        return false;
    bool for_table = scheme->attend && scheme->attend->uses_projections && name[2] != 'v';
    return for_table || has_field(request, "x") || has_field(request, "tokens");
}

static void add(struct pe_weight_name *names, size_t *n, const struct pe_request *request, const char *scheme,
                const char *input)
{
    assert(*n < PE_WEIGHT_NAMES_MAX);
    names[(*n)++] = (struct pe_weight_name){input, elsewhere(scheme, request, input)};
}

static size_t list(const struct pe_scheme *scheme, const struct pe_request *request, struct pe_weight_name *names)
{
    const struct pe_scheme_info *info = &scheme->info;
    size_t n = 0;
    for (const struct pe_input_row *row = info->inputs; row && row->name; row++)
        if (pe_weights_takes(row, request->operation))
            add(names, &n, request, info->name, row->name);
    if (request->operation == PE_ATTEND)
        for (const struct pe_input_row *row = pe_attention_inputs(); row->name; row++)
            if (takes_projection(scheme, request, row->name))
                add(names, &n, request, info->name, row->name);
    return n;
}

enum pe_status pe_request_weights(const struct pe_request *request, const struct pe_scheme_info **scheme,
                                  struct pe_weight_name *names, size_t *n, struct pe_error *err)
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
