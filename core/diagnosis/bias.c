/* Faults of biases and buckets. */
#include "core/diagnosis/diagnosis.h"

const struct pe_fault pe_fault_slopes_other = {.n_alternatives = 0};
const struct pe_fault pe_fault_slopes_order = {.n_alternatives = 0};
const struct pe_fault pe_fault_bias_max_other = {.n_alternatives = 0};
const struct pe_fault pe_fault_form_other = {.n_alternatives = 0};
const struct pe_fault pe_fault_alignment_other = {.n_alternatives = 0};
const struct pe_fault pe_fault_mask_missing = {.n_alternatives = 0};
const struct pe_fault pe_fault_mask_extra = {.n_alternatives = 0};
const struct pe_fault pe_fault_window_other = {.n_alternatives = 0};
const struct pe_fault pe_fault_bidirectional_other = {.n_alternatives = 0};
const struct pe_fault pe_fault_max_distance_other = {.n_alternatives = 0};
const struct pe_fault pe_fault_kind_other = {.n_alternatives = 0};
const struct pe_fault pe_fault_parameter_other = {.n_alternatives = 0};
