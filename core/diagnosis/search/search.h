/* Hypotheses: the belief with one to three faults, their scores and their order; the search. */
#ifndef PE_SEARCH_H
#define PE_SEARCH_H

#include "core/diagnosis/measure/profile.h"
#include "core/values.h"

/* ---- Hypotheses ---- */

struct pe_model;

enum {
    PE_FAULTS_MAX = 3,                /* of one hypothesis */
    PE_HYPOTHESES_MAX = 20000,        /* that one diagnosis evaluates */
    PE_HYPOTHESES_TYPED_MAX = 16384,  /* of numbers that were typed */
    PE_HYPOTHESES_OF_MAPS_MAX = 4096, /* of scores and probabilities, whose plans read all queries and keys */
    PE_BEST_MAX = 16                  /* hypotheses that are compared with all numbers */
};

struct pe_hypothesis {
    unsigned n;                                           /* faults; 0: the belief */
    uint16_t fault[PE_FAULTS_MAX], choice[PE_FAULTS_MAX]; /* in the order of list.h; choice: the alternative */
};

struct pe_score {
    enum pe_verdict verdict;
    double max_error;   /* over the numbers looked at */
    double first_error; /* over the first look: the same numbers for every hypothesis */
    double bits;        /* that the numbers looked at tell beyond their limits */
};

