/* Combining an absolute encoding with embeddings: combined = f(x · x_scale, encoding · pe_scale). */
#include "core/encode/encode.h"
#include "core/waves/waves.h"

#include <math.h>
#include <string.h>

/* ---- Its shape ---- */

static enum pe_status scale(const char *name, const struct pe_value *v, double dim, double *out, struct pe_failure *err)
{
    char pointer[16] = "/";
    strncat(pointer, name, sizeof pointer - 2);
    *out = 1;
    if (!v)
        return PE_OK;
    if (v->kind == PE_STRING && strcmp(v->string, "sqrt_dim") == 0)
        *out = sqrt(dim);
    else if (v->kind == PE_INTEGER)
        *out = (double)v->integer;
    else if (v->kind == PE_REAL && isfinite(v->real))
        *out = v->real;
    else
        return pe_fail(err, pointer, "%s is neither a number nor \"sqrt_dim\"", name);
    return PE_OK;
}

enum pe_status pe_absolute_shape(struct pe_plan *plan, struct pe_output *combined, const struct pe_output *encoding,
                                 struct pe_failure *err)
{
    struct pe_absolute *a = plan->absolute;
    uint64_t x_width = a->x.shape[a->x.rank - 1], width = encoding->row_len, batch = 1;
    uint64_t n_batches = pe_sequence_n_batches(&plan->seq), n_rows = encoding->n_rows / (n_batches ? n_batches : 1);
    pe_shape_count(a->x.shape, a->x.rank - 2, &batch);
    if (a->x.shape[a->x.rank - 2] != n_rows)
        return pe_fail(err, "/x", "x has %llu rows, the encoding %llu; give the same number",
                       (unsigned long long)a->x.shape[a->x.rank - 2], (unsigned long long)n_rows);
    if (n_batches > 1 && n_batches != batch)
        return pe_sequence_wrong_batch(&plan->sequence, n_batches, "x", batch, err);
    bool concat = a->fields.combine == PE_CONCAT;
    if (!concat && x_width != width)
        return pe_fail(err, "/x", "x has %llu channels, the encoding %llu; give the same number, or combine: concat",
                       (unsigned long long)x_width, (unsigned long long)width);
    enum pe_status status = scale("x_scale", a->fields.x_scale, (double)x_width, &a->x_scale, err);
    if (!status)
        status = scale("pe_scale", a->fields.pe_scale, (double)width, &a->pe_scale, err);
    combined->rank = a->x.rank;
    memcpy(combined->shape, a->x.shape, sizeof combined->shape);
    combined->row_len = combined->shape[combined->rank - 1] = concat ? x_width + width : width;
    pe_shape_count(a->x.shape, a->x.rank - 1, &combined->n_rows);
    return status;
}

/* ---- Its values ---- */

static double meet(const struct pe_absolute *a, double x, double pe)
{
    double left = x * a->x_scale, right = pe * a->pe_scale;
    switch ((enum pe_combine)a->fields.combine) {
    case PE_MULTIPLY: return left * right;
    case PE_MULTIPLY_RESIDUAL: return left * (1 + right);
    default: return left + right;
    }
}

/* Numbers from JSON text count as a tensor of f32, like q and k. */
static double x_at(const struct pe_absolute *a, uint64_t i)
{
    double x = pe_element(a->x.dtype, a->x.data, i);
    return a->x_from_text ? (double)(float)x : x;
}

enum { TILE = PE_SCRATCH_BYTES / sizeof(double) };

/* Columns col0 … col0+n-1 of n_rows rows at consecutive positions, combined with the encoding's columns from pe_col0
 * on. */
static void combine_tile(const struct pe_plan *plan, size_t source, const struct pe_output *out,
                         const struct pe_block *b, uint64_t row, size_t n_rows, uint64_t col, size_t n, void *dst)
{
    const struct pe_absolute *a = plan->absolute;
    double pe[TILE];
    uint64_t x_width = a->x.shape[a->x.rank - 1], shift = a->fields.combine == PE_CONCAT ? x_width : 0;
    struct pe_block from = {
        .row0 = row % plan->outputs[source].n_rows, .n_rows = n_rows, .col0 = col - shift, .n_cols = n};
    pe_plan_fill_source(plan, source, PE_F64, &from, pe);
    for (size_t i = 0; i < n_rows; i++)
        for (size_t j = 0; j < n; j++) {
            uint64_t to = (row - b->row0 + i) * b->n_cols + (col - b->col0 + j);
            double v =
                shift ? pe[i * n + j] * a->pe_scale : meet(a, x_at(a, (row + i) * x_width + col + j), pe[i * n + j]);
            pe_store(out->dtype, dst, (size_t)to, v);
        }
}

