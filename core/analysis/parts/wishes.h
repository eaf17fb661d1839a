/* The five properties that introductions wish of a positional encoding, as numbers: the parts of the metric properties.
 */
#ifndef PE_ANALYSIS_WISHES_H
#define PE_ANALYSIS_WISHES_H

#include "core/analysis/internal.h"

struct pe_wish {
    double value; /* NaN: null */
    bool holds;
    double length_change; /* only of `unique` */
};

/* Each needs the rows of the subject. */
typedef enum pe_status pe_wish_fn(struct pe_analysis *study, struct pe_subject *subject, struct pe_wish *wish,
                                  struct pe_error *err);

/* wishes.c */
pe_wish_fn pe_wish_unique;        /* rows differ, and do not depend on the length of the sequence */
pe_wish_fn pe_wish_linear;        /* the next row is a linear function of a row; a bias depends on distances only */
pe_wish_fn pe_wish_generalises;   /* defined at eight times the length, and no larger than twice */
pe_wish_fn pe_wish_deterministic; /* nothing is learned */
/* wish_dimensions.c */
pe_wish_fn pe_wish_n_dimensional; /* on a grid, products of rows depend on differences of coordinates only */

/* Work and memory of all of them. */
void pe_wishes_cost(const struct pe_analysis *study, const struct pe_subject *subject, struct pe_metric_cost *cost);

#endif
