/* Writes any elements of a whole output: its blocks, by the operation that owns them. */
#include "core/fill_whole.h"
#include "core/encode/combine.h"
#include "core/encode/source.h"
#include "core/attention/attention.h"
#include "core/rotate/rotate.h"

#include <assert.h>
#include <string.h>

enum { TILE_SIDE = 64 }; /* elements; 32 KiB of doubles */

/* to[col, row] = from[row, col] for elements of the given size; rows of `to` are stride elements apart. */
static void turn(const char *from, size_t n_rows, size_t n_cols, size_t size, char *to, size_t stride)
{
    for (size_t j = 0; j < n_cols; j++)
        for (size_t i = 0; i < n_rows; i++)
            memcpy(to + (j * stride + i) * size, from + (i * n_cols + j) * size, size);
}

/* A block of the transposed table, made in tiles of the table itself. */
static void fill_transposed(const struct pe_plan *plan, size_t i, const struct pe_block *b, char *dst)
{
    _Alignas(64) double tile[TILE_SIDE * TILE_SIDE];
    enum pe_dtype dtype = plan->outputs[i].dtype;
    size_t size = pe_dtype_size(dtype);
    for (uint64_t r = 0; r < b->n_rows; r += TILE_SIDE)
        for (uint64_t c = 0; c < b->n_cols; c += TILE_SIDE) {
            struct pe_block t = {.row0 = b->col0 + c, .n_rows = TILE_SIDE, .col0 = b->row0 + r, .n_cols = TILE_SIDE};
            if (t.n_rows > b->n_cols - c)
                t.n_rows = b->n_cols - c;
            if (t.n_cols > b->n_rows - r)
                t.n_cols = b->n_rows - r;
            pe_plan_fill_source(plan, i, dtype, &t, tile);
            turn((const char *)tile, t.n_rows, t.n_cols, size, dst + (r * b->n_cols + c) * size, b->n_cols);
        }
}

static void fill_block(const struct pe_plan *plan, size_t i, struct pe_block b, void *dst)
{
    if (plan->rotator)
        pe_rotator_fill(plan, i, &b, dst);
    else if (plan->sources[i].id == PE_COMBINED)
        pe_absolute_combine(plan, plan->n_sources - 1, &plan->outputs[i], &b, dst);
    else if (plan->sources[i].transposed)
        fill_transposed(plan, i, &b, dst);
    else
        pe_plan_fill_source(plan, i, plan->outputs[i].dtype, &b, dst);
}

/* Elements first … first+n-1 are: the end of a row, whole rows, the start of a row; each may be missing. */
void pe_plan_fill_whole(const struct pe_plan *plan, size_t i, uint64_t first, size_t n, void *dst)
{
    const struct pe_output *output = &plan->outputs[i];
    assert(i < plan->n_outputs && first + n <= output->n_rows * output->row_len);
    char *at = dst;
    if (plan->attention) {
        pe_attention_fill(plan, i, first, n, dst);
        return;
    }
    while (n > 0) {
        uint64_t row = first / output->row_len, col = first % output->row_len, left = output->row_len - col;
        struct pe_block b = {.row0 = row, .n_rows = 1, .col0 = col, .n_cols = left < n ? left : n};
        if (col == 0 && n >= output->row_len)
            b.n_rows = n / output->row_len;
        fill_block(plan, i, b, at);
        size_t done = (size_t)(b.n_rows * b.n_cols);
        first += done;
        n -= done;
        at += done * pe_dtype_size(output->dtype);
    }
}
