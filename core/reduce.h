/* Reduction: a slice's step turns each block of numbers into one. Rows of the whole output are computed once for all
 * numbers of the answer that need them, because some outputs compute a whole row, or many, for any part of it. */
#ifndef PE_REDUCE_H
#define PE_REDUCE_H

#include "core/posenc.h"

struct pe_part;

/* How many numbers of the whole output one number of the answer is computed from. */
uint64_t pe_reduce_block(const struct pe_part *part, unsigned rank);

/* Sets unit, period and most of an answer whose shape is known: a unit is computed in one call from the same rows. */
void pe_reduce_shape(struct pe_output *answer, const struct pe_output *whole, const struct pe_part *part);

/* Memory for answers with long rows, where computing the whole output again would be expensive. Allocates
 * plan->tallies if the stack is not enough. */
enum pe_status pe_tallies_init(struct pe_plan *plan, struct pe_error *err);
void pe_tallies_drop(struct pe_plan *plan);
double pe_tallies_bytes(const struct pe_plan *plan); /* of the rooms that working threads write to */

/* How many times the whole of output i is computed. */
double pe_reduce_passes(const struct pe_plan *plan, size_t i);

/* Elements first … first+n-1 of the part of output i. */
void pe_reduce_fill(const struct pe_plan *plan, size_t i, uint64_t first, size_t n, char *dst);

#endif
