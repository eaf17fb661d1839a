/* Lists of ALiBi's slopes: the right ones, as a plan gives them, and those read from a tensor. */
#ifndef PE_DIAGNOSIS_SLOPES_H
#define PE_DIAGNOSIS_SLOPES_H

#include "core/diagnosis/diagnosis.h"

/* The slopes of n_heads heads as the edit has them ([n_heads] doubles); own: also the list that a request states
 * instead of bias_max. false: no memory, or no such plan. */
bool pe_slopes_read(struct pe_diagnosis *d, const struct pe_edit *edit, size_t n_heads, bool own, double *slopes);

/* Reads the slope of each head from the tensor: [n_heads]. Every number that it looks at must be the product of its
 * head's slope and what the same edit gives with slopes of 1. false: no list explains the tensor. */
bool pe_slopes_fit(struct pe_diagnosis *d, const struct pe_edit *edit, const char *name, size_t n_heads,
                   double *slopes);

#endif
