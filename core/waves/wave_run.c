/* Waves at consecutive integers, in f32, f16 and bf16.
 *
 * A sine at n+1 follows from those at n and n-1 by one multiplication (kernels/run.c, with the proof of its error), so
 * a run takes a quarter of the time of a list of positions. The price is an error that grows with the distance, which
 * is bounded by working in blocks of 32 rows around an anchor in their middle: sixteen steps each way.
 *
 * Anchors: the first is computed by the kernel that is right to 2^-50, the next fifteen by rotating it 32 steps at a
 * time, then there is an exact one again. Fifteen is where the anchors' share of the error bound is still of the size
 * of the block's own.
 *
 * Values that the kernel doubts: it reports columns, for it keeps one minimum for each. Such a column is computed again
 * here by the same recurrence, in the same block and within the same bound, but with a test of every value. Only those
 * near a midpoint go on to wave_table.c, one by one. The column's other values have been written right already.
 *
 * Invariant: this recurrence and the kernel's may differ in their last bits (one may be fused), so a value that the
 * kernel doubted need not be the one that is found here; both lie within E of the exact value, so 4·E here covers the
 * kernel's 2·E. */
#include "core/kernels/narrow.h"
#include "core/kernels/kernels.h"
#include "core/waves/waves.h"

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

/* A bit for every row that the kernel may have written wrong: its double and this one are both within error of the
 * value. Where the kernel was within 2·error of a middle, this one is within 4; and near a zero floats are so dense
 * that all are. */
static uint32_t open_f32(const double *rows, double error)
{
    const int64_t half = 1 << (DROPPED_F32 - 1), kept = -((int64_t)1 << DROPPED_F32);
    uint32_t open = 0;
    for (unsigned n = 0; n < PE_RUN_ROWS; n++) {
        union {
            double d;
            int64_t i;
        } middle = {.d = rows[n]};
        middle.i = (middle.i & kept) | half;
        if (__builtin_expect(!(fabs(rows[n] - middle.d) > 4.001 * error), 0)) /* also where that is NaN */
            open |= 1U << n;
    }
    return open;
}

enum { FLOAT_BITS = 23 }; /* of its fraction */

static uint32_t size_bits(double x)
{
    union float_bits v = {.f = (float)fabs(x)};
    return v.u;
}

/* The same for a narrow dtype. Above 2^25·error the two doubles are less than a float's unit apart, so that where the
 * kernel met a middle (kernels/run.c) the float here is that or one of its neighbours. */
static uint32_t open_narrow(enum pe_dtype dtype, const double *rows, double error)
{
    const struct pe_real_type *type = pe_real_type(dtype);
    const uint32_t half = 1U << (FLOAT_BITS - type->fraction_bits - 1), dropped = 2 * half - 1, beside = 1;
    double clear = PE_RUN_CLEAR * error;
    const uint32_t tiny = size_bits(fmax(clear, type->least_normal)), infinite = size_bits(HUGE_VAL);
    uint32_t open = 0;
    for (unsigned n = 0; n < PE_RUN_ROWS; n++) {
        uint32_t size = size_bits(rows[n]), above = (size - half + beside) & dropped;
        if (__builtin_expect((above <= 2 * beside) | (size <= tiny) | (size >= infinite), 0))
            open |= 1U << n;
    }
    return open;
}

static void settle_value(const struct block *b, size_t n, size_t j, double x, double error)
{
    size_t at = n * b->stride + j;
    if (b->dtype != PE_F32) {
        pe_store(b->dtype, b->dst, at, pe_wave_settle_narrow(b->w, b->dtype, b->col + j, position(b, n), x, error));
        return;
    }
    float low = (float)(x - error), high = (float)(x + error), *to = (float *)(void *)b->dst;
    if (low != high || low == 0) /* -0 and +0 compare equal, but their bits differ */
        low = (float)pe_wave_settle(b->w, PE_F32, b->col + j, position(b, n));
    to[at] = low;
}

/* A column that is zero at every position: amplitude 0, or a sine of whole turns. Zeros are +0 (wave_value.c). */
static void put_zeros(const struct block *b, size_t j)
{
    size_t size = pe_dtype_size(b->dtype);
    for (size_t n = 0; n < b->n_rows; n++)
        memset(b->dst + (n * b->stride + j) * size, 0, size);
}

/* The same recurrence for one column; its error is within the same bound (kernels/run.c), where it is not near f32's
 * subnormals. */
