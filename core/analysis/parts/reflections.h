/* Householder's QR decomposition (Golub and Van Loan, Matrix Computations, 4th edition, sections 5.2 and 5.4), in
 * blocks of reflections that are applied by matrix products (Schreiber and Van Loan 1989, the compact WY form).
 *
 * Matrices are stored by columns: row c of an array [n, stride] is column c of the matrix, so a reflection acts on
 * numbers that are together. A reflection is H = I - tau·v·vᵀ with v_j = 1 and zeros before j; the rest of v replaces
 * the numbers of column j that it made zero. Everything asks pe_is_cancelled() and then ends with arbitrary numbers. */
#ifndef PE_REFLECTIONS_H
#define PE_REFLECTIONS_H

#include <stddef.h>

struct pe_columns {
    double *at; /* [n, stride] */
    size_t n, len, stride;
};

enum { PE_REFLECTIONS = 32, PE_REFLECTED = 128 }; /* in one block; columns that one product turns */

/* Numbers of scratch for columns of this length. */
static inline size_t pe_reflections_room(size_t len)
{
    return PE_REFLECTIONS * (len + 2 * PE_REFLECTIONS + 2 * PE_REFLECTED);
}

/* a = Q R: R is in and before the diagonal, tau has min(n, len) numbers. b, if not NULL, becomes Qᵀ b. */
void pe_qr(const struct pe_columns *a, double *tau, const struct pe_columns *b, double *scratch);

/* The same with a P = Q R: the column with the largest remaining norm comes next, until none is above `negligible`
 * times the first. order[c]: which column of a has come to place c. norms: 2n numbers of scratch. Returns the number of
 * reflections, the numerical rank. */
size_t pe_qr_pivoted(const struct pe_columns *a, double *tau, size_t *order, double *norms, double negligible);

/* b becomes Qᵀ b, or Q b, for the first `rank` reflections of a. */
enum pe_reflect { PE_REFLECT_TRANSPOSED, PE_REFLECT };
void pe_reflect(const struct pe_columns *a, const double *tau, size_t rank, enum pe_reflect how,
                const struct pe_columns *b, double *scratch);

#endif
