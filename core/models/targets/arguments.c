/* Tools whose words are numbers of their own: flags of llama.cpp and the keys of its files, exllamav2's options,
 * arguments of Megatron-LM. */
#include "core/models/targets/targets.h"

#include <math.h>

enum { SCALE_NONE, SCALE_LINEAR, SCALE_YARN };
static const char *const scalings[] = {[SCALE_NONE] = "none", [SCALE_LINEAR] = "linear", [SCALE_YARN] = "yarn", NULL};

struct llama_cpp {
    int rope_scaling;
    double rope_scale, rope_freq_scale, rope_freq_base;
    int64_t yarn_orig_ctx;
    double yarn_ext_factor, yarn_attn_factor, yarn_beta_fast, yarn_beta_slow;
};

static const struct pe_param llama_cpp_members[] = {
    PE_T_ROW(llama_cpp, rope_scaling, "rope-scaling", WORD, int, .words = scalings, .fallback = PE_UNSET_WORD),
    PE_T_NUMBER(llama_cpp, rope_scale, "rope-scale", PE_UNSET, PE_T_FACTOR_MIN, PE_T_FACTOR_MAX),
    PE_T_NUMBER(llama_cpp, rope_freq_scale, "rope-freq-scale", PE_UNSET, PE_T_FACTOR_MIN, PE_T_FACTOR_MAX),
    PE_T_NUMBER(llama_cpp, rope_freq_base, "rope-freq-base", 10000, PE_T_BASE_MIN, PE_T_BASE_MAX),
    PE_T_COUNT(llama_cpp, yarn_orig_ctx, "yarn-orig-ctx", PE_UNSET, PE_T_LENGTH_MAX),
    PE_T_NUMBER(llama_cpp, yarn_ext_factor, "yarn-ext-factor", -1, -1, 1),
    PE_T_NUMBER(llama_cpp, yarn_attn_factor, "yarn-attn-factor", 1, -1, 1000),
    PE_T_NUMBER(llama_cpp, yarn_beta_fast, "yarn-beta-fast", 32, -1, 1e9),
    PE_T_NUMBER(llama_cpp, yarn_beta_slow, "yarn-beta-slow", 1, -1, 1e9),
    PE_P_END,
};

/* The scheme takes its default for 0, as transformers does; these tools divide by it. */
static enum pe_status check_betas(const struct pe_hearing *h, double fast, double slow)
{
    const char *member = fast == 0 ? "yarn-beta-fast" : "yarn-beta-slow";
    if (fast != 0 && slow != 0)
        return PE_OK;
    return pe_hear_wrong(h, member, "%s is 0, by which %s divides the length; give a number above 0", member,
                         h->target->label);
}

static void llama_cpp_say_yarn(struct pe_saying *s)
{
    double fast = pe_saying_number(s, "scaling.beta_fast", 32), slow = pe_saying_number(s, "scaling.beta_slow", 1),
           ext = pe_saying_number(s, "scaling.extrapolation_factor", 1);
    pe_say_number(&s->value, "yarn-orig-ctx", s->original);
    if (ext != 1)
        pe_say_real(&s->value, "yarn-ext-factor", ext);
    if (fast != 32)
        pe_say_real(&s->value, "yarn-beta-fast", fast);
    if (slow != 1)
        pe_say_real(&s->value, "yarn-beta-slow", slow);
}

/* A sliding kind of its own base has it in the file: no flag changes it. */
static void llama_cpp_say(struct pe_saying *s)
{
    bool has_rule = pe_is_among("linear|yarn", s->rule);
    pe_say_word(&s->value, "rope-scaling", has_rule ? s->rule : "none");
    if (has_rule)
        pe_say_real(&s->value, "rope-scale", s->factor);
    if (!s->is_local)
        pe_say_real(&s->value, "rope-freq-base", pe_saying_base(s));
    if (pe_same(s->rule, "yarn"))
        llama_cpp_say_yarn(s);
}

