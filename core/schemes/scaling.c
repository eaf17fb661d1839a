/* Context scalings of rotary schemes: the rows of field `scaling`, the rules between its fields, and what follows from
 * them (factor, seq_len, the list in use, the factors on cos and sin and on the softmax). Frequencies are in
 * scaling_ladder.c. */
#include "core/schemes/scaling.h"

#include <stdio.h>
#include <string.h>

/* ---- Rows ---- */

enum { NOT_GIVEN = PE_UNSET_WORD };

static const char *const types[] = {"default", "linear",       "ntk", "dynamic", "yarn", "longrope",
                                    "llama3",  "proportional", "su",  "mrope",   NULL};
static const char *const conventions[] = {"transformers", "vllm", "tgi", "mlx", NULL};
static const char *const lists[] = {"auto", "short", "long", NULL};

#define LENGTH_MAX 0x1p40
#define FACTOR_MIN 1e-6
#define FACTOR_MAX 1e6
#define SEQ_LEN_MAX 0x1p53
#define BETA_MIN 1e-6

/* Bounds that keep every derived attention_factor within the row of that name: m(s, 1000) < 1400. */
#define MSCALE_MAX 1000

#define WORD(field, fallback_, words_, text_)                                                                          \
    {                                                                                                                  \
        .name = #field, .type = PE_T_WORD, .offset = PE_OFFSET(pe_scaling, field, int), .fallback = (fallback_),       \
        .words = (words_), .text = text_                                                                               \
    }
#define VALUE(name_, field, text_)                                                                                     \
    {                                                                                                                  \
        .name = name_, .type = PE_T_VALUE, .offset = PE_OFFSET(pe_scaling, field, const struct pe_value *),            \
        .text = text_                                                                                                  \
    }
#define REAL(field, fallback_, min_, max_, text_) PE_P_REAL(pe_scaling, field, fallback_, min_, max_, text_)

