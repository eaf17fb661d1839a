/* Least squares with the smallest norm, whatever the rank. */
#ifndef PE_LEAST_SQUARES_H
#define PE_LEAST_SQUARES_H

#include "core/posenc.h"

/* x minimizes |A x - b| for each right-hand side b, and |x| among those that do; singular values of A below `cut` times
 * the largest (cut ≥ 1e-14) count as 0. All matrices are stored by columns: a [n, m] has column c of A in row c, b
 * [n_rhs, m], x [n_rhs, n]. a and b are used up. Fails with PE_NO_MEMORY or, where pe_is_cancelled() reports it, with
 * PE_CANCELLED. */
enum pe_status pe_least_squares(size_t m, size_t n, size_t n_rhs, double *a, double *b, double cut, double *x,
                                struct pe_error *err);

/* Bytes that it allocates at most. */
double pe_least_squares_bytes(size_t m, size_t n);

#endif
