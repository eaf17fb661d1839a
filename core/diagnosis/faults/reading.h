/* How a reading is made: its waves, then the steps of their phases. Only for the files of this folder. */
#ifndef PE_READING_H
#define PE_READING_H

#include "core/diagnosis/faults/measure.h"

#include <math.h>

enum { PE_LAG_ROWS = 512 };                   /* that are multiplied where not all are needed */
enum { PE_WAVES_READ = PE_HEAD_DIM_MAX / 2 }; /* as many pairs as a head can have; tables may have more columns */

/* What 16 bits and a near fit leave of a length, relatively. */
#define PE_LENGTH_TOLERANCE 0x1p-4

#define PI 3.14159265358979323846

/* reading.c: writes re, im and weight. false: there are no pairs, or no request waits for the answer any more. */
bool pe_reading_fill(struct pe_reading *r, const struct pe_model *model);
/* Of tables and rotated tensors of n positions: re, im and |in|², which is not divided out yet, of the first waves at
 * position number i, [PE_WAVES_READ, 3]. */
void pe_reading_row(const struct pe_model *model, size_t n, size_t i, double *z);
/* Of rotated tensors: adds |in|² of the channels that are not rotated, at position number i; and, to `others`, of
 * those that have changed all the same. */
void pe_reading_passed(const struct pe_model *model, size_t n, size_t i, double *all, double *others);
/* Both of frequencies, which are steps themselves. */
bool pe_reading_ladder(struct pe_reading *r, const struct pe_model *model);
/* steps.c: writes step, error, mean_weight and piece. false: no memory. */
bool pe_reading_steps(struct pe_reading *r);

/* A phase in [-pi, pi]. */
static inline double pe_wrap(double x) { return x - 2 * PI * nearbyint(x / (2 * PI)); }

#endif
