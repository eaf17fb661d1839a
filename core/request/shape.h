/* Shape expressions of output rows: "n,rotary_dim/2", evaluated over sizes and integer parameters. */
#ifndef PE_SHAPE_H
#define PE_SHAPE_H

#include "core/posenc.h"

/* Looks a name of length n up; false if there is none. */
typedef bool (*pe_lookup_fn)(const void *context, const char *name, size_t n, int64_t *value);

/* Writes the axes of expression to shape and their number to *rank. The expression is ours, so a name that is not found
 * or bad syntax is a programming error (assert). Operators * / + - apply from left to right. */
void pe_shape_parse(const char *expression, pe_lookup_fn lookup, const void *context, uint64_t *shape, unsigned *rank);

#endif
