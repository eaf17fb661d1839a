/* Cosines and sines of a ladder's angles. */
#ifndef PE_ANALYSIS_LADDER_WAVES_H
#define PE_ANALYSIS_LADDER_WAVES_H

#include "core/analysis/internal.h"

/* Makes the waves cos(p·w_c) of all C pairs, then sin(p·w_c), without the attention factor (free with pe_waves_free).
 * The frequencies are the plan's exact ones, so that values of positions far away are right. */
enum pe_status pe_ladder_waves(const struct pe_subject *subject, uint64_t n_rows, struct pe_waves **waves,
                               struct pe_error *err);
/* The memory of these waves, and of making them. */
double pe_ladder_waves_bytes(const struct pe_subject *subject);

#endif
