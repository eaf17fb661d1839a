/* The bias family: schemes that add a number to each scaled logit. Output `bias` [num_heads, q_len, k_len]; keys
 * that a query may not see get -inf. With runs of positions, a bias that depends on the distance is Toeplitz: row i
 * is a window of one vector per head (core/kernels/windows.c copies them), so nothing of the size of the map is ever
 * stored.
 *
 * A scheme of the family puts struct pe_mask_fields first in its config struct, PE_MASK_PARAMS last among its rows
 * and a struct pe_bias first in its tables. In attention the operation applies the masks, and the scheme computes
 * only the biases. */
#ifndef PE_BIAS_H
#define PE_BIAS_H

#include "core/attend.h"
#include "core/numeric/numeric.h"
#include "core/scheme.h"
#include "core/waves/waves.h"

#include <stdatomic.h>

/* One pair of a query and a key. */
struct pe_pair {
    size_t head, batch;
    double q_pos, k_pos;
    uint64_t key; /* the key's index */
};

/* The biases of a scheme, before any mask. `distance` is used if positions are runs, else `row`, else `pair`. */
struct pe_bias_rule {
    /* Biases of one head at the integer distances rel, rel+1, … (rel = k_pos - q_pos), n of them, stored as dtype.
     * NULL if the bias is not a function of the distance. */
    void (*distance)(const struct pe_plan *plan, size_t head, double rel, size_t n, enum pe_dtype dtype, void *out);
    /* The bias of one pair. NULL if there is row(). */
    struct pe_dd (*pair)(const struct pe_plan *plan, const struct pe_pair *glance);
    bool key_only; /* pair() does not use q_pos: all rows are equal apart from the mask */
    /* Biases of one query at n keys from first->key on, stored as dtype, for rules that are cheaper for many keys at
     * once. May be NULL. */
    void (*row)(const struct pe_plan *plan, const struct pe_pair *first, size_t n, enum pe_dtype dtype, void *out);
};

/* The biases of all distances of a run against a run, masks included: [num_heads, q_len + k_len - 1], from the last
 * query's first key to the first query's last. The first fill that needs a block computes it. */
struct pe_bias_line {
    char *values;         /* NULL: nothing is stored. Owned. */
    atomic_uchar *blocks; /* [num_heads, n_blocks]: the state of each block. Owned. */
    size_t n, n_blocks;   /* of one head */
};

/* First member of the scheme's tables. */
struct pe_bias {
    struct pe_mask mask; /* in attention it hides nothing, because attention has its own mask */
    size_t num_heads;
    struct pe_bias_rule rule;
    struct pe_bias_line line;
};

/* The output of schemes that have no other, and its row. */
extern const struct pe_output_row pe_bias_outputs[];
#define PE_BIAS_OUTPUT                                                                                                 \
    PE_OUTPUT("bias", "num_heads,q_len,k_len", 1, PE_DTYPE_NONE, false, NULL, "bias", "added to the scaled logits")

/* The scheme's config must be resolved and its rule set. */
enum pe_status pe_bias_init(struct pe_bias *bias, const struct pe_plan *plan, const struct pe_mask_fields *fields,
                            struct pe_failure *err);
void pe_bias_drop(struct pe_plan *plan); /* the descriptor's drop() of most */
/* Adds the cost of pe_bias_init, for the scheme's cost(). */
void pe_bias_cost(const struct pe_plan *plan, double num_heads, struct pe_cost *cost);

/* Writes a block of the output bias, whatever the id: the descriptor's fill() if there is no other output. In
 * attention, rows are numbered across the batch too: [batch, head, query]. */
void pe_bias_fill(const struct pe_plan *plan, const struct pe_output *output, size_t id, const struct pe_block *block,
                  void *dst);

/* The pair of an element of the output bias. True: the query does not see the key, and that is the whole derivation. */
bool pe_bias_derive_mask(const struct pe_plan *plan, const struct pe_address *at, struct pe_pair *pair,
                         struct pe_derivation *d);

/* Like pe_fill_line, for the output bias, which is Toeplitz unless positions are listed or keys are masked. */
bool pe_bias_fill_line(const struct pe_plan *plan, const struct pe_output *output, size_t id, uint64_t head,
                       uint64_t first, size_t n, void *dst);

/* Writes -inf over those of the keys j0 … (n of them) that query i may not see: for schemes with a fill of their own.
 */
void pe_bias_hide(const struct pe_plan *plan, uint64_t i, uint64_t j0, size_t n, enum pe_dtype dtype, void *row);

/* For attention: bias_at, and the whole struct for a scheme that has only a bias. */
extern const struct pe_attend pe_bias_attend;
bool pe_bias_at(const struct pe_plan *plan, size_t head, double rel, size_t n, double *out);

