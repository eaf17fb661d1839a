/* Rows of waves at positions in no order, in f32. */
#ifndef PE_WAVE_LIST_H
#define PE_WAVE_LIST_H

#include "core/waves/waves.h"

struct pe_wave_list;

/* *list is NULL if the columns are not suitable; the other functions accept NULL. */
enum pe_status pe_wave_list_new(const struct pe_wave *columns, size_t n, struct pe_wave_list **list);
void pe_wave_list_free(struct pe_wave_list *list);

/* Writes columns col0 … of rows at these positions to dst, a row every stride floats, and returns how many rows are
 * right, counted from the first; the caller must compute the row after them, if any, in another way. */
size_t pe_wave_list_rows(const struct pe_wave_list *list, const double *positions, size_t n_rows, size_t col0,
                         size_t n_cols, float *dst, size_t stride);

#endif
