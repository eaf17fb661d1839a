/* Turning the channels of a head by the angles of its position: what the operations rotate and attend share. */
#ifndef PE_TURN_H
#define PE_TURN_H

#include "core/kernels/kernels.h"
#include "core/scheme.h"

struct pe_turn {
    struct pe_rotation rotation;
    struct pe_wave *columns; /* 2 · n_pairs: cosines, then sines */
    struct pe_waves *waves;
    double *steps; /* owned; pe_turn_prepare() */
};

/* Asks the plan's scheme how it turns (pe_turn_drop afterwards, also after a failure). */
enum pe_status pe_turn_init(struct pe_turn *turn, const struct pe_plan *plan, struct pe_error *err);
void pe_turn_drop(struct pe_turn *turn);

/* Cosines and sines of rows row0 …, [n_rows, 2 · n_pairs]. Where they depend on which input is turned (xPos), id is its
 * row among the scheme's inputs. */
void pe_turn_table(const struct pe_turn *turn, const struct pe_plan *plan, const struct pe_positions *positions,
                   size_t id, uint64_t row0, size_t n_rows, double *table);

/* y = x turned: one head at one position, whose row of the table is cosines. to is a real dtype. y does not overlap x,
 * or is x, to is from and both are not f32. */
void pe_turn_row(const struct pe_turn *turn, const double *cosines, enum pe_dtype from, const void *x, enum pe_dtype to,
                 void *y);

/* ---- Whole tensors of f32, f16 and bf16 ---- */

/* Can pe_turn_rows do it? V-JEPA 2's layout and those that move pairs are left to pe_turn_row, and so is whatever has
 * more bits than a float. */
bool pe_turn_packs(const struct pe_turn *turn, enum pe_dtype from, enum pe_dtype to);

/* Octets of a row of the table: those of the blocks of pairs, one after the other. */
size_t pe_turn_n_octets(const struct pe_turn *turn);

/* Makes tables of a run of positions quick: before pe_turn_pack, if at all. n: rows that will be wanted. */
enum pe_status pe_turn_prepare(struct pe_turn *turn, const struct pe_plan *plan, const struct pe_positions *positions,
                               uint64_t n, struct pe_error *err);

/* The table of rows row0 … of these positions, [n_rows, pe_turn_n_octets]. A row's values do not depend on which others
 * are made with it. Numbers are within 2^-35.6 of themselves (2^-37 without pe_turn_prepare), factors apart. */
void pe_turn_pack(const struct pe_turn *turn, const struct pe_plan *plan, const struct pe_positions *positions,
                  size_t id, uint64_t row0, size_t n_rows, struct pe_octet *table);

/* As pe_turn_row for n_rows heads one after the other, whose rows of the table are table_step octets apart (0: all at
 * one position). Each value is within half an ulp and a thousandth of its larger term's ulp of the exact rotation,
 * for f16 and bf16 that rounded once more. y is x and to is from, or they do not overlap. */
void pe_turn_rows(const struct pe_turn *turn, const struct pe_octet *table, size_t table_step, enum pe_dtype from,
                  const void *x, enum pe_dtype to, void *y, size_t n_rows);

/* Do both stand at the same places on every axis? */
bool pe_turn_same_positions(const struct pe_plan *plan, const struct pe_positions *a, const struct pe_positions *b);

#endif
