/* Parts of metrics that have a file of their own. */
#ifndef PE_ANALYSIS_PARTS_H
#define PE_ANALYSIS_PARTS_H

#include "core/analysis/study/study.h"
#include "core/inside.h"

#include <stddef.h>

/* ---- verdict.c, of difference: do both mean the same? ---- */

/* Are the rows of this side, 0 or 1, those of a GGUF file whose converter has permuted them, and of that side alone? */
bool pe_difference_is_permuted(const struct pe_analysis *study, const struct pe_subject *subject, size_t side);

/* Puts `permutation`, `frequencies`, `verdict`, `reasons`, `layers`, once all tables are compared. sentences: the
 * verdict in words, with members in braces; "" where no side is another tool's configuration. */
void pe_difference_put_verdict(const struct pe_analysis *study, const struct pe_subject *subject,
                               const struct pe_layers_apart *layers, bool numbers_equal, bool nothing_differs,
                               struct pe_node *out, char sentences[PE_N_LANGS][PE_DETAIL_MAX]);

/* ---- Least squares ---- */

/* Least squares with the smallest norm, whatever the rank. */

/* x minimizes |A x - b| for each right-hand side b, and |x| among those that do; singular values of A below `cut` times
 * the largest (cut ≥ 1e-14) count as 0. All matrices are stored by columns: a [n, m] has column c of A in row c, b
 * [n_rhs, m], x [n_rhs, n]. a and b are used up. Fails with PE_NO_MEMORY or, where pe_is_cancelled() reports it, with
 * PE_CANCELLED. */
enum pe_status pe_least_squares(size_t m, size_t n, size_t n_rhs, double *a, double *b, double cut, double *x,
                                struct pe_failure *err);

/* The singular values of A that are not 0 to rounding (above about 1e-15 of the largest), *rank of them, in no order
 * that matters, and row by row their right singular vectors: vectors [min(m, n), n], values [min(m, n)]. a, by columns,
 * is used up. Fails as above. */
enum pe_status pe_singular_values(size_t m, size_t n, double *a, double *values, double *vectors, size_t *rank,
                                  struct pe_failure *err);

/* Bytes that either allocates at most. */
double pe_least_squares_bytes(size_t m, size_t n);

#endif
