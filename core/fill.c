/* Writes any elements of a plan's outputs: of whole outputs, of sliced outputs, and of the line of a Toeplitz
 * output. */
#include "core/slice.h"
#include "core/operation.h"

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
    if (!plan->operation->line || (plan->parts && !plan->parts[i].is_whole))
        return false;
    return plan->operation->line(plan, i, matrix, first, n, dst);
}
