/* Faults of arithmetic: tables computed in few bits. */
#include "core/diagnosis/diagnosis.h"

const struct pe_fault pe_fault_angles_f32 = {.n_alternatives = 0};
const struct pe_fault pe_fault_inv_freq_bf16 = {.n_alternatives = 0};
const struct pe_fault pe_fault_inv_freq_f16 = {.n_alternatives = 0};
const struct pe_fault pe_fault_angles_bf16 = {.n_alternatives = 0};
