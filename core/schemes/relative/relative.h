/* The relative family: terms of the logits that depend on content and on the position of a key relative to a query. A
 * table has a row for each relative position (or for several). Positions are integers.
 *
 * The terms are products with the table and a gather (never a tensor of pairs times channels):
 *
 *     by query: logits[i, j] += factor · q_i · table[row(k_j - q_i)]
 *     by key:   logits[i, j] += factor · k_j · table[row(k_j - q_i)]
 *
 * By query there is one product q·tableᵀ, and each row gathers its own entries. By key there is one product k·tableᵀ
 * for all queries of the head or, if that would be large, table·kᵀ for a few keys at a time.
 *
 * For the distances where row(rel + 1) = row(rel) + 1, the gather is a load and a permutation
 * (core/kernels/attend_picks.h).
 *
 * A scheme of the family puts struct pe_relative_fields first in its config struct and PE_RELATIVE_PARAMS among its
 * rows. */
#ifndef PE_RELATIVE_H
#define PE_RELATIVE_H

#include "core/attend.h"
#include "core/scheme.h"

struct pe_relative_fields {
    int64_t num_heads, head_dim, seed;
    double std;
};

#define PE_RELATIVE_PARAMS                                                                                             \
    PE_P_INT(pe_relative_fields, num_heads, 8, 1, PE_HEADS_MAX, "heads", "attention heads; if q is sent, its own",     \
             .group = PE_G_SIZE, .usual = {1, 32}),                                                                    \
        PE_P_INT(pe_relative_fields, head_dim, 64, 1, PE_HEAD_DIM_MAX, "head width",                                   \
                 "channels of one head; if q is sent, its own", .group = PE_G_SIZE, .usual = {8, 256}),                \
        PE_P_SEED(pe_relative_fields)

/* Refuses positions with a fraction. */
enum pe_status pe_relative_check(const struct pe_plan *plan, struct pe_failure *err);

/* The table rows of all distances, ascending, if sequences are runs: first in the tables of schemes with `table_row`,
 * whose attend->open is pe_relative_open and whose drop() frees `run`. */
struct pe_relative_index {
    int32_t *run;   /* [q_len + k_len - 1], owned; NULL: each row is computed when needed */
    bool is_smooth; /* the rows along it only rise or only fall, by at most one */
};
/* Adds the cost of opening it if one row takes ns nanoseconds, for the scheme's cost(). */
void pe_relative_index_cost(const struct pe_plan *plan, double ns, struct pe_cost *cost);
enum pe_status pe_relative_open(const struct pe_plan *plan, const struct pe_arithmetic *a, struct pe_failure *err);

/* The smallest and the largest relative position in the sequence. */
void pe_relative_reach(const struct pe_plan *plan, int64_t *least, int64_t *most);

/* fill() and line() of the output index [q_len, k_len]. */
void pe_relative_fill(const struct pe_plan *plan, const struct pe_output *output, size_t id,
                      const struct pe_block *block, void *dst);
bool pe_relative_line(const struct pe_plan *plan, const struct pe_output *output, size_t id, uint64_t matrix,
                      uint64_t first, size_t n, void *dst);

/* Scratch of the two below, in numbers, for blocks of n_rows queries and a table of n_table rows. */
size_t pe_relative_scratch(const struct pe_plan *plan, size_t n_rows, size_t n_table);

/* Size of a head's table in numbers of the arithmetic: [n_table, head_dim], followed by the same in panels. */
size_t pe_relative_table_size(size_t n_table, size_t head_dim);
void pe_relative_table_set(const struct pe_arithmetic *a, const double *from, size_t n_table, size_t head_dim,
                           void *table);
const void *pe_relative_panels(const struct pe_arithmetic *a, const void *table, size_t n_table, size_t head_dim);

/* Products of all keys of a head with all rows of its table, for the terms by key: their size, 0 if they are not
 * used, and their computation with keys like those of pe_attend.open_keys. */
size_t pe_relative_meeting_size(const struct pe_plan *plan, size_t n_table);
void pe_relative_meet(const struct pe_rows *keys, const void *table, size_t n_table, void *meeting);

