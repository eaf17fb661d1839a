/* The fields of an object `scaling`: their rows, and which type uses which. The rules between them are in scaling.c. */
#include "core/schemes/scaling_fields.h"

#include <stdio.h>
#include <string.h>

/* ---- Rows ---- */

static const char *const types[] = {"default", "linear",       "ntk", "dynamic", "yarn", "longrope",
                                    "llama3",  "proportional", "su",  "mrope",   NULL};
static const char *const conventions[] = {"transformers", "vllm", "tgi", "mlx", NULL};
static const char *const lists[] = {"auto", "short", "long", NULL};

#define LENGTH_MAX 0x1p40

/* Bounds that keep every derived attention_factor within the row of that name: m(s, 1000) < 1400. */
#define MSCALE_MAX 1000

#define WORD(field, fallback_, words_, ...)                                                                            \
    {                                                                                                                  \
        .name = #field, .type = PE_T_WORD, .offset = PE_OFFSET(pe_scaling, field, int), .fallback = (fallback_),       \
        .words = (words_), PE_TEXTS(__VA_ARGS__)                                                                       \
    }
#define VALUE(name_, field, ...)                                                                                       \
    {                                                                                                                  \
        .name = name_, .type = PE_T_VALUE, .offset = PE_OFFSET(pe_scaling, field, const struct pe_value *),            \
        PE_TEXTS(__VA_ARGS__)                                                                                          \
    }
#define REAL(field, fallback_, min_, max_, ...) PE_P_REAL(pe_scaling, field, fallback_, min_, max_, __VA_ARGS__)