static void redo_column(const struct block *b, size_t j)
{
    double rows[PE_RUN_ROWS], c = b->w->cosine[b->col + j], twice = 2 * c;
    double most = fabs(b->x[j]) + fabs(b->y[j]) * b->w->reach[b->col + j];
    double error = most > PE_RUN_TINY_F32 ? PE_RUN_ERROR * most + b->bounds[j] : HUGE_VAL;
    double *up = rows + PE_RUN_HALF, *down = up - 1;
    if (most == 0) {
        put_zeros(b, j);
        return;
    }
    up[0] = b->x[j];
    down[0] = up[0] * c - b->y[j] * b->w->sine[b->col + j];
    for (int n = 1; n < PE_RUN_HALF; n++) {
        up[n] = twice * up[n - 1] - up[n - 2];
        down[-n] = twice * down[1 - n] - down[2 - n];
    }
    uint32_t open = b->dtype == PE_F32 ? open_f32(rows, error) : open_narrow(b->dtype, rows, error);
    for (size_t n; open && (n = (size_t)__builtin_ctz(open)) < b->n_rows; open &= open - 1)
        settle_value(b, n, j, rows[n], error);
}

/* ---- Blocks ---- */

/* Of the dtypes that have one (pe_wave_run_has). */
static pe_run_fn *kernel_of(enum pe_dtype dtype)
{
    const struct pe_kernels *kernels = pe_kernels();
    return dtype == PE_F32    ? kernels->run_f32
           : dtype == PE_F16  ? kernels->run_f16
           : dtype == PE_BF16 ? kernels->run_bf16
                              : NULL;
}

bool pe_wave_run_has(enum pe_dtype dtype) { return kernel_of(dtype) != NULL; }

/* Runs the kernel on n columns from j on, in whole groups. */
static bool run_whole(const struct block *b, size_t j, size_t n, void *dst, size_t stride, uint32_t *doubts)
{
    const struct pe_wave_table *w = b->w;
    size_t col = b->col + j;
    return kernel_of(b->dtype)(b->x + j, b->y + j, b->bounds + j, w->cosine + col, w->sine + col, w->reach + col, n,
                               dst, stride, doubts + j / PE_WAVES_LANES);
}

/* For missing rows or columns: uses a scratch buffer, a group at a time. */
static bool run_part(const struct block *b, size_t j, uint32_t *doubts)
{
    _Alignas(64) float scratch[PE_RUN_ROWS * PE_WAVES_LANES];
    size_t size = pe_dtype_size(b->dtype), n = b->n_cols - j < PE_WAVES_LANES ? b->n_cols - j : PE_WAVES_LANES;
    bool doubtful = run_whole(b, j, PE_WAVES_LANES, scratch, PE_WAVES_LANES, doubts);
    for (size_t i = 0; i < b->n_rows; i++)
        memcpy(b->dst + (i * b->stride + j) * size, (char *)scratch + i * PE_WAVES_LANES * size, n * size);
    return doubtful;
}

/* A run of n_cols ≤ PE_WAVE_GROUP columns: an exact anchor, then rotated anchors. */
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
        uint32_t doubts[PE_WAVE_GROUP / PE_WAVES_LANES];
        size_t whole = b.n_rows == PE_RUN_ROWS ? b.n_cols / PE_WAVES_LANES * PE_WAVES_LANES : 0;
        bool doubtful = whole && run_whole(&b, 0, whole, b.dst, b.stride, doubts);
        for (size_t j = whole; j < b.n_cols; j += PE_WAVES_LANES)
            doubtful |= run_part(&b, j, doubts);
        for (size_t at = 0; doubtful && at < b.n_cols; at += PE_WAVES_LANES)
            for (uint32_t bits = doubts[at / PE_WAVES_LANES]; bits; bits &= bits - 1) {
                size_t j = at + (size_t)__builtin_ctz(bits);
                if (j < b.n_cols)
                    redo_column(&b, j);
            }
    }
}

void pe_wave_run_fill(const struct pe_wave_table *table, enum pe_dtype dtype, double p, size_t n_rows, size_t col0,
                      size_t n_cols, void *dst, size_t stride)
{
    for (size_t at = 0; at < n_cols; at += PE_WAVE_GROUP)
        fill_group(table, dtype, p, n_rows, col0 + at, n_cols - at < PE_WAVE_GROUP ? n_cols - at : PE_WAVE_GROUP,
                   (char *)dst + at * pe_dtype_size(dtype), stride);
}
