/* Faults of positions. */
#include "core/diagnosis/diagnosis.h"

const struct pe_fault pe_fault_off_by_one = {.n_alternatives = 0};
const struct pe_fault pe_fault_offset_other = {.n_alternatives = 0};
const struct pe_fault pe_fault_not_rotated = {.n_alternatives = 0};
const struct pe_fault pe_fault_rotated_twice = {.n_alternatives = 0};
const struct pe_fault pe_fault_positions_reversed = {.n_alternatives = 0};
const struct pe_fault pe_fault_position_stride = {.n_alternatives = 0};
const struct pe_fault pe_fault_positions_constant = {.n_alternatives = 0};
const struct pe_fault pe_fault_position_reset = {.n_alternatives = 0};
const struct pe_fault pe_fault_position_no_reset = {.n_alternatives = 0};
const struct pe_fault pe_fault_positions_other = {.n_alternatives = 0};
