/* Toeplitz outputs: if queries and keys are runs and a value depends only on k_pos - q_pos, each matrix is determined
 * by one line of numbers, and every row of the matrix is a window of it. The line begins with the distance from the
 * last query to the first key. */
#ifndef PE_TOEPLITZ_H
#define PE_TOEPLITZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pe_plan;
struct pe_block;

/* Are both sequences runs? */
bool pe_toeplitz_fits(const struct pe_plan *plan);

/* k_pos - q_pos of a line's first number; the others follow by steps of 1. */
double pe_toeplitz_start(const struct pe_plan *plan);

/* Writes the numbers at the distances rel, rel+1, …, n of them. */
typedef void pe_distances_fn(const struct pe_plan *plan, const void *context, double rel, size_t n, void *out);

/* A block of a matrix [q_len, k_len] of elements of `size` bytes, at most 8. */
void pe_toeplitz_fill(const struct pe_plan *plan, pe_distances_fn *make, const void *context, size_t size,
                      const struct pe_block *block, void *dst);

/* Rows of a part of a matrix from its part of the line, n_rows + n_cols - 1 elements of `size` bytes: row i begins with
 * element n_rows-1-i. Rows of dst are stride bytes apart. */
void pe_toeplitz_copy(const void *line, size_t size, size_t n_rows, size_t n_cols, void *dst, size_t stride);

/* One row of a matrix whose blocks are Toeplitz (windows of patches): n_parts parts of n bytes, which are step bytes
 * apart in the table, are written one after the other. After each of them PE_TOEPLITZ_SLACK bytes may be read. */
void pe_toeplitz_join(const void *table, size_t step, size_t n_parts, size_t n, void *dst);
enum { PE_TOEPLITZ_SLACK = 64 };

/* Like pe_fill_line. */
bool pe_toeplitz_line(const struct pe_plan *plan, pe_distances_fn *make, const void *context, uint64_t first, size_t n,
                      void *dst);

#endif
