/* Parts of outputs: ranges with steps on each axis (Python's rules), and the reduction of the elements of one step. */
#ifndef PE_SLICE_H
#define PE_SLICE_H

#include "core/inside.h"
#include "core/scheme.h"

struct pe_plan;

/* How one output is sliced; arrays are indexed by the axis of the whole output. */
struct pe_part {
    uint64_t start[PE_RANK_MAX], stop[PE_RANK_MAX], step[PE_RANK_MAX], count[PE_RANK_MAX];
    bool dropped[PE_RANK_MAX]; /* an index: the axis is not in the answer */
    bool is_whole;
};

/* The index of an element of the part on each axis of the whole, counted in steps; place has rank entries. */
void pe_part_place(const struct pe_part *part, unsigned rank, uint64_t element, uint64_t *place);

/* Cuts the outputs as the request's slices state, once they have shapes. Allocates plan->parts and plan->answers if
 * there are slices. */
enum pe_status pe_slices_init(struct pe_plan *plan, const struct pe_request *request, struct pe_failure *err);
/* The work in multiply-adds of computing the answered elements of output i, if one element of the whole output takes
 * `each`. Call it after pe_slices_init. */
double pe_slice_work(const struct pe_plan *plan, size_t i, double each);
void pe_slices_drop(struct pe_plan *plan);

/* Elements first … first+n-1 of the part of output i. */
void pe_slice_fill(const struct pe_plan *plan, size_t i, uint64_t first, size_t n, void *dst);

/* ---- Reduction ---- */

/* Reduction: a slice's step turns each block of numbers into one. Rows of the whole output are computed once for all
 * numbers of the answer that need them, because some outputs compute a whole row, or many, for any part of it. */

struct pe_part;

/* How many numbers of the whole output one number of the answer is computed from. */
uint64_t pe_reduce_block(const struct pe_part *part, unsigned rank);

/* Sets unit, period and most of an answer whose shape is known: a unit is computed in one call from the same rows. */
void pe_reduce_shape(struct pe_output *answer, const struct pe_output *whole, const struct pe_part *part);

/* Memory for answers with long rows, where computing the whole output again would be expensive. Allocates
 * plan->tallies if the stack is not enough. */
enum pe_status pe_tallies_init(struct pe_plan *plan, struct pe_failure *err);
void pe_tallies_drop(struct pe_plan *plan);
double pe_tallies_bytes(const struct pe_plan *plan); /* of the rooms that working threads write to */

/* How many times the whole of output i is computed. */
double pe_reduce_passes(const struct pe_plan *plan, size_t i);

/* Elements first … first+n-1 of the part of output i. */
void pe_reduce_fill(const struct pe_plan *plan, size_t i, uint64_t first, size_t n, char *dst);

/* ---- Whole outputs ---- */

/* Filling whole outputs, before slicing. */

/* Like pe_fill, for the whole output. */
void pe_plan_fill_whole(const struct pe_plan *plan, size_t i, uint64_t first, size_t n, void *dst);

#endif
