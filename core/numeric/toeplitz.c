/* Fills blocks of Toeplitz matrices, in tiles whose part of the line fits a scratch buffer.
 *
 * Element [i, j] of a Toeplitz matrix depends on j - i alone: each diagonal has one number (Golub and Van Loan, Matrix
 * Computations, §4.7). Relative biases over runs of positions are such matrices, as T5's buckets.
 *
 * Where a bias depends on k_pos - q_pos alone and both sequences are runs, a matrix of q_len × k_len numbers has only
 * q_len + k_len - 1 different ones, and each row is a window of one line of them. So the scheme computes a line, and
 * kernels/windows.c copies. A tile's line is computed anew for each tile, so the work is tile rows + tile columns for
 * tile rows × tile columns values, and no state is shared between blocks: any split gives the same bytes. */
#include "core/numeric/numeric.h"
#include "core/kernels/kernels.h"
#include "core/scheme.h"

bool pe_toeplitz_fits(const struct pe_plan *plan) { return !plan->seq.q->list && !plan->seq.k->list; }

double pe_toeplitz_start(const struct pe_plan *plan)
{
    return plan->seq.k->start - (plan->seq.q->start + (double)(plan->seq.q->n - 1));
}

void pe_toeplitz_copy(const void *line, size_t size, size_t n_rows, size_t n_cols, void *dst, size_t stride)
{
    pe_kernels()->windows(line, size, n_rows, n_cols, dst, stride);
}

_Static_assert((int)PE_TOEPLITZ_SLACK >= (int)PE_LINES_SLACK, "what is read beyond a part is there");

void pe_toeplitz_join(const void *table, size_t step, size_t n_parts, size_t n, void *dst)
{
    pe_kernels()->lines(table, step, n_parts, n, dst);
}

static size_t least(uint64_t a, size_t b) { return a < b ? (size_t)a : b; }

/* A quarter of the scratch for rows, the rest for columns: a tile's part of the line is then at most a third longer
 * than its rows. */
void pe_toeplitz_fill(const struct pe_plan *plan, pe_distances_fn *make, const void *context, size_t size,
                      const struct pe_block *b, void *dst)
{
    _Alignas(64) char line[PE_SCRATCH_BYTES];
    size_t most_rows = PE_SCRATCH_BYTES / size / 4, most_cols = PE_SCRATCH_BYTES / size - most_rows;
    size_t stride = (size_t)b->n_cols * size;
    for (uint64_t row = 0, n_rows; row < b->n_rows; row += n_rows) {
        n_rows = least(b->n_rows - row, most_rows);
        for (uint64_t col = 0, n_cols; col < b->n_cols; col += n_cols) {
            n_cols = least(b->n_cols - col, most_cols);
            uint64_t first = plan->seq.q->n - (b->row0 + row + n_rows) + b->col0 + col;
            make(plan, context, pe_toeplitz_start(plan) + (double)first, (size_t)(n_rows + n_cols - 1), line);
            pe_kernels()->windows(line, size, (size_t)n_rows, (size_t)n_cols, (char *)dst + row * stride + col * size,
                                  stride);
        }
    }
}

bool pe_toeplitz_line(const struct pe_plan *plan, pe_distances_fn *make, const void *context, uint64_t first, size_t n,
                      void *dst)
{
    if (!pe_toeplitz_fits(plan))
        return false;
    if (n > 0)
        make(plan, context, pe_toeplitz_start(plan) + (double)first, n, dst);
    return true;
}
