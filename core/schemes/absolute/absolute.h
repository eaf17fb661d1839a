/* The absolute family: encodings of one sequence. What its schemes share, and what the files of one scheme share. */
#ifndef PE_SCHEMES_ABSOLUTE_H
#define PE_SCHEMES_ABSOLUTE_H

#include "core/schemes/network.h"
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

/* Adds its cost, for the scheme's cost(). */
void pe_stepping_room(struct pe_cost *cost, const struct pe_plan *plan, double dim, double scratch);

/* What a network computes from the row before: first in the tables of floater and recursive, whose input 0 is row 0. */
struct pe_recurrence {
    struct pe_network *network;
    struct pe_stepping *stepping;
    size_t dim;
    bool rounds; /* arith float32: each row is rounded to f32 */
};

/* Needs row 0, makes the network and what steps with it: scratch and cost of a step are those beside the network's, of
 * which it takes so many evaluations. */
enum pe_status pe_recurrence_open(struct pe_plan *plan, const struct pe_network_form *form, struct pe_steps steps,
                                  double evaluations, struct pe_failure *err);
void pe_recurrence_drop(struct pe_plan *plan);
/* Row k, in new memory: [dim], followed by the scratch of a step. The caller frees it; NULL: no memory. */
double *pe_recurrence_row(const struct pe_plan *plan, uint64_t k);
void pe_recurrence_fill(const struct pe_plan *plan, const struct pe_output *output, size_t id,
                        const struct pe_block *block, void *dst);

#endif
