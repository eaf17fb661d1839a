/* Filling whole outputs, before slicing. */
#ifndef PE_FILL_WHOLE_H
#define PE_FILL_WHOLE_H

#include "core/scheme.h"

/* Like pe_fill, for the whole output. */
void pe_plan_fill_whole(const struct pe_plan *plan, size_t i, uint64_t first, size_t n, void *dst);

#endif