/* concat: the columns of x itself. */
static void copy_x(const struct pe_plan *plan, const struct pe_output *out, const struct pe_block *b, uint64_t end,
                   void *dst)
{
    const struct pe_absolute *a = plan->absolute;
    uint64_t width = a->x.shape[a->x.rank - 1];
    for (uint64_t i = 0; i < b->n_rows; i++)
        for (uint64_t col = b->col0; col < end; col++)
            pe_store(out->dtype, dst, (size_t)(i * b->n_cols + col - b->col0),
                     x_at(a, (b->row0 + i) * width + col) * a->x_scale);
}

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

void pe_absolute_combine(const struct pe_plan *plan, size_t source, const struct pe_output *out,
                         const struct pe_block *b, void *dst)
{
    const struct pe_absolute *a = plan->absolute;
    uint64_t first = b->col0, end = b->col0 + b->n_cols, n = plan->outputs[source].n_rows;
    if (a->fields.combine == PE_CONCAT) {
        uint64_t width = a->x.shape[a->x.rank - 1];
        copy_x(plan, out, b, least(width, end), dst);
        first = first > width ? first : width;
    }
    for (uint64_t col = first, n_cols; col < end; col += n_cols) {
        n_cols = least(end - col, TILE);
        for (uint64_t row = b->row0, m; row < b->row0 + b->n_rows; row += m) {
            m = least(least(b->row0 + b->n_rows - row, n - row % n), TILE / n_cols);
            combine_tile(plan, source, out, b, row, (size_t)m, col, (size_t)n_cols, dst);
        }
    }
}

/* ---- Sources ---- */

const struct pe_plan *pe_plan_of_batch(const struct pe_plan *plan, uint64_t batch, struct pe_plan *room)
{
    if (!pe_sequence_n_batches(&plan->seq))
        return plan;
    *room = *plan;
    room->seq = pe_sequence_of_batch(&plan->seq, batch);
    return room;
}

void pe_plan_fill_source(const struct pe_plan *plan, size_t i, enum pe_dtype dtype, const struct pe_block *b, void *dst)
{
    const struct pe_source *from = &plan->sources[i];
    if (from->waves || from->recipe) {
        /* Rows of a table of waves, behind its rows of zeros, which are zero bytes in every dtype. */
        const struct pe_positions *axes = plan->seq.k;
        uint64_t zeros = b->row0 < from->n_zeros ? least(from->n_zeros - b->row0, b->n_rows) : 0;
        uint64_t row0 = b->row0 + zeros - from->n_zeros, n_rows = b->n_rows - zeros;
        size_t skipped = (size_t)(zeros * b->n_cols) * pe_dtype_size(dtype);
        memset(dst, 0, skipped);
        if (n_rows > 0 && from->waves)
            pe_waves_fill(from->waves, dtype, axes, row0, n_rows, b->col0, b->n_cols, dst + skipped, b->n_cols);
        else if (n_rows > 0)
            pe_float32_fill(from->recipe + b->col0, dtype, axes, row0, n_rows, b->n_cols, dst + skipped, b->n_cols);
    } else {
        struct pe_output output = plan->outputs[i];
        output.dtype = dtype;
        if (from->is_by_batch) {
            /* Rows of an output of the scheme's own fill(), which knows one row of the batch at a time. */
            uint64_t n_batches = pe_sequence_n_batches(&plan->seq), n = output.n_rows / n_batches,
                     end = b->row0 + b->n_rows;
            struct pe_plan room;
            output.n_rows = n;
            for (uint64_t row = b->row0, m; row < end; row += m) {
                m = n - row % n < end - row ? n - row % n : end - row;
                struct pe_block part = {.row0 = row % n, .n_rows = m, .col0 = b->col0, .n_cols = b->n_cols};
                plan->scheme->fill(pe_plan_of_batch(plan, row / n, &room), &output, from->id, &part,
                                   dst + (row - b->row0) * b->n_cols * pe_dtype_size(output.dtype));
            }
        } else {
            plan->scheme->fill(plan, &output, from->id, b, dst);
        }
    }
}