const struct pe_param pe_scaling_params[] = {
    WORD(type, NOT_GIVEN, types,
         "rule that stretches the context. default: none. linear: w/factor (position interpolation). ntk: base becomes "
         "base·factor^(r/(r-2)), r the rotated channels. dynamic: the same with a factor that grows with the sequence. "
         "yarn: a blend per pair by its turns in the original length, and an attention factor. longrope: a divisor per "
         "pair from two lists (Phi-3). llama3: a blend per pair by wavelength. proportional: the lowest frequencies "
         "become 0 (Gemma 4). su is an old word for longrope, mrope for default with an mrope_section"),
    WORD(rope_type, NOT_GIVEN, types, "Hugging Face's later word for type; both may stand if they name the same rule"),
    WORD(
        convention, PE_CONVENTION_TRANSFORMERS, conventions,
        "which library to follow where they compute differently. linear: tgi ignores it. dynamic: vllm makes one table "
        "for factor·max_position_embeddings at every length. yarn: vllm, tgi and mlx read mscale without "
        "mscale_all_dim (as m(factor, mscale)/m(factor, mscale_all_dim) with 1 and 0 for what is missing), vllm "
        "attn_factor; tgi sets beta_fast 32, beta_slow 1. longrope: mlx always uses the long list, vllm changes lists "
        "one position later, tgi mixes rows of both"),
    REAL(factor, PE_UNSET, FACTOR_MIN, FACTOR_MAX,
         "how many times longer the context becomes; default of linear, ntk, yarn and longrope: "
         "max_position_embeddings/original_max_position_embeddings if both are given; of proportional: 1"),
    REAL(max_position_embeddings, PE_UNSET, 1, LENGTH_MAX,
         "positions: of dynamic the length it begins to stretch at, of other types the stretched length, used for "
         "factor only"),
    REAL(original_max_position_embeddings, PE_UNSET, 1, LENGTH_MAX,
         "positions the model was trained on; yarn, longrope and llama3 need it"),
    REAL(
        seq_len, PE_UNSET, 0, SEQ_LEN_MAX,
        "positions in the sequence, which decide dynamic's base and longrope's list; default the largest position + 1"),
    REAL(beta_fast, 32, 0, 1e9,
         "yarn: pairs that make more turns than this in the original length keep their frequency; 0 means 32"),
    REAL(beta_slow, 1, 0, 1e9,
         "yarn: pairs that make fewer turns than this in the original length are divided by factor; 0 means 1"),
    REAL(
        mscale, PE_UNSET, 0, MSCALE_MAX,
        "yarn: with mscale_all_dim, both not 0, attention_factor is m(factor, mscale)/m(factor, mscale_all_dim), where "
        "m(s, k) = 0.1·k·ln(s) + 1, and 1 for s up to 1"),
    REAL(mscale_all_dim, PE_UNSET, 0, MSCALE_MAX, "yarn: see mscale; not 0, it also sets softmax_scale_factor"),
    VALUE(
        "truncate", truncate_given,
        "yarn, true or false, default true: the ends of the ramp are rounded outwards to whole pairs; gpt-oss: false"),
    REAL(extrapolation_factor, 1, 0, 1, "yarn: share of the unstretched frequency that is kept where it is kept"),
    REAL(low_freq_factor, PE_UNSET, 1e-6, 1e6,
         "llama3: pairs that make fewer turns than this in the original length are divided by factor (Llama 3.1: 1)"),
    REAL(high_freq_factor, PE_UNSET, 1e-6, 1e6,
         "llama3: pairs that make more turns than this in the original length keep their frequency (Llama 3.1: 4)"),
    PE_P_REALS(pe_scaling, short_factor, 1e-6, 1e9,
               "longrope: a divisor of each pair's frequency, for sequences within the original length: [pairs]"),
    PE_P_REALS(pe_scaling, long_factor, 1e-6, 1e9, "longrope: the same for longer sequences: [pairs]"),
    REAL(short_mscale, PE_UNSET, 1e-3, 1e3, "longrope: attention_factor while the short list is in use (Phi-3.5-MoE)"),
    REAL(long_mscale, PE_UNSET, 1e-3, 1e3, "longrope: attention_factor while the long list is in use (Phi-3.5-MoE)"),
    WORD(
        list, PE_LIST_AUTO, lists,
        "longrope: the list for the whole sequence; auto: long where seq_len is above original_max_position_embeddings "
        "(see convention)"),
    REAL(partial_rotary_factor, PE_UNSET, 0, 1,
         "proportional: share of the head's pairs that keep a frequency, rounded down; the others get 0"),
    REAL(attention_factor, PE_UNSET, 1e-6, 1e6,
         "factor on cos and sin; default of yarn m(factor, 1) (see mscale); of longrope sqrt(1 + "
         "ln(factor)/ln(original_max_position_embeddings)) for a factor above 1; else 1"),
    REAL(softmax_scale_factor, PE_UNSET, 1e-9, 1e9,
         "what such models multiply the softmax scale by besides, not applied here; default of yarn with "
         "mscale_all_dim: m(factor, mscale_all_dim)^2 (DeepSeek-V3: 1.87385)"),
    REAL(rope_theta, PE_UNSET, 1e-3, 1e12, "the base, where a pasted object has it"),
    PE_P_REALS(pe_scaling, mrope_section, 0, 65536,
               "pairs of each axis (time, height, width) where a pasted object has them"),
    VALUE("mrope_interleaved", mrope_interleaved_given,
          "true or false, where a pasted object has it: axes take turns among the pairs"),
    REAL(attn_factor, PE_UNSET, 0.01, 100,
         "yarn with convention vllm: multiplies the derived attention_factor; ignored otherwise, as transformers does"),
    REAL(llama_4_scaling_beta, PE_UNSET, 0, 1e3,
         "Ministral 3 multiplies its queries besides by 1 + beta·ln(1 + floor(p/original_max_position_embeddings)); "
         "not applied here"),
    VALUE("finetuned", finetuned, "ignored; some pasted objects have it"),
    PE_P_END,
};

/* ---- Which type uses which field ---- */

#define T(name) (1U << PE_SCALING_##name)
enum { ANY = ~0U >> 1 };

/* Fields that belong to some types. Given with another type they are refused, unless they have the value that changes
 * nothing (NaN: there is none), or are lengths and the like, which objects carry along (quiet). */
