/* Faults of size: factors, and rows or masks of other values. */
#include "core/diagnosis/diagnosis.h"

const struct pe_fault pe_fault_attention_factor_missing = {.n_alternatives = 0};
const struct pe_fault pe_fault_attention_factor_other = {.n_alternatives = 0};
const struct pe_fault pe_fault_scaled = {.n_alternatives = 0};
const struct pe_fault pe_fault_zero_row = {.n_alternatives = 0};
const struct pe_fault pe_fault_mask_value = {.n_alternatives = 0};
