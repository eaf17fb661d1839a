/* Context scalings of rotary schemes: the rules between the fields of `scaling`, and the values derived from them
 * (factor, seq_len, the list in use, the factors on cos and sin and on the softmax). The fields are in
 * scaling_fields.c, the frequencies in scaling_ladder.c.
 *
 * Every rule stretches wavelengths so that a model meets at a longer sequence the angles of its training: linear by one
 * factor (Chen et al. 2023, arXiv 2306.15595); NTK by another base; YaRN and llama3 the slow pairs only, with a ramp
 * between (Peng et al. 2023, arXiv 2309.00071); LongRoPE by a list for each pair (Ding et al. 2024, arXiv 2402.13753).
 * What differs between libraries is which number is a default of which other, and that is all that this file decides:
 * the answer has each derived value, so the reader sees what was chosen. */
#include "core/schemes/scaling_fields.h"

#include <stdio.h>

/* ---- Values of any kind ---- */

/* *out from a boolean; unchanged where none was given. */
static enum pe_status read_flag(const struct pe_value *given, const char *name, bool *out, struct pe_error *err)
{
    char pointer[PE_POINTER_MAX], found[48] = "neither";
    if (!given)
        return PE_OK;
    if (given->kind == PE_BOOLEAN) {
        *out = given->boolean;
        return PE_OK;
    }
    if (given->kind == PE_INTEGER)
        snprintf(found, sizeof found, "%lld", (long long)given->integer);
    else if (given->kind == PE_REAL)
        snprintf(found, sizeof found, "%.10g", given->real);
    else if (given->kind == PE_STRING)
        snprintf(found, sizeof found, "\"%.40s\"", given->string);
    pe_scaling_at(pointer, name);
    return pe_fail(err, pointer, "%s is %s; allowed: true or false", name, found);
}

static enum pe_status resolve_flags(struct pe_scaling *s, struct pe_error *err)
{
    static const struct pe_value no = {.kind = PE_BOOLEAN}, yes = {.kind = PE_BOOLEAN, .boolean = true};
    bool finetuned;
    s->truncate = true;
    s->mrope_interleaved = false;
    if (read_flag(s->truncate_given, "truncate", &s->truncate, err) ||
        read_flag(s->mrope_interleaved_given, "mrope_interleaved", &s->mrope_interleaved, err) ||
        read_flag(s->finetuned, "finetuned", &finetuned, err))
        return err->status;
    if (!s->truncate && s->type != PE_SCALING_YARN)
        return pe_fail(err, "/scaling/truncate",
                       "truncate is false, but type is \"%s\"; truncate is used by type yarn only",
                       pe_scaling_type_name(s->type));
    s->truncate_given = s->type != PE_SCALING_YARN ? NULL : s->truncate ? &yes : &no;
    s->finetuned = NULL;
    return PE_OK;
}

/* ---- type and factor ---- */

/* The rule that a word denotes. Early Phi-3 configs have yarn for longrope; the two lists distinguish them. */
static int rule_of(const struct pe_scaling *s, int word)
{
    if (word == PE_SCALING_MROPE || word == PE_UNSET_WORD)
        return PE_SCALING_DEFAULT;
    if (word == PE_SCALING_SU || (word == PE_SCALING_YARN && s->short_factor.n && s->long_factor.n))
        return PE_SCALING_LONGROPE;
    return word;
}

enum pe_scaling_type pe_scaling_rule(const struct pe_scaling *s)
{
    return (enum pe_scaling_type)rule_of(s, s->rope_type != PE_UNSET_WORD ? s->rope_type : s->type);
}

bool pe_scaling_interleaves(const struct pe_scaling *s)
{
    return s->mrope_interleaved_given && s->mrope_interleaved_given->kind == PE_BOOLEAN &&
           s->mrope_interleaved_given->boolean;
}

static enum pe_status resolve_type(struct pe_scaling *s, struct pe_error *err)
{
    int type = rule_of(s, s->type), rope_type = rule_of(s, s->rope_type);
    if (s->rope_type == PE_UNSET_WORD)
        rope_type = type;
    if (s->type != PE_UNSET_WORD && type != rope_type)
        return pe_fail(err, "/scaling/rope_type",
                       "rope_type is \"%s\" and type is \"%s\", which are different rules; give one",
                       pe_scaling_type_name(s->rope_type), pe_scaling_type_name(s->type));
    s->type = rope_type;
    s->rope_type = PE_UNSET_WORD;
    return PE_OK;
}

