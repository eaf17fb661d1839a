/* The absolute family: encodings of one sequence. What its schemes share, and what the files of one scheme share. */
#ifndef PE_SCHEMES_ABSOLUTE_H
#define PE_SCHEMES_ABSOLUTE_H

#include "core/scheme.h"
#include "core/sequence/coords/coords.h"

/* ---- Positions that are row numbers ---- */

/* Whole numbers from 0 on, for schemes with numbered rows. */

/* Refuses negative and fractional positions and names the first. */
enum pe_status pe_whole_check(const struct pe_plan *plan, struct pe_failure *err);

/* The field that determines the largest position, as a JSON pointer, for error messages. */
const char *pe_whole_pointer(const struct pe_plan *plan);

/* ---- Stepping ---- */

/* Rows that depend on the row before them: row k+1 = step(row k). The filling threads compute the steps and store
 * rows on the way, so that a distant row does not need all steps from the start each time. Family helper. */

struct pe_stepping;

struct pe_steps {
    size_t dim;     /* of a row */
    size_t scratch; /* doubles that one step needs beside the row */
    double cost;    /* of one step, in multiply-adds */
    /* Replaces row k by row k+1. The result must depend on row and k alone, because any thread may compute it, from
     * any stored row. It may return early once pe_is_cancelled() returns true. */
    void (*step)(const void *context, uint64_t k, double *row, double *scratch);
    const void *context;
};

/* Adds the cost of pe_stepping_new, for the scheme's cost(). */
void pe_stepping_room(struct pe_cost *cost, const struct pe_plan *plan, double dim, double scratch);

/* Makes *stepping (free with pe_stepping_free) for the plan's positions, which must be whole numbers from 0 on, or
 * refuses if they are too far down. It only allocates: no row is computed before a fill needs it. Sets the plan's
 * pace; extra: work of a first fill, in multiply-adds. */
enum pe_status pe_stepping_new(struct pe_plan *plan, const struct pe_steps *steps, double extra,
                               struct pe_stepping **stepping, struct pe_failure *err);
void pe_stepping_free(struct pe_stepping *stepping); /* NULL is accepted */

/* The caller writes row 0 here, [dim], before the first fill. */
double *pe_stepping_first(struct pe_stepping *stepping);

/* The scheme's fill. Any number of threads may call it; beyond PE_STEPS_WALKERS at once, a thread may wait for
 * another. */
void pe_stepping_fill(struct pe_stepping *stepping, const struct pe_positions *positions, enum pe_dtype dtype,
                      const struct pe_block *block, void *dst);

/* What a network computes from the row before: first in the tables of floater and recursive, whose input 0 is row 0. */
struct pe_recurrence {
    struct pe_network *network;
    struct pe_stepping *stepping;
    size_t dim;
    bool rounds; /* arith float32: each row is rounded to f32 */
};

/* The scheme's step, with its scratch beside the network's, and its cost; the network must be there. */
enum pe_status pe_recurrence_open(struct pe_plan *plan, struct pe_steps steps, struct pe_failure *err);
void pe_recurrence_drop(struct pe_plan *plan);
void pe_recurrence_fill(const struct pe_plan *plan, const struct pe_output *output, size_t id,
                        const struct pe_block *block, void *dst);

#endif
