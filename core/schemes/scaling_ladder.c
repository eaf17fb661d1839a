/* Frequencies under a resolved scaling: in double-double, and in float32 with torch's roundings. The order of the
 * float32 steps is that of transformers' modeling_rope_utils.py; a Python scalar (a double) is rounded to f32 where
 * it is combined with a tensor, and scalar / tensor is reciprocal(tensor) · scalar there. */
#include "core/schemes/scaling.h"

#include <float.h>

static const struct pe_dd two_pi = {0x1.921fb54442d18p+2, 0x1.1a62633145c07p-52};

/* ---- What the rules do to the base, the ramp and the number of channels kept; for both ladders ---- */

/* The factor by which the context is stretched: ntk s; dynamic s·n/M - (s - 1) = 1 + s·(n - M)/M with n =
 * max(seq_len, M), which is exactly 1 within M. vLLM makes one table for n = s·M. (jquesnelle's formula;
 * transformers; vLLM) */
static struct pe_dd stretch(const struct pe_scaling *s)
{
    double m = s->max_position_embeddings;
    if (s->type == PE_SCALING_NTK)
        return dd(s->factor);
    if (s->convention == PE_CONVENTION_VLLM)
        return dd_sub(dd_two_prod(s->factor, s->factor), dd_two_sum(s->factor, -1));
    if (s->seq_len <= m)
        return dd(1);
    return dd_add(dd(1), dd_div(dd_mul_d(dd_two_sum(s->seq_len, -m), s->factor), dd(m)));
}

/* ln base' = ln base + dim/(dim - 2) · ln stretch, for the types that change the base. */
static struct pe_dd log_base_of(const struct pe_scaling *s, const struct pe_scaling_use *use)
{
    struct pe_dd log_base = dd_log(dd(use->base));
    if (s->type != PE_SCALING_NTK && s->type != PE_SCALING_DYNAMIC)
        return log_base;
    struct pe_dd power = dd_div(dd(use->dim), dd(use->dim - 2));
    return dd_add(log_base, dd_mul(power, dd_log(stretch(s))));
}

static struct pe_dd dd_floor(struct pe_dd a)
{
    double whole = floor(a.hi);
    return whole == a.hi ? dd_quick_sum(whole, floor(a.lo)) : dd(whole);
}

static struct pe_dd dd_ceil(struct pe_dd a) { return dd_neg(dd_floor(dd_neg(a))); }

static bool dd_less(struct pe_dd a, struct pe_dd b) { return a.hi < b.hi || (a.hi == b.hi && a.lo < b.lo); }

/* The ends of YaRN's ramp, in pairs (2309.00071, section 3.2): the pair that makes b turns in the original length O
 * is
 *     dim(b) = dim · ln(O / (2π b)) / (2 ln base);   low = dim(beta_fast), high = dim(beta_slow).
 * The upper clamp is dim - 1 although pairs end at dim/2 - 1, and high = low becomes low + 0.001: as transformers. */
struct ramp {
    struct pe_dd low, high;
};

static struct pe_dd pair_of_turns(const struct pe_scaling *s, const struct pe_scaling_use *use, double turns)
{
    struct pe_dd ratio = dd_div(dd(s->original_max_position_embeddings), dd_mul_d(two_pi, turns));
    return dd_div(dd_mul_d(dd_log(ratio), use->dim), dd_mul_d(dd_log(dd(use->base)), 2));
}

static struct ramp yarn_ramp(const struct pe_scaling *s, const struct pe_scaling_use *use)
{
    struct ramp r = {pair_of_turns(s, use, s->beta_fast), pair_of_turns(s, use, s->beta_slow)};
    if (s->truncate)
        r = (struct ramp){dd_floor(r.low), dd_ceil(r.high)};
    if (dd_less(r.low, dd(0)))
        r.low = dd(0);
    if (dd_less(dd(use->dim - 1), r.high))
        r.high = dd(use->dim - 1);
    if (r.low.hi == r.high.hi && r.low.lo == r.high.lo)
        r.high = dd_add(r.high, dd(0.001));
    return r;
}

