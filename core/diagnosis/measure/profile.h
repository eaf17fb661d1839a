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
 * turn evenly with the coordinates of their axis; 0 where it ends early, with the first of one axis that does not. */
size_t pe_measure_frequencies(const struct pe_sheet *sheet, const struct pe_profile *at, struct pe_profile *found,
                              double *work);

/* quadrature.c: of n rows of cosines, or sines, at equal steps: the length of both, of the fastest wave (room [n]);
 * and the other one, of a wave that turns forwards. */
double pe_quadrature_length(const float *e, size_t n, double *room);
void pe_quadrature(const float *e, size_t n, double length, bool are_sines, float *other);

/* ---- Parts: where the believed configuration fits ---- */

/* The axes that indices are of; those of whole rows first, the largest groups first. */
enum pe_part_axis { PE_PART_BATCH, PE_PART_HEADS, PE_PART_ROWS, PE_PART_PAIRS, PE_N_PART_AXES };

/* Of each index: has it a number that fits, has it one that does not? */
enum { PE_FITS_HERE = 1, PE_DIFFERS_HERE = 2 };
struct pe_marks {
    uint64_t n[PE_N_PART_AXES];        /* 0: there is no such axis */
    unsigned char *of[PE_N_PART_AXES]; /* [n] PE_FITS_HERE, PE_DIFFERS_HERE; owned, one block */
};

/* What the numbers are that differ. */
enum pe_rest_is {
    PE_REST_OTHER,    /* no multiple, copy or constant */
    PE_REST_ZERO,     /* said of rows that are set aside */
    PE_REST_NUMBER,   /* one number everywhere */
    PE_REST_REPEATED, /* one row again and again, which is none of the believed ones */
    PE_REST_MOVED,    /* believed rows of other indices */
    PE_REST_SCALED    /* believed rows, each times a factor of its own */
};

struct pe_parts {
    struct pe_marks marks;
    unsigned char *rows; /* [n_rows] of the evidence: 1, every number is as believed; owned */
    uint64_t n_fit;      /* of them */
    uint64_t n_compared;
    uint64_t n_bad; /* numbers that do not fit, of which the farthest is */
    struct {
        size_t t;
        uint64_t row, col;
        double found, expected, times; /* times: its error, of what it may be */
    } farthest;
    double bits;         /* that their numbers carry */
    uint64_t n, n_equal; /* numbers of them; those that are equal */
    double max_error;    /* of them */
    bool is_exact;
    enum pe_part_axis axis; /* whose indices tell most; PE_N_PART_AXES: none, no part fits */
    bool is_clean;          /* each index of it fits whole, or in no number */
    enum pe_rest_is rest;
    double number, mean, deviation; /* of the rest */
    uint64_t n_scaled;              /* rows that differ by a factor of their own */
    double least, most;             /* of these factors */
    bool are_normal;                /* such rows have the root mean square 1, as a norm gives it */
    uint64_t *moved;                /* [n_moved] of each row of the rest the believed one; owned */
    size_t n_moved;
};

/* parts.c: compares the belief with every number, once, into d->parts. false: it has no numbers to compare, or no
 * memory is left, or no client waits. */
bool pe_parts_measure(struct pe_diagnosis *d);
/* What the rows are that differ: d->parts->rest. */
void pe_parts_describe(struct pe_diagnosis *d);
/* Is there a part that fits, or does every row but for a factor? */
bool pe_parts_tell(const struct pe_diagnosis *d);
/* Does all but one number fit? That is no part. */
bool pe_parts_are_single(const struct pe_diagnosis *d);
void pe_parts_drop(struct pe_diagnosis *d);

/* Marks of no number yet, for pairs, too, where n_pairs is not 0. false: no memory. */
bool pe_marks_new(struct pe_marks *marks, const struct pe_evidence *e, uint64_t n_pairs);
void pe_marks_drop(struct pe_marks *marks);
/* A row of the evidence fits whole, or it differs. */
void pe_marks_row(struct pe_marks *marks, const struct pe_evidence *e, uint64_t row, bool fits);
/* The axis of whole rows by whose indices most fits, at least a fifth; those that fit whole or not at all come first.
 * PE_N_PART_AXES: none. */
enum pe_part_axis pe_marks_choose(const struct pe_marks *marks, bool *is_clean);

#endif