/* Below 0 an option is not given: the weight of the ramp is then 1 with yarn, and 0 else. */
static enum pe_status llama_cpp_read(const struct pe_hearing *h, const void *told)
{
    const struct llama_cpp *v = told;
    struct pe_heard heard = {.h = h};
    double scale = isnan(v->rope_scale) ? 1 / v->rope_freq_scale : v->rope_scale;
    bool is_yarn = v->rope_scaling == SCALE_YARN;
    if (!isnan(v->rope_scale) && !isnan(v->rope_freq_scale))
        return pe_hear_wrong(h, "rope-freq-scale",
                             "rope-scale and rope-freq-scale are one number and its inverse; give one");
    if (isnan(scale) || v->rope_scaling == SCALE_NONE) /* without the word a factor is linear's (common/arg.cpp) */
        scale = 1;
    if (is_yarn && v->yarn_orig_ctx == PE_UNSET_INT)
        return pe_hear_wrong(h, "yarn-orig-ctx", "yarn-orig-ctx is missing; the ends of yarn's ramp need it");
    if (is_yarn && check_betas(h, v->yarn_beta_fast, v->yarn_beta_slow))
        return h->err->status;
    pe_hf_put_number(h->out, "base", v->rope_freq_base);
    if (!is_yarn && scale == 1)
        return PE_OK;
    pe_hear_word(&heard, "type", is_yarn ? "yarn" : "linear");
    pe_hear_word(&heard, "convention", "ggml");
    pe_hear_number(&heard, "factor", scale);
    if (is_yarn) {
        pe_hear_number(&heard, "original_max_position_embeddings", (double)v->yarn_orig_ctx);
        pe_hear_number(&heard, "beta_fast", v->yarn_beta_fast < 0 ? 32 : v->yarn_beta_fast);
        pe_hear_number(&heard, "beta_slow", v->yarn_beta_slow < 0 ? 1 : v->yarn_beta_slow);
        if (v->yarn_ext_factor >= 0)
            pe_hear_number(&heard, "extrapolation_factor", v->yarn_ext_factor);
    }
    pe_hear_done(&heard);
    return PE_OK;
}

const struct pe_target pe_target_llama_cpp = {
    .info = {.name = "llama.cpp",
             .about = {"llama.cpp", "flags of llama.cpp's programs, beside a GGUF file"},
             .certainty = "code",
             .source = "llama.cpp 6c8dcaa",
             .form = PE_TARGET_SHELL,
             .members = llama_cpp_members,
             .reads_text = true},
    .label = "llama.cpp",
    .bytes = sizeof(struct llama_cpp),
    .is_beside_a_model = true,
    .say = llama_cpp_say,
    .read = llama_cpp_read,
};

/* ---- GGUF ---- */

/* The keys of a GGUF file, and the divisors of its frequencies, for an architecture of llama.cpp. Writing and reading
 * are in core/models/gguf. */

static void gguf_say(struct pe_saying *s)
{
    struct pe_failure err;
    struct pe_value keys;
    const struct pe_gguf_architecture *row = pe_gguf_architecture_find(s->architecture);
    struct pe_gguf_wish wish = {.architecture = s->architecture,
                                .kinds = s->kinds,
                                .n_kinds = s->n_kinds,
                                .length = s->length,
                                .window = s->window};
    pe_gguf_choose_kinds(&wish);
    if (!wish.full)
        return;
    if (pe_gguf_write(&wish, s->values, &keys, &err)) {
        s->failed = true;
        return;
    }
    s->value.fields = (struct pe_field *)(uintptr_t)keys.object.fields;
    s->value.n = keys.object.n;
    s->layout = row->is_half || pe_config_at(s->config, "mrope_section").kind != PE_NULL ? "half" : "interleaved";
}

static enum pe_status gguf_read(const struct pe_hearing *h, const void *told)
{
    (void)told;
    return pe_gguf_read(h->value, h->layer_type, h->out, h->err);
}

const struct pe_target pe_target_gguf = {
    .info = {.name = "gguf",
             .about = {"GGUF", "keys of a GGUF file, and the tensors that divide frequencies"},
             .certainty = "code",
             .source = "llama.cpp 6c8dcaa",
             .form = PE_TARGET_JSON},
    .label = "GGUF",
    .carries = "head_dim|rotary_dim|rotary_offset|layout|axes",
    .has_kinds = true,
    .say = gguf_say,
    .read = gguf_read,
};

/* ---- exllamav2 ---- */

/* exllamav2: fields of its config object, on top of what it reads from the model's config.json: a linear factor, and
 * the alpha of ntk. Source: exllamav2 config.py, as stored. */

struct exllamav2 {
    double rotary_embedding_base, scale_pos_emb, scale_alpha_value;
};

static const struct pe_param exllamav2_members[] = {
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
             .members = exllamav2_members},
    .label = "exllamav2",
    .bytes = sizeof(struct exllamav2),
    .is_beside_a_model = true,
    .say = exllamav2_say,
    .read = exllamav2_read,
};

/* ---- Megatron-LM ---- */

/* Megatron-LM: arguments. The base and the linear factor are integers, Llama 3's rule is that of 3.1 but for its
 * factor, and yarn turns the whole head, in halves. Source: Megatron-LM d98e8a64ddf3, training/arguments.py,
 * core/models/common/embeddings. */