const struct pe_param pe_scaling_params[] = {
    WORD(type, PE_UNSET_WORD, types, "scaling rule",
         "rule that stretches the context. default: none. linear: w/factor (position interpolation). ntk: base becomes "
         "base·factor^(r/(r-2)), r the rotated channels. dynamic: the same with a factor that grows with the sequence. "
         "yarn: a blend per pair by its turns in the original length, and an attention factor. longrope: a divisor per "
         "pair from two lists (Phi-3). llama3: a blend per pair by wavelength. proportional: the lowest frequencies "
         "become 0 (Gemma 4). su is an old word for longrope, mrope for default with an mrope_section",
         .level = PE_BASIC, .group = PE_G_SCALING),
    WORD(rope_type, PE_UNSET_WORD, types, "scaling rule, newer name",
         "Hugging Face's newer name for type; both may be given if they name the same rule", .group = PE_G_SCALING),
    WORD(
        convention, PE_CONVENTION_TRANSFORMERS, conventions, "library convention",
        "which library to follow where they compute differently. linear: tgi ignores it. dynamic: vllm makes one table "
        "for factor·max_position_embeddings at every length. yarn: vllm, tgi and mlx read mscale without "
        "mscale_all_dim (as m(factor, mscale)/m(factor, mscale_all_dim) with 1 and 0 for what is missing), vllm "
        "attn_factor; tgi sets beta_fast 32, beta_slow 1. longrope: mlx always uses the long list, vllm changes lists "
        "one position later, tgi mixes rows of both",
        .group = PE_G_SCALING),
    REAL(factor, PE_UNSET, PE_SCALING_FACTOR_MIN, PE_SCALING_FACTOR_MAX, "scaling factor",
         "how many times longer the context becomes; default of linear, ntk, yarn and longrope: "
         "max_position_embeddings/original_max_position_embeddings if both are given; of proportional: 1",
         .level = PE_BASIC, .group = PE_G_SCALING, .usual = {1, 64}),
    REAL(max_position_embeddings, PE_UNSET, 1, LENGTH_MAX, "stretched length",
         "a number of positions: for dynamic the length where stretching begins, for other types the stretched length, "
         "used only to derive factor",
         .group = PE_G_SCALING, .usual = {256, 262144}),
    REAL(original_max_position_embeddings, PE_UNSET, 1, LENGTH_MAX, "training length",
         "number of positions that the model was trained on; yarn, longrope and llama3 need it", .level = PE_BASIC,
         .group = PE_G_SCALING, .usual = {256, 262144}),
    REAL(seq_len, PE_UNSET, 0, PE_SCALING_SEQ_LEN_MAX, "sequence length",
         "number of positions in the sequence, which decides dynamic's base and longrope's list; default the largest "
         "position + 1",
         .group = PE_G_SCALING, .usual = {256, 1048576}),
    REAL(beta_fast, 32, 0, 1e9, "fast end of the ramp",
         "yarn: pairs that make more turns than this in the original length keep their frequency; 0 means 32",
         .group = PE_G_SCALING, .usual = {1, 64}),
    REAL(beta_slow, 1, 0, 1e9, "slow end of the ramp",
         "yarn: pairs that make fewer turns than this in the original length are divided by factor; 0 means 1",
         .group = PE_G_SCALING, .usual = {0.125, 8}),
    REAL(
        mscale, PE_UNSET, 0, MSCALE_MAX, "magnitude factor",
        "yarn: with mscale_all_dim, both not 0, attention_factor is m(factor, mscale)/m(factor, mscale_all_dim), where "
        "m(s, k) = 0.1·k·ln(s) + 1, and 1 for s up to 1",
        .group = PE_G_SCALING, .usual = {0.1, 2}),
    REAL(mscale_all_dim, PE_UNSET, 0, MSCALE_MAX, "magnitude factor, all channels",
         "yarn: see mscale; not 0, it also sets softmax_scale_factor", .group = PE_G_SCALING, .usual = {0.1, 2}),
    VALUE("truncate", truncate_given, "round the ramp",
          "yarn, true or false, default true: the ends of the ramp are rounded outwards to whole pairs; gpt-oss: false",
          .group = PE_G_SCALING),
    REAL(extrapolation_factor, 1, 0, 1, "extrapolation weight",
         "yarn: weight of the unstretched frequency in pairs that keep theirs", .group = PE_G_SCALING),
    REAL(low_freq_factor, PE_UNSET, 1e-6, 1e6, "low-frequency limit",
         "llama3: pairs that make fewer turns than this in the original length are divided by factor (Llama 3.1: 1)",
         .group = PE_G_SCALING, .usual = {0.5, 8}),
    REAL(high_freq_factor, PE_UNSET, 1e-6, 1e6, "high-frequency limit",
         "llama3: pairs that make more turns than this in the original length keep their frequency (Llama 3.1: 4)",
         .group = PE_G_SCALING, .usual = {1, 32}),
    PE_P_REALS(pe_scaling, short_factor, 1e-6, 1e9, "short list",
               "longrope: divisors of the frequencies for sequences within the original length: [pairs]",
               .group = PE_G_SCALING),
    PE_P_REALS(pe_scaling, long_factor, 1e-6, 1e9, "long list",
               "longrope: divisors of the frequencies for longer sequences: [pairs]", .group = PE_G_SCALING),
    REAL(short_mscale, PE_UNSET, 1e-3, 1e3, "factor of the short list",
         "longrope: attention_factor if the short list is used (Phi-3.5-MoE)", .group = PE_G_SCALING,
         .usual = {0.5, 2}),
    REAL(long_mscale, PE_UNSET, 1e-3, 1e3, "factor of the long list",
         "longrope: attention_factor if the long list is used (Phi-3.5-MoE)", .group = PE_G_SCALING, .usual = {0.5, 2}),
    WORD(
        list, PE_LIST_AUTO, lists, "choice of the list",
        "longrope: the list for the whole sequence; auto: long where seq_len is above original_max_position_embeddings "
        "(see convention)",
        .group = PE_G_SCALING),
    REAL(partial_rotary_factor, PE_UNSET, 0, 1, "share that keeps a frequency",
         "proportional: share of the head's pairs that keep a frequency, rounded down; the others get 0",
         .group = PE_G_SCALING),
    REAL(attention_factor, PE_UNSET, 1e-6, 1e6, "attention factor",
         "factor on cos and sin; default of yarn m(factor, 1) (see mscale); of longrope sqrt(1 + "
         "ln(factor)/ln(original_max_position_embeddings)) for a factor above 1; else 1",
         .group = PE_G_SCALING, .usual = {0.5, 2}),
    REAL(softmax_scale_factor, PE_UNSET, 1e-9, 1e9, "softmax scale factor",
         "the factor by which such models also multiply the softmax scale; it is reported but not applied; default for "
         "yarn with mscale_all_dim: m(factor, mscale_all_dim)^2 (DeepSeek-V3: 1.87385)",
         .group = PE_G_SCALING, .usual = {0.5, 2}),
    REAL(rope_theta, PE_UNSET, 1e-3, 1e12, "wavelength base", "the base, if a pasted object has it",
         .group = PE_G_SCALING, .usual = {100, 1e7}),
    PE_P_REALS(pe_scaling, mrope_section, 0, 65536, "pairs of each axis",
               "pairs of each axis (time, height, width), if a pasted object has them", .group = PE_G_SCALING),
    VALUE("mrope_interleaved", mrope_interleaved_given, "interleave the axes",
          "true or false, if a pasted object has it: the axes alternate from pair to pair", .group = PE_G_SCALING),
    REAL(attn_factor, PE_UNSET, 0.01, 100, "attention multiplier",
         "yarn with convention vllm: multiplies the derived attention_factor; ignored otherwise, as transformers does",
         .group = PE_G_SCALING, .usual = {0.5, 2}),
    REAL(llama_4_scaling_beta, PE_UNSET, 0, 1e3, "query scaling of Ministral 3",
         "Ministral 3 also multiplies its queries by 1 + beta·ln(1 + floor(p/original_max_position_embeddings)); not "
         "applied here",
         .group = PE_G_SCALING, .usual = {0, 1}),
    VALUE("finetuned", finetuned, "fine-tuned", "ignored; some pasted objects have it", .group = PE_G_SCALING),
    PE_P_END,
};

