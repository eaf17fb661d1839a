/* exllamav2: fields of its config object, on top of what it reads from the model's config.json: a linear factor, and
 * the alpha of ntk. Source: exllamav2 config.py, as stored. */
#include "core/models/targets/targets.h"

struct exllamav2 {
    double rotary_embedding_base, scale_pos_emb, scale_alpha_value;
};

static const struct pe_param members[] = {
    PE_T_NUMBER(exllamav2, rotary_embedding_base, "rotary_embedding_base", 10000, PE_T_BASE_MIN, PE_T_BASE_MAX),
    PE_T_NUMBER(exllamav2, scale_pos_emb, "scale_pos_emb", 1, PE_T_FACTOR_MIN, PE_T_FACTOR_MAX),
    PE_T_NUMBER(exllamav2, scale_alpha_value, "scale_alpha_value", 1, PE_T_FACTOR_MIN, PE_T_FACTOR_MAX),
    PE_P_END,
};

/* The exponent of alpha is that of the whole head. */
static void exllamav2_say(struct pe_saying *s)
{
    bool is_ntk = pe_same(s->rule, "ntk"), is_alpha = is_ntk && s->rotary_dim == s->head_dim;
    pe_say_real(&s->value, "rotary_embedding_base", is_alpha ? s->base : pe_saying_base(s));
    pe_say_real(&s->value, "scale_pos_emb", pe_same(s->rule, "linear") ? s->factor : 1);
    pe_say_real(&s->value, "scale_alpha_value", is_alpha ? s->factor : 1);
}

static enum pe_status exllamav2_read(const struct pe_hearing *h, const void *told)
{
    const struct exllamav2 *v = told;
    return pe_hear_two_factors(h, v->rotary_embedding_base, pe_beside(h, "head_dim", 0), v->scale_pos_emb,
                               v->scale_alpha_value);
}

const struct pe_target pe_target_exllamav2 = {
    .info = {.name = "exllamav2",
             .about = {"exllamav2", "fields of exllamav2's config object"},
             .certainty = "code",
             .source = "exllamav2 config.py",
             .form = PE_TARGET_LINES,
             .called = "config",
             .members = members},
    .label = "exllamav2",
    .bytes = sizeof(struct exllamav2),
    .is_beside_a_model = true,
    .say = exllamav2_say,
    .read = exllamav2_read,
};
