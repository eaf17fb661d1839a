/* Waves of one axis: the columns in the form that kernels need (core/waves/waves.h states the accuracy of every value).
 */
#ifndef PE_WAVE_TABLE_H
#define PE_WAVE_TABLE_H

#include "core/waves/waves.h"

struct pe_wave_table;

/* dtype, n_rows: as in pe_waves_new_for. */
enum pe_status pe_wave_table_new(const struct pe_wave *columns, size_t n, enum pe_dtype dtype, uint64_t n_rows,
                                 struct pe_wave_table **table);
void pe_wave_table_free(struct pe_wave_table *table); /* NULL is accepted */
void pe_wave_table_fill(const struct pe_wave_table *table, enum pe_dtype dtype, const struct pe_positions *positions,
                        uint64_t row0, size_t n_rows, size_t col0, size_t n_cols, void *dst, size_t stride);

/* ---- Columns ---- */

/* The columns of a wave table in the form that kernels need: each array is padded to whole groups of PE_WAVES_LANES. */

struct pe_wave_table {
    size_t n;
    bool scaled;                   /* some amplitude is not 1 */
    bool is_huge;                  /* some amplitude is 2^15 or more, too large for runs in f16 */
    bool has_runs;                 /* else there are no arrays of steps, and rows are computed one by one */
    double *fh, *fl;               /* frequencies; every array follows the struct in the same allocation */
    double *ah, *al;               /* amplitudes */
    double *cosine, *sine;         /* of one step */
    double *far_cosine, *far_sine; /* of PE_RUN_ROWS steps */
    double *reach; /* the largest movement of a run from its anchor, relative to 1: min(1, PE_RUN_HALF·|sine|) */
    int64_t *quarter;
    struct pe_run_bf16 *around; /* the same columns for runs in bf16, or NULL */
    struct pe_wave_list *list;  /* the same columns for positions in no order, or NULL */
};

/* Columns at a time: a few KiB of doubles on the stack. */
enum { PE_WAVE_GROUP = 256 };

/* Computes n columns from col on at position p: values, their next quarters (if nexts is not NULL), and bounds. */
void pe_wave_evaluate(const struct pe_wave_table *table, double p, size_t col, size_t n, double *values, double *nexts,
                      double *bounds);

/* A double that rounds to dtype as column j's exact value at p does. */
double pe_wave_table_decide(const struct pe_wave_table *table, enum pe_dtype dtype, size_t j, double p);

/* The same, from doubles if they decide the rounding, as they mostly do. */
double pe_wave_settle(const struct pe_wave_table *table, enum pe_dtype dtype, size_t j, double p);

/* Column j at p in f16 or bf16, from a double x with a known error: its float decides the rounding as in a run
 * (kernels/run.c), and below f16's normal range too, whose midpoints are also recognised; else the value is
 * computed separately. */
uint16_t pe_wave_settle_narrow(const struct pe_wave_table *table, enum pe_dtype dtype, size_t j, double p, double x,
                               double error);

/* Rows at the consecutive integers from p on, none of them 0, in f32, f16 or bf16. */
void pe_wave_run_fill(const struct pe_wave_table *table, enum pe_dtype dtype, double p, size_t n_rows, size_t col0,
                      size_t n_cols, void *dst, size_t stride);

/* ---- Runs of bf16 ---- */

/* Waves at consecutive integers in bf16, computed in floats around anchors: preparation, then rows. */

/* Tables with at least this many rows are worth the preparation. */
enum { PE_AROUND_ROWS_MIN = 512 };

struct pe_run_bf16;

/* Prepares n columns with frequencies fh + fl, amplitudes ah and the cosines of one step, in arrays as in
 * struct pe_wave_table. Returns NULL without memory, or if an amplitude is too large for squares of floats: rows are
 * then computed in another way. */
struct pe_run_bf16 *pe_run_bf16_new(const double *fh, const double *fl, const double *ah, const double *cosines,
                                    size_t n);
void pe_run_bf16_free(struct pe_run_bf16 *around); /* NULL is accepted */

/* Rows at the consecutive integers from p on, none of them 0. */
void pe_run_bf16_fill(const struct pe_wave_table *table, double p, size_t n_rows, size_t col0, size_t n_cols,
                      uint16_t *dst, size_t stride);

/* ---- Positions in any order ---- */

/* Rows of waves at positions in no order, in f32. */

struct pe_wave_list;

/* *list is NULL if the columns are not suitable; the other functions accept NULL. */
enum pe_status pe_wave_list_new(const struct pe_wave *columns, size_t n, struct pe_wave_list **list);
void pe_wave_list_free(struct pe_wave_list *list);

/* Writes columns col0 … of rows at these positions to dst, a row every stride floats, and returns how many rows are
 * right, counted from the first; the caller must compute the row after them, if any, in another way. */
size_t pe_wave_list_rows(const struct pe_wave_list *list, const double *positions, size_t n_rows, size_t col0,
                         size_t n_cols, float *dst, size_t stride);

#endif
