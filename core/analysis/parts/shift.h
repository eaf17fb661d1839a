/* The part of the metric shift that searches: one matrix for each shift k. */
#ifndef PE_ANALYSIS_SHIFT_H
#define PE_ANALYSIS_SHIFT_H

#include "core/analysis/parts/addition.h"

/* Of one subject, for any number of shifts. X has the rows r_i of the pairs that a matrix M is fitted to, Y their
 * r_{i+k}. */
struct pe_shift_search {
    const struct pe_rows *rows;
    struct pe_addition exact;
    bool is_exact;
    double *worst;  /* [n]: largest residual of each row; NaN: not judged */
    double *a, *b;  /* fit: the transposes of X and Y, [dim, pairs] */
    double *matrix; /* fit: M, [dim, dim] */
    double *judged; /* fit: residuals of a few rows, [rows, dim] */
};

/* What is left of a shift: its largest residual, and the row and column that have it. */
struct pe_shift {
    double value; /* NaN: there was no pair to judge */
    size_t row, column;
};

/* Of a subject whose rows are loaded. pe_shift_close afterwards, also after a failure. */
enum pe_status pe_shift_open(struct pe_shift_search *s, const struct pe_subject *subject, struct pe_error *err);
void pe_shift_close(struct pe_shift_search *s);
/* Its memory. */
double pe_shift_bytes(const struct pe_subject *subject);

/* Shifts by k; pe_shift_write then writes the matrix [dim, dim] over zeros. */
enum pe_status pe_shift_find(struct pe_shift_search *s, int64_t k, struct pe_shift *found, struct pe_error *err);
void pe_shift_write(const struct pe_shift_search *s, double *matrix);

#endif