/* Pairs that p-RoPE rotates (2410.06205; transformers): int(share · head_dim // 2), the product in double as there. */
static size_t pairs_kept(const struct pe_scaling *s, const struct pe_scaling_use *use)
{
    return (size_t)floor(s->partial_rotary_factor * use->head_dim / 2);
}

static double list_value(const struct pe_scaling *s, size_t c)
{
    return pe_real_at(s->list == PE_LIST_LONG ? &s->long_factor : &s->short_factor, c);
}

/* TGI accepts linear and ignores it. */
static bool is_ignored(const struct pe_scaling *s)
{
    return s->type == PE_SCALING_LINEAR && s->convention == PE_CONVENTION_TGI;
}

/* ---- Double-double ---- */

/* w/s · (1 - keep) + w · keep,  keep = (1 - clamp((c - low)/(high - low), 0, 1)) · extrapolation_factor */
static struct pe_dd blend_yarn(const struct pe_scaling *s, const struct ramp *r, size_t c, struct pe_dd w)
{
    struct pe_dd ramp = dd_div(dd_sub(dd((double)c), r->low), dd_sub(r->high, r->low));
    if (dd_less(ramp, dd(0)))
        ramp = dd(0);
    if (dd_less(dd(1), ramp))
        ramp = dd(1);
    struct pe_dd keep = dd_mul_d(dd_sub(dd(1), ramp), s->extrapolation_factor);
    struct pe_dd divided = dd_div(dd_sub(dd(1), keep), dd(s->factor));
    return dd_mul(w, dd_add(divided, keep));
}

/* Turns in the original length, x = O·w/2π: fewer than low: w/factor; more than high: w; between them
 *     (1 - t)·w/factor + t·w,  t = (x - low)/(high - low).
 * The branch comes before the division: Llama 4 Scout has low = high. (llama-models, apply_scaling) */
static struct pe_dd blend_llama3(const struct pe_scaling *s, struct pe_dd w)
{
    struct pe_dd turns = dd_div(dd_mul_d(w, s->original_max_position_embeddings), two_pi);
    struct pe_dd low = dd(s->low_freq_factor), high = dd(s->high_freq_factor);
    if (dd_less(turns, low))
        return dd_div(w, dd(s->factor));
    if (!dd_less(turns, high))
        return w;
    struct pe_dd t = dd_div(dd_sub(turns, low), dd_sub(high, low));
    struct pe_dd divided = dd_div(dd_sub(dd(1), t), dd(s->factor));
    return dd_mul(w, dd_add(divided, t));
}

static struct pe_dd scaled(const struct pe_scaling *s, const struct ramp *ramp, size_t kept, size_t c, struct pe_dd w)
{
    switch ((enum pe_scaling_type)s->type) {
    case PE_SCALING_LINEAR: return is_ignored(s) ? w : dd_div(w, dd(s->factor));
    case PE_SCALING_YARN: return blend_yarn(s, ramp, c, w);
    case PE_SCALING_LONGROPE: return dd_div(w, dd(list_value(s, c)));
    case PE_SCALING_LLAMA3: return blend_llama3(s, w);
    case PE_SCALING_PROPORTIONAL: return c < kept ? dd_div(w, dd(s->factor)) : dd(0);
    case PE_SCALING_DEFAULT:
    case PE_SCALING_NTK:
    case PE_SCALING_DYNAMIC:
    case PE_SCALING_SU:
    case PE_SCALING_MROPE: break; /* applied to the base, or resolved to another type */
    }
    return w;
}

