/* What the numbers themselves show, under the pairing of an edit. */
#ifndef PE_MEASURE_H
#define PE_MEASURE_H

#include "core/diagnosis/diagnosis.h"

/* The x that phases show. score: the weighted mean cosine of what remains, 1 for a perfect agreement. error: its
 * standard error, for phases of standard error `noise` at weight 1. */
struct pe_solved {
    double x, score, error;
};

/* The waves found in rotary or sinusoidal evidence: wave k at row (position number) i is the complex number
 * z = amplitude·e^(i·angle). For tables z = cos + i sin of a column, for rotated tensors out·conj(in) / |in|² of a
 * pair, summed over some heads, for encodings cos + i sin of two columns. Transforms and the direction of the model are
 * undone, so that the expected angle is +position·frequency. */
struct pe_reading {
    uint64_t key;
    size_t n, n_waves;
    float *re, *im, *weight; /* [n_waves, n]; weight: |in|², else 1 */
    double noise;            /* of a phase at weight 1, radians */
    double farthest;         /* the largest |position| */
    double *step, *error;    /* [n_waves]: phase from row to row, radians in (-pi, pi], and its standard error; NaN:
                                unknown (rows are not equally far apart, or there is one) */
    double *mean_weight;     /* [n_waves] */
    bool *no_memory;         /* where to say that an allocation failed */
    double *work;            /* of the diagnosis: where measurements count theirs */
    uint32_t *piece;         /* [n]: rows whose steps are the usual ones have the same number */
    struct pe_solved
        *rows;         /* [n]: what pe_shift_at gave for single rows at the frequencies w_of_rows; error < 0: nothing */
    double *w_of_rows; /* [n_waves] */
};

/* The reading under a model's pairing, computed once for each pairing; NULL: the evidence has no waves, or memory is
 * short. Borrowed until some later calls. */
const struct pe_reading *pe_read_waves(struct pe_diagnosis *d, const struct pe_model *model);
/* Multiply-adds of one reading. */
double pe_reading_work(double n, double n_waves);
/* Radians per position of the first n waves of the model (0 beyond them); and how many it has. */
void pe_wave_frequencies(const struct pe_model *model, size_t n, double *w);
size_t pe_wave_count(const struct pe_model *model);
/* The axis that each of them follows. */
void pe_wave_axes(const struct pe_model *model, size_t n, unsigned char *axis);

/* The x with phase[k] = x·w[k] (mod 2pi) for all k, in the sense of weighted least squares, |x| up to about `most`;
 * n waves in any order. */
struct pe_solved pe_solve_phases(const double *w, const double *phase, const double *weight, size_t n, double noise,
                                 double most);

/* The multiple of the model's frequencies by which the phase steps from row to row. */
struct pe_solved pe_measured_stride(const struct pe_reading *r, const struct pe_model *model);
/* The x by which row i is beyond place[i], common to all n rows: n = 1 is the position of one row. */
struct pe_solved pe_measured_shift(const struct pe_reading *r, const struct pe_model *model, const double *place,
                                   size_t first, size_t n);

/* Does no wave turn evenly from row to row? Then rows that are equally far apart do not explain the evidence, whatever
 * the frequencies are. */
bool pe_is_uneven(const struct pe_reading *r);
/* Are all rows at one position? */
bool pe_is_still(const struct pe_reading *r);
/* The same for frequencies w [n_waves] that no model has yet. */
struct pe_solved pe_stride_at(const struct pe_reading *r, const double *w);
struct pe_solved pe_shift_at(const struct pe_reading *r, const double *w, const double *place, size_t first, size_t n);

/* Do the frequencies w [n_waves] agree with the measured steps? stride: positions from row to row; relative: how far
 * frequencies may be off, as those of 16 bits are. */
bool pe_agrees(const struct pe_reading *r, const double *w, double stride, double relative);

/* Are the lengths of pairs, some rows of them, those of a rotation under the model's pairing? A rotation keeps every
 * length but for one factor, and xPos' scale is one more number for each row; noise, pairs of other channels and
 * columns that are scaled apart have others. So are channels that are not rotated: they have not changed. true also
 * where the evidence does not decide it. */
bool pe_lengths_agree(const struct pe_model *model);

/* xPos' scale as the lengths of pairs have it; scale_base 0: it is measured too. Each error is three standard ones.
 * false: lengths show nothing, or do not fall with the position. */
struct pe_decay {
    double scale_base, base_error; /* relative */
    double center, center_error;
};
bool pe_measured_decay(struct pe_diagnosis *d, const struct pe_model *model, double gamma, double scale_base,
                       struct pe_decay *out);

/* How far the frequencies of a model's recipe may be off, relatively. */
double pe_recipe_tolerance(const struct pe_model *model);
/* Positions from row 0 to row 1 of a model on one axis. */
double pe_model_stride(const struct pe_model *model);

/* The decimal with the fewest digits within a relative tolerance of x. */
double pe_shortest_decimal(double x, double tolerance);
/* What a factor between found and believed numbers is, e.g. "1/sqrt(head_dim)"; NULL: it is none that is known. */
const char *pe_factor_meaning(const struct pe_diagnosis *d, double factor);

#endif
