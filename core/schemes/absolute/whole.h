/* Shared by schemes with numbered rows: positions must be whole numbers from 0 on. */
#ifndef PE_SCHEMES_WHOLE_H
#define PE_SCHEMES_WHOLE_H

#include "core/scheme.h"

/* Refuses negative and fractional positions and names the first. */
enum pe_status pe_whole_check(const struct pe_plan *plan, struct pe_error *err);

/* The field that determines the largest position, as a JSON pointer, for error messages. */
const char *pe_whole_pointer(const struct pe_plan *plan);

#endif
