/* llama.cpp: flags that replace what a file states. They have no word for divisors and lists, which are in the file,
 * nor for the base of sliding layers, and yarn overwrites --yarn-attn-factor. Source: llama.cpp 6c8dcaa7ae41 (b10256),
 * common/arg.cpp, llama-context.cpp. */
#include "core/models/targets/targets.h"

#include <math.h>

enum { NONE, LINEAR, YARN };
static const char *const scalings[] = {[NONE] = "none", [LINEAR] = "linear", [YARN] = "yarn", NULL};

struct llama_cpp {
    int rope_scaling;
    double rope_scale, rope_freq_scale, rope_freq_base;
    int64_t yarn_orig_ctx;
    double yarn_ext_factor, yarn_attn_factor, yarn_beta_fast, yarn_beta_slow;
};

static const struct pe_param members[] = {
    PE_T_CHOICE(llama_cpp, rope_scaling, "rope-scaling", scalings),
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

static void say_yarn(struct pe_saying *s)
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
        say_yarn(s);
}

/* Below 0 an option is not given: the weight of the ramp is then 1 with yarn, and 0 else. */
static enum pe_status llama_cpp_read(const struct pe_hearing *h, const void *told)
{
    const struct llama_cpp *v = told;
    struct pe_heard heard = {.h = h};
    double scale = isnan(v->rope_scale) ? 1 / v->rope_freq_scale : v->rope_scale;
    bool is_yarn = v->rope_scaling == YARN;
    if (!isnan(v->rope_scale) && !isnan(v->rope_freq_scale))
        return pe_hear_wrong(h, "rope-freq-scale",
                             "rope-scale and rope-freq-scale are one number and its inverse; give one");
    if (isnan(scale) || v->rope_scaling == NONE)
        scale = 1;
    if (is_yarn && v->yarn_orig_ctx == PE_UNSET_INT)
        return pe_hear_wrong(h, "yarn-orig-ctx", "yarn-orig-ctx is missing; the ends of yarn's ramp need it");
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
             .members = members,
             .reads_text = true},
    .label = "llama.cpp",
    .bytes = sizeof(struct llama_cpp),
    .is_beside_a_model = true,
    .say = llama_cpp_say,
    .read = llama_cpp_read,
};