/* ---- Which type uses which field ---- */

enum { ANY = ~0U >> 1 };

/* Fields that belong to some types. With another type they are refused, unless they have the value that changes
 * nothing (NaN: there is none), or are fields such as lengths that objects often include (quiet). */
static const struct owner {
    const char *name;
    unsigned used, needed;
    double neutral;
    bool quiet;
    const char *instead; /* a field that can replace it where it is required */
} owners[] = {
    {"factor", ANY & ~PE_SCALING_BIT(DEFAULT), PE_SCALING_BIT(LINEAR) | PE_SCALING_BIT(NTK) | PE_SCALING_BIT(YARN), 1,
     false, ", or max_position_embeddings and original_max_position_embeddings, whose ratio it is"},
    {"factor", ANY & ~PE_SCALING_BIT(DEFAULT), PE_SCALING_BIT(DYNAMIC) | PE_SCALING_BIT(LLAMA3), 1, false, ""},
    {"max_position_embeddings", PE_SCALING_BIT(DYNAMIC), PE_SCALING_BIT(DYNAMIC), PE_UNSET, true,
     " (a Hugging Face config has it beside the object)"},
    {"original_max_position_embeddings", PE_SCALING_BIT(YARN) | PE_SCALING_BIT(LONGROPE) | PE_SCALING_BIT(LLAMA3),
     PE_SCALING_BIT(YARN) | PE_SCALING_BIT(LONGROPE) | PE_SCALING_BIT(LLAMA3), PE_UNSET, true,
     ", the length the model was trained on (a Hugging Face config may have it beside the object)"},
    {"seq_len", PE_SCALING_BIT(DYNAMIC) | PE_SCALING_BIT(LONGROPE), 0, PE_UNSET, false, NULL},
    {"beta_fast", PE_SCALING_BIT(YARN), 0, 32, false, NULL},
    {"beta_slow", PE_SCALING_BIT(YARN), 0, 1, false, NULL},
    {"mscale", PE_SCALING_BIT(YARN), 0, PE_UNSET, false, NULL},
    {"mscale_all_dim", PE_SCALING_BIT(YARN), 0, PE_UNSET, false, NULL},
    {"extrapolation_factor", PE_SCALING_BIT(YARN), 0, 1, false, NULL},
    {"low_freq_factor", PE_SCALING_BIT(LLAMA3), PE_SCALING_BIT(LLAMA3), PE_UNSET, false, " (Llama 3.1: 1)"},
    {"high_freq_factor", PE_SCALING_BIT(LLAMA3), PE_SCALING_BIT(LLAMA3), PE_UNSET, false, " (Llama 3.1: 4)"},
    {"short_factor", PE_SCALING_BIT(LONGROPE), PE_SCALING_BIT(LONGROPE), PE_UNSET, false,
     ": one number per rotated pair"},
    {"long_factor", PE_SCALING_BIT(LONGROPE), PE_SCALING_BIT(LONGROPE), PE_UNSET, false,
     ": one number per rotated pair"},
    {"short_mscale", PE_SCALING_BIT(LONGROPE), 0, PE_UNSET, false, NULL},
    {"long_mscale", PE_SCALING_BIT(LONGROPE), 0, PE_UNSET, false, NULL},
    {"list", PE_SCALING_BIT(LONGROPE), 0, PE_LIST_AUTO, false, NULL},
    {"partial_rotary_factor", ANY, PE_SCALING_BIT(PROPORTIONAL), PE_UNSET, false, ""},
    {"attention_factor", PE_SCALING_BIT(YARN) | PE_SCALING_BIT(LONGROPE), 0, 1, false, NULL},
    {"convention", PE_SCALING_BIT(LINEAR) | PE_SCALING_BIT(DYNAMIC) | PE_SCALING_BIT(YARN) | PE_SCALING_BIT(LONGROPE),
     0, PE_UNSET, true, NULL},
    {"llama_4_scaling_beta", PE_SCALING_BIT(YARN), 0, PE_UNSET, true, NULL},
    {"attn_factor", PE_SCALING_BIT(YARN), 0, PE_UNSET, true, NULL},
};
enum { N_OWNERS = sizeof owners / sizeof *owners };

