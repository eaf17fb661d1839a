/* YaRN (Peng et al. 2023, arXiv 2309.00071): pairs that turn often within the original length O keep their frequency,
 * those that turn rarely are divided by s = factor, the others are blended:
 *
 *     w'_c = w_c/s · (1 - keep) + w_c · keep,   keep = (1 - clamp((c - low)/(high - low), 0, 1)) · extrapolation_factor
 *
 * The pair that makes b turns in O is dim(b) = dim · ln(O / (2π b)) / (2 ln base); low = dim(beta_fast), high =
 * dim(beta_slow) (section 3.2). cos and sin are multiplied by m(s, 1) (equation 22). */
#include "core/schemes/scalings/scaling.h"

#include <stdio.h>

struct yarn {
    double beta_fast, beta_slow, mscale, mscale_all_dim, extrapolation_factor;
    const struct pe_value *truncate;
    double attn_factor;          /* read by vLLM only */
    double llama_4_scaling_beta; /* Ministral 3: accepted, not applied */
};

/* Bounds that keep every derived attention_factor within the row of that name: m(s, 1000) < 1400. */
#define MSCALE_MAX 1000
#define BETA_MIN 1e-6

static const struct pe_param fields[] = {
    PE_P_REAL(yarn, beta_fast, 32, 0, 1e9, "fast end of the ramp",
              "yarn: pairs that make more turns than this in the original length keep their frequency; 0 means 32",
              .usual = {1, 64}),
    PE_P_REAL(yarn, beta_slow, 1, 0, 1e9, "slow end of the ramp",
              "yarn: pairs that make fewer turns than this in the original length are divided by factor; 0 means 1",
              .usual = {0.125, 8}),
    PE_P_REAL(yarn, mscale, PE_UNSET, 0, MSCALE_MAX, "magnitude factor",
              "yarn: with mscale_all_dim, both not 0, attention_factor is m(factor, mscale)/m(factor, mscale_all_dim), "
              "where m(s, k) = 0.1·k·ln(s) + 1, and 1 for s up to 1",
              .usual = {0.1, 2}),
    PE_P_REAL(yarn, mscale_all_dim, PE_UNSET, 0, MSCALE_MAX, "magnitude factor, all channels",
              "yarn: see mscale; not 0, it also sets softmax_scale_factor", .usual = {0.1, 2}),
    PE_P_VALUE(yarn, truncate, "round the ramp",
               "yarn, true or false, default true: the ends of the ramp are rounded outwards to whole pairs; gpt-oss: "
               "false",
               .fallback = true),
    PE_P_REAL(yarn, extrapolation_factor, 1, 0, 1, "extrapolation weight",
              "yarn: weight of the unstretched frequency in pairs that keep theirs"),
    PE_P_END,
};

static const struct pe_param pasted[] = {
    PE_P_REAL(yarn, attn_factor, PE_UNSET, 0.01, 100, "attention multiplier",
              "yarn with convention vllm or ggml: multiplies the derived attention_factor; ignored otherwise, as "
              "transformers does",
              .usual = {0.5, 2}),
    PE_P_REAL(yarn, llama_4_scaling_beta, PE_UNSET, 0, 1e3, "query scaling of Ministral 3",
              "Ministral 3 also multiplies its queries by 1 + beta·ln(1 + floor(p/original_max_position_embeddings)); "
              "not applied here",
              .usual = {0, 1}),
    PE_P_END,
};

static const struct yarn *own(const struct pe_scaling_resolved *s) { return PE_S_OWN(s, yarn); }

/* ---- The factors on cos and sin, and on the softmax ---- */

static double attention(const struct pe_scaling_resolved *s)
{
    const struct yarn *y = own(s);
    double num = y->mscale, den = y->mscale_all_dim, besides = isnan(y->attn_factor) ? 1 : y->attn_factor;
    if (s->convention == PE_CONVENTION_TRANSFORMERS) {
        bool both = num > 0 && den > 0; /* false for NaN */
        num = both ? num : 1;
        den = both ? den : 0;
    }
    if (s->convention == PE_CONVENTION_GGML && y->extrapolation_factor == 0) /* then it scales as linear does */
        return besides;
    struct pe_dd m = pe_scaling_magnitude(s->factor, isnan(num) ? 1 : num);
    return dd_mul_d(dd_div(m, pe_scaling_magnitude(s->factor, isnan(den) ? 0 : den)), besides).hi;
}

/* ---- Rules ---- */