static const struct owner {
    const char *name;
    unsigned used, needed;
    double neutral;
    bool quiet;
    const char *instead; /* what else would do where it is needed */
} owners[] = {
    {"factor", ANY & ~T(DEFAULT), T(LINEAR) | T(NTK) | T(YARN), 1, false,
     ", or max_position_embeddings and original_max_position_embeddings, whose ratio it is"},
    {"factor", ANY & ~T(DEFAULT), T(DYNAMIC) | T(LLAMA3), 1, false, ""},
    {"max_position_embeddings", T(DYNAMIC), T(DYNAMIC), PE_UNSET, true,
     " (a Hugging Face config has it beside the object)"},
    {"original_max_position_embeddings", T(YARN) | T(LONGROPE) | T(LLAMA3), T(YARN) | T(LONGROPE) | T(LLAMA3), PE_UNSET,
     true, ", the length the model was trained on (a Hugging Face config may have it beside the object)"},
    {"seq_len", T(DYNAMIC) | T(LONGROPE), 0, PE_UNSET, false, NULL},
    {"beta_fast", T(YARN), 0, 32, false, NULL},
    {"beta_slow", T(YARN), 0, 1, false, NULL},
    {"mscale", T(YARN), 0, PE_UNSET, false, NULL},
    {"mscale_all_dim", T(YARN), 0, PE_UNSET, false, NULL},
    {"extrapolation_factor", T(YARN), 0, 1, false, NULL},
    {"low_freq_factor", T(LLAMA3), T(LLAMA3), PE_UNSET, false, " (Llama 3.1: 1)"},
    {"high_freq_factor", T(LLAMA3), T(LLAMA3), PE_UNSET, false, " (Llama 3.1: 4)"},
    {"short_factor", T(LONGROPE), T(LONGROPE), PE_UNSET, false, ": one number per rotated pair"},
    {"long_factor", T(LONGROPE), T(LONGROPE), PE_UNSET, false, ": one number per rotated pair"},
    {"short_mscale", T(LONGROPE), 0, PE_UNSET, false, NULL},
    {"long_mscale", T(LONGROPE), 0, PE_UNSET, false, NULL},
    {"list", T(LONGROPE), 0, PE_LIST_AUTO, false, NULL},
    {"partial_rotary_factor", ANY, T(PROPORTIONAL), PE_UNSET, false, ""},
    {"attention_factor", T(YARN) | T(LONGROPE), 0, 1, false, NULL},
    {"convention", T(LINEAR) | T(DYNAMIC) | T(YARN) | T(LONGROPE), 0, PE_UNSET, true, NULL},
    {"llama_4_scaling_beta", T(YARN), 0, PE_UNSET, true, NULL},
    {"attn_factor", T(YARN), 0, PE_UNSET, true, NULL},
};
enum { N_OWNERS = sizeof owners / sizeof *owners };

static const char *type_name(int type) { return types[type == NOT_GIVEN ? 0 : type]; }

/* "yarn", "yarn and longrope", "linear, ntk and yarn" from bits. */
static const char *type_names(unsigned used, char *out, size_t room)
{
    size_t at = 0;
    out[0] = '\0';
    for (int t = 0; t < PE_SCALING_SU && at < room; t++) {
        if (!(used & 1U << t))
            continue;
        unsigned later = used & ((1U << PE_SCALING_SU) - 1) & ~((2U << t) - 1);
        const char *next = !later ? "" : later & (later - 1) ? ", " : " and ";
        at += (size_t)snprintf(out + at, room - at, "%s%s", type_name(t), next);
    }
    return out;
}

static void at_field(char pointer[PE_POINTER_MAX], const char *name)
{
    pe_pointer_join(pointer, PE_POINTER_MAX, "/scaling", name);
}

static bool is_set(const struct pe_param *row, const void *field)
{
    switch (row->type) {
    case PE_T_REAL: return !isnan(*(const double *)field);
    case PE_T_REALS: return ((const struct pe_reals *)field)->n > 0;
    case PE_T_WORD: return *(const int *)field != NOT_GIVEN;
    case PE_T_VALUE: return *(const struct pe_value *const *)field != NULL;
    case PE_T_INT:
    case PE_T_BOOL:
    case PE_T_OBJECT: break; /* no such rows */
    }
    return false;
}

static bool is_neutral(const struct pe_param *row, const void *field, double neutral)
{
    return (row->type == PE_T_REAL && *(const double *)field == neutral) ||
           (row->type == PE_T_WORD && *(const int *)field == neutral);
}

static void unset(const struct pe_param *row, void *field)
{
    if (row->type == PE_T_REAL)
        *(double *)field = PE_UNSET;
    else if (row->type == PE_T_WORD)
        *(int *)field = NOT_GIVEN;
}

static enum pe_status fail_unused(const struct owner *o, const struct pe_param *row, const void *field, int type,
                                  struct pe_error *err)
{
    char pointer[PE_POINTER_MAX], found[32] = "given", used[96];
    at_field(pointer, o->name);
    if (row->type == PE_T_REAL)
        snprintf(found, sizeof found, "%.10g", *(const double *)field);
    return pe_fail(err, pointer, "%s is %s, but type is \"%s\"; %s is used by type %s only", o->name, found,
                   type_name(type), o->name, type_names(o->used, used, sizeof used));
}

/* The owner's row; owners stand much in the order of the rows, so it is looked for from the one before on. */
static const struct pe_param *row_of(const struct owner *o, const struct pe_param *from)
{
    for (; from->name; from++)
        if (*from->name == *o->name && strcmp(from->name, o->name) == 0)
            return from;
    return pe_param_find(pe_scaling_params, o->name);
}

