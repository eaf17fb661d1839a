/* Rows that follow from the row before them: row k+1 = step(row k). Whoever fills steps through them; what is found on
 * the way is kept, so that a row far down is not reached from the start each time. Family helper. */
#ifndef PE_SCHEMES_STEPPING_H
#define PE_SCHEMES_STEPPING_H

#include "core/scheme.h"

struct pe_stepping;

struct pe_steps {
    size_t dim;     /* of a row */
    size_t scratch; /* doubles that one step needs beside the row */
    double cost;    /* of one step, in multiply-adds */
    /* Makes row k+1 out of row k in place. A function of row and k alone: which thread makes a row, and from which row
     * kept, is chance. It may leave half way once pe_is_cancelled() says yes. */
    void (*step)(const void *context, uint64_t k, double *row, double *scratch);
    const void *context;
};

/* What pe_stepping_new will take, for the scheme's cost(). */
void pe_stepping_room(struct pe_cost *cost, const struct pe_plan *plan, double dim, double scratch);

/* Makes *stepping (free with pe_stepping_free) for the plan's positions, which must be whole numbers from 0 on, or
 * refuses if they are too far down. Allocates only: no row is made before a fill asks for it. Sets the plan's
 * pace; extra: work of a first fill, in multiply-adds. */
enum pe_status pe_stepping_new(struct pe_plan *plan, const struct pe_steps *steps, double extra,
                               struct pe_stepping **stepping, struct pe_error *err);
void pe_stepping_free(struct pe_stepping *stepping); /* NULL is accepted */

/* Where row 0 is written, [dim], before the first fill. */
double *pe_stepping_first(struct pe_stepping *stepping);

/* The scheme's fill. Any number of threads; the eighth and more at once may wait for another. */
void pe_stepping_fill(struct pe_stepping *stepping, const struct pe_positions *positions, enum pe_dtype dtype,
                      const struct pe_block *block, void *dst);

#endif
