/* Waves of one axis, every value correctly rounded: how doubles with an error bound become the nearest number of a
 * dtype.
 *
 * The problem is the table maker's dilemma. A value x computed in double with an error of at most E rounds to the right
 * float unless a midpoint between two floats lies within E of x; then no amount of care in the last step helps, and x
 * must be computed again, more accurately.
 *
 * The idea (Ziv 1991, ACM TOMS 17, 410): test first, and be exact only where the test fails. There are three levels:
 *
 * - the fast kernels: runs of consecutive integers (wave_run.c, run_bf16.c; E about 2^-41 of a block's largest value)
 *   and lists of positions (wave_list.c; 2^-43 of the value). They leave open one value in 10^5 or fewer, run_bf16.c
 *   one in 2000;
 * - the kernel that is right to 2^-50 (kernels/waves.c), for single values, for short tables and for what the first
 *   level leaves open;
 * - double-double, right to 2^-98 (wave_value.c), for what is open even then. There an f32 is still open with a chance
 *   of 2^-46 at phases of 2^26, and such cases are counted.
 *
 * Invariant: a level hands a value on exactly if its own bound does not decide the rounding. So the bytes do not depend
 * on which level computed a value, which is why the instruction set, the split into blocks and the kind of request
 * cannot change them. An f64 has no spare digits to test with: it comes from the second level alone.
 *
 * Below, a request is cut into stretches (equal positions, consecutive integers, anything else), and each goes to the
 * cheapest level that may compute it. */
#include "core/waves/waves.h"
#include "core/numeric/numeric.h"
#include "core/kernels/kernels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Making ---- */

/* Arrays of doubles, in the order of the struct: those of every table, and those of its runs. */
enum { N_COLUMN_ARRAYS = 4, N_RUN_ARRAYS = 5 };

static void lay_out(struct pe_wave_table *w, double *all, size_t room)
{
    double **const arrays[N_COLUMN_ARRAYS + N_RUN_ARRAYS] = {
        &w->fh, &w->fl, &w->ah, &w->al, &w->cosine, &w->sine, &w->far_cosine, &w->far_sine, &w->reach};
    w->quarter = (int64_t *)(void *)all;
    for (size_t i = 0; i < N_COLUMN_ARRAYS + (w->has_runs ? (size_t)N_RUN_ARRAYS : 0); i++)
        *arrays[i] = all + (i + 1) * room;
}

/* In a table with fewer rows, runs do not pay for their steps: computing the steps costs as much as four rows of a
 * list, and a block as much as ten more. */
enum { RUN_TABLE_ROWS_MIN = 17 };

_Static_assert(sizeof(struct pe_wave_table) % _Alignof(double) == 0, "the arrays stand behind the struct");

enum pe_status pe_wave_table_new(const struct pe_wave *columns, size_t n, enum pe_dtype dtype, uint64_t n_rows,
                                 struct pe_wave_table **out)
{
    /* A range of columns may begin anywhere and is read in whole groups: up to a group less one past the last. */
    size_t room = n + PE_WAVES_LANES;
    bool has_runs = n_rows >= RUN_TABLE_ROWS_MIN;
    size_t n_arrays = 1 + N_COLUMN_ARRAYS + (has_runs ? (size_t)N_RUN_ARRAYS : 0);
    struct pe_wave_table *w = calloc(1, sizeof *w + n_arrays * room * sizeof(double));
    if (!w || pe_wave_list_new(columns, n, &w->list)) {
        free(w);
        return PE_NO_MEMORY;
    }
    w->n = n;
    w->has_runs = has_runs;
    lay_out(w, (double *)(void *)(w + 1), room);
    for (size_t j = 0; j < n; j++) {
        w->fh[j] = columns[j].fh;
        w->fl[j] = columns[j].fl;
    }
    if (has_runs) {
        /* Sine and cosine of one step and of PE_RUN_ROWS: the kernel at these positions, quarter 0 and the next. reach
         * holds the kernel's bounds until then; the quarters are all 0 as long as the columns have not been set. */
        pe_kernels()->waves(1, w->fh, w->fl, NULL, NULL, w->quarter, false, n, w->sine, w->cosine, w->reach);
        pe_kernels()->waves(PE_RUN_ROWS, w->fh, w->fl, NULL, NULL, w->quarter, false, n, w->far_sine, w->far_cosine,
                            w->reach);
        for (size_t j = 0; j < n; j++)
            w->reach[j] = fmin(1, PE_RUN_HALF * fabs(w->sine[j]));
    }
    for (size_t j = 0; j < n; j++) {
        w->ah[j] = columns[j].ah;
        w->al[j] = columns[j].al;
        w->quarter[j] = columns[j].quarter;
        w->scaled |= columns[j].ah != 1 || columns[j].al != 0;
        w->most = fmax(w->most, fabs(columns[j].ah));
    }
    if (pe_wave_has_around(dtype) && n_rows >= PE_AROUND_ROWS_MIN)
        w->around = pe_run_bf16_new(w->fh, w->fl, w->ah, w->cosine, n);
    *out = w;
    return PE_OK;
}

