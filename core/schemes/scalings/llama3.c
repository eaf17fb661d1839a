/* Llama 3.1 (llama-models, apply_scaling). By wavelength l = 2π/w, O the original length:
 *
 *     l > O/low_freq_factor: w/factor;   l < O/high_freq_factor: w;
 *     between them (1 - t)·w/factor + t·w,   t = (O/l - low)/(high - low)
 *
 * factor is not a ratio of lengths: Llama 3.1 has 8 for 131072 after 8192. */
#include "core/schemes/scalings/scaling.h"

struct llama3 {
    double low_freq_factor, high_freq_factor;
};

static const struct pe_param fields[] = {
    PE_P_REAL(llama3, low_freq_factor, PE_UNSET, 1e-6, 1e6, "low-frequency limit",
              "llama3: pairs that make fewer turns than this in the original length are divided by factor (Llama 3.1: "
              "1)",
              .usual = {0.5, 8}),
    PE_P_REAL(llama3, high_freq_factor, PE_UNSET, 1e-6, 1e6, "high-frequency limit",
              "llama3: pairs that make more turns than this in the original length keep their frequency (Llama 3.1: 4)",
              .usual = {1, 32}),
    PE_P_END,
};

static const struct llama3 *own(const struct pe_scaling_resolved *s) { return PE_S_OWN(s, llama3); }

static enum pe_status resolve(struct pe_scaling_resolved *s, const struct pe_scaling_use *use, struct pe_failure *err)
{
    (void)use;
    if (own(s)->high_freq_factor < own(s)->low_freq_factor)
        return pe_fail(err, "/scaling/high_freq_factor",
                       "high_freq_factor is %.10g; allowed: at least low_freq_factor, %.10g", own(s)->high_freq_factor,
                       own(s)->low_freq_factor);
    return PE_OK;
}

/* The branch comes before the division: Llama 4 Scout has low = high, where torch computes 0/0 and masks it. */
static struct pe_dd frequency(const struct pe_scaling_pair *p)
{
    struct pe_dd low = dd(own(p->s)->low_freq_factor), high = dd(own(p->s)->high_freq_factor), one = dd(1);
    struct pe_dd length = dd(p->s->original_max_position_embeddings), factor = dd(p->s->factor);
    struct pe_dd wavelength = num_mul(p, num_div(p, one, p->w), pe_dd_two_pi());
    if (dd_less(num(p, dd_div(length, low)), wavelength))
        return num_div(p, p->w, factor);
    if (dd_less(wavelength, num(p, dd_div(length, high))) || low.hi == high.hi)
        return p->w;
    struct pe_dd turns = num_mul(p, num_div(p, one, wavelength), length);
    struct pe_dd t = num_div(p, num_sub(p, turns, low), dd_sub(high, low));
    return num_add(p, num_div(p, num_mul(p, num_sub(p, one, t), p->w), factor), num_mul(p, t, p->w));
}

static const struct pe_formula_line formula[] = {
    {"s = factor", "the divisor of slow pairs; it is no ratio of lengths"},
    {"O = original_max_position_embeddings", "the length of the training"},
    {"lambda_c = 2*pi/w_c", "the wavelength of pair c: one turn in so many positions"},
    {"t_c = (O/lambda_c - low_freq_factor)/(high_freq_factor - low_freq_factor)",
     "where its turns in the original length are between the limits"},
    {"w'_c = { w_c/s if lambda_c > O/low_freq_factor; w_c if lambda_c < O/high_freq_factor; (1 - t_c)*w_c/s + t_c*w_c "
     "}",
     "slow pairs are divided, fast ones kept, the others blended"},
    {NULL, NULL},
};

const struct pe_scaling_rule pe_scaling_llama3 = {
    .name = "llama3",
    .formula = formula,
    .about = "a blend per pair by wavelength",
    .fields = fields,
    .object = {"factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"},
    .needs = {{.name = "factor"},
              {.name = "original_max_position_embeddings"},
              {"low_freq_factor", " (Llama 3.1: 1)", 1},
              {"high_freq_factor", " (Llama 3.1: 4)", 4}},
    .in_transformers = true,
    .resolve = resolve,
    .frequency = frequency,
    .tried = PE_TRIED,
    .trials = {{.name = "low_freq_factor", .n = 3, .values = {1, 2, 4}},
               {.name = "high_freq_factor", .n = 4, .values = {1, 2, 4, 8}}},
};
