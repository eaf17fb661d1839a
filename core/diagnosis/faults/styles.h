/* The styles of sinusoidal encodings on several axes, as two faults try them. */
#ifndef PE_STYLES_H
#define PE_STYLES_H

#include "core/diagnosis/diagnosis.h"

enum { PE_N_STYLES = 7 };

/* Sets style i, for an edit that has several axes; fields that other styles have are left to their defaults. */
bool pe_style_set(struct pe_diagnosis *d, size_t i, struct pe_edit *edit);

#endif
