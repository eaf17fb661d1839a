/* The columns of a wave table in the form that kernels need: each array is padded to whole groups of PE_WAVES_LANES. */
#ifndef PE_WAVE_COLUMNS_H
#define PE_WAVE_COLUMNS_H

#include "core/waves/wave_table.h"

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

#endif