void pe_wave_table_free(struct pe_wave_table *table)
{
    if (table) {
        pe_wave_list_free(table->list);
        pe_run_bf16_free(table->around);
    }
    free(table);
}

static struct pe_wave column(const struct pe_wave_table *w, size_t j)
{
    return (struct pe_wave){
        .fh = w->fh[j], .fl = w->fl[j], .ah = w->ah[j], .al = w->al[j], .quarter = (int)w->quarter[j]};
}

double pe_wave_table_decide(const struct pe_wave_table *w, enum pe_dtype dtype, size_t j, double p)
{
    struct pe_wave wave = column(w, j);
    return pe_wave_decide(&wave, dtype, p);
}

/* ---- One position: the kernel that is right to 2^-50 ---- */

enum { GROUP = PE_WAVE_GROUP };

void pe_wave_evaluate(const struct pe_wave_table *w, double p, size_t col, size_t n, double *values, double *nexts,
                      double *bounds)
{
    pe_kernels()->waves(p, w->fh + col, w->fl + col, w->ah + col, w->al + col, w->quarter + col, w->scaled, n, values,
                        nexts, bounds);
}

/* From a bound 2^8 times narrower than a run's: the value by itself. Double-double for the few of the few whose ends
 * still round apart; where both are 0 the bits distinguish +0 from -0. */
double pe_wave_settle(const struct pe_wave_table *w, enum pe_dtype dtype, size_t j, double p)
{
    double v[PE_WAVES_LANES], bound[PE_WAVES_LANES];
    pe_wave_evaluate(w, p, j, 1, v, NULL, bound);
    bool alike = pe_bits(dtype, v[0] - bound[0]) == pe_bits(dtype, v[0] + bound[0]);
    return alike ? v[0] : pe_wave_table_decide(w, dtype, j, p);
}

double pe_wave_settle_narrow(const struct pe_wave_table *w, enum pe_dtype dtype, size_t j, double p, double x,
                             double error)
{
    float f = (float)x;
    bool is_decided = fabs(x) > PE_RUN_CLEAR * error && !pe_narrow_type(dtype)->is_middle(f);
    return is_decided ? (double)f : pe_wave_settle(w, dtype, j, p);
}

/* Rounds values; if the two ends of a value's interval round differently, double-double decides. */
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
            dst[j] = (float)pe_wave_table_decide(w, PE_F32, col + j, p);
}

static void fill_row(const struct pe_wave_table *w, enum pe_dtype dtype, double p, size_t col0, size_t n_cols,
                     char *dst)
{
    _Alignas(64) double v[GROUP], b[GROUP];
    for (size_t at = 0; at < n_cols; at += GROUP) {
        size_t col = col0 + at, n = n_cols - at < GROUP ? n_cols - at : GROUP;
        pe_wave_evaluate(w, p, col, n, v, NULL, b);
        char *to = dst + at * pe_dtype_size(dtype);
        if (dtype == PE_F32)
            store_f32(w, col, p, v, b, n, (float *)(void *)to);
        else
            memcpy(to, v, n * sizeof *v);
    }
}

