/* The parts of the metric extrapolation: what a scheme meets beyond the length it was trained on. */
#ifndef PE_ANALYSIS_EXTRAPOLATION_H
#define PE_ANALYSIS_EXTRAPOLATION_H

#include "core/analysis/study/lengths.h"

/* The lengths T and E, in whole positions. */
struct pe_lengths {
    uint64_t train, eval;
};

/* ---- extrapolation_reach.c: positions, angles and distances out of reach ---- */

/* The share of positions 0..E-1 without a row of the learned table; NaN: the scheme has no such table. */
double pe_positions_without_row(const struct pe_subject *subject, struct pe_lengths lengths);

/* unseen[c], c < C: the share of distances T..E-1 whose angle is beyond all angles of training. Only with a ladder. */
enum pe_status pe_unseen_angles(struct pe_analysis *study, const struct pe_subject *subject, struct pe_lengths lengths,
                                double *unseen, struct pe_error *err);

/* The share of the pairs of E positions that are T or more apart. */
double pe_unseen_pairs(const struct pe_subject *subject, struct pe_lengths lengths);

/* The share of the pairs of n positions that share the last bucket or row of a side; NaN: the scheme has none. */
bool pe_has_saturation(const struct pe_subject *subject);
enum pe_status pe_saturated(struct pe_analysis *study, const struct pe_subject *subject, uint64_t n, double *share,
                            struct pe_error *err);

/* ---- extrapolation_attention.c: random queries and keys ---- */

/* The attention of queries at T-1 [0] and at E-1 [1], on average. */
struct pe_drift {
    bool is_there; /* the scheme has values at E positions */
    double entropy[2], mean_distance[2];
    double mass_beyond; /* of the queries at E-1, on keys T or more away */
};
enum pe_status pe_attention_drift(struct pe_analysis *study, const struct pe_subject *subject,
                                  struct pe_lengths lengths, struct pe_drift *drift, struct pe_error *err);
void pe_attention_cost(const struct pe_subject *subject, struct pe_lengths lengths, struct pe_metric_cost *cost);

/* ---- Resolved configurations ---- */

int64_t pe_config_integer(const struct pe_plan *plan, const char *name, int64_t fallback);
bool pe_config_boolean(const struct pe_plan *plan, const char *name, bool fallback);

#endif
