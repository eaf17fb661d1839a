/* mlx-lm: initialize_rope. A factor on cos and sin is stated by mscale and mscale_all_dim, longrope takes its long list
 * at every length. Source: mlx-lm d78bf58e217c, models/rope_utils.py. */
#include "core/models/targets/targets.h"

struct mlx {
    int64_t dims, max_position_embeddings;
    double base;
    bool traditional;
    const struct pe_value *scaling_config;
};

static const struct pe_param members[] = {
    PE_T_COUNT(mlx, dims, "dims", PE_UNSET, 4096),
    PE_T_NUMBER(mlx, base, "base", 10000, PE_T_BASE_MIN, PE_T_BASE_MAX),
    PE_T_FLAG(mlx, traditional, "traditional", false),
    PE_T_ANY(mlx, scaling_config, "scaling_config"),
    PE_T_COUNT(mlx, max_position_embeddings, "max_position_embeddings", 0, PE_T_LENGTH_MAX),
    PE_P_END,
};

static const struct pe_target_object object = {.rules = "linear|yarn|longrope|llama3",
                                               .convention = "mlx",
                                               .unread = "factor|attention_factor|attn_factor|short_mscale|long_mscale",
                                               .has_length = true,
                                               .rounds_always = true,
                                               .magnitude = PE_MAGNITUDE_PAIR};

static void mlx_say(struct pe_saying *s)
{
    struct pe_words words = pe_words_new(s);
    pe_say_integer(&s->value, "dims", s->rotary_dim);
    pe_say_real(&s->value, "base", pe_saying_base(s));
    pe_say_flag(&s->value, "traditional", !s->is_half);
    pe_say_rope(&words, &object);
    if (pe_is_among(object.rules, s->rule))
        pe_say_object(&s->value, "scaling_config", &words);
    else
        pe_say_null(&s->value, "scaling_config");
    if (pe_saying_max(s) > 0)
        pe_say_number(&s->value, "max_position_embeddings", pe_saying_max(s));
    s->layout = s->is_half ? "half" : "interleaved";
}

static enum pe_status mlx_read(const struct pe_hearing *h, const void *told)
{
    const struct mlx *v = told;
    if (v->dims != PE_UNSET_INT)
        pe_hf_put_integer(h->out, "rotary_dim", v->dims);
    pe_hf_put_word(h->out, "layout", v->traditional ? "interleaved" : "half");
    return pe_hear_rope(h, "scaling_config", v->scaling_config, &object, v->base, (double)v->max_position_embeddings,
                        0);
}

const struct pe_target pe_target_mlx = {
    .info = {.name = "mlx",
             .about = {"mlx-lm", "a call of mlx-lm"},
             .certainty = "code",
             .source = "mlx-lm d78bf58",
             .form = PE_TARGET_PYTHON,
             .called = "initialize_rope",
             .members = members},
    .label = "mlx-lm",
    .bytes = sizeof(struct mlx),
    .carries = "rotary_dim|layout",
    .say = mlx_say,
    .read = mlx_read,
};