/* llama3's factor is not a ratio of lengths: Llama 3.1 has 8 for 131072 after 8192. */
static enum pe_status derive_factor(struct pe_scaling *s, struct pe_error *err)
{
    const unsigned by_ratio =
        PE_SCALING_BIT(LINEAR) | PE_SCALING_BIT(NTK) | PE_SCALING_BIT(YARN) | PE_SCALING_BIT(LONGROPE);
    if (s->type == PE_SCALING_PROPORTIONAL && isnan(s->factor))
        s->factor = 1;
    if (!(by_ratio & 1U << s->type) || !isnan(s->factor))
        return PE_OK;
    s->factor = s->max_position_embeddings / s->original_max_position_embeddings;
    if (s->factor < PE_SCALING_FACTOR_MIN || s->factor > PE_SCALING_FACTOR_MAX)
        return pe_fail(err, "/scaling/max_position_embeddings",
                       "max_position_embeddings/original_max_position_embeddings makes factor %.10g; allowed: from "
                       "1e-06 to 1000000",
                       s->factor);
    return PE_OK;
}

/* ---- Rules of one type ---- */

static enum pe_status check_width(const struct pe_scaling *s, const struct pe_scaling_use *use, struct pe_error *err)
{
    if ((s->type == PE_SCALING_NTK || s->type == PE_SCALING_DYNAMIC) && use->dim <= 2)
        return pe_fail(err, "/scaling/type",
                       "type is \"%s\", whose exponent r/(r - 2) divides by zero for %.0f rotated channels; needed: at "
                       "least 4",
                       pe_scaling_type_name(s->type), use->dim);
    if (s->type == PE_SCALING_PROPORTIONAL && use->dim != use->head_dim)
        return pe_fail(err, "/scaling/type",
                       "type is \"proportional\", which rotates the whole head, %.0f channels, but %.0f are rotated; "
                       "partial_rotary_factor goes inside scaling here",
                       use->head_dim, use->dim);
    return PE_OK;
}

static enum pe_status check_llama3(const struct pe_scaling *s, struct pe_error *err)
{
    if (s->type == PE_SCALING_LLAMA3 && s->high_freq_factor < s->low_freq_factor)
        return pe_fail(err, "/scaling/high_freq_factor",
                       "high_freq_factor is %.10g; allowed: at least low_freq_factor, %.10g", s->high_freq_factor,
                       s->low_freq_factor);
    return PE_OK;
}

static enum pe_status check_list(const struct pe_reals *list, const char *name, size_t n_pairs, struct pe_error *err)
{
    char pointer[PE_POINTER_MAX];
    pe_scaling_at(pointer, name);
    if (list->array.rank != 1)
        return pe_fail(err, pointer, "%s has %u dimensions; allowed: one list of numbers", name, list->array.rank);
    if (list->n != n_pairs)
        return pe_fail(err, pointer, "%s has %llu numbers; needed: %zu, one per rotated pair", name,
                       (unsigned long long)list->n, n_pairs);
    return PE_OK;
}

/* The given length, else the sequence's. Negative positions do not count. */
static void set_seq_len(struct pe_scaling *s, const struct pe_scaling_use *use)
{
    if (isnan(s->seq_len))
        s->seq_len = fmin(fmax(use->seq_len, 0), PE_SCALING_SEQ_LEN_MAX);
}

/* Chooses one list for the whole sequence: the long list if seq_len > O (transformers), if the largest position > O
 * (vLLM), or always (mlx-lm). TGI takes rows before O from the short list and the others from the long one. */
static enum pe_status choose_list(struct pe_scaling *s, struct pe_error *err)
{
    double original = s->original_max_position_embeddings;
    if (s->list != PE_LIST_AUTO)
        return PE_OK;
    if (s->convention == PE_CONVENTION_TGI && s->seq_len > original)
        return pe_fail(
            err, "/scaling/convention",
            "convention is \"tgi\", which mixes both lists in a sequence of %.10g positions: before "
            "original_max_position_embeddings, %.10g, rows of the short list, after it of the long one. That "
            "is no single table; ask twice, with \"list\": \"short\" and \"list\": \"long\"",
            s->seq_len, original);
    double length = s->convention == PE_CONVENTION_VLLM ? s->seq_len - 1 : s->seq_len;
    bool is_long = length > original || s->convention == PE_CONVENTION_MLX;
    s->list = is_long ? PE_LIST_LONG : PE_LIST_SHORT;
    return PE_OK;
}

static enum pe_status resolve_longrope(struct pe_scaling *s, const struct pe_scaling_use *use, size_t n_pairs,
                                       struct pe_error *err)
{
    if (check_list(&s->short_factor, "short_factor", n_pairs, err) ||
        check_list(&s->long_factor, "long_factor", n_pairs, err))
        return err->status;
    set_seq_len(s, use);
    return choose_list(s, err);
}

