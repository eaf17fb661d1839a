/* Waves of one axis: doubles from the kernels with a bound of their error; a value is rounded where the bound decides
 * how, and found again in double-double where it does not. So the answer is the same whatever kernel made the doubles.
 */
#include "core/wave_table.h"
#include "core/dtype.h"
#include "core/kernels/kernels.h"
#include "core/wave_list.h"
#include "core/wave_value.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Columns as the kernels want them, each array padded to whole groups of PE_WAVES_LANES. */
struct pe_wave_table {
    size_t n;
    bool scaled;                   /* some amplitude is not 1 */
    double *fh, *fl;               /* frequencies; fh is also the one allocation of all */
    double *ah, *al;               /* amplitudes */
    double *cosine, *sine;         /* of one step */
    double *far_cosine, *far_sine; /* of PE_RUN_ROWS steps */
    double *reach;                 /* how far a run moves at most from its anchor, of 1: min(1, PE_RUN_HALF·|sine|) */
    int64_t *quarter;
    struct pe_wave_list *list; /* the same columns, or NULL */
};

enum { N_DOUBLES = 9 };

/* ---- Making ---- */

static void lay_out(struct pe_wave_table *w, double *all, size_t room)
{
    double **const doubles[N_DOUBLES] = {&w->fh,   &w->fl,         &w->ah,       &w->al,   &w->cosine,
                                         &w->sine, &w->far_cosine, &w->far_sine, &w->reach};
    for (size_t i = 0; i < N_DOUBLES; i++)
        *doubles[i] = all + i * room;
    w->quarter = (int64_t *)(void *)(all + N_DOUBLES * room);
}

static void set_frequencies(struct pe_wave_table *w, const struct pe_wave *columns, size_t n)
{
    for (size_t j = 0; j < n; j++) {
        w->fh[j] = columns[j].fh;
        w->fl[j] = columns[j].fl;
    }
}

static void set_amplitudes(struct pe_wave_table *w, const struct pe_wave *columns, size_t n)
{
    for (size_t j = 0; j < n; j++) {
        w->ah[j] = columns[j].ah;
        w->al[j] = columns[j].al;
        w->quarter[j] = columns[j].quarter;
        w->scaled |= columns[j].ah != 1 || columns[j].al != 0;
    }
}

/* Sine and cosine of one step and of PE_RUN_ROWS: the kernel at these positions, quarter 0 and the next. reach holds
 * the kernel's bounds until then; the quarters are all 0 as long as the columns have not been set. */
static void set_steps(struct pe_wave_table *w, size_t room)
{
    pe_kernels()->waves(1, w->fh, w->fl, NULL, NULL, w->quarter, false, room, w->sine, w->cosine, w->reach);
    pe_kernels()->waves(PE_RUN_ROWS, w->fh, w->fl, NULL, NULL, w->quarter, false, room, w->far_sine, w->far_cosine,
                        w->reach);
    for (size_t j = 0; j < room; j++)
        w->reach[j] = fmin(1, PE_RUN_HALF * fabs(w->sine[j]));
}

enum pe_status pe_wave_table_new(const struct pe_wave *columns, size_t n, struct pe_wave_table **out)
{
    /* A range of columns may begin anywhere and is read in whole groups, so there is one group more than needed. */
    size_t room = (n / PE_WAVES_LANES + 2) * PE_WAVES_LANES;
    struct pe_wave_table *w = calloc(1, sizeof *w);
    double *all = w ? calloc(room, N_DOUBLES * sizeof(double) + sizeof(int64_t)) : NULL;
    if (!all || pe_wave_list_new(columns, n, &w->list)) {
        free(all);
        free(w);
        return PE_NO_MEMORY;
    }
    w->n = n;
    lay_out(w, all, room);
    set_frequencies(w, columns, n);
    set_steps(w, room);
    set_amplitudes(w, columns, n);
    *out = w;
    return PE_OK;
}

void pe_wave_table_free(struct pe_wave_table *table)
{
    if (table) {
        pe_wave_list_free(table->list);
        free(table->fh);
    }
    free(table);
}

static struct pe_wave column(const struct pe_wave_table *w, size_t j)
{
    return (struct pe_wave){w->fh[j], w->fl[j], w->ah[j], w->al[j], (int)w->quarter[j], 0};
}

static double decide(const struct pe_wave_table *w, enum pe_dtype dtype, size_t j, double p)
{
    struct pe_wave wave = column(w, j);
    return pe_wave_decide(&wave, dtype, p);
}

