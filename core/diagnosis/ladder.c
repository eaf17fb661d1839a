/* Faults of the ladder of frequencies. */
#include "core/diagnosis/diagnosis.h"

const struct pe_fault pe_fault_scaling_missing = {.n_alternatives = 0};
const struct pe_fault pe_fault_ladder_width = {.n_alternatives = 0};
const struct pe_fault pe_fault_ladder_from_one = {.n_alternatives = 0};
const struct pe_fault pe_fault_ladder_reversed = {.n_alternatives = 0};
const struct pe_fault pe_fault_scaling_parameter = {.n_alternatives = 0};
const struct pe_fault pe_fault_scaling_other = {.n_alternatives = 0};
const struct pe_fault pe_fault_base_other = {.n_alternatives = 0};
const struct pe_fault pe_fault_inv_freq_other = {.n_alternatives = 0};
