/* The outputs of a plan: their shapes, where their values are from, and embeddings combined with an encoding. */
#ifndef PE_ENCODE_H
#define PE_ENCODE_H

#include "core/scheme.h"

/* ---- Outputs ---- */

/* Chooses the outputs of an encoding plan whose config and sequence are resolved, and allocates their sources. */
enum pe_status pe_outputs_init(struct pe_plan *plan, const struct pe_request *request, struct pe_failure *err);

/* Nanoseconds of pe_outputs_init and of the table of `encoding`, and channels of `encoding`: estimates before the
 * scheme's plan(), which are rather too high. */
double pe_outputs_ns(const struct pe_plan *plan);
double pe_encoding_ns(const struct pe_plan *plan);
double pe_encoding_width_most(const struct pe_plan *plan);

/* Allocates n outputs and their sources in the plan. */
enum pe_status pe_outputs_alloc(struct pe_plan *plan, size_t n, struct pe_failure *err);
void pe_outputs_drop(struct pe_plan *plan);

/* Adds the scheme's encoding as a source after the outputs, which have room for it; *index: its number. */
enum pe_status pe_outputs_add_encoding(struct pe_plan *plan, size_t *index, struct pe_failure *err);

size_t pe_output_row_find(const struct pe_scheme *scheme, const char *name); /* SIZE_MAX: it has no such output */

/* Refuses an output name that is not among names, or that the request has twice. */
enum pe_status pe_output_unknown(const struct pe_plan *plan, size_t asked, const char *name, const char *const *names,
                                 struct pe_failure *err);
enum pe_status pe_outputs_twice(const struct pe_request *request, struct pe_failure *err);

/* Refuses columns whose phases would pass 2^51 quarter turns at the plan's positions: the reduction would lose the
 * quadrant. */
enum pe_status pe_check_phases(const struct pe_plan *plan, const struct pe_wave *columns, size_t n,
                               struct pe_failure *err);

/* ---- The output `combined` ---- */

/* Fills the shape of the output `combined`, whose encoding is `encoding`. */
enum pe_status pe_absolute_shape(struct pe_plan *plan, struct pe_output *combined, const struct pe_output *encoding,
                                 struct pe_failure *err);
/* Writes a block of `combined`; `source` is the encoding's index among the plan's sources. */
void pe_absolute_combine(const struct pe_plan *plan, size_t source, const struct pe_output *combined,
                         const struct pe_block *block, void *dst);

/* ---- Sources ---- */

/* The plan as one row of the batch sees it: with the positions of that row. Returns the plan itself where all rows
 * have the same, else *room. */
const struct pe_plan *pe_plan_of_batch(const struct pe_plan *plan, uint64_t batch, struct pe_plan *room);

/* Writes a block of source i of the plan, in dtype. */
void pe_plan_fill_source(const struct pe_plan *plan, size_t i, enum pe_dtype dtype, const struct pe_block *block,
                         void *dst);

#endif
