/* Writes any elements of a plan's outputs: of whole outputs, of sliced ones, of the line of a Toeplitz output. */
#include "core/fill_whole.h"
#include "core/slice.h"

#include <assert.h>

void pe_fill(const struct pe_plan *plan, size_t i, uint64_t first, size_t n, void *dst)
{
    if (plan->parts)
        pe_slice_fill(plan, i, first, n, dst);
    else
        pe_plan_fill_whole(plan, i, first, n, dst);
}

bool pe_fill_line(const struct pe_plan *plan, size_t i, uint64_t matrix, uint64_t first, size_t n, void *dst)
{
    assert(i < plan->n_outputs);
    bool is_own = !plan->attention && !plan->rotator && (!plan->parts || plan->parts[i].is_whole);
    if (!is_own || !plan->scheme->line || plan->sources[i].id == PE_COMBINED)
        return false;
    return plan->scheme->line(plan, &plan->outputs[i], plan->sources[i].id, matrix, first, n, dst);
}