/* ---- Any positions: the kernel at each ---- */

enum { GROUP = 256 }; /* columns at a time: a few KiB of doubles on the stack */
_Static_assert(GROUP % PE_WAVES_LANES == 0, "a group is whole lanes");

static void evaluate(const struct pe_wave_table *w, double p, size_t col, size_t n, double *values, double *nexts,
                     double *bounds)
{
    pe_kernels()->waves(p, w->fh + col, w->fl + col, w->ah + col, w->al + col, w->quarter + col, w->scaled, n, values,
                        nexts, bounds);
}

/* Rounds values; where the two ends of a value's interval round differently, it is decided. */
static void store_f32(const struct pe_wave_table *w, size_t col, double p, const double *v, const double *b, size_t n,
                      float *dst)
{
    unsigned undecided = 0;
    for (size_t j = 0; j < n; j++) {
        float low = (float)(v[j] - b[j]), high = (float)(v[j] + b[j]);
        undecided |= low != high;
        dst[j] = low;
    }
    for (size_t j = 0; undecided && j < n; j++)
        if ((float)(v[j] - b[j]) != (float)(v[j] + b[j]))
            dst[j] = (float)decide(w, PE_F32, col + j, p);
}

static void fill_row(const struct pe_wave_table *w, enum pe_dtype dtype, double p, size_t col0, size_t n_cols,
                     char *dst)
{
    _Alignas(64) double v[GROUP], b[GROUP];
    for (size_t at = 0; at < n_cols; at += GROUP) {
        size_t col = col0 + at, n = n_cols - at < GROUP ? n_cols - at : GROUP;
        evaluate(w, p, col, n, v, NULL, b);
        char *to = dst + at * pe_dtype_size(dtype);
        if (dtype == PE_F32)
            store_f32(w, col, p, v, b, n, (float *)(void *)to);
        else
            memcpy(to, v, n * sizeof *v);
    }
}

/* Rows at positions in no order, f32: as many at a time as the lighter kernel takes, and one by one where it gives up;
 * without it where that is most of them, as with frequencies that put every phase on a zero. */
static void fill_list(const struct pe_wave_table *w, const double *positions, size_t n_rows, size_t col0, size_t n_cols,
                      float *dst, size_t stride)
{
    for (size_t i = 0, n_given_up = 0; i < n_rows; i++) {
        if (n_given_up <= 2 + i / 2)
            i += pe_wave_list_rows(w->list, positions + i, n_rows - i, col0, n_cols, dst + i * stride, stride);
        if (i < n_rows)
            fill_row(w, PE_F32, positions[i], col0, n_cols, (char *)(dst + i * stride));
        n_given_up++;
    }
}

/* ---- Runs of positions, f32: blocks around an anchor ---- */

/* A block: PE_RUN_ROWS rows of PE_WAVES_LANES columns, of which n_rows and n_cols are wanted. */
struct block {
    const struct pe_wave_table *w;
    double anchor; /* position of row PE_RUN_HALF */
    size_t col, n_rows, n_cols;
    float *dst;
    size_t stride;
};

/* The same recurrence for one column; its error is within the same bound. Values too near a middle are decided. */
static void redo_column(const struct block *b, size_t j, double x, double y, double error)
{
    const struct pe_wave_table *w = b->w;
    double rows[PE_RUN_ROWS], twice = 2 * w->cosine[b->col + j];
    rows[PE_RUN_HALF] = x;
    rows[PE_RUN_HALF - 1] = x * w->cosine[b->col + j] - y * w->sine[b->col + j];
    for (int n = PE_RUN_HALF + 1; n < PE_RUN_ROWS; n++)
        rows[n] = twice * rows[n - 1] - rows[n - 2];
    for (int n = PE_RUN_HALF - 2; n >= 0; n--)
        rows[n] = twice * rows[n + 1] - rows[n + 2];
    for (size_t n = 0; n < b->n_rows; n++) {
        float low = (float)(rows[n] - error), high = (float)(rows[n] + error);
        double p = b->anchor + ((double)n - PE_RUN_HALF);
        bool decided = low == high && low != 0; /* -0 and +0 are equal, and not the same answer */
        b->dst[n * b->stride + j] = decided ? low : (float)decide(w, PE_F32, b->col + j, p);
    }
}

