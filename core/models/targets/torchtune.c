/* torchtune: a class for neighbours, one for Llama 3.1's rule, one for Qwen2's halves; each turns the whole head.
 * Source: torchtune bd2a0fc7c314, modules/position_embeddings.py, models/llama3_1, models/qwen2. */
#include "core/models/targets/targets.h"

enum { PLAIN, LLAMA3, QWEN2 };
static const char *const classes[] = {[PLAIN] = "RotaryPositionalEmbeddings",
                                      [LLAMA3] = "Llama3ScaledRoPE",
                                      [QWEN2] = "Qwen2RotaryPositionalEmbeddings",
                                      NULL};

struct torchtune {
    int class;
    int64_t dim, max_seq_len, old_context_len;
    double base, scale_factor, low_freq_factor, high_freq_factor;
};

#define WHEN_LLAMA3 .when = "class=Llama3ScaledRoPE"

static const struct pe_param members[] = {
    PE_T_CHOICE(torchtune, class, "class", classes),
    PE_T_COUNT(torchtune, dim, "dim", PE_UNSET, 4096),
    PE_T_COUNT(torchtune, max_seq_len, "max_seq_len", 4096, PE_T_LENGTH_MAX),
    PE_T_NUMBER(torchtune, base, "base", PE_UNSET, PE_T_BASE_MIN, PE_T_BASE_MAX),
    PE_T_ROW(torchtune, scale_factor, "scale_factor", REAL, double, .fallback = 8, .min = PE_T_FACTOR_MIN,
             .max = PE_T_FACTOR_MAX, WHEN_LLAMA3),
    PE_T_ROW(torchtune, low_freq_factor, "low_freq_factor", REAL, double, .fallback = 1, .min = PE_T_FACTOR_MIN,
             .max = PE_T_FACTOR_MAX, WHEN_LLAMA3),
    PE_T_ROW(torchtune, high_freq_factor, "high_freq_factor", REAL, double, .fallback = 4, .min = PE_T_FACTOR_MIN,
             .max = PE_T_FACTOR_MAX, WHEN_LLAMA3),
    PE_T_ROW(torchtune, old_context_len, "old_context_len", INT, int64_t, .fallback = 8192, .min = 1,
             .max = PE_T_LENGTH_MAX, WHEN_LLAMA3),
    PE_P_END,
};

static void torchtune_say(struct pe_saying *s)
{
    int class = pe_same(s->rule, "llama3") ? LLAMA3 : s->is_half ? QWEN2 : PLAIN;
    pe_say_word(&s->value, "class", classes[class]);
    pe_say_integer(&s->value, "dim", s->head_dim);
    if (pe_saying_max(s) > 0)
        pe_say_number(&s->value, "max_seq_len", pe_saying_max(s));
    if (class == QWEN2)
        pe_say_real(&s->value, "base", pe_saying_base(s));
    else
        pe_say_number(&s->value, "base", pe_saying_base(s));
    if (class == LLAMA3) {
        pe_say_number(&s->value, "scale_factor", s->factor);
        pe_say_number(&s->value, "low_freq_factor", pe_saying_number(s, "scaling.low_freq_factor", 1));
        pe_say_number(&s->value, "high_freq_factor", pe_saying_number(s, "scaling.high_freq_factor", 4));
        pe_say_number(&s->value, "old_context_len", s->original);
    }
    s->layout = class == QWEN2 ? "half" : "interleaved";
}

static enum pe_status torchtune_read(const struct pe_hearing *h, const void *told)
{
    static const double bases[] = {[PLAIN] = 10000, [LLAMA3] = 500000, [QWEN2] = 1000000};
    const struct torchtune *v = told;
    struct pe_heard heard = {.h = h};
    if (v->dim != PE_UNSET_INT)
        pe_hf_put_integer(h->out, "head_dim", v->dim);
    pe_hf_put_number(h->out, "base", isnan(v->base) ? bases[v->class] : v->base);
    pe_hf_put_word(h->out, "layout", v->class == QWEN2 ? "half" : "interleaved");
    if (v->class == LLAMA3) {
        pe_hear_word(&heard, "type", "llama3");
        pe_hear_number(&heard, "factor", v->scale_factor);
        pe_hear_number(&heard, "low_freq_factor", v->low_freq_factor);
        pe_hear_number(&heard, "high_freq_factor", v->high_freq_factor);
        pe_hear_number(&heard, "original_max_position_embeddings", (double)v->old_context_len);
        pe_hear_done(&heard);
    }
    return PE_OK;
}

const struct pe_target pe_target_torchtune = {
    .info = {.name = "torchtune",
             .about = {"torchtune", "a call of torchtune"},
             .certainty = "code",
             .source = "torchtune bd2a0fc",
             .form = PE_TARGET_PYTHON,
             .members = members},
    .label = "torchtune",
    .bytes = sizeof(struct torchtune),
    .carries = "head_dim|rotary_dim|rotary_offset|layout",
    .say = torchtune_say,
    .read = torchtune_read,
};