static void ladder_exact(const struct pe_scaling *s, const struct pe_scaling_use *use, size_t n_pairs,
                         struct pe_dd *inv_freq)
{
    struct ramp ramp = {{0, 0}, {0, 0}};
    size_t kept = s->type == PE_SCALING_PROPORTIONAL ? pairs_kept(s, use) : 0;
    if (s->type == PE_SCALING_YARN)
        ramp = yarn_ramp(s, use);
    pe_ladder_dd(log_base_of(s, use), use->dim / 2, n_pairs, inv_freq);
    for (size_t c = 0; c < n_pairs; c++)
        inv_freq[c] = scaled(s, &ramp, kept, c, inv_freq[c]);
}

/* ---- float32 ---- */

static float blend_yarn_f32(const struct pe_scaling *s, const struct ramp *r, size_t c, float power)
{
    float low = (float)r->low.hi, width = (float)(r->high.hi - r->low.hi);
    float ramp = ((float)c - low) / width;
    ramp = ramp < 0 ? 0 : ramp > 1 ? 1 : ramp;
    float keep = (1 - ramp) * (float)s->extrapolation_factor;
    float kept = 1 / power, divided = 1 / ((float)s->factor * power);
    return divided * (1 - keep) + kept * keep;
}

static float blend_llama3_f32(const struct pe_scaling *s, float w)
{
    double length = s->original_max_position_embeddings, low = s->low_freq_factor, high = s->high_freq_factor;
    float wavelength = (1 / w) * (float)two_pi.hi, factor = (float)s->factor;
    if (wavelength > (float)(length / low))
        return w / factor;
    if (wavelength < (float)(length / high) || low == high) /* torch has 0/0 where all three are equal */
        return w;
    float t = ((1 / wavelength) * (float)length - (float)low) / (float)(high - low);
    return (1 - t) * w / factor + t * w;
}

static float scaled_f32(const struct pe_scaling *s, const struct ramp *ramp, size_t kept, size_t c, float power)
{
    float w = 1 / power;
    switch ((enum pe_scaling_type)s->type) {
    case PE_SCALING_LINEAR: return is_ignored(s) ? w : w / (float)s->factor;
    case PE_SCALING_YARN: return blend_yarn_f32(s, ramp, c, power);
    case PE_SCALING_LONGROPE: return 1 / ((float)list_value(s, c) * power);
    case PE_SCALING_LLAMA3: return blend_llama3_f32(s, w);
    case PE_SCALING_PROPORTIONAL: return c < kept ? w / (float)s->factor : 0;
    case PE_SCALING_DEFAULT:
    case PE_SCALING_NTK:
    case PE_SCALING_DYNAMIC:
    case PE_SCALING_SU:
    case PE_SCALING_MROPE: break;
    }
    return w;
}

/* base' is a Python double in the frameworks, and torch.pow rounds it to f32. */
static float base_f32(const struct pe_scaling *s, const struct pe_scaling_use *use)
{
    if (s->type != PE_SCALING_NTK && s->type != PE_SCALING_DYNAMIC)
        return (float)use->base;
    return (float)fmin(dd_exp(log_base_of(s, use)).hi, (double)FLT_MAX);
}

static void ladder_float32(const struct pe_scaling *s, const struct pe_scaling_use *use, size_t n_pairs,
                           struct pe_dd *inv_freq)
{
    struct ramp ramp = {{0, 0}, {0, 0}};
    size_t kept = s->type == PE_SCALING_PROPORTIONAL ? pairs_kept(s, use) : 0;
    if (s->type == PE_SCALING_YARN)
        ramp = yarn_ramp(s, use);
    struct pe_dd log_base = dd_log(dd((double)base_f32(s, use)));
    for (size_t c = 0; c < n_pairs; c++)
        inv_freq[c] = dd((double)scaled_f32(s, &ramp, kept, c, pe_power_float32(log_base, c, use->dim / 2)));
}

void pe_scaling_ladder(const struct pe_scaling *s, const struct pe_scaling_use *use, size_t n_pairs,
                       struct pe_dd *inv_freq)
{
    if (use->float32)
        ladder_float32(s, use, n_pairs, inv_freq);
    else
        ladder_exact(s, use, n_pairs, inv_freq);
}
