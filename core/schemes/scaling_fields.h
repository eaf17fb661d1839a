/* The interface of scaling_fields.c (rows, and which type uses which) for scaling.c (the rules). No other file
 * includes it. */
#ifndef PE_SCALING_FIELDS_H
#define PE_SCALING_FIELDS_H

#include "core/schemes/scaling.h"

#define PE_SCALING_BIT(name) (1U << PE_SCALING_##name)
#define PE_SCALING_FACTOR_MIN 1e-6
#define PE_SCALING_FACTOR_MAX 1e6
#define PE_SCALING_SEQ_LEN_MAX 0x1p53
#define PE_SCALING_BETA_MIN 1e-6

/* The word of a type, "default" if none is given; a static string. */
const char *pe_scaling_type_name(int type);

/* The pointer "/scaling/name". */
void pe_scaling_at(char pointer[PE_POINTER_MAX], const char *name);

/* Checks the fields of a resolved type: PE_INVALID if a required field is missing or an unused field would have
 * changed the result. Unsets fields without effect. */
enum pe_status pe_scaling_check_fields(struct pe_scaling *s, struct pe_error *err);

#endif
