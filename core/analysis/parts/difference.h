/* The parts of the metric difference: two configurations side by side. */
#ifndef PE_ANALYSIS_DIFFERENCE_H
#define PE_ANALYSIS_DIFFERENCE_H

#include "core/analysis/parts/turn.h"

enum { PE_DIFFERENCE_TABLES_MAX = 16 };
#define PE_DIFFERENCE_ROTATED SIZE_MAX /* no output: the rotated vector */

/* ---- difference_tables.c: what is compared ---- */

/* A tensor that both sides have. Element e belongs to row e / inner % rows. */
struct pe_difference_table {
    const char *name;
    size_t output[2]; /* of each side's plan, or PE_DIFFERENCE_ROTATED */
    bool is_integer;
    bool heads_first; /* a bias [H, Q, K]: rows are queries */
    unsigned rank;
    uint64_t shape[PE_RANK_MAX];
    uint64_t n, inner, rows;
};

/* What the subject and the first of the study both have. tables: room for PE_DIFFERENCE_TABLES_MAX + 1. Returns their
 * number. */
size_t pe_difference_tables(const struct pe_analysis *study, const struct pe_subject *subject,
                            struct pe_difference_table *tables);

/* ---- difference_numbers.c: the numbers of both ---- */

struct pe_difference_side {
    const struct pe_plan *plan;
    struct pe_row_rotation turn; /* of rotary schemes */
    double *at;                  /* a block of numbers */
};

struct pe_difference {
    struct pe_difference_side sides[2];
    struct pe_difference_table tables[PE_DIFFERENCE_TABLES_MAX + 1];
    size_t n_tables;
    enum pe_dtype dtype;
    double *curves[PE_DIFFERENCE_TABLES_MAX + 1]; /* [rows] of each table: the largest difference */
    double *spare;                                /* as long as a block */
    double largest;                               /* the largest finite magnitude compared */
    double most[PE_DIFFERENCE_TABLES_MAX + 1];    /* the largest difference of each table */
    uint64_t steps, n_equal, n;
};

/* Allocates; nothing is compared yet. pe_difference_drop afterwards, also after a failure. */
enum pe_status pe_difference_init(struct pe_difference *w, const struct pe_analysis *study,
                                  const struct pe_subject *subject, struct pe_error *err);
void pe_difference_drop(struct pe_difference *w);

/* Its memory for n tables, without the rotations. */
double pe_difference_bytes(const struct pe_difference_table *tables, size_t n);

/* Compares all numbers of table i: fills curves[i] and most[i], and the sums of all tables. */
void pe_difference_compare(struct pe_difference *w, size_t i);

/* The first element of table i, in the order of rows, whose two numbers are so far apart. */
uint64_t pe_difference_find(struct pe_difference *w, size_t i, double gap);

#endif
