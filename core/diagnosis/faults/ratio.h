/* The one factor between numbers predicted and numbers found: an interval, because both have been rounded. */
#ifndef PE_DIAGNOSIS_RATIO_H
#define PE_DIAGNOSIS_RATIO_H

#include <stdbool.h>
#include <stddef.h>

/* The factors that agree with all numbers so far: if each was rounded once, and if it was rounded three times, as when
 * the factor itself is a rounded number. */
struct pe_ratio {
    double least, most, wide_least, wide_most;
};

void pe_ratio_init(struct pe_ratio *r);
/* n more numbers, rounded with the unit roundoff u; infinities are passed over. false: one is found where 0 is
 * predicted. */
bool pe_ratio_add(struct pe_ratio *r, const double *found, const double *predicted, size_t n, double u);
bool pe_ratio_is_known(const struct pe_ratio *r); /* has any number bounded the interval? */
bool pe_ratio_is_consistent(const struct pe_ratio *r);
/* The decimal with the fewest digits among the factors; false: there is no such factor. */
bool pe_ratio_choose(const struct pe_ratio *r, double *factor);

#endif