/* index: NULL, each row is computed when needed. */
void pe_relative_add_by_query(const struct pe_rows *rows, const struct pe_relative_index *index, const void *panels,
                              size_t n_table, double factor);
void pe_relative_add_by_key(const struct pe_rows *rows, const struct pe_relative_index *index, const void *table,
                            const void *meeting, size_t n_table, double factor);
/* Adds the parts that the configuration has: add_scores() of schemes whose scores are the sum of their parts. */
void pe_relative_add_parts(const struct pe_rows *rows);
/* out [n_rows, v_dim] += sum over j of p[i, j] · table[row(k_j - q_i)], p in rows->logits; table: [n_table, v_dim]. */
void pe_relative_add_values(const struct pe_rows *rows, const struct pe_relative_index *index, const void *table,
                            size_t n_table, void *out, size_t out_stride, size_t v_dim);

/* The largest norm of a row of table [n, width]. */
double pe_relative_norm(const double *table, size_t n, size_t width);

/* ---- The Transformer-XL family ---- */

/* The Transformer-XL family: logits with a term of the sinusoidal encoding R of the distance (Dai et al. 2019, arXiv
 * 1901.02860, section 3.3), and two learned query vectors per head, u for content and v for position.
 *
 *     delta = q_pos - k_pos
 *     logit[i, j] = softmax_scale · ((q_i + u_h)·k_j + (q_i + v_h)·(W_r R(delta))_h)
 *
 * R has d_model channels; delta may be clamped first. The schemes differ in the order of R's channels, in the
 * distances that their tables list, and in the clamp. */

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

/* The lines that every scheme of the family has. */
#define PE_REL_SIN_FORMULA                                                                                             \
    {"w[i] = base^(-2*i/d_model)", "the frequencies"},                                                                 \
    {                                                                                                                  \
        "e[i] = sum(j, 0, d_model - 1, w_r[h*head_dim + i, j]*R[j])", "the distance's encoding, projected for head h"  \
    }

/* plan->tables. Its arrays and waves are owned. */
struct pe_rel_sin_tables {
    double first; /* of the output's distances, or of the attention's */
    uint64_t n;
    struct pe_waves *waves;
    /* Attention. */
    double *u, *v, *seg, *seg_bias; /* [num_heads, head_dim]; seg: [2, num_heads, head_dim]; NULL: none */
    double *w;                      /* [num_heads · head_dim, d_model] */
    uint8_t *types;                 /* [k_len]: token_type_ids, counted from the smallest */
    void *projected; /* panels of each head in the arithmetic's format; NULL: computed again for each head */
};

/* The rest of the descriptor, but `style`. */
#define PE_REL_SIN_SCHEME                                                                                              \
    .config_bytes = sizeof(struct pe_rel_sin_fields), .tables_bytes = sizeof(struct pe_rel_sin_tables),                \
    .is_pairwise = true, .cost = pe_rel_sin_cost, .plan = pe_rel_sin_plan, .drop = pe_rel_sin_drop,                    \
    .width = pe_rel_sin_width, .fill = pe_rel_sin_fill, .table_row = pe_rel_sin_row, .derive = pe_rel_sin_derive,      \
    .attend = &pe_rel_sin_attend

extern const struct pe_output_row pe_rel_sin_outputs[];
extern const struct pe_attend pe_rel_sin_attend;
enum pe_status pe_rel_sin_plan(struct pe_plan *plan, struct pe_failure *err);
void pe_rel_sin_cost(const struct pe_plan *plan, struct pe_cost *cost);
void pe_rel_sin_drop(struct pe_plan *plan);
void pe_rel_sin_fill(const struct pe_plan *plan, const struct pe_output *output, size_t id,
                     const struct pe_block *block, void *dst);
enum pe_status pe_rel_sin_derive(const struct pe_plan *plan, size_t id, const struct pe_address *at,
                                 struct pe_derivation *d, struct pe_failure *err);
uint64_t pe_rel_sin_width(const struct pe_plan *plan); /* "width" of the outputs: how many distances */
int32_t pe_rel_sin_row(const struct pe_plan *plan, int64_t rel);

#endif