/* ---- Positions in no order: the lighter kernel, and that one where it gives up ---- */

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

/* The right f32 rounds to a narrower dtype as the exact value does, for every middle between two of its numbers is an
 * f32: only an f32 that is such a middle itself leaves open on which side the exact value lies. */
static void narrow_row(const struct pe_wave_table *w, enum pe_dtype dtype, double p, size_t col, const float *from,
                       size_t n, char *to)
{
    const struct pe_narrow_type *type = pe_narrow_type(dtype);
    type->narrow(from, n, to);
    bool undecided = type->has_middle(from, n);
    for (size_t j = 0; undecided && j < n; j++)
        if (type->is_middle(from[j]))
            pe_store(dtype, to, j, pe_wave_table_decide(w, dtype, col + j, p));
}

/* At a time: the positions that are looked up, and as many columns as keep their floats in the first-level cache. */
enum { LIST_ROWS = 64, LIST_COLS = 128 };

static void fill_narrow(const struct pe_wave_table *w, enum pe_dtype dtype, const double *positions, size_t n_rows,
                        size_t col0, size_t n_cols, char *dst, size_t stride)
{
    _Alignas(64) float wide[LIST_ROWS * LIST_COLS];
    size_t size = pe_dtype_size(dtype);
    for (size_t at = 0; at < n_cols; at += LIST_COLS) {
        size_t n = n_cols - at < LIST_COLS ? n_cols - at : LIST_COLS;
        fill_list(w, positions, n_rows, col0 + at, n, wide, n);
        for (size_t k = 0; k < n_rows; k++)
            narrow_row(w, dtype, positions[k], col0 + at, wide + k * n, n, dst + (k * stride + at) * size);
    }
}

/* At most LIST_ROWS rows. */
static void fill_rows(const struct pe_wave_table *w, enum pe_dtype dtype, const double *positions, size_t n_rows,
                      size_t col0, size_t n_cols, void *dst, size_t stride)
{
    if (dtype == PE_F32)
        fill_list(w, positions, n_rows, col0, n_cols, dst, stride);
    else if (dtype != PE_F64)
        fill_narrow(w, dtype, positions, n_rows, col0, n_cols, dst, stride);
    else
        for (size_t k = 0; k < n_rows; k++)
            fill_row(w, PE_F64, positions[k], col0, n_cols, (char *)((double *)dst + k * stride));
}

/* ---- Stretches ---- */

/* Fewer rows than this are cheaper as a list than as a block of a run: measured with 128 columns, where a block costs
 * as much as ten rows of a list, or five of the heavier kernel. An f64 depends on its position alone: no run. */
static size_t run_rows_min(const struct pe_wave_table *w, enum pe_dtype dtype)
{
    bool runs =
        w->has_runs && dtype != PE_F64 && (w->most < pe_real_type(dtype)->largest / 2 || !pe_wave_run_has(dtype));
    return !runs ? SIZE_MAX : w->list ? 12 : 6;
}

/* How many of n rows from row0 on belong together, being equal (*step 0) or at consecutive integers (1). At position
 * 0 all sines are 0, which every bound leaves undecided: that row is computed alone, and a run that contains it is
 * split in two. */
static size_t stretch(const struct pe_positions *positions, uint64_t row0, size_t n, int *step)
{
    size_t m = pe_positions_stretch(positions, row0, n, step);
    double p = pe_position_at(positions, row0);
    if (*step == 0 || p > 0 || p + (double)m <= 0)
        return m;
    return p < 0 ? (size_t)-p : 1;
}

