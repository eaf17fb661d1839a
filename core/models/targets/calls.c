/* Classes of Python that are called with a scheme's numbers: torchtune, TransformerEngine, x-transformers,
 * rotary-embedding-torch. */
#include "core/models/targets/targets.h"

#include <math.h>

enum { PLAIN, LLAMA3, QWEN2 };
static const char *const torchtune_classes[] = {[PLAIN] = "RotaryPositionalEmbeddings",
                                                [LLAMA3] = "Llama3ScaledRoPE",
                                                [QWEN2] = "Qwen2RotaryPositionalEmbeddings",
                                                NULL};

struct torchtune {
    int class;
    int64_t dim, max_seq_len, old_context_len;
    double base, scale_factor, low_freq_factor, high_freq_factor;
};

#define WHEN_LLAMA3 .when = "class=Llama3ScaledRoPE"

static const struct pe_param torchtune_members[] = {
    PE_T_CHOICE(torchtune, class, "class", torchtune_classes),
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
    pe_say_word(&s->value, "class", torchtune_classes[class]);
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
             .members = torchtune_members},
    .label = "torchtune",
    .bytes = sizeof(struct torchtune),
    .carries = "head_dim|rotary_dim|rotary_offset|layout",
    .say = torchtune_say,
    .read = torchtune_read,
};

/* ---- TransformerEngine ---- */

/* TransformerEngine: RotaryPositionEmbedding. Positions are divided by a factor that is an integer. Source:
 * TransformerEngine, pytorch/attention/rope.py, as stored. */

static const char *const transformer_engine_classes[] = {"RotaryPositionEmbedding", NULL};

struct transformer_engine {
    int class;
    int64_t dim, seq_len_interpolation_factor;
    double rotary_percent, rotary_base;
    bool interleaved;
};

static const struct pe_param transformer_engine_members[] = {
    PE_T_CHOICE(transformer_engine, class, "class", transformer_engine_classes),
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
    pe_say_word(&s->value, "class", transformer_engine_classes[0]);
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
             .members = transformer_engine_members},
    .label = "TransformerEngine",
    .bytes = sizeof(struct transformer_engine),
    .carries = "head_dim|share|layout",
    .say = transformer_engine_say,
    .read = transformer_engine_read,
};

/* ---- x-transformers ---- */

/* x-transformers: RotaryEmbedding of the rotated channels, neighbours paired. Positions are divided by
 * interpolation_factor, and the base grows by base_rescale_factor^(r/(r - 2)). Source: x-transformers 9252ed7838. */

static const char *const x_transformers_classes[] = {"RotaryEmbedding", NULL};

struct x_transformers {
    int class;
    int64_t dim;
    double base, interpolation_factor, base_rescale_factor;
};

static const struct pe_param x_transformers_members[] = {
    PE_T_CHOICE(x_transformers, class, "class", x_transformers_classes),
    PE_T_COUNT(x_transformers, dim, "dim", PE_UNSET, 4096),
    PE_T_NUMBER(x_transformers, base, "base", 10000, PE_T_BASE_MIN, PE_T_BASE_MAX),
    PE_T_NUMBER(x_transformers, interpolation_factor, "interpolation_factor", 1, PE_T_FACTOR_MIN, PE_T_FACTOR_MAX),
    PE_T_NUMBER(x_transformers, base_rescale_factor, "base_rescale_factor", 1, PE_T_FACTOR_MIN, PE_T_FACTOR_MAX),
    PE_P_END,
};

static void x_transformers_say(struct pe_saying *s)
{
    pe_say_word(&s->value, "class", x_transformers_classes[0]);
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
             .members = x_transformers_members},
    .label = "x-transformers",
    .bytes = sizeof(struct x_transformers),
    .carries = "rotary_dim",
    .layout = "interleaved",
    .say = x_transformers_say,
    .read = x_transformers_read,
};

/* ---- rotary-embedding-torch ---- */

/* rotary-embedding-torch: RotaryEmbedding of the rotated channels, neighbours paired; custom_freqs are any frequencies,
 * stored as f32. Source: rotary-embedding-torch 8bb4643d1c. */

static const char *const rotary_embedding_torch_classes[] = {"RotaryEmbedding", NULL};

struct rotary_embedding_torch {
    int class;
    int64_t dim;
    double theta, interpolate_factor, theta_rescale_factor;
    struct pe_reals custom_freqs;
};

static const struct pe_param rotary_embedding_torch_members[] = {
    PE_T_CHOICE(rotary_embedding_torch, class, "class", rotary_embedding_torch_classes),
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
    pe_say_word(&s->value, "class", rotary_embedding_torch_classes[0]);
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
             .members = rotary_embedding_torch_members},
    .label = "rotary-embedding-torch",
    .bytes = sizeof(struct rotary_embedding_torch),
    .carries = "rotary_dim",
    .layout = "interleaved",
    .say = rotary_embedding_torch_say,
    .read = rotary_embedding_torch_read,
};

/* ---- torchtune ---- */

/* torchtune: a class for neighbours, one for Llama 3.1's rule, one for Qwen2's halves; each turns the whole head.
 * Source: torchtune bd2a0fc7c314, modules/position_embeddings.py, models/llama3_1, models/qwen2. */