/* 0 is the default: transformers writes `beta_fast or 32`. TGI reads neither. */
static enum pe_status resolve_beta(const struct pe_scaling_resolved *s, double *beta, const char *name, double fallback,
                                   struct pe_failure *err)
{
    char pointer[PE_POINTER_MAX];
    if (*beta == 0 || s->convention == PE_CONVENTION_TGI)
        *beta = fallback;
    if (*beta >= BETA_MIN)
        return PE_OK;
    pe_scaling_pointer(pointer, name);
    return pe_fail(err, pointer, "%s is %.10g; allowed: at least 1e-06 turns, or 0 for the default, %.0f", name, *beta,
                   fallback);
}

static enum pe_status resolve(struct pe_scaling_resolved *s, const struct pe_scaling_use *use, struct pe_failure *err)
{
    struct yarn *y = PE_S_OWN(s, yarn);
    (void)use;
    bool is_ggml = s->convention == PE_CONVENTION_GGML;
    if (s->convention != PE_CONVENTION_VLLM && !is_ggml)
        y->attn_factor = PE_UNSET;
    if (is_ggml && !y->truncate->boolean)
        return pe_fail(err, "/scaling/truncate",
                       "truncate is false, but convention is \"ggml\", which rounds the ramp's ends");
    if (resolve_beta(s, &y->beta_fast, "beta_fast", 32, err) || resolve_beta(s, &y->beta_slow, "beta_slow", 1, err))
        return err->status;
    struct pe_dd m = pe_scaling_magnitude(s->factor, own(s)->mscale_all_dim);
    double square = dd_mul(m, m).hi;
    if (isnan(s->softmax_scale_factor) && own(s)->mscale_all_dim > 0 && square != 1)
        s->softmax_scale_factor = square;
    if (isnan(s->attention_factor))
        s->attention_factor = attention(s);
    return PE_OK;
}

/* ---- Frequencies ---- */

static struct pe_dd dd_floor(struct pe_dd a)
{
    double whole = floor(a.hi);
    return whole == a.hi ? dd_quick_sum(whole, floor(a.lo)) : dd(whole);
}

static struct pe_dd dd_ceil(struct pe_dd a) { return dd_neg(dd_floor(dd_neg(a))); }

static struct pe_dd pair_of_turns(const struct pe_scaling_pair *p, double turns)
{
    struct pe_dd ratio = dd_div(dd(p->s->original_max_position_embeddings), dd_mul_d(pe_dd_two_pi(), turns));
    return dd_div(dd_mul_d(pe_dd_log(ratio), p->use->dim), dd_mul_d(pe_dd_log(dd(p->use->base)), 2));
}

/* The ends of the ramp, doubles in the frameworks. The upper clamp is dim - 1 although pairs end at dim/2 - 1, and high
 * = low becomes low + 0.001: as transformers. ggml's ramp is never narrower than that, so its high < low is a step,
 * where transformers divides by a negative number. */
static void prepare(struct pe_scaling_pair *p)
{
    struct pe_dd low = pair_of_turns(p, own(p->s)->beta_fast), high = pair_of_turns(p, own(p->s)->beta_slow);
    if (own(p->s)->truncate->boolean) {
        low = dd_floor(low);
        high = dd_ceil(high);
    }
    if (dd_less(low, dd(0)))
        low = dd(0);
    if (dd_less(dd(p->use->dim - 1), high))
        high = dd(p->use->dim - 1);
    struct pe_dd narrowest = dd_add(low, dd(0.001));
    bool is_step = p->s->convention == PE_CONVENTION_GGML && dd_less(high, narrowest);
    if (is_step || (low.hi == high.hi && low.lo == high.lo))
        high = narrowest;
    p->ends[0] = p->use->float32 ? dd(low.hi) : low;
    p->ends[1] = p->use->float32 ? dd(high.hi) : high;
}

