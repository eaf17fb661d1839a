/* The rules that stretch a rotary scheme's context: field `scaling`, written as posenc's own or as the rope_scaling or
 * rope_parameters object of a Hugging Face config (names as in transformers' modeling_rope_utils.py). */
#ifndef PE_SCALING_H
#define PE_SCALING_H

#include "core/waves/freq.h"
#include "core/params.h"

enum pe_scaling_type {
    PE_SCALING_DEFAULT,
    PE_SCALING_LINEAR,
    PE_SCALING_NTK,
    PE_SCALING_DYNAMIC,
    PE_SCALING_YARN,
    PE_SCALING_LONGROPE,
    PE_SCALING_LLAMA3,
    PE_SCALING_PROPORTIONAL,
    PE_SCALING_SU,   /* old word for longrope; becomes it in pe_scaling_resolve */
    PE_SCALING_MROPE /* Qwen2-VL's word for default with an mrope_section; becomes default */
};

/* Where public libraries disagree on the same configuration. */
enum pe_scaling_convention { PE_CONVENTION_TRANSFORMERS, PE_CONVENTION_VLLM, PE_CONVENTION_TGI, PE_CONVENTION_MLX };

enum pe_scaling_list { PE_LIST_AUTO, PE_LIST_SHORT, PE_LIST_LONG };

/* The object's fields as read, then as resolved. Unset reals are NaN, unset words -1, unset lists and values empty. */
struct pe_scaling {
    int type;       /* as read: -1 if not given */
    int rope_type;  /* as read: Hugging Face's later word for type, -1 if not given; resolved: always -1 */
    int convention; /* resolved: -1 for types that all libraries compute alike */
    double factor;
    double max_position_embeddings, original_max_position_embeddings;
    double seq_len; /* dynamic, longrope: given, else derived from the largest position */
    double beta_fast, beta_slow, mscale, mscale_all_dim, extrapolation_factor;
    bool truncate;                         /* resolved */
    const struct pe_value *truncate_given; /* NULL: not given; resolved: set for yarn only */
    double low_freq_factor, high_freq_factor;
    struct pe_reals short_factor, long_factor;
    double short_mscale, long_mscale;
    int list;                     /* longrope: enum pe_scaling_list, resolved to short or long; -1 for other types */
    double partial_rotary_factor; /* proportional; for other types unchanged, and the scheme may move it */
    double attention_factor;
    double softmax_scale_factor; /* DeepSeek-style models multiply the softmax scale by this: m(s, mscale_all_dim)^2 */
    double rope_theta;           /* accepted from a pasted object; the scheme moves it to base */
    struct pe_reals mrope_section; /* accepted from a pasted object, like mrope_interleaved; the scheme moves both */
    bool mrope_interleaved;        /* resolved; false if not given */
    const struct pe_value *mrope_interleaved_given;
    double llama_4_scaling_beta;      /* Ministral 3: accepted, not applied */
    double attn_factor;               /* read by vLLM only */
    const struct pe_value *finetuned; /* accepted from a pasted object, no effect */
};

/* Its rows. Offsets count from a config struct whose first member is the struct pe_scaling. */
extern const struct pe_param pe_scaling_params[];

/* The values of the scheme that the rules need. */
struct pe_scaling_use {
    double base;
    double dim;      /* rotated channels, the denominator of the frequencies: w_c = base^(-2c/dim) */
    double seq_len;  /* floor(largest position) + 1 of the request */
    double head_dim; /* proportional */
    bool float32;    /* arith: float32 - each step as torch does it in f32 */
};

/* Before resolving: the rule that type or rope_type names, and whether a pasted mrope_interleaved is true. */
enum pe_scaling_type pe_scaling_rule(const struct pe_scaling *s);
bool pe_scaling_interleaves(const struct pe_scaling *s);

/* Checks the rules of two or more fields (pointers "/scaling/…"), and sets what was not given: factor, seq_len,
 * list, attention_factor (for every type; 1 if the type has none), softmax_scale_factor if it is not 1. n_pairs:
 * length that short_factor and long_factor must have. Fields without effect on the type in use are unset, so that
 * the printed config is the resolved one. */
enum pe_status pe_scaling_resolve(struct pe_scaling *s, const struct pe_scaling_use *use, size_t n_pairs,
                                  struct pe_error *err);

/* inv_freq[c] for c < n_pairs under resolved rules, radians per position; error below 2^-96 of the frequency without
 * scaling (arith float32: an f32, each step rounded as torch rounds it). In core/schemes/scaling_ladder.c. */
void pe_scaling_ladder(const struct pe_scaling *s, const struct pe_scaling_use *use, size_t n_pairs,
                       struct pe_dd *inv_freq);

#endif
