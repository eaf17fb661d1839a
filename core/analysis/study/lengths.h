/* The two lengths that several metrics compare: that of training and that of evaluation. Plans of other lengths. */
#ifndef PE_ANALYSIS_LENGTHS_H
#define PE_ANALYSIS_LENGTHS_H

#include "core/analysis/internal.h"

/* `train_len`; if it is not given, the original length of the scaling, else the number of positions. */
double pe_train_len(const struct pe_analysis *study, const struct pe_subject *subject);
/* `eval_len`; if it is not given, twice that. */
double pe_eval_len(const struct pe_analysis *study, const struct pe_subject *subject);

/* Puts a length, an integer unless the scaling's is not. */
void pe_put_length(struct pe_node *node, const char *name, double length);

/* A plan in f64 on other positions, with further overrides (at most PE_RUN_OVERRIDES). A learned table keeps its number
 * of rows: a longer sequence does not make it longer. */
struct pe_run {
    uint64_t n;
    int64_t offset;          /* positions offset, offset + 1 … */
    const double *positions; /* [n], borrowed until the plan is freed; NULL: from offset on */
    const struct pe_field *overrides;
    size_t n_overrides;
    const char *const *outputs;
    size_t n_outputs; /* 0: the outputs by default */
};
enum { PE_RUN_OVERRIDES = 4 };
enum pe_status pe_subject_plan_run(struct pe_analysis *study, const struct pe_subject *subject,
                                   const struct pe_run *run, struct pe_plan **plan, struct pe_error *err);
/* The same with the outputs that rows are made of, and without padding and embeddings, which belong to the given
 * sequence only. It has no overrides. */
enum pe_status pe_subject_plan_rows(struct pe_analysis *study, const struct pe_subject *subject,
                                    const struct pe_run *run, struct pe_plan **plan, struct pe_error *err);

#endif
