/* Where the values of an output come from. */
#ifndef PE_SOURCE_H
#define PE_SOURCE_H

#include "core/scheme.h"

/* Writes a block of source i of the plan, in dtype. */
void pe_plan_fill_source(const struct pe_plan *plan, size_t i, enum pe_dtype dtype, const struct pe_block *block,
                         void *dst);

#endif
