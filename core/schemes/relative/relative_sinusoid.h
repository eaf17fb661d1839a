/* The Transformer-XL family: logits with a term of the sinusoidal encoding R of the distance (Dai et al. 2019, arXiv
 * 1901.02860, section 3.3), and two learned query vectors per head, u for content and v for position.
 *
 *     delta = q_pos - k_pos
 *     logit[i, j] = softmax_scale · ((q_i + u_h)·k_j + (q_i + v_h)·(W_r R(delta))_h)
 *
 * R has d_model channels; delta may be clamped first. The schemes differ in the order of R's channels, in the
 * distances that their tables list, and in the clamp. */
#ifndef PE_RELATIVE_SINUSOID_H
#define PE_RELATIVE_SINUSOID_H

#include "core/schemes/relative/relative.h"

/* First in the config struct. */
struct pe_rel_sin_fields {
    struct pe_relative_fields relative;
    double base;
    int64_t clamp_len, mem_len, d_model;
    bool same_length, causal;
    struct pe_reals token_type_ids; /* xlnet */
};

#define PE_REL_SIN_PARAMS                                                                                              \
    PE_P_REAL(pe_rel_sin_fields, base, 10000, 1e-3, 1e12, "wavelength base", "wavelength base of R",                   \
              .group = PE_G_FREQUENCIES, .usual = {100, 1e7}),                                                         \
        PE_P_INT(pe_rel_sin_fields, clamp_len, -1, -1, PE_POSITION_MAX, "clamp of distances",                          \
                 "distances are clamped to this value; -1 or 0: no clamp", .usual = {-1, 512}),                        \
        PE_P_INT(pe_rel_sin_fields, mem_len, 0, 0, PE_POSITION_MAX, "memory length",                                   \
                 "number of keys of earlier segments, before the others: /encode with len has k_len = len + mem_len",  \
                 .usual = {0, 512}),                                                                                   \
        PE_P_BOOL(pe_rel_sin_fields, same_length, false, "same length",                                                \
                  "with causal: every query sees the same number of keys, as with a full memory"),                     \
        PE_P_INT(pe_rel_sin_fields, d_model, PE_UNSET, 2, PE_DIM_MAX, "width of R",                                    \
                 "channels of R; if w_r is sent, its own; default num_heads·head_dim", .group = PE_G_SIZE,             \
                 .usual = {8, 1024}),                                                                                  \
        PE_P_BOOL(pe_rel_sin_fields, causal, false, "causal mask", "true: keys after the query are hidden",            \
                  .level = PE_BASIC, .group = PE_G_MASK),                                                              \
        PE_RELATIVE_PARAMS

/* The differences between the schemes. */
struct pe_rel_sin_style {
    bool is_interleaved; /* R's channels: sin, cos, sin, …; else all sines, then all cosines */
    bool clamps_both;    /* to ±clamp_len; else only from above */
    bool has_segments;   /* inputs PE_REL_SEG_EMBED, PE_REL_SEG_BIAS and the field token_type_ids */
    /* The distances of the output: from *first down to *last, of which those from most to least occur. */
    void (*list)(const struct pe_rel_sin_fields *c, double most, double least, double *first, double *last);
};

enum pe_rel_sin_input { PE_REL_U, PE_REL_V, PE_REL_W, PE_REL_SEG_EMBED, PE_REL_SEG_BIAS };
#define PE_REL_SIN_INPUTS                                                                                              \
    [PE_REL_U] =                                                                                                       \
        PE_INPUT("u", "num_heads,head_dim", PE_ATTEND, false, "content query", "r_w_bias: a query for content"),       \
    [PE_REL_V] = PE_INPUT("v_bias", "num_heads,head_dim", PE_ATTEND, false, "position query",                          \
                          "r_r_bias: a query for position"),                                                           \
    [PE_REL_W] =                                                                                                       \
        PE_INPUT("w_r", "num_heads*head_dim,d_model", PE_ATTEND, false, "projection of R", "r_net.weight: projects R")

extern const struct pe_output_row pe_rel_sin_outputs[];
extern const struct pe_attend pe_rel_sin_attend;

enum pe_status pe_rel_sin_plan(struct pe_plan *plan, const struct pe_rel_sin_style *style, struct pe_error *err);
void pe_rel_sin_cost(const struct pe_plan *plan, struct pe_cost *cost);
void pe_rel_sin_drop(struct pe_plan *plan);
void pe_rel_sin_fill(const struct pe_plan *plan, const struct pe_output *output, size_t id,
                     const struct pe_block *block, void *dst);
uint64_t pe_rel_sin_width(const struct pe_plan *plan); /* "width" of the outputs: how many distances */

#endif
