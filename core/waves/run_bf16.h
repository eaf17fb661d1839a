/* Waves at consecutive integers in bf16, computed in floats around anchors: preparation, then rows. */
#ifndef PE_RUN_BF16_H
#define PE_RUN_BF16_H

#include "core/waves/wave_table.h"

/* Tables with at least this many rows are worth the preparation. */
enum { PE_AROUND_ROWS_MIN = 512 };

struct pe_run_bf16;

/* Prepares n columns with frequencies fh + fl, amplitudes ah and the cosines of one step, in arrays as in
 * wave_columns.h. Returns NULL without memory, or if an amplitude is too large for squares of floats: rows are then
 * computed in another way. */
struct pe_run_bf16 *pe_run_bf16_new(const double *fh, const double *fl, const double *ah, const double *cosines,
                                    size_t n);
void pe_run_bf16_free(struct pe_run_bf16 *around); /* NULL is accepted */

/* Rows at the consecutive integers from p on, none of them 0. */
void pe_run_bf16_fill(const struct pe_wave_table *table, double p, size_t n_rows, size_t col0, size_t n_cols,
                      uint16_t *dst, size_t stride);

#endif
