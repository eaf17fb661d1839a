/* What is measured of what is no rotation: scores, biases, tables. */
#ifndef PE_MEASURE_MAPS_H
#define PE_MEASURE_MAPS_H

#include "core/diagnosis/faults/faults.h"

/* How scores follow from queries and keys: y = cap(scale·S) + bias·B, where S is what the believed plan gives without
 * bias and cap, and B the believed bias. Of probabilities y is their logarithm, known but for one number of each row.
 */
struct pe_scores_form {
    enum pe_side_change sides[PE_N_OPERANDS];
    bool is_tiled;
    double moved; /* as in struct pe_transforms */
};
struct pe_scores {
    struct pe_scores_form form;
    double scale, bias; /* 1: as believed */
    double cap;         /* NaN: none */
    double error;       /* of scale and bias, relatively; of the cap some more */
    double misfit;      /* the root of the mean square of what remains, as a share of that of y */
    double bits;        /* that the numbers carry */
};

/* scores.c. is_first: all forms, and how far queries are moved; else as believed alone. false: no form has the
 * numbers. */
bool pe_measure_scores(struct pe_diagnosis *d, const struct pe_edit *edit, bool is_first, struct pe_scores *out);

/* sinks.c: does a row of probabilities sum to less than 1? */
bool pe_has_gaps(struct pe_diagnosis *d);
/* … the sink of each head, [n_heads], under an edit without sinks. false: no row shows one. */
bool pe_measure_sinks(struct pe_diagnosis *d, const struct pe_edit *edit, size_t n_heads, double *sinks);

/* A bias, or buckets, by the distance of the key from the query. */
struct pe_lines {
    size_t n_heads, n;        /* [n_heads, n]: from the last query's first key to the first query's last */
    size_t zero;              /* the believed distance 0; n where it is beyond */
    double *found, *believed; /* NaN: hidden; the believed one without a mask. found is owned */
    double tolerance;         /* of each number, as a share */
};

/* map.c: the edit without masks, as a model; pe_model_free afterwards. */
bool pe_open_unmasked(struct pe_diagnosis *d, const struct pe_edit *edit, struct pe_model **model);

/* map.c: by what the numbers of each head are multiplied beside those of the edit, [n_heads], by least squares in a few
 * rows; 1 where nothing shows it. Returns its error, as a share; NaN: the numbers of a head are no multiple, or no
 * client waits any more. */
double pe_measure_heads(struct pe_diagnosis *d, const struct pe_edit *edit, double *factors);

/* map.c: of the rows that have every distance. false: one of the two is no function of the distance, or no client waits
 * any more. pe_lines_drop afterwards. */
bool pe_measure_lines(struct pe_diagnosis *d, const struct pe_edit *edit, struct pe_lines *out);
void pe_lines_drop(struct pe_lines *lines);
/* Is a number what is predicted? */
bool pe_lines_are_near(const struct pe_lines *l, double found, double predicted);

/* A resized table: which of some kernels gives the numbers, and under which sides. */
struct pe_resizing {
    struct pe_kernel kernel;
    uint64_t from[PE_RESIZED_AXES], to[PE_RESIZED_AXES]; /* the sides of the table, of the grid */
};
/* resize.c: the first of the kernels, [n], that gives the numbers under some sides; its a is solved for. *which is its
 * number. false: none does. */
bool pe_measure_resizing(struct pe_diagnosis *d, const struct pe_edit *edit, const struct pe_kernel *kernels, size_t n,
                         struct pe_resizing *out, size_t *which);

/* The index of a window: see struct pe_strides. */
struct pe_window_index {
    struct pe_strides found, believed;
    uint64_t sides[2];
};
/* map.c: false: the index is no such sum, as far as neighbours of the first patch show, or it is as believed. */
bool pe_measure_window(struct pe_diagnosis *d, const struct pe_edit *edit, struct pe_window_index *out);

#endif