/* 0 is the default: transformers writes `beta_fast or 32`. TGI reads neither. */
static enum pe_status resolve_beta(const struct pe_scaling *s, double *beta, const char *name, double fallback,
                                   struct pe_error *err)
{
    char pointer[PE_POINTER_MAX];
    if (*beta == 0 || s->convention == PE_CONVENTION_TGI)
        *beta = fallback;
    if (*beta >= PE_SCALING_BETA_MIN)
        return PE_OK;
    pe_scaling_at(pointer, name);
    return pe_fail(err, pointer, "%s is %.10g; allowed: at least 1e-06 turns, or 0 for the default, %.0f", name, *beta,
                   fallback);
}

static enum pe_status resolve_yarn(struct pe_scaling *s, struct pe_error *err)
{
    if (s->convention != PE_CONVENTION_VLLM)
        s->attn_factor = PE_UNSET;
    if (resolve_beta(s, &s->beta_fast, "beta_fast", 32, err))
        return err->status;
    return resolve_beta(s, &s->beta_slow, "beta_slow", 1, err);
}

/* ---- The factors on cos and sin, and on the softmax ---- */

/* m(s, k) = 0.1·k·ln s + 1, and 1 for s ≤ 1 (2309.00071, equation 22; DeepSeek-V2's yarn_get_mscale). */
static struct pe_dd magnitude(double s, double k)
{
    if (s <= 1)
        return dd(1);
    return dd_add(dd(1), dd_div(dd_mul_d(dd_log(dd(s)), k), dd(10)));
}

static double yarn_attention(const struct pe_scaling *s)
{
    double num = s->mscale, den = s->mscale_all_dim, besides = isnan(s->attn_factor) ? 1 : s->attn_factor;
    if (s->convention == PE_CONVENTION_TRANSFORMERS) {
        bool both = num > 0 && den > 0; /* false for NaN */
        num = both ? num : 1;
        den = both ? den : 0;
    }
    struct pe_dd m = magnitude(s->factor, isnan(num) ? 1 : num);
    return dd_mul_d(dd_div(m, magnitude(s->factor, isnan(den) ? 0 : den)), besides).hi;
}

/* sqrt(1 + ln s/ln O) for s > 1 (2402.13753, Phi-3); Phi-3.5-MoE has one number for each list instead. */
static enum pe_status longrope_attention(struct pe_scaling *s, struct pe_error *err)
{
    double given = s->list == PE_LIST_LONG ? s->long_mscale : s->short_mscale;
    s->attention_factor = isnan(given) ? 1 : given;
    if (!isnan(given))
        return PE_OK;
    if (isnan(s->factor))
        return pe_fail(err, "/scaling/factor",
                       "factor is missing; type \"longrope\" needs it for its attention_factor: give factor, or "
                       "max_position_embeddings, which over original_max_position_embeddings is factor, or "
                       "attention_factor");
    if (s->factor <= 1)
        return PE_OK;
    double original = s->original_max_position_embeddings;
    if (original <= 1)
        return pe_fail(err, "/scaling/original_max_position_embeddings",
                       "original_max_position_embeddings is %.10g; allowed: more than 1, as its logarithm is a divisor",
                       original);
    struct pe_dd square = dd_add(dd(1), dd_div(dd_log(dd(s->factor)), dd_log(dd(original))));
    s->attention_factor = dd_exp(dd_mul_d(dd_log(square), 0.5)).hi;
    return PE_OK;
}

static void set_softmax_factor(struct pe_scaling *s)
{
    if (s->type != PE_SCALING_YARN || !isnan(s->softmax_scale_factor) || !(s->mscale_all_dim > 0))
        return;
    struct pe_dd m = magnitude(s->factor, s->mscale_all_dim);
    double square = dd_mul(m, m).hi;
    if (square != 1)
        s->softmax_scale_factor = square;
}

static enum pe_status set_factors(struct pe_scaling *s, struct pe_error *err)
{
    set_softmax_factor(s);
    if (!isnan(s->attention_factor))
        return PE_OK;
    if (s->type == PE_SCALING_LONGROPE)
        return longrope_attention(s, err);
    s->attention_factor = s->type == PE_SCALING_YARN ? yarn_attention(s) : 1;
    return PE_OK;
}

enum pe_status pe_scaling_resolve(struct pe_scaling *s, const struct pe_scaling_use *use, size_t n_pairs,
                                  struct pe_error *err)
{
    if (resolve_type(s, err) || derive_factor(s, err))
        return err->status;
    if (pe_scaling_check_fields(s, err) || resolve_flags(s, err) || check_width(s, use, err) || check_llama3(s, err))
        return err->status;
    if (s->type == PE_SCALING_DYNAMIC && s->convention == PE_CONVENTION_VLLM)
        s->seq_len = PE_UNSET; /* one table for all lengths */
    else if (s->type == PE_SCALING_DYNAMIC)
        set_seq_len(s, use);
    else if ((s->type == PE_SCALING_YARN && resolve_yarn(s, err)) ||
             (s->type == PE_SCALING_LONGROPE && resolve_longrope(s, use, n_pairs, err)))
        return err->status;
    return set_factors(s, err);
}