static enum pe_status apply_owner(struct pe_scaling *s, const struct owner *o, const struct pe_param *row,
                                  struct pe_error *err)
{
    void *field = (char *)s + row->offset;
    char pointer[PE_POINTER_MAX];
    if (!(o->used & 1U << s->type)) {
        if (is_set(row, field) && !o->quiet && !is_neutral(row, field, o->neutral))
            return fail_unused(o, row, field, s->type, err);
        unset(row, field);
    } else if (o->needed & 1U << s->type && !is_set(row, field)) {
        at_field(pointer, o->name);
        return pe_fail(err, pointer, "%s is missing; type \"%s\" needs it%s", o->name, type_name(s->type), o->instead);
    }
    return PE_OK;
}

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
    at_field(pointer, name);
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
                       "truncate is false, but type is \"%s\"; truncate is used by type yarn only", type_name(s->type));
    s->truncate_given = s->type != PE_SCALING_YARN ? NULL : s->truncate ? &yes : &no;
    s->finetuned = NULL;
    return PE_OK;
}

/* ---- type and factor ---- */

/* The rule a word means. Early Phi-3 configs say yarn for longrope; both lists tell them apart. */
static int rule_of(const struct pe_scaling *s, int word)
{
    if (word == PE_SCALING_MROPE || word == NOT_GIVEN)
        return PE_SCALING_DEFAULT;
    if (word == PE_SCALING_SU || (word == PE_SCALING_YARN && s->short_factor.n && s->long_factor.n))
        return PE_SCALING_LONGROPE;
    return word;
}

enum pe_scaling_type pe_scaling_rule(const struct pe_scaling *s)
{
    return (enum pe_scaling_type)rule_of(s, s->rope_type != NOT_GIVEN ? s->rope_type : s->type);
}

bool pe_scaling_interleaves(const struct pe_scaling *s)
{
    return s->mrope_interleaved_given && s->mrope_interleaved_given->kind == PE_BOOLEAN &&
           s->mrope_interleaved_given->boolean;
}

static enum pe_status resolve_type(struct pe_scaling *s, struct pe_error *err)
{
    int type = rule_of(s, s->type), rope_type = rule_of(s, s->rope_type);
    if (s->rope_type == NOT_GIVEN)
        rope_type = type;
    if (s->type != NOT_GIVEN && type != rope_type)
        return pe_fail(err, "/scaling/rope_type",
                       "rope_type is \"%s\" and type is \"%s\", which are different rules; give one",
                       type_name(s->rope_type), type_name(s->type));
    s->type = rope_type;
    s->rope_type = NOT_GIVEN;
    return PE_OK;
}

/* llama3's factor is no ratio of lengths: Llama 3.1 has 8 for 131072 after 8192. */
static enum pe_status derive_factor(struct pe_scaling *s, struct pe_error *err)
{
    const unsigned by_ratio = T(LINEAR) | T(NTK) | T(YARN) | T(LONGROPE);
    if (s->type == PE_SCALING_PROPORTIONAL && isnan(s->factor))
        s->factor = 1;
    if (!(by_ratio & 1U << s->type) || !isnan(s->factor))
        return PE_OK;
    s->factor = s->max_position_embeddings / s->original_max_position_embeddings;
    if (s->factor < FACTOR_MIN || s->factor > FACTOR_MAX)
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
                       type_name(s->type), use->dim);
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
    at_field(pointer, name);
    if (list->array.rank != 1)
        return pe_fail(err, pointer, "%s has %u dimensions; allowed: one list of numbers", name, list->array.rank);
    if (list->n != n_pairs)
        return pe_fail(err, pointer, "%s has %llu numbers; needed: %zu, one per rotated pair", name,
                       (unsigned long long)list->n, n_pairs);
    return PE_OK;
}

/* Given, else the sequence's. Negative positions count as none: they reach no length. */
static void set_seq_len(struct pe_scaling *s, const struct pe_scaling_use *use)
{
    if (isnan(s->seq_len))
        s->seq_len = fmin(fmax(use->seq_len, 0), SEQ_LEN_MAX);
}

/* One list for the whole sequence: long where seq_len > O (transformers), where the largest position > O (vLLM), always
 * (mlx-lm). TGI takes rows before O from the short list and the others from the long one. */
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
    if (*beta >= BETA_MIN)
        return PE_OK;
    at_field(pointer, name);
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
        bool both = num > 0 && den > 0; /* NaN is not */
        num = both ? num : 1;
        den = both ? den : 0;
    }
    struct pe_dd m = magnitude(s->factor, isnan(num) ? 1 : num);
    return dd_mul_d(dd_div(m, magnitude(s->factor, isnan(den) ? 0 : den)), besides).hi;
}

/* sqrt(1 + ln s/ln O) for s > 1 (2402.13753, Phi-3); Phi-3.5-MoE gives one number for each list instead. */
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
                       "original_max_position_embeddings is %.10g; allowed: more than 1, its logarithm is divided by",
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
    const struct pe_param *row = pe_scaling_params;
    for (size_t i = 0; i < N_OWNERS; i++)
        if (apply_owner(s, &owners[i], row = row_of(&owners[i], row), err))
            return err->status;
    if (resolve_flags(s, err) || check_width(s, use, err) || check_llama3(s, err))
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
