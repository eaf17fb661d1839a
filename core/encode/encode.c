/* The operation encode: the outputs that the scheme's rows describe, and `combined`. */
#include "core/encode/encode.h"
#include "core/operation.h"

#include <string.h>

/* ---- Planning ---- */

static enum pe_sequence_kind kind(const struct pe_plan *plan)
{
    return plan->scheme->is_pairwise ? PE_TWO_SEQUENCES : PE_ONE_SEQUENCE;
}

static struct pe_sequence_sizes sizes(const struct pe_plan *plan)
{
    return (struct pe_sequence_sizes){.k = pe_absolute_n(plan), .k_tensor = "x", .prefix = pe_absolute_n_prefix(plan)};
}

static enum pe_status begin(struct pe_plan *plan, const struct pe_request *request, struct pe_failure *err)
{
    (void)err;
    plan->dtype = pe_absolute_dtype(plan, request->dtype);
    return PE_OK;
}

/* ---- Filling ---- */

enum { TILE_SIDE = 64 }; /* elements; 32 KiB of doubles */

/* to[col, row] = from[row, col] for elements of the given size; rows of `to` are stride elements apart. */
static void transpose(const char *from, size_t n_rows, size_t n_cols, size_t size, char *to, size_t stride)
{
    for (size_t j = 0; j < n_cols; j++)
        for (size_t i = 0; i < n_rows; i++)
            memcpy(to + (j * stride + i) * size, from + (i * n_cols + j) * size, size);
}

/* Fills a block of the transposed table from tiles of the table itself. */
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
            transpose((const char *)tile, t.n_rows, t.n_cols, size, dst + (r * b->n_cols + c) * size, b->n_cols);
        }
}

static void fill_block(const struct pe_plan *plan, size_t i, const struct pe_block *b, void *dst)
{
    if (plan->sources[i].id == PE_COMBINED)
        pe_absolute_combine(plan, plan->n_sources - 1, &plan->outputs[i], b, dst);
    else if (plan->sources[i].transposed)
        fill_transposed(plan, i, b, dst);
    else
        pe_plan_fill_source(plan, i, plan->outputs[i].dtype, b, dst);
}

static bool line(const struct pe_plan *plan, size_t i, uint64_t matrix, uint64_t first, size_t n, void *dst)
{
    if (!plan->scheme->line || plan->sources[i].id == PE_COMBINED || plan->sources[i].is_by_batch)
        return false;
    return plan->scheme->line(plan, &plan->outputs[i], plan->sources[i].id, matrix, first, n, dst);
}

/* ---- The row ---- */

static bool can(const struct pe_scheme *scheme) { return scheme->fill || scheme->columns; }

static enum pe_status refuse(const struct pe_scheme *scheme, struct pe_failure *err)
{
    pe_fail(err, "/scheme", "the term of %s depends on content", scheme->info.name);
    return pe_advise(err, PE_ASK_ATTENTION, NULL);
}

const struct pe_operation pe_operation_encode = {
    .info = {.name = "encode", .uses_encoding = true},
    .id = PE_ENCODE,
    .can = can,
    .refuse = refuse,
    .kind = kind,
    .sizes = sizes,
    .begin = begin,
    .ns = pe_outputs_ns,
    .init = pe_outputs_init,
    .fill_block = fill_block,
    .line = line,
};
