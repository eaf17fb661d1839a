/* x-transformers: RotaryEmbedding of the rotated channels, neighbours paired. Positions are divided by
 * interpolation_factor, and the base grows by base_rescale_factor^(r/(r - 2)). Source: x-transformers 9252ed7838. */
#include "core/models/targets/targets.h"

static const char *const classes[] = {"RotaryEmbedding", NULL};

struct x_transformers {
    int class;
    int64_t dim;
    double base, interpolation_factor, base_rescale_factor;
};

static const struct pe_param members[] = {
    PE_T_CHOICE(x_transformers, class, "class", classes),
    PE_T_COUNT(x_transformers, dim, "dim", PE_UNSET, 4096),
    PE_T_NUMBER(x_transformers, base, "base", 10000, PE_T_BASE_MIN, PE_T_BASE_MAX),
    PE_T_NUMBER(x_transformers, interpolation_factor, "interpolation_factor", 1, PE_T_FACTOR_MIN, PE_T_FACTOR_MAX),
    PE_T_NUMBER(x_transformers, base_rescale_factor, "base_rescale_factor", 1, PE_T_FACTOR_MIN, PE_T_FACTOR_MAX),
    PE_P_END,
};

static void x_transformers_say(struct pe_saying *s)
{
    pe_say_word(&s->value, "class", classes[0]);
    pe_say_integer(&s->value, "dim", s->rotary_dim);
    pe_say_real(&s->value, "base", s->base);
    pe_say_real(&s->value, "interpolation_factor", pe_same(s->rule, "linear") ? s->factor : 1);
    pe_say_real(&s->value, "base_rescale_factor", pe_same(s->rule, "ntk") ? s->factor : 1);
}

static enum pe_status x_transformers_read(const struct pe_hearing *h, const void *told)
{
    const struct x_transformers *v = told;
    if (v->dim != PE_UNSET_INT)
        pe_hf_put_integer(h->out, "rotary_dim", v->dim);
    return pe_hear_two_factors(h, v->base, (double)v->dim, v->interpolation_factor, v->base_rescale_factor);
}

const struct pe_target pe_target_x_transformers = {
    .info = {.name = "x_transformers",
             .about = {"x-transformers", "a call of x-transformers"},
             .certainty = "code",
             .source = "x-transformers 9252ed7",
             .form = PE_TARGET_PYTHON,
             .members = members},
    .label = "x-transformers",
    .bytes = sizeof(struct x_transformers),
    .carries = "rotary_dim",
    .layout = "interleaved",
    .say = x_transformers_say,
    .read = x_transformers_read,
};
