/* Shared by the files of the scheme fourier: its config, and its columns as features. */
#ifndef PE_FOURIER_FEATURES_H
#define PE_FOURIER_FEATURES_H

#include "core/scheme.h"

enum fourier_style { PE_NERF, PE_PERCEIVER, PE_GAUSSIAN };
enum { PE_FOURIER_B }; /* the only input */

/* nerf: 2^47 quarter turns leave room for positions up to 16 below 2^51, and L · 2^L is an exact double. */
enum { PE_NERF_FREQS = 10, PE_NERF_FREQS_MAX = 48, PE_GAUSSIAN_FREQS = 256 };

/* perceiver: so that numerators and denominators of all frequencies are exact doubles. */
#define PE_RESOLUTION_MAX 2147483648.0 /* 2^31 */

struct fourier {
    int style;
    int64_t num_freqs;
    bool include_input, log_sampling, multiply_pi;
    int64_t num_bands;
    struct pe_reals max_resolution; /* once planned, the list below */
    bool concat_pos, sine_only;
    double sigma;
    int64_t seed;
    int arith;
    int64_t resolution[PE_AXES_MAX];
};

/* One column: x·f itself (quarter PE_LINEAR), or the sine (0) or cosine (1) of x·f or π·x·f, where x is the position on
 * the axis and f = numerator/denominator exactly. gaussian: of 2π times row `row` of b times x. */
struct pe_feature {
    double numerator, denominator;
    int quarter;
    unsigned axis;
    size_t row;
};

struct pe_features {
    bool times_pi;
    bool exact;   /* phases are reduced exactly, by fill(); else the features are waves */
    double *four; /* gaussian: 4·b, quarter turns per unit: [num_freqs, axes] */
    size_t n;
    struct pe_feature *features; /* [n] */
};

/* Plans one style: checks its rules, derives parameters and sets positions. Sets everything in plan->tables
 * (allocated and zeroed) except the features … */
enum pe_status pe_fourier_nerf(struct pe_plan *plan, struct pe_error *err);
enum pe_status pe_fourier_perceiver(struct pe_plan *plan, struct pe_error *err);
enum pe_status pe_fourier_gaussian(struct pe_plan *plan, struct pe_error *err);

/* … and adds them, in the order of the columns. */
void pe_fourier_add_nerf(const struct pe_plan *plan, struct pe_features *features);
void pe_fourier_add_perceiver(const struct pe_plan *plan, struct pe_features *features);
void pe_fourier_add_gaussian(const struct pe_plan *plan, struct pe_features *features);

#endif
