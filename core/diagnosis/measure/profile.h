/* What is measured in rotary evidence, and what is believed of it, in one struct.
 *
 * A rotation is z = e^(i·x·w): a coordinate x for each row and axis, a frequency w for each pair, which follows one
 * axis. The believed profile is filled from a plan, the measured one from the phases of the evidence. The two lists of
 * a quantity are then compared (../naming). Each measured number has an error: the true one is within it, as far as
 * roundings go. */
#ifndef PE_PROFILE_H
#define PE_PROFILE_H

#include "core/diagnosis/faults/faults.h"

#define PE_ANGLE_LOSS_MOST 0x1.6ap-21 /* what right float32 code loses of an angle at most, 2^-20.5 of it */

struct pe_profile {
    size_t n_rows, n_pairs;
    unsigned n_axes;
    double *x, *x_error;               /* [n_axes, n_rows] coordinates, in the unit of the field `positions` */
    double *w, *w_error;               /* [n_pairs] radians per unit of coordinate */
    unsigned char axis[PE_WAVES_READ]; /* [n_pairs] which axis a pair follows */
};

/* The waves that are measured, z of each row and pair; borrowed. A weight of 0: nothing is known of the number. */
struct pe_sheet {
    const float *re, *im, *weight; /* [n_pairs, n_rows] */
    size_t n_rows, n_pairs;
    double noise; /* bound of the error of a phase, without that of float32's angles */
};

/* Zeros. false: no memory. */
bool pe_profile_new(struct pe_profile *p, unsigned n_axes, size_t n_rows, size_t n_pairs);
void pe_profile_drop(struct pe_profile *p);

/* believed.c: of a model whose reading has so many rows. false: it has no such waves, or memory is short. */
bool pe_profile_believe(struct pe_profile *p, const struct pe_model *model, size_t n_rows);
/* The phase that a profile predicts of a row and pair, in radians. */
double pe_profile_phase(const struct pe_profile *p, size_t row, size_t pair);

/* coordinates.c: the coordinates of each row on each axis, at the believed frequencies: found->x and its errors. An
 * error is infinite where nothing shows. Returns how many rows have coordinates that all their pairs agree on; it ends
 * early where few have. `work` counts multiply-adds. */
size_t pe_measure_coordinates(const struct pe_sheet *sheet, const struct pe_profile *believed, struct pe_profile *found,
                              double *work);

/* frequencies.c: the frequency of each pair at the coordinates of `at`, up to a common phase; found->w is the alias
 * nearest to at->w, its error infinite where nothing shows, or no frequency gives the phases. Returns how many pairs
 * turn evenly with the coordinates of their axis. */
size_t pe_measure_frequencies(const struct pe_sheet *sheet, const struct pe_profile *at, struct pe_profile *found,
                              double *work);

#endif
