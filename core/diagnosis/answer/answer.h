/* The answer of a diagnosis, step by step: the best hypotheses against all numbers (compare.c), then what they mean
 * (findings.c, decide.c, alike.c), stated as a tree of values (answer.c). */
#ifndef PE_DIAGNOSIS_ANSWER_H
#define PE_DIAGNOSIS_ANSWER_H

#include "core/diagnosis/diagnosis.h"

enum { PE_CANDIDATES_MAX = 5 };

/* The first number outside verdict `exact`. */
struct pe_misfit {
    bool is_any;
    size_t t; /* tensor */
    uint64_t row, col;
    double found, expected; /* rounded to the dtype */
};

/* A model against all numbers of the evidence. */
struct pe_comparison {
    enum pe_verdict verdict;
    double max_error, max_ulp; /* from the predicted numbers rounded to the dtype */
    uint64_t n, n_equal;
    struct pe_misfit first_bad;
    bool is_beyond; /* errors that a rounding alone would not have; the first of them is at this row */
    uint64_t beyond_row;
};
enum pe_status pe_compare_all(struct pe_diagnosis *d, struct pe_model *model, bool narrow, struct pe_comparison *out,
                              struct pe_error *err);

/* A hypothesis that was compared with all numbers. */
struct pe_candidate {
    struct pe_kept kept;
    struct pe_edit edit;
    struct pe_model *model;
    struct pe_comparison all;
    bool is_narrow; /* judged in the narrower dtype that the numbers have */
};

/* A candidate that fits as well as the first but differs elsewhere, and the position that decides. */
struct pe_undecided {
    size_t rival; /* 0: none */
    uint64_t position;
};

struct pe_answer {
    struct pe_candidate candidates[PE_BEST_MAX]; /* in order */
    size_t n;                                    /* compared */
    size_t n_shown;
    struct pe_candidate belief; /* without a model if no belief came */
    struct pe_undecided undecided;
};

/* findings.c: the list of findings of the first candidate. */
void pe_answer_findings(struct pe_diagnosis *d, const struct pe_answer *a, struct pe_node *root);

/* decide.c: fills *out. */
enum pe_status pe_answer_decide(struct pe_diagnosis *d, const struct pe_answer *a, struct pe_undecided *out,
                                struct pe_error *err);

/* alike.c: presets whose plan is that of the candidate. */
enum pe_status pe_answer_presets(struct pe_diagnosis *d, const struct pe_candidate *c, struct pe_node *list,
                                 struct pe_error *err);

#endif