const char *pe_scaling_type_name(int type) { return types[type == PE_UNSET_WORD ? 0 : type]; }

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
        at += (size_t)snprintf(out + at, room - at, "%s%s", pe_scaling_type_name(t), next);
    }
    return out;
}

void pe_scaling_at(char pointer[PE_POINTER_MAX], const char *name)
{
    pe_pointer_join(pointer, PE_POINTER_MAX, "/scaling", name);
}

static bool is_set(const struct pe_param *row, const void *field)
{
    switch (row->type) {
    case PE_T_REAL: return !isnan(*(const double *)field);
    case PE_T_REALS: return ((const struct pe_reals *)field)->n > 0;
    case PE_T_WORD: return *(const int *)field != PE_UNSET_WORD;
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
        *(int *)field = PE_UNSET_WORD;
}

static enum pe_status fail_unused(const struct owner *o, const struct pe_param *row, const void *field, int type,
                                  struct pe_error *err)
{
    char pointer[PE_POINTER_MAX], found[32] = "given", used[96];
    pe_scaling_at(pointer, o->name);
    if (row->type == PE_T_REAL)
        snprintf(found, sizeof found, "%.10g", *(const double *)field);
    return pe_fail(err, pointer, "%s is %s, but type is \"%s\"; %s is used by type %s only", o->name, found,
                   pe_scaling_type_name(type), o->name, type_names(o->used, used, sizeof used));
}

/* The owner's row. Owners are in nearly the same order as the rows, so the search starts at the previous result. */
static const struct pe_param *row_of(const struct owner *o, const struct pe_param *from)
{
    for (; from->name; from++)
        if (pe_same(from->name, o->name))
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
        pe_scaling_at(pointer, o->name);
        return pe_fail(err, pointer, "%s is missing; type \"%s\" needs it%s", o->name, pe_scaling_type_name(s->type),
                       o->instead);
    }
    return PE_OK;
}

enum pe_status pe_scaling_check_fields(struct pe_scaling *s, struct pe_error *err)
{
    const struct pe_param *row = pe_scaling_params;
    for (size_t i = 0; i < N_OWNERS; i++)
        if (apply_owner(s, &owners[i], row = row_of(&owners[i], row), err))
            return err->status;
    return PE_OK;
}