enum { POSITIONS_ROPE, POSITIONS_YARN, POSITIONS_NONE };
static const char *const types[] = {
    [POSITIONS_ROPE] = "rope", [POSITIONS_YARN] = "yarn", [POSITIONS_NONE] = "none", NULL};

struct megatron {
    int position_embedding_type;
    int64_t rotary_base, kv_channels, interpolation;
    double rotary_percent;
    bool rotary_interleaved, use_rope_scaling, no_round;
    double rope_scaling_factor, rotary_scaling_factor, beta_fast, beta_slow, mscale, mscale_all_dim;
    int64_t original;
    const struct pe_value *no_rope_freq; /* which layers have no positions; those that have them are meant */
};

static const struct pe_param megatron_members[] = {
    PE_T_CHOICE(megatron, position_embedding_type, "position-embedding-type", types),
    PE_T_COUNT(megatron, rotary_base, "rotary-base", 10000, PE_T_BASE_MAX),
    PE_T_NUMBER(megatron, rotary_percent, "rotary-percent", 1, 0, 1),
    PE_T_COUNT(megatron, kv_channels, "kv-channels", PE_UNSET, 4096),
    PE_T_FLAG(megatron, rotary_interleaved, "rotary-interleaved", false),
    PE_T_COUNT(megatron, interpolation, "rotary-seq-len-interpolation-factor", 1, PE_T_FACTOR_MAX),
    PE_T_FLAG(megatron, use_rope_scaling, "use-rope-scaling", false),
    PE_T_NUMBER(megatron, rope_scaling_factor, "rope-scaling-factor", 8, PE_T_FACTOR_MIN, PE_T_FACTOR_MAX),
    PE_T_NUMBER(megatron, rotary_scaling_factor, "rotary-scaling-factor", 1, PE_T_FACTOR_MIN, PE_T_FACTOR_MAX),
    PE_T_COUNT(megatron, original, "yarn-original-max-position-embeddings", 4096, PE_T_LENGTH_MAX),
    PE_T_NUMBER(megatron, beta_fast, "yarn-beta-fast", 32, 0, 1e9),
    PE_T_NUMBER(megatron, beta_slow, "yarn-beta-slow", 1, 0, 1e9),
    PE_T_NUMBER(megatron, mscale, "mscale", 1, 0, 1000),
    PE_T_NUMBER(megatron, mscale_all_dim, "mscale-all-dim", 0, 0, 1000),
    PE_T_FLAG(megatron, no_round, "no-yarn-correction-range-round-to-int", false),
    PE_T_ANY(megatron, no_rope_freq, "no-rope-freq"),
    PE_P_END,
};

/* Llama 3.1's, which no argument changes. */
#define LOW_FACTOR 1
#define HIGH_FACTOR 4
#define LLAMA_LENGTH 8192

static void megatron_say_yarn(struct pe_saying *s)
{
    double k, l, fast = pe_saying_number(s, "scaling.beta_fast", 32),
                 slow = pe_saying_number(s, "scaling.beta_slow", 1);
    struct pe_value truncate = pe_config_at(s->config, "scaling.truncate");
    pe_saying_magnitudes(s, &k, &l);
    pe_say_real(&s->value, "rotary-scaling-factor", s->factor);
    pe_say_number(&s->value, "yarn-original-max-position-embeddings", s->original);
    if (fast != 32)
        pe_say_real(&s->value, "yarn-beta-fast", fast);
    if (slow != 1)
        pe_say_real(&s->value, "yarn-beta-slow", slow);
    pe_say_real(&s->value, "mscale", k);
    pe_say_real(&s->value, "mscale-all-dim", l);
    if (truncate.kind == PE_BOOLEAN && !truncate.boolean)
        pe_say_flag(&s->value, "no-yarn-correction-range-round-to-int", true);
    s->layout = "half";
}

static void megatron_say_rope(struct pe_saying *s)
{
    bool is_half = s->is_half;
    if (s->rotary_dim < s->head_dim && !s->is_latent)
        pe_say_real(&s->value, "rotary-percent", pe_saying_share(s));
    if (!is_half)
        pe_say_flag(&s->value, "rotary-interleaved", true);
    if (pe_same(s->rule, "linear"))
        pe_say_integer(&s->value, "rotary-seq-len-interpolation-factor", fmax(1, round(s->factor)));
    if (pe_same(s->rule, "llama3")) {
        pe_say_flag(&s->value, "use-rope-scaling", true);
        pe_say_real(&s->value, "rope-scaling-factor", s->factor);
    }
    s->layout = is_half ? "half" : "interleaved";
}

