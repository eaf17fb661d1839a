/* Waves at consecutive integers, in f32, f16 and bf16: blocks around an anchor, made by the run kernels. What a kernel
 * doubts is made again here, a column of a block at a time. */
#include "core/kernels/kernels.h"
#include "core/wave_columns.h"

#include <math.h>
#include <string.h>

_Static_assert(PE_WAVE_GROUP % PE_WAVES_LANES == 0, "a group is whole lanes");

/* A block: n_rows ≤ PE_RUN_ROWS rows of n_cols ≤ PE_WAVE_GROUP columns from col on, and the columns' state at its
 * anchor, the position of row PE_RUN_HALF. */
struct block {
    const struct pe_wave_table *w;
    enum pe_dtype dtype;
    double anchor;
    const double *x, *y, *bounds;
    size_t col, n_rows, n_cols;
    char *dst;
    size_t stride;
};

/* ---- Values that a kernel doubts ---- */

static double position(const struct block *b, size_t n) { return b->anchor + ((double)n - PE_RUN_HALF); }

static void settle_f32(const struct block *b, size_t j, const double *rows, double error)
{
    float low[PE_RUN_ROWS], high[PE_RUN_ROWS], *to = (float *)(void *)b->dst + j;
    for (size_t n = 0; n < PE_RUN_ROWS; n++) {
        low[n] = (float)(rows[n] - error);
        high[n] = (float)(rows[n] + error);
    }
    for (size_t n = 0; n < b->n_rows; n++)
        if (low[n] == high[n] && low[n] != 0) /* -0 and +0 are equal, and not the same answer */
            to[n * b->stride] = low[n];
        else
            to[n * b->stride] = (float)pe_wave_settle(b->w, PE_F32, b->col + j, position(b, n));
}

static void settle_narrow(const struct block *b, size_t j, const double *rows, double error)
{
    uint16_t *to = (uint16_t *)(void *)b->dst + j;
    for (size_t n = 0; n < b->n_rows; n++)
        to[n * b->stride] = pe_wave_settle_narrow(b->w, b->dtype, b->col + j, position(b, n), rows[n], error);
}

/* The same recurrence for one column; its error is within the same bound. */
static void redo_column(const struct block *b, size_t j, double error)
{
    double rows[PE_RUN_ROWS], c = b->w->cosine[b->col + j], twice = 2 * c;
    double *up = rows + PE_RUN_HALF, *down = up - 1;
    up[0] = b->x[j];
    down[0] = up[0] * c - b->y[j] * b->w->sine[b->col + j];
    for (int n = 1; n < PE_RUN_HALF; n++) {
        up[n] = twice * up[n - 1] - up[n - 2];
        down[-n] = twice * down[1 - n] - down[2 - n];
    }
    (b->dtype == PE_F32 ? settle_f32 : settle_narrow)(b, j, rows, error);
}

/* ---- Blocks ---- */

static pe_run_fn *kernel_of(enum pe_dtype dtype)
{
    const struct pe_kernels *kernels = pe_kernels();
    return dtype == PE_F32 ? kernels->run_f32 : dtype == PE_F16 ? kernels->run_f16 : kernels->run_bf16;
}

/* Columns from j on as the kernel leaves them: n whole groups in place. */
static bool run_whole(const struct block *b, size_t j, size_t n, void *dst, size_t stride, double *errors,
                      int64_t *doubts)
{
    const struct pe_wave_table *w = b->w;
    size_t col = b->col + j;
    return kernel_of(b->dtype)(b->x + j, b->y + j, b->bounds + j, w->cosine + col, w->sine + col, w->reach + col, n,
                               dst, stride, errors + j, doubts + j);
}

/* Rows or columns are missing: through a scratch, a group at a time. */
static bool run_part(const struct block *b, size_t j, double *errors, int64_t *doubts)
{
    _Alignas(64) float scratch[PE_RUN_ROWS * PE_WAVES_LANES];
    size_t size = pe_dtype_size(b->dtype), n = b->n_cols - j < PE_WAVES_LANES ? b->n_cols - j : PE_WAVES_LANES;
    bool doubtful = run_whole(b, j, PE_WAVES_LANES, scratch, PE_WAVES_LANES, errors, doubts);
    for (size_t i = 0; i < b->n_rows; i++)
        memcpy(b->dst + (i * b->stride + j) * size, (char *)scratch + i * PE_WAVES_LANES * size, n * size);
    return doubtful;
}

static void fill_block(const struct block *b)
{
    _Alignas(64) double errors[PE_WAVE_GROUP];
    _Alignas(64) int64_t doubts[PE_WAVE_GROUP];
    size_t whole = b->n_rows == PE_RUN_ROWS ? b->n_cols / PE_WAVES_LANES * PE_WAVES_LANES : 0;
    bool doubtful = whole && run_whole(b, 0, whole, b->dst, b->stride, errors, doubts);
    for (size_t j = whole; j < b->n_cols; j += PE_WAVES_LANES)
        doubtful |= run_part(b, j, errors, doubts);
    for (size_t j = 0; doubtful && j < b->n_cols; j++)
        if (doubts[j])
            redo_column(b, j, errors[j]);
}

/* A run of n_cols ≤ PE_WAVE_GROUP columns: an exact anchor, then turned ones. */
static void fill_group(const struct pe_wave_table *w, enum pe_dtype dtype, double p, size_t n_rows, size_t col,
                       size_t n_cols, char *dst, size_t stride)
{
    _Alignas(64) double x[PE_WAVE_GROUP], y[PE_WAVE_GROUP], bounds[PE_WAVE_GROUP];
    size_t padded = (n_cols + PE_WAVES_LANES - 1) / PE_WAVES_LANES * PE_WAVES_LANES, n_turns = PE_RUN_TURNS;
    struct block b = {w, dtype, 0, x, y, bounds, col, 0, n_cols, dst, stride};
    for (size_t done = 0; done < n_rows; done += PE_RUN_ROWS) {
        b.anchor = p + (double)done + PE_RUN_HALF;
        b.n_rows = n_rows - done < PE_RUN_ROWS ? n_rows - done : PE_RUN_ROWS;
        b.dst = dst + done * stride * pe_dtype_size(dtype);
        if (n_turns++ == PE_RUN_TURNS) {
            pe_wave_evaluate(w, b.anchor, col, padded, x, y, bounds);
            n_turns = 0;
        } else {
            pe_kernels()->turn(x, y, w->far_cosine + col, w->far_sine + col, padded);
        }
        fill_block(&b);
    }
}

void pe_wave_run_fill(const struct pe_wave_table *table, enum pe_dtype dtype, double p, size_t n_rows, size_t col0,
                      size_t n_cols, void *dst, size_t stride)
{
    for (size_t at = 0; at < n_cols; at += PE_WAVE_GROUP)
        fill_group(table, dtype, p, n_rows, col0 + at, n_cols - at < PE_WAVE_GROUP ? n_cols - at : PE_WAVE_GROUP,
                   (char *)dst + at * pe_dtype_size(dtype), stride);
}
