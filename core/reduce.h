/* What a slice's step makes of the numbers it passes over: one of each block. Rows of the whole are gone through once
 * for all numbers of the answer that they belong to, since some outputs make a whole row, or many, for a part of it. */
#ifndef PE_REDUCE_H
#define PE_REDUCE_H

#include "core/posenc.h"

struct pe_part;

/* Numbers of the whole that one of the answer is made of. */
uint64_t pe_reduce_block(const struct pe_part *part, unsigned rank);

/* Sets unit, period and most of an answer whose shape is known: what is made at one go from the same rows. */
void pe_reduce_shape(struct pe_output *answer, const struct pe_output *whole, const struct pe_part *part);

/* Room beside the stack for answers whose rows are long, where going through the whole anew is dear. Makes
 * plan->tallies, if it is needed. */
enum pe_status pe_tallies_init(struct pe_plan *plan, struct pe_error *err);
void pe_tallies_drop(struct pe_plan *plan);
double pe_tallies_bytes(const struct pe_plan *plan); /* those that threads at work write to */

/* How often the whole of output i is gone through. */
double pe_reduce_passes(const struct pe_plan *plan, size_t i);

/* Elements first … first+n-1 of the part of output i. */
void pe_reduce_fill(const struct pe_plan *plan, size_t i, uint64_t first, size_t n, char *dst);

#endif
