/* Turning the channels of a head by the angles of its position: what the operations rotate and attend share. */
#ifndef PE_TURN_H
#define PE_TURN_H

#include "core/scheme.h"

struct pe_turn {
    struct pe_rotation rotation;
    struct pe_wave *columns; /* 2 · n_pairs: cosines, then sines */
    struct pe_waves *waves;
};

/* Asks the plan's scheme how it turns (pe_turn_drop afterwards, also after a failure). */
enum pe_status pe_turn_init(struct pe_turn *turn, const struct pe_plan *plan, struct pe_error *err);
void pe_turn_drop(struct pe_turn *turn);

/* Cosines and sines of rows row0 …, [n_rows, 2 · n_pairs]. Where they depend on which input is turned (xPos), id is its
 * row among the scheme's inputs. */
void pe_turn_table(const struct pe_turn *turn, const struct pe_plan *plan, const struct pe_positions *positions,
                   size_t id, uint64_t row0, size_t n_rows, double *table);

/* y = x turned: one head at one position, whose row of the table is cosines. to is a real dtype. */
void pe_turn_row(const struct pe_turn *turn, const double *cosines, enum pe_dtype from, const void *x, enum pe_dtype to,
                 void *y);

/* Do both stand at the same places on every axis? */
bool pe_turn_same_positions(const struct pe_plan *plan, const struct pe_positions *a, const struct pe_positions *b);

#endif
