/* What schemes share whose rows are numbered: positions must be whole numbers from 0 on. */
#ifndef PE_SCHEMES_WHOLE_H
#define PE_SCHEMES_WHOLE_H

#include "core/scheme.h"

/* Refuses negative and fractional positions and names the first. */
enum pe_status pe_whole_check(const struct pe_plan *plan, struct pe_error *err);

/* The field that the positions' size comes from, as a JSON pointer, for refusals of the largest. */
const char *pe_whole_pointer(const struct pe_plan *plan);

#endif
