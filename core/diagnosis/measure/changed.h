/* What was done to the believed numbers as a whole, where nothing else explains the tensor. */
#ifndef PE_CHANGED_H
#define PE_CHANGED_H

#include "core/diagnosis/faults/faults.h"

/* In the order of the sentences of `unexplained`, behind those that state no change (faults/faults.c). */
enum pe_changed_how {
    PE_CHANGED_CUT_OFF,   /* n numbers would be below low or above high */
    PE_CHANGED_REORDERED, /* all numbers are there: x, for one, at `found` and not at `believed` */
    PE_CHANGED_HEADS,     /* indices of an axis are others: order, rule */
    PE_CHANGED_ROWS,
    PE_CHANGED_COLUMNS,
    PE_CHANGED_AXES,     /* the memory has the axes in another order: rule */
    PE_CHANGED_NUMBERS,  /* a function of each number: rule */
    PE_CHANGED_OF_HEADS, /* … with coefficients of each head, row, column: rule, first */
    PE_CHANGED_OF_ROWS,
    PE_CHANGED_OF_COLUMNS,
    PE_CHANGED_NORMAL_ROWS, /* each has mean 0 and variance 1 */
    PE_CHANGED_NORMAL_COLUMNS,
    PE_CHANGED_OF_DISTANCE,  /* … of the distance d, with coefficients of each head */
    PE_CHANGED_UNNORMALISED, /* rows of probabilities, each times a number */
    PE_CHANGED_SHIFTED_ROWS, /* of scores and biases: one number is added to each row */
    PE_CHANGED_PRODUCT,      /* a factor of the row times one of the column */
    PE_CHANGED_STEPS,        /* multiples of x */
    PE_CHANGED_DROPPED,      /* n are 0, the others x times as large */
    PE_CHANGED_BYTES,        /* in the other byte order */
    PE_CHANGED_SUMS,         /* columns of probabilities sum to 1, rows do not */
    PE_CHANGED_ROW_SUMS,     /* each row sums to x */
    PE_CHANGED_MASK,         /* query found.row sees other keys, first: the first such, rule: of all */
    PE_CHANGED_KEYS,         /* the same without a rule */
    PE_CHANGED_INPUT,        /* a multiple of the input is added: rule */
    PE_CHANGED_ADDED,        /* the same is added in every head */
    PE_CHANGED_BEFORE,       /* a function of each number of the input, before the rotation: rule */
    PE_CHANGED_WEIGHTED,     /* … with coefficients of each channel: rule, first */
    PE_CHANGED_NORMALISED,   /* a factor of the row and one of the channel, before the rotation */
    PE_CHANGED_ORTHOGONAL,   /* rows are an orthogonal matrix times the believed ones */
    PE_CHANGED_LINEAR,       /* … another matrix */
    PE_CHANGED_CONSTANT,     /* every number is x */
    PE_CHANGED_ALONG_ROWS,   /* of the number before it in the column, or the row: rule */
    PE_CHANGED_ALONG_COLUMNS,
    PE_CHANGED_PAIRS,         /* the two channels of each pair: rule, first */
    PE_CHANGED_PHASES,        /* wrong by a share of the angle, rule, as of type `first` */
    PE_CHANGED_TURNED_PHASES, /* … of the angle within its turn */
    PE_CHANGED_BUCKETS,       /* at n distances, first: the nearest; rule there, before: the believed one */
    PE_CHANGED_BY_DISTANCE,   /* the same of a bias */
    PE_CHANGED_HIDDEN_WEIGHT  /* of probabilities: hidden keys of query found.row have the weight x */
};

struct pe_number_place {
    size_t t;
    uint64_t row, col;
};
enum { PE_CHANGED_ORDER_MAX = 8, PE_CHANGED_TEXT = 96 };
struct pe_changed {
    enum pe_changed_how change;
    uint64_t n;
    double low, high, x;
    struct pe_number_place found, believed;
    int64_t order[PE_CHANGED_ORDER_MAX]; /* the first ones */
    size_t n_order;
    char rule[PE_CHANGED_TEXT], first[PE_CHANGED_TEXT], before[PE_CHANGED_TEXT];
};
/* changed.c. false: nothing of it, or it is not asked: of floats, 64 to 65536 of them; of buckets by distance. */
bool pe_changed_measure(struct pe_diagnosis *d, struct pe_changed *out);

/* ---- Within measure/ ---- */

/* Every number found and believed, [tensor, batch, head, row, column]; a hidden key is NaN in both. */
struct pe_numbers {
    struct pe_diagnosis *d;
    size_t n, n_rows, n_cols; /* n_rows: of all tensors */
    struct pe_place sizes;
    double *found, *believed, *input; /* [n]; input NULL: there is none */
    uint32_t *room;                   /* [2·n]: scratch of order.c */
    double near;                      /* equal numbers differ so much at most */
    bool is_coarse;                   /* … which is more than float32 loses: they are rounded to 16 bits */
    double work;
};
/* order.c, values.c, along.c, mask.c, input.c, pairs.c, phases.c. Without memory they note that in d. */
bool pe_changed_order(struct pe_numbers *s, struct pe_changed *out);
bool pe_changed_values(struct pe_numbers *s, struct pe_changed *out);
bool pe_changed_input(struct pe_numbers *s, struct pe_changed *out);
bool pe_changed_along(struct pe_numbers *s, struct pe_changed *out);
bool pe_changed_mask(struct pe_numbers *s, struct pe_changed *out);
bool pe_changed_pairs(struct pe_numbers *s, struct pe_changed *out);
bool pe_changed_phases(struct pe_numbers *s, struct pe_changed *out);
/* distance.c: of any evidence of a bias or buckets. */
bool pe_changed_distance(struct pe_diagnosis *d, struct pe_changed *out);

/* terms.c. y ≈ Σ a[k]·x[k], by the normal equations. */
enum { PE_TERMS_OF_FIT = 8 };
struct pe_terms {
    size_t n; /* terms */
    double squares[PE_TERMS_OF_FIT * PE_TERMS_OF_FIT], products[PE_TERMS_OF_FIT], count;
};
void pe_terms_add(struct pe_terms *f, const double *x, double y);
/* false: the terms are not independent, or there are too few numbers. */
bool pe_terms_solve(struct pe_terms *f, double *a);
/* "x[i]-0.5*y[i-1]": writes the terms whose coefficients are not 0. */
void pe_terms_state(const double *a, const char *const *terms, size_t n, char text[PE_CHANGED_TEXT]);
/* Cholesky's factor of a [n, n] in its lower triangle; false: it is singular. Then a·x = x, in place. */
bool pe_factorise(double *a, size_t n);
void pe_solve(const double *factor, size_t n, double *x);

#endif
