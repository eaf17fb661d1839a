/* Hypotheses: the belief with one to three faults, their scores and their order; the search. */
#ifndef PE_HYPOTHESIS_H
#define PE_HYPOTHESIS_H

#include "core/diagnosis/model/edit.h"
#include "core/diagnosis/model/judge.h"

struct pe_model;

enum {
    PE_FAULTS_MAX = 3,         /* of one hypothesis */
    PE_HYPOTHESES_MAX = 20000, /* that one diagnosis evaluates */
    PE_BEST_MAX = 16           /* hypotheses that are compared with all numbers */
};

struct pe_hypothesis {
    unsigned n;                                           /* faults; 0: the belief */
    uint16_t fault[PE_FAULTS_MAX], choice[PE_FAULTS_MAX]; /* in the order of list.h; choice: the alternative */
};

struct pe_score {
    enum pe_verdict verdict;
    double max_error;   /* over the numbers looked at */
    double first_error; /* over the first look: the same numbers for every hypothesis */
};

struct pe_kept {
    struct pe_hypothesis h;
    struct pe_score score;
    unsigned cost;
    uint64_t signature;
};

/* Applies the faults to a new edit (pe_edit_drop afterwards, also after false). false: no such hypothesis. */
bool pe_hypothesis_apply(struct pe_diagnosis *d, const struct pe_hypothesis *h, struct pe_edit *edit);
unsigned pe_hypothesis_cost(const struct pe_diagnosis *d, const struct pe_hypothesis *h);
/* Compares a model with the sample. */
struct pe_score pe_evaluate(struct pe_diagnosis *d, const struct pe_model *model);
/* The order of candidates: fits, near, none; cost; exact, rounding; the table's; max_error. */
int pe_kept_compare(const struct pe_kept *a, const struct pe_kept *b);
/* Fills d->best, d->of_kind, d->searched. */
enum pe_status pe_search(struct pe_diagnosis *d, struct pe_error *err);

#endif
