/* Writes blocks of a source: a table of waves, the float32 recipe, or the values that the scheme's own fill()
 * writes. */
#include "core/encode/source.h"
#include "core/waves/float32.h"

void pe_plan_fill_source(const struct pe_plan *plan, size_t i, enum pe_dtype dtype, const struct pe_block *b, void *dst)
{
    const struct pe_source *from = &plan->sources[i];
    const struct pe_positions *axes = plan->seq.k;
    if (from->waves) {
        pe_waves_fill(from->waves, dtype, axes, b->row0, b->n_rows, b->col0, b->n_cols, dst, b->n_cols);
    } else if (from->recipe) {
        pe_float32_fill(from->recipe + b->col0, dtype, axes, b->row0, b->n_rows, b->n_cols, dst, b->n_cols);
    } else {
        struct pe_output output = plan->outputs[i];
        output.dtype = dtype;
        plan->scheme->fill(plan, &output, from->id, b, dst);
    }
}
