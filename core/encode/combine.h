/* The output `combined`: embeddings x with the encoding. */
#ifndef PE_COMBINE_H
#define PE_COMBINE_H

#include "core/scheme.h"

/* Fills the shape of the output `combined`, whose encoding is `encoding`. */
enum pe_status pe_absolute_shape(struct pe_plan *plan, struct pe_output *combined, const struct pe_output *encoding,
                                 struct pe_error *err);
/* Writes a block of `combined`; `source` is the encoding's index among the plan's sources. */
void pe_absolute_combine(const struct pe_plan *plan, size_t source, const struct pe_output *combined,
                         const struct pe_block *block, void *dst);

#endif
