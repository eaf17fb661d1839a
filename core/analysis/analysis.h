/* Parts of metrics that two files share.
 *
 * The addition theorem of sinusoids: the row k positions on is a matrix times the row, the same for every position.
 *
 *     sin(w(p + k)) = cos(wk) sin(wp) + sin(wk) cos(wp),   cos(w(p + k)) = cos(wk) cos(wp) - sin(wk) sin(wp) */
#ifndef PE_ANALYSIS_PARTS_H
#define PE_ANALYSIS_PARTS_H

#include "core/analysis/study/study.h"
#include "core/inside.h"

#include <stddef.h>

/* ---- The addition theorem ---- */

/* Row c of the matrix has two numbers: cosine[c] in column c, sine[c] in column partner[c]. */
struct pe_addition {
    size_t dim;
    struct pe_wave *columns; /* [dim] */
    size_t *partner;         /* [dim]: the column a quarter turn away; dim: a column of zeros */
    double *cosine, *sine;   /* [dim], of the shift that was set */
    bool is_float32;         /* frequencies are in radians, not in quarter turns */
    bool is_identity;        /* no positions at all */
};

/* Is there such a matrix: for rotary schemes, `none`, and sinusoids with a cosine for every sine? Without memory or
 * where there is none, *has is false. pe_addition_drop accepts any. */
enum pe_status pe_addition_init(struct pe_addition *addition, const struct pe_subject *subject, bool *has,
                                struct pe_failure *err);
void pe_addition_drop(struct pe_addition *addition);

/* The same question without the matrix: cheap enough to ask before anything is computed. */
bool pe_addition_has(const struct pe_subject *subject);

/* Fills cosine and sine for a shift by k. */
void pe_addition_set(struct pe_addition *addition, int64_t k);

/* ---- difference ---- */

/* The parts of the metric difference: two configurations side by side. */

enum { PE_DIFFERENCE_TABLES_MAX = 16 };
#define PE_DIFFERENCE_ROTATED SIZE_MAX /* no output: the rotated vector */

/* ---- difference.c: what is compared ---- */

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
    bool is_permuted;            /* it turns rows in the converter's order, which is undone: verdict.c */
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
    struct pe_layers_apart layers; /* n = 0: the same, or not known */
};

/* Allocates; nothing is compared yet. pe_difference_drop afterwards, also after a failure. */
enum pe_status pe_difference_init(struct pe_difference *w, const struct pe_analysis *study,
                                  const struct pe_subject *subject, struct pe_failure *err);
void pe_difference_drop(struct pe_difference *w);

/* Its memory for n tables, without the rotations. */
double pe_difference_bytes(const struct pe_difference_table *tables, size_t n);

/* Compares all numbers of table i: fills curves[i] and most[i], and the sums of all tables. */
void pe_difference_compare(struct pe_difference *w, size_t i);

/* The first element of table i, in the order of rows, whose two numbers are so far apart. */
uint64_t pe_difference_find(struct pe_difference *w, size_t i, double gap);

/* ---- verdict.c: do both mean the same? ---- */

/* Are the rows of this side, 0 or 1, those of a GGUF file whose converter has permuted them, and of that side alone? */
bool pe_difference_is_permuted(const struct pe_analysis *study, const struct pe_subject *subject, size_t side);

/* Puts `permutation`, `frequencies`, `verdict`, `reasons`, `layers`, once all tables are compared. sentences: the
 * verdict in words, with members in braces; "" where no side is another tool's configuration. */
void pe_difference_put_verdict(const struct pe_analysis *study, const struct pe_difference *w,
                               const struct pe_subject *subject, struct pe_node *out,
                               char sentences[PE_N_LANGS][PE_DETAIL_MAX]);

/* ---- extrapolation ---- */

/* The parts of the metric extrapolation: what a scheme meets beyond the length it was trained on. */

/* The lengths T and E, in whole positions. */
struct pe_lengths {
    uint64_t train, eval;
};

/* extrapolation.c. The share of positions 0..E-1 without a row of the learned table; NaN: the scheme has no such table.
 */
double pe_positions_without_row(const struct pe_subject *subject, struct pe_lengths lengths);

/* ---- extrapolation_attention.c: random queries and keys ---- */

/* The attention of queries at T-1 [0] and at E-1 [1], on average. */
struct pe_drift {
    bool is_there; /* the scheme has values at E positions */
    double entropy[2], mean_distance[2];
    double mass_beyond; /* of the queries at E-1, on keys T or more away */
};
enum pe_status pe_attention_drift(struct pe_analysis *study, const struct pe_subject *subject,
                                  struct pe_lengths lengths, struct pe_drift *drift, struct pe_failure *err);
void pe_attention_cost(const struct pe_subject *subject, struct pe_lengths lengths, struct pe_metric_cost *cost);

/* ---- Least squares ---- */

/* Least squares with the smallest norm, whatever the rank. */

/* x minimizes |A x - b| for each right-hand side b, and |x| among those that do; singular values of A below `cut` times
 * the largest (cut ≥ 1e-14) count as 0. All matrices are stored by columns: a [n, m] has column c of A in row c, b
 * [n_rhs, m], x [n_rhs, n]. a and b are used up. Fails with PE_NO_MEMORY or, where pe_is_cancelled() reports it, with
 * PE_CANCELLED. */
enum pe_status pe_least_squares(size_t m, size_t n, size_t n_rhs, double *a, double *b, double cut, double *x,
                                struct pe_failure *err);

/* Bytes that it allocates at most. */
double pe_least_squares_bytes(size_t m, size_t n);

#endif
