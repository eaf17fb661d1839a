/* Waves of one axis: the columns in the form that kernels need (core/waves/waves.h states the accuracy of every value).
 */
#ifndef PE_WAVE_TABLE_H
#define PE_WAVE_TABLE_H

#include "core/waves/waves.h"

struct pe_wave_table;

/* dtype, n_rows: as in pe_waves_new_for. */
enum pe_status pe_wave_table_new(const struct pe_wave *columns, size_t n, enum pe_dtype dtype, uint64_t n_rows,
                                 struct pe_wave_table **table);
void pe_wave_table_free(struct pe_wave_table *table); /* NULL is accepted */
void pe_wave_table_fill(const struct pe_wave_table *table, enum pe_dtype dtype, const struct pe_positions *positions,
                        uint64_t row0, size_t n_rows, size_t col0, size_t n_cols, void *dst, size_t stride);

#endif