/* A hypothesis that was judged by the sample. */
struct pe_explanation {
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
/* Do numbers of so many bits tell enough for it? The belief needs none. */
bool pe_hypothesis_is_told(const struct pe_diagnosis *d, const struct pe_hypothesis *h, double bits);
bool pe_hypothesis_is_fitted(const struct pe_diagnosis *d, const struct pe_hypothesis *h);
unsigned pe_hypothesis_cost(const struct pe_diagnosis *d, const struct pe_hypothesis *h);
/* Compares a model with the sample. */
struct pe_score pe_evaluate(struct pe_diagnosis *d, const struct pe_model *model);
/* How unlikely it is that somebody makes these mistakes, which edit has applied: sets surprise and follows_noise. */
void pe_hypothesis_wonder(const struct pe_diagnosis *d, const struct pe_edit *edit, struct pe_explanation *k);
/* The order of candidates: fits, near, none; cost; exact, rounding; surprise; the table's; max_error. Angles in float32
 * are off by more than the last digits of a fitted number, which may follow them: its verdict exact counts as rounding.
 */
int pe_explanation_compare(const struct pe_explanation *a, const struct pe_explanation *b);
/* Fills d->best, d->of_kind, d->searched. */
enum pe_status pe_search(struct pe_diagnosis *d, struct pe_failure *err);
/* No belief, and fewer than PE_INFORMATIVE_MIN numbers: nothing is tried. */
bool pe_is_too_little(const struct pe_diagnosis *d);

/* ---- The search ---- */

/* The state of a search, and its steps. Only for the files of this folder. */

/* A single fault that made sense at level 1. */
struct pe_single {
    uint16_t fault, choice;
    unsigned char kind;
    bool is_fit, is_list; /* is_list: a fit of free numbers */
    bool has_base;        /* a scaling of a model, with the model's base */
};

/* Whether the lengths of pairs agree under the faults that decide which channels are a pair (pe_search_has_pairs). */
struct pe_paired {
    struct pe_hypothesis faults;
    enum { PE_PAIRS_UNKNOWN, PE_PAIRS_AGREE, PE_PAIRS_DIFFER } lengths;
};
enum { PE_PAIRED_MAX = 2048 }; /* each where its faults hash to */

struct pe_search {
    struct pe_diagnosis *d;
    struct pe_failure *err;
    struct pe_single *singles;
    size_t n_singles, room;
    enum pe_status status;    /* PE_CANCELLED, PE_NO_MEMORY */
    bool is_full;             /* no hypotheses are left, or no work */
    double reserved;          /* work of the answer, which follows the search */
    bool is_deep;             /* beyond level 1, which is tried whole */
    bool has_waves;           /* those of the belief's pairs are read */
    struct pe_paired *paired; /* [PE_PAIRED_MAX] */
};

/* A hypothesis as an edit and its model. */
struct pe_trial {
    struct pe_edit edit;
    struct pe_model *model; /* NULL: it is no hypothesis */
};

/* trial.c. How many hypotheses a search may evaluate. */
uint64_t pe_search_hypotheses_max(const struct pe_diagnosis *d);
/* false: the search ends, by its number of hypotheses or because no request is waiting. */
bool pe_search_goes_on(struct pe_search *s);
void pe_trial_open(struct pe_search *s, const struct pe_hypothesis *h, struct pe_trial *t);
void pe_trial_close(struct pe_trial *t);
/* false: no hypothesis with these faults fits, because the pairs of channels are not rotated, whatever the angles are.
 * Asked before a hypothesis of several faults is planned. */
bool pe_search_has_pairs(struct pe_search *s, const struct pe_hypothesis *h);
/* How many alternatives a fault has; is one of them tried on this evidence? */
size_t pe_search_count(const struct pe_diagnosis *d, size_t fault);
bool pe_search_tries(const struct pe_diagnosis *d, size_t fault, size_t choice);
/* Evaluates, counts and keeps. */
struct pe_explanation pe_search_judge(struct pe_search *s, const struct pe_hypothesis *h, const struct pe_trial *t);
/* Faults in the order of list.h. */
struct pe_hypothesis pe_combine(const struct pe_single *const *faults, unsigned n);

/* A single fault for the deeper levels. */
void pe_search_note(struct pe_search *s, const struct pe_hypothesis *h, const struct pe_trial *t);

/* named.c: measures positions, then frequencies, under these faults, and tries what they are to the believed ones as
 * one hypothesis. true: it fits the sample. */
bool pe_name(struct pe_search *s, const struct pe_hypothesis *base);
/* Rotary evidence, its ladder, and sines of one axis, whose positions and frequencies are measured. */
bool pe_names_waves(const struct pe_diagnosis *d);
/* Do the phases turn from row to row as those of the model, on one axis? */
bool pe_turns_agree(const struct pe_model *model, const struct pe_reading *r);
/* Where one ladder explains the sample: the other relations that give its frequencies, too. */
void pe_name_also(struct pe_search *s);

struct pe_named;
struct pe_measured {
    struct pe_profile believed, found;
    const struct pe_reading *reading; /* NULL: of ids */
    double noise;
};
/* What a number that is taken from the tensor costs, in bits. */
enum { PE_BITS_OF_A_NUMBER = 20 };
/* The faults of base and these relations, no more than PE_FAULTS_MAX; tried: does the hypothesis fit the sample? */
struct pe_hypothesis pe_named_with(const struct pe_diagnosis *d, const struct pe_hypothesis *base,
                                   struct pe_named *const *parts, size_t n);
bool pe_named_try(struct pe_search *s, const struct pe_hypothesis *h);
/* Numbers that the relations of a hypothesis have taken from the tensor. */
unsigned pe_named_numbers(const struct pe_diagnosis *d, const struct pe_hypothesis *h);
/* A relation with room for so many numbers; NULL: there is no room for it, or no memory. */
struct pe_named *pe_named_new(struct pe_diagnosis *d, size_t n_numbers);
/* named_ladders.c: frequencies at the believed positions, or at those of the longest stretch; then positions once more.
 * `under` is the model of base. */
bool pe_name_ladders(struct pe_search *s, const struct pe_hypothesis *base, const struct pe_model *under,
                     struct pe_measured *m);

/* Keeps a hypothesis in d->best, d->of_kind and d->nearest if it belongs there. */
void pe_best_keep(struct pe_diagnosis *d, struct pe_explanation *k, const struct pe_model *model);
/* Does the best one fit, at this cost or less? */
bool pe_best_fits(const struct pe_diagnosis *d, unsigned cost);
/* Leaves those that are to be compared with all numbers. */
void pe_best_trim(struct pe_diagnosis *d);

/* ---- The answer ---- */

/* The answer of a diagnosis, step by step: the best hypotheses against all numbers (compare.c), which of them have the
 * same numbers (equivalent.c), then what they mean (findings.c, presets.c, unseen.c), stated as a tree of
 * values (answer.c). */

enum { PE_CANDIDATES_MAX = 5 };

/* A number that is not the predicted one. */
struct pe_misfit {
    bool is_any;
    size_t t; /* tensor */
    uint64_t row, col;
    double found, expected; /* rounded to the dtype */
};

/* A model against all numbers of the evidence. */
struct pe_comparison {
    enum pe_verdict verdict;
    double bits;               /* that the numbers tell beyond their limits */
    double max_error, max_ulp; /* from the predicted numbers rounded to the dtype */
    uint64_t n, n_equal;
    uint64_t n_left_out;               /* by a text */
    struct pe_misfit first_bad, worst; /* worst: the number of max_error, where that is finite */
    bool is_beyond;                    /* errors that a rounding alone would not have; the first of them is here */
    uint64_t beyond_row, beyond_col;
    bool is_alone; /* but for the others of its pair and frequency `worst` would be within rounding; so it is near */
};
enum pe_status pe_compare_all(struct pe_diagnosis *d, struct pe_model *model, bool narrow, struct pe_comparison *out,
                              struct pe_failure *err);

/* own.c: the same with each number beside those that it is computed with, row by row in any order. Bytes of one that is
 * new; NULL: no memory. */
struct pe_own;
struct pe_row {
    double *found, *expected, *phase; /* [n] */
    size_t n;
};
double pe_own_bytes(const struct pe_evidence *e);
struct pe_own *pe_own_new(const struct pe_model *model, const struct pe_judge *judge); /* freed with free() */
void pe_own_add(struct pe_own *own, uint64_t row, const struct pe_row *rows);          /* [n_tensors] */
void pe_own_end(struct pe_own *own, struct pe_comparison *out);

/* Has a candidate the numbers of another one: no; in this tensor only; at all positions? */
enum pe_likeness { PE_UNLIKE, PE_ALIKE_HERE, PE_ALIKE };

/* An explanation that was compared with all numbers. */
struct pe_candidate {
    struct pe_explanation explanation;
    struct pe_edit edit;
    struct pe_model *model;
    struct pe_comparison all;
    bool is_narrow;       /* judged in the narrower dtype that the numbers have */
    const char **presets; /* [n_presets]: with the same numbers, of one that is shown; of the answer's tree */
    size_t n_presets;
    enum pe_likeness likeness;
    size_t head; /* the candidate that it is like */
};

void pe_candidate_drop(struct pe_candidate *c);
/* The order of two candidates, for qsort. */
int pe_candidate_order(const void *a, const void *b);

/* A candidate that fits as well as the first but differs elsewhere, and the position that decides. */
struct pe_undecided {
    size_t rival; /* 0: none */
    uint64_t position;
};

/* A number of a tensor that was printed, which more digits would tell from that of another reading. */
struct pe_next {
    const char *code; /* of the mistake that is the other one; NULL: there is none */
    size_t t;
    uint64_t row, col;
    double believed, other;
};

struct pe_answer {
    struct pe_candidate candidates[PE_BEST_MAX]; /* in order */
    size_t n;                                    /* compared */
    size_t n_own;                                /* those with numbers of their own, which are first */
    size_t n_shown;
    struct pe_candidate belief; /* without a model if no belief came */
    struct pe_undecided undecided;
    struct pe_next next;
};

/* compare.c: the belief and the best hypotheses against all numbers, in order. */
enum pe_status pe_answer_compare(struct pe_diagnosis *d, struct pe_answer *a, struct pe_failure *err);

/* equivalent.c. How near numbers of two models must be: exact; or within what is right for float32; or, where a value
 * of either was fitted, as far as a fitted base may be off. */
struct pe_nearness {
    struct pe_judge judge;
    bool is_rounded, is_fitted;
};

/* Rows of a model that are compared. */
struct pe_extent {
    size_t n_tensors;
    uint64_t n_rows;
    size_t row_len;
};

/* Room for the comparisons below, of rows that are no longer than the evidence's; NULL: no memory. */
double *pe_equal_room(const struct pe_diagnosis *d);
bool pe_equal_in_sample(struct pe_diagnosis *d, const struct pe_nearness *near, const struct pe_model *a,
                        const struct pe_model *b, double *room);
bool pe_equal_rows(const struct pe_nearness *near, const struct pe_model *a, const struct pe_model *b,
                   const struct pe_extent *rows, double *room);

enum { PE_NEAR_ROWS = 32 };
/* A trial of the first PE_NEAR_ROWS rows of a candidate's sequence and of far ones, as it goes on; its edit borrows
 * from the candidate's. No model: it does not go on. */
void pe_go_on(struct pe_diagnosis *d, const struct pe_candidate *c, struct pe_trial *on);

/* Finds candidates with the same numbers, and moves those that are alike everywhere behind the others. */
enum pe_status pe_answer_join(struct pe_diagnosis *d, struct pe_answer *a, struct pe_failure *err);
/* Is candidate i listed as another explanation beside candidate head? */
bool pe_answer_lists(const struct pe_diagnosis *d, const struct pe_answer *a, size_t head, size_t i);
/* answer.c: such a number as a member of that name: its place, as found and as expected. */
void pe_answer_misfit(const struct pe_diagnosis *d, const struct pe_misfit *bad, struct pe_node *node,
                      const char *name);

/* transforms.c: the list `transforms` of a candidate. */
struct pe_node *pe_answer_transforms(const struct pe_diagnosis *d, const struct pe_transforms *t, struct pe_node *node);

/* findings.c: the list of findings of the first candidate. */
void pe_answer_findings(struct pe_diagnosis *d, const struct pe_answer *a, struct pe_node *root);
/* What a candidate changes, in words: detail and detail_zh of its faults. */
void pe_answer_detail(struct pe_diagnosis *d, const struct pe_candidate *c, struct pe_node *node);

/* unseen.c: is something done to the numbers of a plan that no request has? */
bool pe_are_transformed(const struct pe_transforms *t);
/* derived.c: the member derive of a finding, where both numbers have a derivation. */
void pe_answer_derive(const struct pe_diagnosis *d, const struct pe_candidate *c, struct pe_node *node);

/* findings.c: a value; null in place of a long list. */
void pe_answer_value(struct pe_node *node, const char *name, const struct pe_value *value);
/* findings.c: the sentence of a finding that has its two values, or a shorter one. */
void pe_answer_sentence(struct pe_diagnosis *d, struct pe_node *node, const struct pe_fault_info *info,
                        const char *sentence, const char *field);
/* differences.c: the findings of a belief beside a candidate that was found without it. */
void pe_answer_differences(struct pe_diagnosis *d, const struct pe_value *candidate, struct pe_node *root);

/* cure.c: the member `cure` of a finding that has its other members; fault NULL: it is of none. */
void pe_answer_cure(struct pe_diagnosis *d, const struct pe_fault *fault, const struct pe_named *named,
                    struct pe_node *finding);
/* where.c: a finding of a part of the tensor, which points to tensor t; a pattern with each %s replaced by the next
 * part; its sentence in each language, whose first letter becomes a capital. */
enum { PE_PART_SENTENCE = 1600 };
struct pe_fault;
struct pe_node *pe_part_finding(struct pe_diagnosis *d, struct pe_node *list, const struct pe_fault *fault, size_t t);
void pe_part_write(char *text, const char *pattern, const char *const *parts);
void pe_part_sentence(struct pe_diagnosis *d, struct pe_node *node, char text[PE_N_LANGS][PE_PART_SENTENCE]);
/* sizes.c: rows that are more, or fewer, than believed. */
void pe_answer_sizes(struct pe_diagnosis *d, struct pe_node *list);
/* where.c: numbers that are not finite; rows that are zero where the first candidate is not, true: there are some, and
 * the transform that they are; the part that is as believed, with what the rest is; where the belief fits. */
void pe_answer_not_finite(struct pe_diagnosis *d, struct pe_node *list);
bool pe_answer_zeros(struct pe_diagnosis *d, const struct pe_answer *a, struct pe_node *list);
void pe_answer_zero_rows(struct pe_diagnosis *d, const struct pe_answer *a, struct pe_node *list);
void pe_answer_part(struct pe_diagnosis *d, struct pe_node *list);
void pe_answer_where(struct pe_diagnosis *d, struct pe_node *root);
/* Is it known what the rest is, so that both parts explain the tensor? Its code; the indices of a part, and what the
 * rest is; the candidate of a diagnosis that explains the rest, NULL: there is none. */
bool pe_answer_is_in_parts(const struct pe_diagnosis *d);
const char *pe_answer_part_code(const struct pe_diagnosis *d);
void pe_answer_piece(struct pe_diagnosis *d, bool is_rest, struct pe_node *node);
const struct pe_value *pe_answer_of_rest(const struct pe_diagnosis *d);
/* answer.c: does the first candidate fit? */
bool pe_answer_fits(const struct pe_diagnosis *d);

/* unseen.c: codes of the mistakes that would not show in the tensor; none where the belief does not fit. */
enum { PE_UNSEEN_MAX = 32 };
enum pe_status pe_answer_unseen(struct pe_diagnosis *d, struct pe_answer *a, struct pe_node *list,
                                struct pe_failure *err);

/* equivalent.c: fills *out. */
enum pe_status pe_answer_decide(struct pe_diagnosis *d, const struct pe_answer *a, struct pe_undecided *out,
                                struct pe_failure *err);

/* arithmetic.c: by which steps the tensor was computed, null where that does not show; and the work of it. */
enum pe_status pe_answer_arithmetic(struct pe_diagnosis *d, const struct pe_answer *a, struct pe_node *root,
                                    struct pe_failure *err);
double pe_arithmetic_work(const struct pe_diagnosis *d);
extern const struct pe_member pe_arithmetic_members[];

/* presets.c: those whose plan is that of the candidate; then the candidate in a line of words, as "summary". */
enum pe_status pe_answer_presets(struct pe_diagnosis *d, struct pe_candidate *c, struct pe_failure *err);
void pe_answer_summary(struct pe_diagnosis *d, const struct pe_candidate *c, struct pe_node *node);
/* answer.c: its resolved configuration, as "config". */
void pe_answer_config(const struct pe_diagnosis *d, const struct pe_candidate *c, const struct pe_plan *plan,
                      struct pe_node *node);

/* probe.c: `next`, the number that tells the readings apart which explain what was typed. */
enum pe_status pe_answer_next(struct pe_diagnosis *d, const struct pe_answer *a, struct pe_node *root,
                              struct pe_failure *err);
/* The numbers worth looking at, of an opened diagnosis; states the answer. */
enum pe_status pe_probe_state(struct pe_diagnosis *d, struct pe_failure *err);

/* Of frequencies that follow no rule: `nearest`, the known ladder that is nearest, in words, and how far it is. */
void pe_answer_nearest_ladder(struct pe_diagnosis *d, const struct pe_candidate *c, struct pe_node *node);

/* A number, as text where JSON has none for it. */
/* The index of a number in its tensor, as "index". */
void pe_answer_put_index(const struct pe_diagnosis *d, struct pe_node *node, size_t t, uint64_t row, uint64_t col);
void pe_answer_put_number(struct pe_node *node, const char *name, double x);
/* The double with the shortest text that reads back as this number of the dtype, as tensors are printed. */
double pe_answer_shortest(enum pe_dtype dtype, double x);

#endif
