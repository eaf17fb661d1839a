/* Bias of tokens in a window of h by w (Swin and BEiT): one number per head for every position of a key relative to
 * a query, so the map is block-Toeplitz and comes from a table of (2h-1)·(2w-1) rows.
 *
 *     index[i, j] = (y_i - y_j + h - 1)·(2w - 1) + (x_i - x_j + w - 1)          query minus key, tokens row by row
 *     bias[head, i, j] = table[index[i, j], head]
 *
 * With a class token in front there are three rows more, M = (2h-1)·(2w-1): index[0, j] = M, index[i, 0] = M + 1,
 * index[0, 0] = M + 2.
 *
 * The plan turns its sequence into a run: token i is at position i, the class token at 0. So `key_mask` counts the
 * tokens, and `causal`, `window`, `window_right` compare their numbers, as if the window were read line by line.
 *
 * A scheme of the family puts struct pe_window_fields first in its config struct, PE_WINDOW_PARAMS last among its
 * rows and a struct pe_window first in its tables. Without weights it answers `index`. */
#ifndef PE_WINDOW_BIAS_H
#define PE_WINDOW_BIAS_H

#include "core/schemes/bias/bias.h"

#include <stdatomic.h>

struct pe_window_fields {
    struct pe_mask_fields bias;
    int64_t num_heads, seed;
    double std;
};

#define PE_WINDOW_PARAMS PE_P_SEED(pe_window_fields), PE_MASK_PARAMS

extern const struct pe_output_row pe_window_outputs[]; /* bias, index */

struct pe_window {
    struct pe_bias bias;
    uint64_t h, w;
    bool has_class;
    uint64_t n_rows;     /* of the table, including those of the class token */
    size_t num_heads;    /* 0: no weights, no bias */
    enum pe_dtype dtype; /* of the table: the plan's dtype; f64 in attention */
    void *table;         /* [num_heads, n_rows], rows in reverse order, so that neighbouring keys are neighbours here */
    /* Biases of all heads in a row of the table as the model has it: [num_heads]. */
    void (*row)(const struct pe_plan *plan, uint64_t row, double *out);
    /* The first fills compute the table: each takes the next free rows. */
    atomic_size_t next, made;
};

/* Gets the window from the sequence, and the mask. */
enum pe_status pe_window_init(struct pe_window *window, struct pe_plan *plan, bool has_class, struct pe_error *err);
/* Allocates the table. row() computes each of its rows with the given work in multiply-adds. num_heads must be
 * resolved. */
enum pe_status pe_window_keep(struct pe_plan *plan, void (*row)(const struct pe_plan *, uint64_t, double *),
                              double work, struct pe_error *err);

/* The whole plan() of schemes whose table is input 0 (swin, beit). Allocates plan->tables. */
enum pe_status pe_window_plan(struct pe_plan *plan, bool has_class, struct pe_error *err);

/* The rest of the descriptor. */
void pe_window_cost(const struct pe_plan *plan, struct pe_cost *cost);
void pe_window_drop(struct pe_plan *plan);
void pe_window_fill(const struct pe_plan *plan, const struct pe_output *output, size_t id, const struct pe_block *block,
                    void *dst);

#endif