static void fill_block(const struct block *b, const double *x, const double *y, const double *bounds)
{
    _Alignas(64) double nearest[PE_WAVES_LANES], errors[PE_WAVES_LANES];
    _Alignas(64) float scratch[PE_RUN_ROWS * PE_WAVES_LANES];
    bool whole = b->n_rows == PE_RUN_ROWS && b->n_cols == PE_WAVES_LANES;
    const struct pe_wave_table *w = b->w;
    bool doubtful =
        pe_kernels()->run_f32(x, y, bounds, w->cosine + b->col, w->sine + b->col, w->reach + b->col, PE_WAVES_LANES,
                              whole ? b->dst : scratch, whole ? b->stride : PE_WAVES_LANES, nearest, errors);
    for (size_t n = 0; !whole && n < b->n_rows; n++)
        memcpy(b->dst + n * b->stride, scratch + n * PE_WAVES_LANES, b->n_cols * sizeof *scratch);
    for (size_t j = 0; doubtful && j < b->n_cols; j++)
        if (!(nearest[j] > errors[j]))
            redo_column(b, j, x[j], y[j], errors[j]);
}

/* A run from position p on, n_cols ≤ GROUP columns from col on: an exact anchor, then turned ones. */
static void fill_group(const struct pe_wave_table *w, double p, size_t n_rows, size_t col, size_t n_cols, float *dst,
                       size_t stride)
{
    _Alignas(64) double x[GROUP], y[GROUP], bounds[GROUP];
    size_t padded = (n_cols + PE_WAVES_LANES - 1) / PE_WAVES_LANES * PE_WAVES_LANES, n_turns = PE_RUN_TURNS;
    for (size_t done = 0; done < n_rows; done += PE_RUN_ROWS) {
        struct block b = {.w = w, .anchor = p + (double)done + PE_RUN_HALF, .stride = stride};
        b.n_rows = n_rows - done < PE_RUN_ROWS ? n_rows - done : PE_RUN_ROWS;
        if (n_turns++ == PE_RUN_TURNS) {
            evaluate(w, b.anchor, col, padded, x, y, bounds);
            n_turns = 0;
        } else {
            pe_kernels()->turn(x, y, w->far_cosine + col, w->far_sine + col, padded);
        }
        for (size_t j = 0; j < n_cols; j += PE_WAVES_LANES) {
            b.col = col + j;
            b.n_cols = n_cols - j < PE_WAVES_LANES ? n_cols - j : PE_WAVES_LANES;
            b.dst = dst + done * stride + j;
            fill_block(&b, x + j, y + j, bounds + j);
        }
    }
}

/* Fewer rows than this are cheaper as a list than as a block: measured with 128 columns, AVX2, where a block costs as
 * much as 18 rows of a list, or 28 if their columns are pairs, but 5 of the heavier kernel (12 and 14, and 6, in base).
 */
static size_t run_rows_min(const struct pe_wave_table *w) { return w->list ? 20 : 6; }

/* Rows at consecutive integers, so that no row's position is rounded. */
static void fill_run(const struct pe_wave_table *w, double p, size_t n_rows, size_t col0, size_t n_cols, float *dst,
                     size_t stride)
{
    for (size_t at = 0; at < n_cols; at += GROUP)
        fill_group(w, p, n_rows, col0 + at, n_cols - at < GROUP ? n_cols - at : GROUP, dst + at, stride);
}

/* The first of n_rows equal rows again. */
static void repeat_row(char *dst, size_t n_rows, size_t row_bytes, size_t stride_bytes)
{
    for (size_t i = 1; i < n_rows; i++)
        memcpy(dst + i * stride_bytes, dst, row_bytes);
}

enum { LIST_ROWS = 64 }; /* positions looked up at a time */

/* How many rows from row0 on are neither a run nor equal; their positions go to list. */
static size_t scattered(const struct pe_positions *positions, uint64_t row0, size_t n_rows, size_t run_min,
                        double *list)
{
    size_t n = 0, most = n_rows < LIST_ROWS ? n_rows : LIST_ROWS;
    for (size_t m; n < most; n += m) {
        int step;
        m = pe_positions_stretch(positions, row0 + n, n_rows - n, &step);
        if (m > 1 && (step == 0 || m >= run_min))
            break;
        m = m < most - n ? m : most - n;
        for (size_t k = 0; k < m; k++)
            list[n + k] = pe_position_at(positions, row0 + n + k);
    }
    return n;
}

