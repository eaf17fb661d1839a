/* What scaling_fields.c (rows, and which type uses which) gives scaling.c (the rules); for nobody else. */
#ifndef PE_SCALING_FIELDS_H
#define PE_SCALING_FIELDS_H

#include "core/schemes/scaling.h"

#define PE_SCALING_BIT(name) (1U << PE_SCALING_##name)
#define PE_SCALING_FACTOR_MIN 1e-6
#define PE_SCALING_FACTOR_MAX 1e6
#define PE_SCALING_SEQ_LEN_MAX 0x1p53
#define PE_SCALING_BETA_MIN 1e-6

/* The word of a type, "default" for none given; static. */
const char *pe_scaling_type_name(int type);

/* The pointer "/scaling/name". */
void pe_scaling_at(char pointer[PE_POINTER_MAX], const char *name);

/* Of a resolved type: PE_INVALID where a field it needs is missing, or one it does not use says something; fields
 * without effect are unset. */
enum pe_status pe_scaling_check_fields(struct pe_scaling *s, struct pe_error *err);

#endif
