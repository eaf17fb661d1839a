/* rotary-embedding-torch: RotaryEmbedding of the rotated channels, neighbours paired; custom_freqs are any frequencies,
 * stored as f32. Source: rotary-embedding-torch 8bb4643d1c. */
#include "core/models/targets/targets.h"

static const char *const classes[] = {"RotaryEmbedding", NULL};

struct rotary_embedding_torch {
    int class;
    int64_t dim;
    double theta, interpolate_factor, theta_rescale_factor;
    struct pe_reals custom_freqs;
};

static const struct pe_param members[] = {
    PE_T_CHOICE(rotary_embedding_torch, class, "class", classes),
    PE_T_COUNT(rotary_embedding_torch, dim, "dim", PE_UNSET, 4096),
    PE_T_NUMBER(rotary_embedding_torch, theta, "theta", 10000, PE_T_BASE_MIN, PE_T_BASE_MAX),
    PE_T_NUMBER(rotary_embedding_torch, interpolate_factor, "interpolate_factor", 1, PE_T_FACTOR_MIN, PE_T_FACTOR_MAX),
    PE_T_NUMBER(rotary_embedding_torch, theta_rescale_factor, "theta_rescale_factor", 1, PE_T_FACTOR_MIN,
                PE_T_FACTOR_MAX),
    PE_T_ROW(rotary_embedding_torch, custom_freqs, "custom_freqs", REALS, struct pe_reals, .min = -1e6, .max = 1e6),
    PE_P_END,
};

static void say_freqs(struct pe_saying *s)
{
    double *w = pe_values_room(s->values, (s->kind.n + 1) * sizeof *w);
    s->failed |= !w;
    for (size_t c = 0; w && c < s->kind.n; c++)
        w[c] = (double)(float)s->kind.w[c];
    if (w)
        pe_say_reals(&s->value, "custom_freqs", w, s->kind.n);
}

static void rotary_embedding_torch_say(struct pe_saying *s)
{
    pe_say_word(&s->value, "class", classes[0]);
    pe_say_integer(&s->value, "dim", s->rotary_dim);
    pe_say_real(&s->value, "theta", s->base);
    pe_say_real(&s->value, "interpolate_factor", pe_same(s->rule, "linear") ? s->factor : 1);
    pe_say_real(&s->value, "theta_rescale_factor", pe_same(s->rule, "ntk") ? s->factor : 1);
    bool is_plain = pe_is_among("default|linear|ntk", s->rule) && pe_config_at(s->config, "inv_freq").kind == PE_NULL &&
                    pe_config_at(s->config, "scaling.divisors").kind == PE_NULL;
    if (!is_plain)
        say_freqs(s);
}

static enum pe_status rotary_embedding_torch_read(const struct pe_hearing *h, const void *told)
{
    const struct rotary_embedding_torch *v = told;
    if (v->dim != PE_UNSET_INT)
        pe_hf_put_integer(h->out, "rotary_dim", v->dim);
    if (!v->custom_freqs.n)
        return pe_hear_two_factors(h, v->theta, (double)v->dim, v->interpolate_factor, v->theta_rescale_factor);
    if (v->interpolate_factor != 1)
        return pe_hear_wrong(h, "interpolate_factor", "interpolate_factor beside custom_freqs; divide these instead");
    pe_hf_put(h->out, "inv_freq",
              (struct pe_value){.kind = PE_ARRAY, .from_text = true, .array = v->custom_freqs.array});
    return PE_OK;
}

const struct pe_target pe_target_rotary_embedding_torch = {
    .info = {.name = "rotary_embedding_torch",
             .about = {"rotary-embedding-torch", "a call of rotary-embedding-torch"},
             .certainty = "code",
             .source = "rotary-embedding-torch 8bb4643",
             .form = PE_TARGET_PYTHON,
             .members = members},
    .label = "rotary-embedding-torch",
    .bytes = sizeof(struct rotary_embedding_torch),
    .carries = "rotary_dim",
    .layout = "interleaved",
    .say = rotary_embedding_torch_say,
    .read = rotary_embedding_torch_read,
};
