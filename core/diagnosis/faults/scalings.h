/* The scalings that hypotheses try: those of public models, and the common ones with common parameters. */
#ifndef PE_SCALINGS_H
#define PE_SCALINGS_H

#include "core/diagnosis/diagnosis.h"

/* How many alternatives of the believed type (scaling_parameter), or of others (scaling_other). */
size_t pe_scalings_count(const struct pe_diagnosis *d, bool of_believed_type);
bool pe_scalings_apply(const struct pe_diagnosis *d, bool of_believed_type, size_t i, struct pe_edit *edit);
/* Removes an attention_factor that the believed scaling states itself. */
void pe_scalings_drop_factor(const struct pe_diagnosis *d, struct pe_edit *edit);
/* Lists them: in pe_search, before faults are counted. */
enum pe_status pe_scalings_open(struct pe_diagnosis *d, struct pe_error *err);

#endif
