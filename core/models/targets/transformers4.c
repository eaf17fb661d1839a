/* transformers 4.56 and 4.57: fields of a config.json. The base is beside rope_scaling, and so is the original length
 * of longrope. Source: transformers, modeling_rope_utils.py at 3927ffed31e3 (ROPE_INIT_FUNCTIONS). */
#include "core/models/targets/targets.h"

#include <math.h>

struct transformers4 {
    double rope_theta;
    const struct pe_value *rope_scaling;
    int64_t head_dim;
    double partial_rotary_factor;
    int64_t max_position_embeddings, original_max_position_embeddings;
};

static const struct pe_param members[] = {
    PE_T_NUMBER(transformers4, rope_theta, "rope_theta", 10000, PE_T_BASE_MIN, PE_T_BASE_MAX),
    PE_T_ANY(transformers4, rope_scaling, "rope_scaling"),
    PE_T_COUNT(transformers4, head_dim, "head_dim", PE_UNSET, 4096),
    PE_T_NUMBER(transformers4, partial_rotary_factor, "partial_rotary_factor", 1, 0, 1),
    PE_T_COUNT(transformers4, max_position_embeddings, "max_position_embeddings", 0, PE_T_LENGTH_MAX),
    PE_T_COUNT(transformers4, original_max_position_embeddings, "original_max_position_embeddings", 0, PE_T_LENGTH_MAX),
    PE_P_END,
};

static const struct pe_target_object object = {
    .rules = "linear|dynamic|yarn|longrope|llama3", .unread = "attn_factor", .has_sections = true};

static void transformers4_say(struct pe_saying *s)
{
    struct pe_words scaling = pe_words_new(s);
    bool is_none = !pe_is_among(object.rules, s->rule) &&
                   !pe_is_among("mrope|mrope_interleaved", pe_config_word(s->config, "channels"));
    pe_say_real(&s->value, "rope_theta", pe_saying_base(s));
    pe_say_rope(&scaling, &object);
    if (is_none)
        pe_say_null(&s->value, "rope_scaling");
    else
        pe_say_object(&s->value, "rope_scaling", &scaling);
    pe_say_integer(&s->value, "head_dim", s->head_dim);
    if (s->rotary_dim < s->head_dim && !s->is_latent)
        pe_say_real(&s->value, "partial_rotary_factor", pe_saying_share(s));
    if (pe_saying_max(s) > 0)
        pe_say_number(&s->value, "max_position_embeddings", pe_saying_max(s));
    if (pe_same(s->rule, "longrope"))
        pe_say_number(&s->value, "original_max_position_embeddings", s->original);
}

static enum pe_status transformers4_read(const struct pe_hearing *h, const void *told)
{
    const struct transformers4 *v = told;
    if (v->head_dim != PE_UNSET_INT)
        pe_hf_put_integer(h->out, "head_dim", v->head_dim);
    if (v->partial_rotary_factor != 1)
        pe_hf_put_number(h->out, "partial_rotary_factor", v->partial_rotary_factor);
    return pe_hear_rope(h, "rope_scaling", v->rope_scaling, &object, v->rope_theta, (double)v->max_position_embeddings,
                        (double)v->original_max_position_embeddings);
}

const struct pe_target pe_target_transformers4 = {
    .info = {.name = "transformers4",
             .about = {"transformers 4", "fields of a config.json for transformers 4.56 and 4.57"},
             .certainty = "code",
             .source = "transformers 3927ffe",
             .form = PE_TARGET_JSON,
             .members = members},
    .label = "transformers 4",
    .bytes = sizeof(struct transformers4),
    .carries = "head_dim|share",
    .say = transformers4_say,
    .read = transformers4_read,
};
