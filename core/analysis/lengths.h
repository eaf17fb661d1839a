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

/* A plan in f64 on a run of n positions from offset on, with further overrides (at most PE_RUN_OVERRIDES). A seeded
 * table of rows keeps its number of rows: a longer sequence does not make it longer. */
struct pe_run {
    uint64_t n;
    int64_t offset;
    const struct pe_field *overrides;
    size_t n_overrides;
    const char *const *outputs;
    size_t n_outputs; /* 0: the outputs by default */
};
enum { PE_RUN_OVERRIDES = 4 };
enum pe_status pe_subject_plan_run(struct pe_analysis *study, const struct pe_subject *subject,
                                   const struct pe_run *run, struct pe_plan **plan, struct pe_error *err);

#endif
