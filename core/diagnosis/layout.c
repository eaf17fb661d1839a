/* Faults of layout: which channels are a pair. */
#include "core/diagnosis/diagnosis.h"

const struct pe_fault pe_fault_layout_swapped = {.n_alternatives = 0};
