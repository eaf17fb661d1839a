/* TransformerEngine: RotaryPositionEmbedding. Positions are divided by a factor that is an integer. Source:
 * TransformerEngine, pytorch/attention/rope.py, as stored. */
#include "core/models/targets/targets.h"

#include <math.h>

static const char *const classes[] = {"RotaryPositionEmbedding", NULL};

struct transformer_engine {
    int class;
    int64_t dim, seq_len_interpolation_factor;
    double rotary_percent, rotary_base;
    bool interleaved;
};

static const struct pe_param members[] = {
    PE_T_CHOICE(transformer_engine, class, "class", classes),
    PE_T_COUNT(transformer_engine, dim, "dim", PE_UNSET, 4096),
    PE_T_NUMBER(transformer_engine, rotary_percent, "rotary_percent", 1, 0, 1),
    PE_T_COUNT(transformer_engine, seq_len_interpolation_factor, "seq_len_interpolation_factor", 1, PE_T_FACTOR_MAX),
    PE_T_NUMBER(transformer_engine, rotary_base, "rotary_base", 10000, PE_T_BASE_MIN, PE_T_BASE_MAX),
    PE_T_FLAG(transformer_engine, interleaved, "interleaved", false),
    PE_P_END,
};

static void transformer_engine_say(struct pe_saying *s)
{
    bool is_linear = pe_same(s->rule, "linear");
    pe_say_word(&s->value, "class", classes[0]);
    pe_say_integer(&s->value, "dim", s->head_dim);
    pe_say_real(&s->value, "rotary_percent", s->rotary_dim < s->head_dim && !s->is_latent ? pe_saying_share(s) : 1);
    if (is_linear)
        pe_say_integer(&s->value, "seq_len_interpolation_factor", fmax(1, round(s->factor)));
    else
        pe_say_null(&s->value, "seq_len_interpolation_factor");
    pe_say_real(&s->value, "rotary_base", pe_saying_base(s));
    pe_say_flag(&s->value, "interleaved", !s->is_half);
    s->layout = s->is_half ? "half" : "interleaved";
}

static enum pe_status transformer_engine_read(const struct pe_hearing *h, const void *told)
{
    const struct transformer_engine *v = told;
    struct pe_heard heard = {.h = h};
    if (v->dim != PE_UNSET_INT)
        pe_hf_put_integer(h->out, "head_dim", v->dim);
    if (v->rotary_percent != 1)
        pe_hf_put_number(h->out, "partial_rotary_factor", v->rotary_percent);
    pe_hf_put_number(h->out, "base", v->rotary_base);
    pe_hf_put_word(h->out, "layout", v->interleaved ? "interleaved" : "half");
    if (v->seq_len_interpolation_factor != 1) {
        pe_hear_word(&heard, "type", "linear");
        pe_hear_number(&heard, "factor", (double)v->seq_len_interpolation_factor);
        pe_hear_done(&heard);
    }
    return PE_OK;
}

const struct pe_target pe_target_transformer_engine = {
    .info = {.name = "transformer_engine",
             .about = {"TransformerEngine", "a call of TransformerEngine"},
             .certainty = "code",
             .source = "transformer_engine",
             .form = PE_TARGET_PYTHON,
             .members = members},
    .label = "TransformerEngine",
    .bytes = sizeof(struct transformer_engine),
    .carries = "head_dim|share|layout",
    .say = transformer_engine_say,
    .read = transformer_engine_read,
};
