/* The addition theorem of sinusoids: the row k positions on is a matrix times the row, the same for every position.
 *
 *     sin(w(p + k)) = cos(wk) sin(wp) + sin(wk) cos(wp),   cos(w(p + k)) = cos(wk) cos(wp) - sin(wk) sin(wp) */
#ifndef PE_ADDITION_H
#define PE_ADDITION_H

#include "core/analysis/internal.h"

/* Row c of the matrix has two numbers: cosine[c] in column c, sine[c] in column partner[c]. */
struct pe_addition {
    size_t dim;
    struct pe_wave *columns; /* [dim] */
    size_t *partner;         /* [dim]: the column a quarter turn away; dim: a column of zeros */
    double *cosine, *sine;   /* [dim], of the shift that was set */
    bool is_float32;         /* frequencies are in radians, not in quarter turns */
    bool is_identity;        /* no positions at all */
};

/* Is there such a matrix: for rotary schemes, `none`, and sinusoids with a cosine for every sine? Without memory or
 * where there is none, *has is false. pe_addition_drop accepts any. */
enum pe_status pe_addition_init(struct pe_addition *addition, const struct pe_subject *subject, bool *has,
                                struct pe_error *err);
void pe_addition_drop(struct pe_addition *addition);

/* The same question without the matrix: cheap enough to ask before anything is computed. */
bool pe_addition_has(const struct pe_subject *subject);

/* Fills cosine and sine for a shift by k. */
void pe_addition_set(struct pe_addition *addition, int64_t k);

#endif
