/* Megatron-LM: arguments. The base and the linear factor are integers, Llama 3's rule is that of 3.1 but for its
 * factor, and yarn turns the whole head, in halves. Source: Megatron-LM d98e8a64ddf3, training/arguments.py,
 * core/models/common/embeddings. */
#include "core/models/targets/targets.h"

#include <math.h>

enum { ROPE, YARN, NONE };
static const char *const types[] = {[ROPE] = "rope", [YARN] = "yarn", [NONE] = "none", NULL};

struct megatron {
    int position_embedding_type;
    int64_t rotary_base, kv_channels, interpolation;
    double rotary_percent;
    bool rotary_interleaved, use_rope_scaling, no_round;
    double rope_scaling_factor, rotary_scaling_factor, beta_fast, beta_slow, mscale, mscale_all_dim;
    int64_t original;
    const struct pe_value *no_rope_freq; /* which layers have no positions; those that have them are meant */
};

static const struct pe_param members[] = {
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

/* ---- Saying ---- */

static void say_yarn(struct pe_saying *s)
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

static void say_rope(struct pe_saying *s)
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
        say_yarn(s);
    else
        say_rope(s);
    if (s->still_period)
        pe_say_integer(&s->value, "no-rope-freq", (double)s->still_period);
}

/* ---- Reading ---- */

static void read_yarn(const struct pe_hearing *h, const struct megatron *v)
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

static void read_rope(const struct pe_hearing *h, const struct megatron *v)
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
    if (v->position_embedding_type == NONE) {
        pe_hf_put_word(h->out, "scheme", "none");
        return PE_OK;
    }
    if (v->use_rope_scaling && v->interpolation != 1)
        return pe_hear_wrong(h, "use-rope-scaling",
                             "use-rope-scaling and rotary-seq-len-interpolation-factor are two rules; give one");
    if (v->kv_channels != PE_UNSET_INT)
        pe_hf_put_integer(h->out, "head_dim", v->kv_channels);
    pe_hf_put_number(h->out, "base", (double)v->rotary_base);
    pe_hf_put_word(h->out, "layout",
                   v->rotary_interleaved && v->position_embedding_type == ROPE ? "interleaved" : "half");
    if (v->position_embedding_type == YARN)
        read_yarn(h, v);
    else
        read_rope(h, v);
    return PE_OK;
}

const struct pe_target pe_target_megatron = {
    .info = {.name = "megatron",
             .about = {"Megatron-LM", "arguments of Megatron-LM"},
             .certainty = "code",
             .source = "megatron-lm d98e8a6",
             .form = PE_TARGET_SHELL,
             .members = members,
             .reads_text = true},
    .label = "Megatron-LM",
    .bytes = sizeof(struct megatron),
    .carries = "head_dim|share|layout",
    .says_none = true,
    .say = megatron_say,
    .read = megatron_read,
};
