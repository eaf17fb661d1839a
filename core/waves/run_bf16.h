/* Waves at consecutive integers in bf16, computed in floats around anchors: preparation, then rows. */
#ifndef PE_WAVE_AROUND_H
#define PE_WAVE_AROUND_H

#include "core/waves/wave_table.h"

/* Tables with at least this many rows are worth the preparation. */
enum { PE_AROUND_ROWS_MIN = 512 };

struct pe_wave_around;

/* Of the n columns with frequencies fh + fl, amplitudes ah and the cosines of one step, arrays as in wave_columns.h.
 * NULL without memory, and where an amplitude is too large for squares of floats: rows are then made otherwise. */
struct pe_wave_around *pe_wave_around_new(const double *fh, const double *fl, const double *ah, const double *cosines,
                                          size_t n);
void pe_wave_around_free(struct pe_wave_around *around); /* NULL is accepted */

/* Rows at the consecutive integers from p on, none of them 0. */
void pe_wave_around_fill(const struct pe_wave_table *table, double p, size_t n_rows, size_t col0, size_t n_cols,
                         uint16_t *dst, size_t stride);

#endif
