/* Faults of axes: which coordinate a pair follows. */
#include "core/diagnosis/diagnosis.h"

const struct pe_fault pe_fault_axes_swapped = {.n_alternatives = 0};
const struct pe_fault pe_fault_section_order = {.n_alternatives = 0};
const struct pe_fault pe_fault_channels_other = {.n_alternatives = 0};
