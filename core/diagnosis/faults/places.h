/* Sequences of hypotheses: positions changed by a rule, written as `offset` where the belief is a run, else as a list.
 */
#ifndef PE_PLACES_H
#define PE_PLACES_H

#include "core/diagnosis/diagnosis.h"

/* Is the belief's sequence given by len, with an offset? */
bool pe_places_are_run(const struct pe_diagnosis *d);
/* The belief's position of row i on the first axis. */
double pe_place(const struct pe_diagnosis *d, uint64_t i);
/* The coordinate of row i on an axis of a plan, in the unit of a list. */
double pe_coordinate(const struct pe_plan *plan, unsigned axis, uint64_t i);

/* How many positions a sequence under the edit has: as many as the belief, or as another tensor_layout gives. */
uint64_t pe_places_count(const struct pe_diagnosis *d, const struct pe_edit *edit);

/* Moves all positions. */
bool pe_places_shift(const struct pe_diagnosis *d, struct pe_edit *edit, double by);
/* Row i is at scale·position(row) + shift, where row is i or counted from the end: on every axis. */
bool pe_places_map(const struct pe_diagnosis *d, struct pe_edit *edit, double scale, double shift, bool reversed);
/* Axis a has the positions of axis order[a] of a plan, which other faults of the edit have changed. */
bool pe_places_reorder(const struct pe_diagnosis *d, struct pe_edit *edit, const struct pe_plan *plan,
                       const unsigned *order);
/* The believed positions for each row of a batch of `levels`, to be changed: [levels, count]. NULL: the belief has
 * another number of them, several axes, or no memory is left. */
double *pe_places_by_row(const struct pe_diagnosis *d, struct pe_edit *edit, uint64_t levels, uint64_t count);
/* A list for one axis, copied. */
bool pe_places_list(const struct pe_diagnosis *d, struct pe_edit *edit, const double *positions);
/* positions.c: from row to row, of an alternative of position_stride; NaN: it is fitted. */
double pe_places_stride(size_t alternative);
/* A run from first on; false if first is not an integer. */
bool pe_places_run(const struct pe_diagnosis *d, struct pe_edit *edit, double first);

#endif
