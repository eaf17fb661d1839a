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
enum pe_status pe_relative_check(const struct pe_plan *plan, struct pe_error *err);

/* The row of a scheme's table for a relative position rel = k_pos - q_pos. */
typedef int32_t pe_relative_row_fn(const struct pe_plan *plan, int64_t rel);

/* The table rows of all distances, ascending, if sequences are runs. A scheme's `open` computes it; free it with
 * free(run). */
struct pe_relative_index {
    pe_relative_row_fn *row;
    int32_t *run;   /* [q_len + k_len - 1], owned; NULL: each row is computed when needed */
    bool is_smooth; /* the rows along it only rise or only fall, by at most one */
};
/* Adds the cost of opening it if one row takes ns nanoseconds, for the scheme's cost(). */
void pe_relative_index_cost(const struct pe_plan *plan, double ns, struct pe_cost *cost);
enum pe_status pe_relative_index_open(const struct pe_plan *plan, pe_relative_row_fn *row, struct pe_relative_index *x,
                                      struct pe_error *err);

/* The smallest and the largest relative position in the sequence. */
void pe_relative_reach(const struct pe_plan *plan, int64_t *least, int64_t *most);

/* Writes a block of the output index [q_len, k_len]. */
void pe_relative_fill_index(const struct pe_plan *plan, pe_relative_row_fn *row, const struct pe_block *block,
                            int32_t *dst);
/* Like pe_fill_line, for the output index. */
bool pe_relative_fill_line(const struct pe_plan *plan, pe_relative_row_fn *row, uint64_t first, size_t n, void *dst);

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

void pe_relative_add_by_query(const struct pe_rows *rows, const struct pe_relative_index *index, const void *panels,
                              size_t n_table, double factor);
void pe_relative_add_by_key(const struct pe_rows *rows, const struct pe_relative_index *index, const void *table,
                            const void *meeting, size_t n_table, double factor);
/* out [n_rows, v_dim] += sum over j of p[i, j] · table[row(k_j - q_i)], p in rows->logits; table: [n_table, v_dim]. */
void pe_relative_add_values(const struct pe_rows *rows, const struct pe_relative_index *index, const void *table,
                            size_t n_table, void *out, size_t out_stride, size_t v_dim);

/* Makes an array of all elements of input id as doubles (free it with free); NULL: no memory. */
double *pe_relative_read(const struct pe_plan *plan, size_t id);
/* The largest norm of a row of table [n, width]. */
double pe_relative_norm(const double *table, size_t n, size_t width);

#endif
