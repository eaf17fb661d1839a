/* Rotates the channels of a head by the angles of its position; the operations rotate and attend share it. */
#ifndef PE_ROTATE_ROWS_H
#define PE_ROTATE_ROWS_H

#include "core/kernels/kernels.h"
#include "core/scheme.h"

struct pe_row_rotation {
    struct pe_rotation rotation;
    struct pe_wave *columns; /* 2 · n_pairs: cosines, then sines */
    struct pe_waves *waves;
};

/* Gets the rotation from the plan's scheme. Call pe_rotate_drop afterwards, also after a failure. */
enum pe_status pe_rotate_init(struct pe_row_rotation *turn, struct pe_plan *plan, struct pe_failure *err);
/* Nanoseconds of pe_rotate_init at most, before the scheme's plan(), and of a table of so many numbers. */
double pe_rotate_ns(uint64_t head_dim);
double pe_rotate_table_ns(const struct pe_plan *plan, uint64_t n_rows, uint64_t n_columns);
void pe_rotate_drop(struct pe_row_rotation *turn);

/* Writes cosines and sines of rows from row0 on, [n_rows, 2 · n_pairs]. If they depend on which input is rotated
 * (xPos), id is its row among the scheme's inputs. */
void pe_rotate_table(const struct pe_row_rotation *turn, const struct pe_plan *plan,
                     const struct pe_positions *positions, size_t id, uint64_t row0, size_t n_rows, double *table);

/* Writes x rotated to y: one head at one position; cosines is its row of the table. `to` is a real dtype. Either x and
 * y do not overlap, or they are the same memory and dtype. */
void pe_rotate_row(const struct pe_row_rotation *turn, const double *cosines, enum pe_dtype from, const void *x,
                   enum pe_dtype to, void *y);

/* ---- Whole tensors of f32, f16 and bf16, by floats ---- */

/* Can pe_rotate_rows do it? Only pe_rotate_row handles V-JEPA 2's layout, layouts that move pairs, factors that depend
 * on the position (xPos) or come near the ends of a float's range, and dtypes with more bits than a float. */
bool pe_rotate_by_floats(const struct pe_row_rotation *turn, const struct pe_plan *plan, enum pe_dtype from,
                         enum pe_dtype to);

/* Like pe_rotate_table in floats, each rounded to nearest: the same as /encode answers for cos and sin. */
void pe_rotate_floats(const struct pe_row_rotation *turn, const struct pe_plan *plan,
                      const struct pe_positions *positions, uint64_t row0, size_t n_rows, float *table);

/* Like pe_rotate_row, for consecutive rows whose rows of the table are table_step floats apart (0: all rows are at
 * one position), and for several heads with the same number of rows, `apart` elements from one head to the next in x
 * and in y. Two products and their sum are each rounded to f32, so the error is within 6·2^-24 of the larger term;
 * for f16 and bf16 the sum is rounded once more. y is x and to is from, or they do not overlap. */
struct pe_rotate_extent {
    uint64_t n_rows, n_heads, apart;
};
void pe_rotate_rows(const struct pe_row_rotation *turn, const float *table, size_t table_step, enum pe_dtype from,
                    const void *x, enum pe_dtype to, void *y, const struct pe_rotate_extent *extent);

/* Are both at the same positions on every axis? */
bool pe_rotate_same_positions(const struct pe_plan *plan, const struct pe_positions *a, const struct pe_positions *b);

#endif
