/* What the numbers themselves tell. */
#include "core/diagnosis/diagnosis.h"

void pe_measure_drop(struct pe_diagnosis *d) { (void)d; }
