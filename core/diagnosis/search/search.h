/* The state of a search, and its steps. Only for the files of this folder. */
#ifndef PE_SEARCH_H
#define PE_SEARCH_H

#include "core/diagnosis/diagnosis.h"

/* A single fault that made sense at level 1. */
struct pe_single {
    uint16_t fault, choice;
    unsigned char kind;
    bool is_fit, is_list; /* is_list: a fit of free numbers */
    bool has_base;        /* a scaling of a model, with the model's base */
    float *w;             /* a ladder: its frequencies [n_waves]; NULL: not known */
};

/* Whether the lengths of pairs agree under the faults that decide which channels are a pair (pe_search_has_pairs). */
struct pe_paired {
    struct pe_hypothesis faults;
    enum { PE_PAIRS_UNKNOWN, PE_PAIRS_AGREE, PE_PAIRS_DIFFER } lengths;
};
enum { PE_PAIRED_MAX = 2048 }; /* that are kept, each at the place that its faults hash to */

struct pe_search {
    struct pe_diagnosis *d;
    struct pe_error *err;
    struct pe_single *singles;
    size_t n_singles, room;
    size_t n_waves; /* of the belief */
    float *ladders; /* what single.w point to */
    size_t n_ladders;
    enum pe_status status;    /* PE_CANCELLED, PE_NO_MEMORY */
    bool is_full;             /* no hypotheses are left, or no work */
    double reserved;          /* work of the answer, which follows the search */
    bool is_deep;             /* beyond level 1, which is tried whole */
    struct pe_paired *paired; /* [PE_PAIRED_MAX] */
};

/* A hypothesis as an edit and its model. */
struct pe_trial {
    struct pe_edit edit;
    struct pe_model *model; /* NULL: it is no hypothesis */
};

/* trial.c. false: the search ends, by its number of hypotheses or because no request is waiting. */
bool pe_search_goes_on(struct pe_search *s);
void pe_trial_open(struct pe_search *s, const struct pe_hypothesis *h, struct pe_trial *t);
void pe_trial_close(struct pe_trial *t);
/* false: no hypothesis with these faults fits, because the pairs of channels are not rotated, whatever the angles are.
 * Asked before a hypothesis of several faults is planned. */
bool pe_search_has_pairs(struct pe_search *s, const struct pe_hypothesis *h);
/* Evaluates, counts and keeps. */
struct pe_kept pe_search_judge(struct pe_search *s, const struct pe_hypothesis *h, const struct pe_trial *t);
/* All of these, if there is such a hypothesis. */
void pe_search_try(struct pe_search *s, const struct pe_hypothesis *h);
/* Faults in the order of list.h. */
struct pe_hypothesis pe_combine(const struct pe_single *const *faults, unsigned n);

/* ladders.c: tries these n faults with each ladder that agrees with the phases; faults has room for one more. */
void pe_search_ladders(struct pe_search *s, const struct pe_single **faults, unsigned n);
/* The same for a scaling and a base, which are one ladder and two mistakes. */
void pe_search_bases(struct pe_search *s);

/* best.c: keeps a hypothesis in d->best, d->of_kind and d->nearest if it belongs there. */
void pe_best_keep(struct pe_diagnosis *d, struct pe_kept *k, const struct pe_model *model);
/* Does the best one fit, at this cost or less? */
bool pe_best_fits(const struct pe_diagnosis *d, unsigned cost);
/* Leaves those that are to be compared with all numbers. */
void pe_best_trim(struct pe_diagnosis *d);

#endif
