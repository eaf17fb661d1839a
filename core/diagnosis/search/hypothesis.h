/* Hypotheses: the belief with one to three faults, their scores and their order; the search. */
#ifndef PE_HYPOTHESIS_H
#define PE_HYPOTHESIS_H

#include "core/diagnosis/evidence/edit.h"
#include "core/diagnosis/evidence/judge.h"

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
    int surprise;       /* of one that fits */
    bool follows_noise; /* it fits with a fitted number of many digits */
    uint64_t signature;
};

/* Applies the faults to a new edit (pe_edit_drop afterwards, also after false). false: no such hypothesis. */
bool pe_hypothesis_apply(struct pe_diagnosis *d, const struct pe_hypothesis *h, struct pe_edit *edit);
/* Is a value of it fitted? */
bool pe_hypothesis_is_fitted(const struct pe_diagnosis *d, const struct pe_hypothesis *h);
unsigned pe_hypothesis_cost(const struct pe_diagnosis *d, const struct pe_hypothesis *h);
/* Compares a model with the sample. */
struct pe_score pe_evaluate(struct pe_diagnosis *d, const struct pe_model *model);
/* How unlikely it is that somebody makes these mistakes, which edit has applied: sets surprise and follows_noise. */
void pe_hypothesis_wonder(const struct pe_diagnosis *d, const struct pe_edit *edit, struct pe_kept *k);
/* The order of candidates: fits, near, none; cost; exact, rounding; surprise; the table's; max_error. Angles in float32
 * are off by more than the last digits of a fitted number, which may follow them: its verdict exact counts as rounding.
 */
int pe_kept_compare(const struct pe_kept *a, const struct pe_kept *b);
/* Fills d->best, d->of_kind, d->searched. */
enum pe_status pe_search(struct pe_diagnosis *d, struct pe_error *err);

#endif