/* A run of a dtype without a kernel of its own: of f32, narrowed. */
static void narrow_run(const struct pe_wave_table *w, enum pe_dtype dtype, double p, size_t n_rows, size_t col0,
                       size_t n_cols, char *dst, size_t stride)
{
    enum { AT_ONCE = 4 * PE_RUN_ROWS };
    _Alignas(64) float wide[AT_ONCE * LIST_COLS];
    size_t size = pe_dtype_size(dtype);
    for (size_t at = 0; at < n_cols; at += LIST_COLS)
        for (size_t i = 0, m; i < n_rows; i += m) {
            size_t n = n_cols - at < LIST_COLS ? n_cols - at : LIST_COLS;
            m = n_rows - i < AT_ONCE ? n_rows - i : AT_ONCE;
            pe_wave_run_fill(w, PE_F32, p + (double)i, m, col0 + at, n, wide, n);
            for (size_t k = 0; k < m; k++)
                narrow_row(w, dtype, p + (double)(i + k), col0 + at, wide + k * n, n,
                           dst + ((i + k) * stride + at) * size);
        }
}

static void fill_run(const struct pe_wave_table *w, enum pe_dtype dtype, double p, size_t n_rows, size_t col0,
                     size_t n_cols, char *dst, size_t stride)
{
    if (pe_wave_has_around(dtype) && w->around)
        pe_run_bf16_fill(w, p, n_rows, col0, n_cols, (uint16_t *)(void *)dst, stride);
    else if (pe_wave_run_has(dtype))
        pe_wave_run_fill(w, dtype, p, n_rows, col0, n_cols, dst, stride);
    else
        narrow_run(w, dtype, p, n_rows, col0, n_cols, dst, stride);
}

/* The first of n_rows equal rows again. */
static void repeat_row(char *dst, size_t n_rows, size_t row_bytes, size_t stride_bytes)
{
    for (size_t i = 1; i < n_rows; i++)
        memcpy(dst + i * stride_bytes, dst, row_bytes);
}

/* Counts rows from row0 on, at most LIST_ROWS, that are neither a run nor equal, and writes their positions to list. */
static size_t scattered(const struct pe_positions *positions, uint64_t row0, size_t n_rows, size_t run_min,
                        double *list)
{
    size_t n = 0, most = n_rows < LIST_ROWS ? n_rows : LIST_ROWS;
    for (size_t m; n < most; n += m) {
        int step;
        m = stretch(positions, row0 + n, n_rows - n, &step);
        if (m > 1 && (step == 0 || m >= run_min))
            break;
        m = m < most - n ? m : most - n;
        for (size_t k = 0; k < m; k++)
            list[n + k] = pe_position_at(positions, row0 + n + k);
    }
    return n;
}

/* Rows left over from whole blocks are a list if they are few. */
static size_t whole_blocks(size_t n_rows, size_t run_min)
{
    size_t rest = n_rows % PE_RUN_ROWS;
    return rest < run_min && n_rows > PE_RUN_ROWS ? n_rows - rest : n_rows;
}

/* Positions come in stretches: a grid's axis repeats each position many times, or is a run; a multimodal list has
 * both. */
void pe_wave_table_fill(const struct pe_wave_table *table, enum pe_dtype dtype, const struct pe_positions *positions,
                        uint64_t row0, size_t n_rows, size_t col0, size_t n_cols, void *dst, size_t stride)
{
    double list[LIST_ROWS];
    size_t size = pe_dtype_size(dtype), run_min = run_rows_min(table, dtype);
    for (size_t i = 0, m; i < n_rows; i += m) {
        char *to = (char *)dst + i * stride * size;
        m = scattered(positions, row0 + i, n_rows - i, run_min, list);
        if (m) {
            fill_rows(table, dtype, list, m, col0, n_cols, to, stride);
            continue;
        }
        int step;
        m = stretch(positions, row0 + i, n_rows - i, &step);
        list[0] = pe_position_at(positions, row0 + i);
        if (step) {
            m = whole_blocks(m, run_min);
            fill_run(table, dtype, list[0], m, col0, n_cols, to, stride);
        } else {
            fill_rows(table, dtype, list, 1, col0, n_cols, to, stride);
            repeat_row(to, m, n_cols * size, stride * size);
        }
    }
}
