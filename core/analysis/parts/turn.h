/* The rotation of a rotary plan, after planning. */
#ifndef PE_ANALYSIS_TURN_H
#define PE_ANALYSIS_TURN_H

#include "core/analysis/internal.h"
#include "core/rotate/rotate_rows.h"

/* For pe_rotate_table and pe_rotate_row. Call pe_rotate_drop afterwards, also after a failure. */
enum pe_status pe_turn_init(struct pe_row_rotation *turn, const struct pe_plan *plan, struct pe_error *err);
/* Its memory. */
double pe_turn_bytes(const struct pe_plan *plan);

/* The row of the tensor of that name, "q" or "k", among the scheme's inputs. */
size_t pe_turn_input(const struct pe_plan *plan, const char *name);

#endif
