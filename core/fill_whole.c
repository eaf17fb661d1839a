/* Writes any elements of a whole output. The operation writes them in one call, or block by block. */
#include "core/fill_whole.h"
#include "core/operation.h"

#include <assert.h>

/* Elements first … first+n-1 consist of the end of a row, whole rows and the start of a row. Any of the three may be
 * missing. */
void pe_plan_fill_whole(const struct pe_plan *plan, size_t i, uint64_t first, size_t n, void *dst)
{
    const struct pe_operation *operation = plan->operation;
    const struct pe_output *output = &plan->outputs[i];
    assert(i < plan->n_outputs && first + n <= output->n_rows * output->row_len);
    char *at = dst;
    if (operation->fill) {
        operation->fill(plan, i, first, n, dst);
        return;
    }
    while (n > 0) {
        uint64_t row = first / output->row_len, col = first % output->row_len, left = output->row_len - col;
        struct pe_block b = {.row0 = row, .n_rows = 1, .col0 = col, .n_cols = left < n ? left : n};
        if (col == 0 && n >= output->row_len)
            b.n_rows = n / output->row_len;
        operation->fill_block(plan, i, &b, at);
        size_t done = (size_t)(b.n_rows * b.n_cols);
        first += done;
        n -= done;
        at += done * pe_dtype_size(output->dtype);
    }
}
