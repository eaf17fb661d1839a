/* The interface between relative_sinusoid.c (R, the plan) and relative_sinusoid_attend.c (attention). No other file
 * includes it. */
#ifndef PE_RELATIVE_SINUSOID_TABLES_H
#define PE_RELATIVE_SINUSOID_TABLES_H

#include "core/schemes/relative/relative_sinusoid.h"

/* plan->tables. Its arrays and waves are owned. */
struct pe_rel_sin_tables {
    const struct pe_rel_sin_style *style;
    double first; /* of the output's distances, or of the attention's */
    uint64_t n;
    struct pe_waves *waves;
    /* Attention. */
    double *u, *v, *seg, *seg_bias; /* [num_heads, head_dim]; seg: [2, num_heads, head_dim]; NULL: none */
    double *w;                      /* [num_heads · head_dim, d_model] */
    uint8_t *types;                 /* [k_len]: token_type_ids, counted from the smallest */
    void *projected; /* panels of each head in the arithmetic's format; NULL: computed again for each head */
};

/* Writes rows from row0 on and columns from col0 on of R, without gaps. */
void pe_rel_sin_fill_r(const struct pe_plan *plan, enum pe_dtype dtype, const struct pe_block *b, char *dst);

enum { PE_R_ROWS = 64 }; /* rows of R projected at a time */

#endif
