/* Faults of sinusoidal encodings. */
#include "core/diagnosis/diagnosis.h"

const struct pe_fault pe_fault_freq_shift_other = {.n_alternatives = 0};
const struct pe_fault pe_fault_odd_other = {.n_alternatives = 0};
const struct pe_fault pe_fault_style_other = {.n_alternatives = 0};
const struct pe_fault pe_fault_exponent_per_column = {.n_alternatives = 0};
const struct pe_fault pe_fault_exponent_doubled = {.n_alternatives = 0};
const struct pe_fault pe_fault_sinusoid_from_one = {.n_alternatives = 0};
const struct pe_fault pe_fault_sine_only = {.n_alternatives = 0};