/* f32. Positions come in stretches: a grid's axis repeats each many times, or runs; a multimodal list does both. */
static void fill_f32(const struct pe_wave_table *w, const struct pe_positions *positions, uint64_t row0, size_t n_rows,
                     size_t col0, size_t n_cols, float *dst, size_t stride)
{
    double list[LIST_ROWS];
    size_t run_min = run_rows_min(w);
    for (size_t i = 0, m; i < n_rows; i += m) {
        int step;
        float *to = dst + i * stride;
        m = scattered(positions, row0 + i, n_rows - i, run_min, list);
        if (m) {
            fill_list(w, list, m, col0, n_cols, to, stride);
            continue;
        }
        m = pe_positions_stretch(positions, row0 + i, n_rows - i, &step);
        list[0] = pe_position_at(positions, row0 + i);
        if (step) {
            m -= m % PE_RUN_ROWS < run_min && m > PE_RUN_ROWS ? m % PE_RUN_ROWS : 0; /* whole blocks, if need be */
            fill_run(w, list[0], m, col0, n_cols, to, stride);
        } else {
            fill_list(w, list, 1, col0, n_cols, to, stride);
            repeat_row((char *)to, m, n_cols * sizeof *to, stride * sizeof *to);
        }
    }
}

static void fill_f64(const struct pe_wave_table *w, const struct pe_positions *positions, uint64_t row0, size_t n_rows,
                     size_t col0, size_t n_cols, double *dst, size_t stride)
{
    for (size_t i = 0, m; i < n_rows; i += m) {
        int step;
        m = pe_positions_stretch(positions, row0 + i, n_rows - i, &step);
        double p = pe_position_at(positions, row0 + i);
        for (size_t k = 0; k < (step ? m : 1); k++)
            fill_row(w, PE_F64, p + (double)k, col0, n_cols, (char *)(dst + (i + k) * stride));
        if (!step)
            repeat_row((char *)(dst + i * stride), m, n_cols * sizeof *dst, stride * sizeof *dst);
    }
}

/* ---- f16 and bf16: from the right f32 ---- */

/* The right f32 rounds to 16 bits as the exact value does, for every middle between two 16-bit numbers is an f32: only
 * an f32 that is such a middle itself leaves open on which side the exact value lies. */
static void narrow_row(const struct pe_wave_table *w, enum pe_dtype dtype, double p, size_t col, const float *from,
                       size_t n, uint16_t *to)
{
    bool undecided = dtype == PE_F16 ? pe_f16_narrow(from, n, to) : pe_bf16_narrow(from, n, to);
    for (size_t j = 0; undecided && j < n; j++)
        if (dtype == PE_F16 ? pe_f16_is_middle(from[j]) : pe_bf16_is_middle(from[j])) {
            double v = decide(w, dtype, col + j, p);
            to[j] = dtype == PE_F16 ? pe_f16_round(v) : pe_bf16_round(v);
        }
}

/* At a time: all rows that one exact anchor serves, as few columns as keep the floats in the first-level cache. */
enum { NARROW_ROWS = PE_RUN_ROWS * (PE_RUN_TURNS + 1), NARROW_COLS = 128 };

static void fill_narrow(const struct pe_wave_table *w, enum pe_dtype dtype, const struct pe_positions *positions,
                        uint64_t row0, size_t n_rows, size_t col0, size_t n_cols, uint16_t *dst, size_t stride)
{
    _Alignas(64) float wide[NARROW_ROWS * NARROW_COLS];
    for (size_t i = 0; i < n_rows; i += NARROW_ROWS)
        for (size_t at = 0; at < n_cols; at += NARROW_COLS) {
            size_t m = n_rows - i < NARROW_ROWS ? n_rows - i : NARROW_ROWS,
                   n = n_cols - at < NARROW_COLS ? n_cols - at : NARROW_COLS;
            fill_f32(w, positions, row0 + i, m, col0 + at, n, wide, n);
            for (size_t k = 0; k < m; k++)
                narrow_row(w, dtype, pe_position_at(positions, row0 + i + k), col0 + at, wide + k * n, n,
                           dst + (i + k) * stride + at);
        }
}

void pe_wave_table_fill(const struct pe_wave_table *table, enum pe_dtype dtype, const struct pe_positions *positions,
                        uint64_t row0, size_t n_rows, size_t col0, size_t n_cols, void *dst, size_t stride)
{
    if (dtype == PE_F16 || dtype == PE_BF16)
        fill_narrow(table, dtype, positions, row0, n_rows, col0, n_cols, dst, stride);
    else if (dtype == PE_F32)
        fill_f32(table, positions, row0, n_rows, col0, n_cols, dst, stride);
    else
        fill_f64(table, positions, row0, n_rows, col0, n_cols, dst, stride);
}
