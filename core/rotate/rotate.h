/* Rotation of queries and keys: the operation PE_ROTATE, for every scheme that describes a pe_rotation. */
#ifndef PE_ROTATE_H
#define PE_ROTATE_H

#include "core/scheme.h"

/* Reads the tensors and the field tensor_layout from the request; their width becomes head_dim in the config. Makes
 * plan->rotator. */
enum pe_status pe_rotator_read(struct pe_plan *plan, const struct pe_request *request, bool *taken,
                               struct pe_error *err);
struct pe_sequence_sizes pe_rotator_sizes(const struct pe_plan *plan);

/* Makes the outputs (q, k as sent) and the tables, once sequence and config are resolved. */
enum pe_status pe_rotator_init(struct pe_plan *plan, const struct pe_request *request, struct pe_error *err);
void pe_rotator_fill(const struct pe_plan *plan, size_t i, const struct pe_block *block, void *dst);
void pe_rotator_drop(struct pe_plan *plan);

#endif
