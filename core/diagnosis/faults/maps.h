/* Sizes measured on maps of queries and keys (biases). */
#ifndef PE_DIAGNOSIS_MAPS_H
#define PE_DIAGNOSIS_MAPS_H

#include "core/diagnosis/diagnosis.h"

/* The factor by which the numbers found are larger than those of the edit; 1: there is none. */
double pe_map_factor(struct pe_diagnosis *d, const struct pe_edit *edit);
/* The first query whose row is 0 in all heads, where the edit gives something else; -1: none. */
int64_t pe_map_zero_row(struct pe_diagnosis *d, const struct pe_edit *edit);

#endif