static struct pe_dd frequency(const struct pe_scaling_pair *p)
{
    struct pe_dd low = p->ends[0], width = dd_sub(p->ends[1], low), one = dd(1);
    struct pe_dd ramp = num_div(p, num_sub(p, dd((double)p->c), low), width);
    /* The pair that makes so many turns, and what is made of it. */
    const struct yarn *y = own(p->s);
    const double betas[] = {y->beta_fast, y->beta_slow};
    static const char *const symbols[][2] = {{"c_fast", "low"}, {"c_slow", "high"}};
    for (size_t i = 0; p->steps && i < 2; i++) {
        pe_derived(p->steps, symbols[i][0], pair_of_turns(p, betas[i]),
                   "r·ln(O/(2π·%s))/(2·ln base) = %s·ln(%s/(2π·%s))/(2·ln %s)", pe_shown(betas[i]).text,
                   pe_shown(p->use->dim).text, pe_shown(p->s->original_max_position_embeddings).text,
                   pe_shown(betas[i]).text, pe_shown(p->use->base).text);
        pe_derived_says(p->steps, "the pair that makes %s turns in O positions", pe_shown(betas[i]).text);
        pe_derived(p->steps, symbols[i][1], p->ends[i],
                   y->truncate->boolean ? i ? "ceil(c_slow)" : "floor(c_fast)" : "%s", symbols[i][0]);
    }
    if (dd_less(ramp, dd(0)))
        ramp = dd(0);
    if (dd_less(one, ramp))
        ramp = one;
    ramp = PE_STEP(p->steps, "ramp", ramp, "clamp((%zu − low)/(high − low), 0, 1)", p->c);
    PE_STEP_SAYS(p->steps, ramp.hi <= 0   ? "it turns often: the frequency stays"
                           : ramp.hi >= 1 ? "it turns rarely: divided by factor"
                                          : "blended");
    struct pe_dd keep = num_mul(p, num_sub(p, one, ramp), dd(own(p->s)->extrapolation_factor));
    keep = PE_STEP(p->steps, "k", keep, "(1 − ramp)·%s", pe_shown(own(p->s)->extrapolation_factor).text);
    struct pe_dd divided = num_mul(p, num_below(p, p->s->factor), num_sub(p, one, keep));
    return PE_STEP(p->steps, "w'", num_add(p, divided, num_mul(p, p->w, keep)), "(1 − k)·w/%s + k·w",
                   pe_shown(p->s->factor).text);
}

/* rope_yarn_ramp and rope_yarn of ggml. */
static void steps(const struct pe_scaling_pair *p, struct pe_ggml_steps *g)
{
    float low = (float)p->ends[0].hi, high = (float)p->ends[1].hi;
    float ramp = ((float)p->c - low) / fmaxf(0.001f, high - low);
    g->scale = 1 / (float)p->s->factor;
    g->keep = (1 - fminf(1, fmaxf(0, ramp))) * (float)own(p->s)->extrapolation_factor;
}

static const struct pe_formula_line formula[] = {
    {"s = factor", "how many times longer the context becomes"},
    {"O = original_max_position_embeddings", "the length of the training"},
    {"d[b] = r*ln(O/(2*pi*b))/(2*ln(base))", "the pair that makes b turns in the original length"},
    {"l = max({ floor(d[beta_fast]) if truncate; d[beta_fast] }, 0)",
     "the ramp's start: faster pairs keep their frequency"},
    {"u = min({ ceil(d[beta_slow]) if truncate; d[beta_slow] }, r - 1)",
     "the ramp's end: slower pairs are divided by s"},
    {"u' = { l + 0.001 if u = l; u }", "a ramp without width would divide by zero"},
    {"g_c = extrapolation_factor*(1 - min(max((c - l)/(u' - l), 0), 1))", "how much pair c keeps of its own frequency"},
    {"w'_c = (1 - g_c)*w_c/s + g_c*w_c", "a blend of the divided and the old frequency"},
    {"m[b] = { 1 if s <= 1; 0.1*b*ln(s) + 1 }", "the magnitude that longer contexts need"},
    {"a = { m[mscale]/m[mscale_all_dim] if mscale > 0 and mscale_all_dim > 0; m[1] }",
     "the factor on cosine and sine as transformers computes it; see convention for others"},
    {NULL, NULL},
};

const struct pe_scaling_rule pe_scaling_yarn = {
    .name = "yarn",
    .formula = formula,
    .alias = "deepseek_yarn",
    .alias_is_of_tools = true,
    .alias_about = "deepseek_yarn is vLLM's word for yarn in DeepSeek's classes",
    .about = "a blend per pair by its turns in the original length, and an attention factor",
    .convention_about = "vllm, tgi and mlx read mscale without mscale_all_dim (as m(factor, mscale)/m(factor, "
                        "mscale_all_dim) with 1 and 0 for what is missing), as ggml does, vllm and ggml attn_factor; "
                        "tgi sets beta_fast 32, beta_slow 1",
    .attention_about = "of yarn m(factor, 1) (see mscale)",
    .fields = fields,
    .pasted = pasted,
    .object = {"factor", "original_max_position_embeddings", "beta_fast", "beta_slow", "truncate"},
    .attention = "mscale|mscale_all_dim|attention_factor|attn_factor",
    .needs = {{.name = "factor"}, {.name = "original_max_position_embeddings"}},
    .takes = "attention_factor|convention|divisors",
    .factor_is_ratio = true,
    .in_transformers = true,
    .resolve = resolve,
    .prepare = prepare,
    .frequency = frequency,
    .steps = steps,
    .tried = PE_TRIED,
    .trials = {{.name = "truncate", .n = 2, .values = {0, 1}, .is_flag = true},
               {.name = "beta_fast", .n = 4, .values = {16, 32, 64, 128}},
               {.name = "beta_slow", .n = 3, .values = {1, 2, 4}}},
};
