/* Cosines and sines of many angles at once: the part of the metric precision that takes its time. */
#ifndef PE_ANALYSIS_FAST_SINES_H
#define PE_ANALYSIS_FAST_SINES_H

#include <stddef.h>

/* cosines[i], sines[i] of angles[i] radians, i < n: less than 2^-52 off, and the C library's where an angle of the list
 * is beyond a million. */
void pe_fast_sines(const double *angles, size_t n, double *cosines, double *sines);

#endif
