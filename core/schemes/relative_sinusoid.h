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

#include "core/schemes/relative.h"

/* First in the config struct. */
struct pe_rel_sin_fields {
    struct pe_relative_fields relative;
    double base;
    int64_t clamp_len, mem_len, d_model;
    bool same_length, causal;
    struct pe_reals token_type_ids; /* xlnet */
};

#define PE_REL_SIN_PARAMS                                                                                              \
    PE_P_REAL(pe_rel_sin_fields, base, 10000, 1e-3, 1e12, "wavelength base", "波长基数", "wavelength base of R",       \
              "R 的波长基数", .group = PE_G_FREQUENCIES, .usual = {100, 1e7}),                                         \
        PE_P_INT(pe_rel_sin_fields, clamp_len, -1, -1, PE_POSITION_MAX, "clamp of distances", "距离截断",              \
                 "distances are clamped to this value; -1 or 0: no clamp", "距离截断到该值；-1 或 0：不截断",          \
                 .usual = {-1, 512}),                                                                                  \
        PE_P_INT(pe_rel_sin_fields, mem_len, 0, 0, PE_POSITION_MAX, "memory length", "记忆长度",                       \
                 "number of keys of earlier segments, before the others: /encode with len has k_len = len + mem_len",  \
                 "来自更早片段的键数，排在其他键之前：/encode 中给出 len 时 k_len = len + "      \
                 "mem_len",                                                                                            \
                 .usual = {0, 512}),                                                                                   \
        PE_P_BOOL(pe_rel_sin_fields, same_length, false, "same length", "等长注意",                                    \
                  "with causal: every query sees the same number of keys, as with a full memory",                      \
                  "与 causal 同用：每个查询看到的键数相同，如同记忆已满"),                                             \
        PE_P_INT(pe_rel_sin_fields, d_model, PE_UNSET, 2, PE_DIM_MAX, "width of R", "R 的宽度",                        \
                 "channels of R; if w_r is sent, its own; default num_heads·head_dim",                                 \
                 "R 的通道数；若发送了 w_r，则由 w_r 决定；默认 num_heads·head_dim", .group = PE_G_SIZE,               \
                 .usual = {8, 1024}),                                                                                  \
        PE_P_BOOL(pe_rel_sin_fields, causal, false, "causal mask", "因果掩码",                                         \
                  "true: keys after the query are hidden", "true：遮住查询之后的键", .level = PE_BASIC,                \
                  .group = PE_G_MASK),                                                                                 \
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
    [PE_REL_U] = PE_INPUT("u", "num_heads,head_dim", PE_ATTEND, false, "content query", "内容查询偏置",                \
                          "r_w_bias: a query for content", "r_w_bias：用于内容的查询"),                                \
    [PE_REL_V] = PE_INPUT("v_bias", "num_heads,head_dim", PE_ATTEND, false, "position query", "位置查询偏置",          \
                          "r_r_bias: a query for position", "r_r_bias：用于位置的查询"),                               \
    [PE_REL_W] = PE_INPUT("w_r", "num_heads*head_dim,d_model", PE_ATTEND, false, "projection of R", "R 的投影",        \
                          "r_net.weight: projects R", "r_net.weight：对 R 作投影")

extern const struct pe_output_row pe_rel_sin_outputs[];
extern const struct pe_attend pe_rel_sin_attend;

enum pe_status pe_rel_sin_plan(struct pe_plan *plan, const struct pe_rel_sin_style *style, struct pe_error *err);
void pe_rel_sin_cost(const struct pe_plan *plan, struct pe_cost *cost);
void pe_rel_sin_drop(struct pe_plan *plan);
void pe_rel_sin_fill(const struct pe_plan *plan, const struct pe_output *output, size_t id,
                     const struct pe_block *block, void *dst);
uint64_t pe_rel_sin_width(const struct pe_plan *plan); /* "width" of the outputs: how many distances */

#endif
