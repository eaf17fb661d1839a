/* Faults of the position ids of multimodal sequences. */
#include "core/diagnosis/diagnosis.h"

const struct pe_fault pe_fault_position_style_other = {.n_alternatives = 0};
const struct pe_fault pe_fault_tokens_per_second_other = {.n_alternatives = 0};
const struct pe_fault pe_fault_merge_size_other = {.n_alternatives = 0};
const struct pe_fault pe_fault_ids_axes_swapped = {.n_alternatives = 0};
