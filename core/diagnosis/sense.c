/* Faults of sense: the direction of rotation, exchanged tensors or axes, signs. */
#include "core/diagnosis/diagnosis.h"

const struct pe_fault pe_fault_direction_reversed = {.n_alternatives = 0};
const struct pe_fault pe_fault_sin_cos_swapped = {.n_alternatives = 0};
const struct pe_fault pe_fault_negated = {.n_alternatives = 0};
const struct pe_fault pe_fault_transposed = {.n_alternatives = 0};
