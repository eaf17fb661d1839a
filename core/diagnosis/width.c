/* Faults of width: how many channels are rotated, and which. */
#include "core/diagnosis/diagnosis.h"

const struct pe_fault pe_fault_rotary_dim_other = {.n_alternatives = 0};
const struct pe_fault pe_fault_rotary_offset_other = {.n_alternatives = 0};