static void megatron_say(struct pe_saying *s)
{
    if (pe_same(s->scheme, "none")) {
        pe_say_word(&s->value, "position-embedding-type", "none");
        return;
    }
    bool is_yarn = pe_same(s->rule, "yarn");
    pe_say_word(&s->value, "position-embedding-type", is_yarn ? "yarn" : "rope");
    pe_say_integer(&s->value, "rotary-base", fmax(1, round(pe_saying_base(s))));
    pe_say_integer(&s->value, "kv-channels", s->head_dim);
    if (is_yarn)
        megatron_say_yarn(s);
    else
        megatron_say_rope(s);
    if (s->still_period)
        pe_say_integer(&s->value, "no-rope-freq", (double)s->still_period);
}

static void megatron_read_yarn(const struct pe_hearing *h, const struct megatron *v)
{
    struct pe_heard heard = {.h = h};
    pe_hear_word(&heard, "type", "yarn");
    pe_hear_number(&heard, "factor", v->rotary_scaling_factor);
    pe_hear_number(&heard, "original_max_position_embeddings", (double)v->original);
    pe_hear_number(&heard, "beta_fast", v->beta_fast);
    pe_hear_number(&heard, "beta_slow", v->beta_slow);
    if (v->mscale > 0)
        pe_hear_number(&heard, "mscale", v->mscale);
    if (v->mscale_all_dim > 0)
        pe_hear_number(&heard, "mscale_all_dim", v->mscale_all_dim);
    pe_hear_number(&heard, "attention_factor",
                   pe_magnitude_ratio(v->rotary_scaling_factor, v->mscale, v->mscale_all_dim));
    pe_hear_flag(&heard, "truncate", !v->no_round);
    pe_hear_done(&heard);
}

static void megatron_read_rope(const struct pe_hearing *h, const struct megatron *v)
{
    struct pe_heard heard = {.h = h};
    if (v->rotary_percent != 1)
        pe_hf_put_number(h->out, "partial_rotary_factor", v->rotary_percent);
    if (v->use_rope_scaling) {
        pe_hear_word(&heard, "type", "llama3");
        pe_hear_number(&heard, "factor", v->rope_scaling_factor);
        pe_hear_number(&heard, "low_freq_factor", LOW_FACTOR);
        pe_hear_number(&heard, "high_freq_factor", HIGH_FACTOR);
        pe_hear_number(&heard, "original_max_position_embeddings", LLAMA_LENGTH);
    } else if (v->interpolation != 1) {
        pe_hear_word(&heard, "type", "linear");
        pe_hear_number(&heard, "factor", (double)v->interpolation);
    }
    if (heard.n)
        pe_hear_done(&heard);
}

static enum pe_status megatron_read(const struct pe_hearing *h, const void *told)
{
    const struct megatron *v = told;
    if (v->position_embedding_type == POSITIONS_NONE) {
        pe_hf_put_word(h->out, "scheme", "none");
        return PE_OK;
    }
    if (v->use_rope_scaling && v->interpolation != 1)
        return pe_hear_wrong(h, "use-rope-scaling",
                             "use-rope-scaling and rotary-seq-len-interpolation-factor are two rules; give one");
    if (v->position_embedding_type == POSITIONS_YARN && check_betas(h, v->beta_fast, v->beta_slow))
        return h->err->status;
    if (v->kv_channels != PE_UNSET_INT)
        pe_hf_put_integer(h->out, "head_dim", v->kv_channels);
    pe_hf_put_number(h->out, "base", (double)v->rotary_base);
    pe_hf_put_word(h->out, "layout",
                   v->rotary_interleaved && v->position_embedding_type == POSITIONS_ROPE ? "interleaved" : "half");
    if (v->position_embedding_type == POSITIONS_YARN)
        megatron_read_yarn(h, v);
    else
        megatron_read_rope(h, v);
    return PE_OK;
}

const struct pe_target pe_target_megatron = {
    .info = {.name = "megatron",
             .about = {"Megatron-LM", "arguments of Megatron-LM"},
             .certainty = "code",
             .source = "megatron-lm d98e8a6",
             .form = PE_TARGET_SHELL,
             .members = megatron_members,
             .reads_text = true},
    .label = "Megatron-LM",
    .bytes = sizeof(struct megatron),
    .carries = "head_dim|share|layout",
    .says_none = true,
    .say = megatron_say,
    .read = megatron_read,
};

/* ---- llama.cpp ---- */

/* llama.cpp: flags that replace what a file states. They have no word for divisors and lists, which are in the file,
 * nor for the base of sliding layers, and yarn overwrites --yarn-attn-factor. Source: llama.cpp 6c8dcaa7ae41 (b10256),
 * common/arg.cpp, llama-context.cpp. */