/* dst[i] = v in dtype, rounded once; zero is +0. */
void pe_bias_store(enum pe_dtype dtype, void *dst, size_t i, struct pe_dd v);
/* Copies element i to elements i+1 … i+n-1. */
void pe_bias_repeat(enum pe_dtype dtype, void *out, size_t i, size_t n);

/* Stores a value that is known only to within `error`, which is at least 2^-50 of it (f32, f16, bf16). Returns
 * false, and dst[i] may be wrong, if the value is so near the midpoint between two numbers that the error decides
 * the rounding. */
bool pe_bias_settle(enum pe_dtype dtype, void *dst, size_t i, double v, double error);

/* out[i] = -(slope · (first + step · i)), i < n, every value rounded once; zero is +0. */
void pe_bias_products(struct pe_dd slope, double first, double step, size_t n, enum pe_dtype dtype, void *out);

/* ---- Windows ---- */

/* Bias of tokens in a window of h by w (Swin and BEiT): one number per head for every position of a key relative to
 * a query, so the map is block-Toeplitz and comes from a table of (2h-1)·(2w-1) rows.
 *
 *     index[i, j] = (y_i - y_j + h - 1)·(2w - 1) + (x_i - x_j + w - 1)          query minus key, tokens row by row
 *     bias[head, i, j] = table[index[i, j], head]
 *
 * A window of three axes [t,h,w] has a table of (2t-1)·(2h-1)·(2w-1) rows, and (t_i - t_j + t - 1)·(2h-1)·(2w-1) more
 * in the index (Video Swin, arXiv 2106.13230). The table of another window is resized axis by axis, if table_grid
 * states that window.
 *
 * With a class token in front there are three rows more, M = (2h-1)·(2w-1): index[0, j] = M, index[i, 0] = M + 1,
 * index[0, 0] = M + 2.
 *
 * The plan turns its sequence into a run: token i is at position i, the class token at 0. So `key_mask` counts the
 * tokens, and `causal`, `window`, `window_right` compare their numbers, as if the window were read line by line.
 *
 * A scheme of the family puts struct pe_window_fields first in its config struct, PE_WINDOW_PARAMS last among its
 * rows and a struct pe_window first in its tables. Without weights it answers `index`. */

struct pe_window_fields {
    struct pe_mask_fields bias;
    int64_t num_heads, seed;
    double std;
    struct pe_reals table_grid; /* of schemes with a table */
    int interpolate;
};

#define PE_WINDOW_PARAMS PE_P_SEED(pe_window_fields), PE_MASK_PARAMS

extern const struct pe_output_row pe_window_outputs[]; /* bias, index */

struct pe_window {
    struct pe_bias bias;
    uint64_t frames, h, w; /* frames: 1 of a window of two axes */
    uint64_t from[3];      /* rows of the sent table along each axis; 0: it is not resized */
    struct pe_resample_taps taps[3];
    bool has_class;
    uint64_t n_rows;     /* of the table, including those of the class token */
    size_t num_heads;    /* 0: no weights, no bias */
    enum pe_dtype dtype; /* of the table: the plan's dtype; f64 in attention */
    void *table;         /* [num_heads, n_rows], rows in reverse order, so that neighbouring keys are neighbours here */
    /* Biases of all heads in a row of the table as the model has it: [num_heads]. */
    void (*row)(const struct pe_plan *plan, uint64_t row, double *out);
    /* The steps of one of them, for /derive. NULL: it is looked up. */
    void (*state)(const struct pe_plan *plan, uint64_t row, size_t head, struct pe_derivation *d);
    /* The first fills compute the table: each takes the next free rows. */
    atomic_size_t next, made;
};

/* Gets the window from the sequence, and the mask. */
enum pe_status pe_window_init(struct pe_window *window, struct pe_plan *plan, struct pe_failure *err);
/* Allocates the table. row() computes each of its rows with the given work in multiply-adds. num_heads must be
 * resolved. */
enum pe_status pe_window_keep(struct pe_plan *plan, void (*row)(const struct pe_plan *, uint64_t, double *),
                              double work, struct pe_failure *err);

/* Parameters and the whole plan() of schemes whose table is input 0 (swin, beit). Allocates plan->tables. */
extern const struct pe_param pe_window_params[];
enum pe_status pe_window_plan(struct pe_plan *plan, struct pe_failure *err);

/* The rest of the descriptor. */
void pe_window_cost(const struct pe_plan *plan, struct pe_cost *cost);
void pe_window_drop(struct pe_plan *plan);
void pe_window_fill(const struct pe_plan *plan, const struct pe_output *output, size_t id, const struct pe_block *block,
                    void *dst);
enum pe_status pe_window_derive(const struct pe_plan *plan, size_t id, const struct pe_address *at,
                                struct pe_derivation *d, struct pe_failure *err);

#endif
