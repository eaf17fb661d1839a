/* The interface between the files of DeBERTa: deberta.c (parameters, buckets, the plan), deberta_tables.c (the inputs
 * and the tables of relative positions) and deberta_attend.c (attention). No other file includes it. */
#ifndef PE_DEBERTA_TABLES_H
#define PE_DEBERTA_TABLES_H

#include "core/schemes/relative/relative.h"

/* Content to position, with pos_key; position to content, with pos_query. */
enum pe_deberta_term { PE_C2P, PE_P2C };
extern const char *const pe_deberta_term_names[]; /* NULL-terminated */

struct pe_deberta {
    struct pe_relative_fields relative;
    int64_t position_buckets, max_relative_positions;
    const struct pe_value *pos_att_type, *norm_rel_ebd;
    bool share_att_key, clamp_first;
};

/* Buckets of distances beyond mid = position_buckets/2. */
struct pe_deberta_ladder {
    int64_t mid;
    struct pe_dd log_mid, log_m; /* ln mid, ln((M-1)/mid) */
};

struct pe_deberta_tables {
    bool has[2]; /* the terms */
    int64_t span;
    double *table[2];               /* pos_key, pos_query: [num_heads, 2·span, head_dim] */
    struct pe_relative_index index; /* of attention */
    struct pe_deberta_ladder ladder;
    int64_t n_buckets;
    int32_t bucket[]; /* [n_buckets]: b of each distance from 0 on, at most the span */
};

/* The row of both tables for a relative position. */
int32_t pe_deberta_row(const struct pe_plan *plan, int64_t rel);

extern const struct pe_input_row pe_deberta_inputs[];
extern const struct pe_attend pe_deberta_attend;

/* Checks the weights sent and computes t->table for each term of t->has, for attention. The config is resolved, and
 * t->span is set. The plan's drop frees the tables, also after a failure. */
enum pe_status pe_deberta_tables_make(struct pe_plan *plan, struct pe_deberta_tables *t, struct pe_error *err);
/* Adds its cost, and that of the norms of the tables' rows. rows: 2·span. The config need not be resolved. */
void pe_deberta_tables_cost(const struct pe_plan *plan, double rows, struct pe_cost *cost);

#endif
