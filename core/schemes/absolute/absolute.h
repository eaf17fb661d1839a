/* The absolute family: encodings of one sequence. What its schemes share, and what the files of one scheme share. */
#ifndef PE_SCHEMES_ABSOLUTE_H
#define PE_SCHEMES_ABSOLUTE_H

#include "core/scheme.h"
#include "core/sequence/coords/coords.h"

/* ---- Positions that are row numbers ---- */

/* Whole numbers from 0 on, for schemes with numbered rows. */

/* Refuses negative and fractional positions and names the first. */
enum pe_status pe_whole_check(const struct pe_plan *plan, struct pe_failure *err);

/* The field that determines the largest position, as a JSON pointer, for error messages. */
const char *pe_whole_pointer(const struct pe_plan *plan);

/* ---- Stepping ---- */

/* Rows that depend on the row before them: row k+1 = step(row k). The filling threads compute the steps and store
 * rows on the way, so that a distant row does not need all steps from the start each time. Family helper. */

struct pe_stepping;

struct pe_steps {
    size_t dim;     /* of a row */
    size_t scratch; /* doubles that one step needs beside the row */
    double cost;    /* of one step, in multiply-adds */
    /* Replaces row k by row k+1. The result must depend on row and k alone, because any thread may compute it, from
     * any stored row. It may return early once pe_is_cancelled() returns true. */
    void (*step)(const void *context, uint64_t k, double *row, double *scratch);
    const void *context;
};

/* Adds the cost of pe_stepping_new, for the scheme's cost(). */
void pe_stepping_room(struct pe_cost *cost, const struct pe_plan *plan, double dim, double scratch);

/* Makes *stepping (free with pe_stepping_free) for the plan's positions, which must be whole numbers from 0 on, or
 * refuses if they are too far down. It only allocates: no row is computed before a fill needs it. Sets the plan's
 * pace; extra: work of a first fill, in multiply-adds. */
enum pe_status pe_stepping_new(struct pe_plan *plan, const struct pe_steps *steps, double extra,
                               struct pe_stepping **stepping, struct pe_failure *err);
void pe_stepping_free(struct pe_stepping *stepping); /* NULL is accepted */

/* The caller writes row 0 here, [dim], before the first fill. */
double *pe_stepping_first(struct pe_stepping *stepping);

/* The scheme's fill. Any number of threads may call it; beyond PE_STEPS_WALKERS at once, a thread may wait for
 * another. */
void pe_stepping_fill(struct pe_stepping *stepping, const struct pe_positions *positions, enum pe_dtype dtype,
                      const struct pe_block *block, void *dst);

/* What a network computes from the row before: first in the tables of floater and recursive, whose input 0 is row 0. */
struct pe_recurrence {
    struct pe_network *network;
    struct pe_stepping *stepping;
    size_t dim;
    bool rounds; /* arith float32: each row is rounded to f32 */
};

/* The scheme's step, with its scratch beside the network's, and its cost; the network must be there. */
enum pe_status pe_recurrence_open(struct pe_plan *plan, struct pe_steps steps, struct pe_failure *err);
void pe_recurrence_drop(struct pe_plan *plan);
void pe_recurrence_fill(const struct pe_plan *plan, const struct pe_output *output, size_t id,
                        const struct pe_block *block, void *dst);

/* ---- sinusoidal ---- */

/* Its config, and an encoding as blocks of sines and cosines. */

enum sinusoidal_layout { PE_SINES_INTERLEAVED, PE_SINES_HALF };
enum sinusoidal_odd { PE_ODD_PAPER, PE_ODD_PAD, PE_ODD_TRUNCATE };
enum sinusoidal_style { PE_AXIAL, PE_DETR, PE_MAE, PE_TIMM, PE_MULTIDIM, PE_VJEPA, PE_COGVIDEOX };
extern const char *const pe_sinusoidal_styles[];

struct sinusoidal {
    int64_t dim;
    int style; /* PE_UNSET_WORD after planning for one axis, which has no styles */
    double base, temperature;
    int layout;
    double freq_shift;
    int odd;
    bool flip_sin_to_cos;
    double angle_scale;
    struct pe_reals axes_dim, axis_order; /* once planned, the lists below */
    bool normalize, interleave_sin_cos, uniform_power;
    struct pe_reals valid; /* n = 0: all rows and columns are real */
    struct pe_coord_fields at;
    int64_t num_prefix;
    int arith;
    int64_t widths[PE_AXES_MAX], order[PE_AXES_MAX];
};

/* How one axis is encoded: the parameters of the 1-D encoding. */
struct pe_sinusoid {
    double base, freq_shift;
    enum sinusoidal_layout layout;
    enum sinusoidal_odd odd;
    bool flip;
    struct pe_dd scale; /* factor on the angle, radians */
};

struct pe_sinusoid pe_sinusoid_of(const struct sinusoidal *config);

/* Sine i is in column sine0 + i·step and cosine i in column cosine0 + i·step, but never after `last`; columns from
 * `end` on are cut. w_i = scale · base^(-i/denominator). */
struct pe_sinusoid_block {
    unsigned axis;
    size_t n_sines, n_cosines, sine0, cosine0, step, last, end;
    double base, denominator;
    struct pe_dd scale;
};

/* The 1-D encoding of `width` columns from column `first` on. */
struct pe_sinusoid_block pe_sinusoid_block(const struct pe_sinusoid *how, unsigned axis, size_t first, size_t width);

/* For a sequence of several axes, or a grid: checks the style's rules, resolves derived parameters, and describes at
 * most PE_AXES_MAX blocks. */
enum pe_status pe_sinusoidal_axes(struct pe_plan *plan, struct pe_sinusoid_block *blocks, size_t *n_blocks,
                                  struct pe_failure *err);

/* ---- learned ---- */

/* Between learned.c (rows looked up) and learned_grid.c (a table resized to a grid). */

enum { PE_LEARNED_TABLE, PE_LEARNED_ROW_TABLE, PE_LEARNED_COL_TABLE, PE_LEARNED_WINDOW }; /* inputs */
enum { PE_LEARNED_TILE = 1024 };                                                          /* columns at a time */
enum { PE_LEARNED_AXES_MAX = 3 }; /* of a table that is resized */

struct learned {
    int64_t dim, rows, row_offset;
    int out_of_range, interpolate;
    double cubic_a, interpolate_offset;
    struct pe_reals table_grid; /* once planned, the list below if only the table's shape has it */
    int64_t num_prefix;
    int64_t seed;
    double std;
    int64_t stored_grid[PE_LEARNED_AXES_MAX];
};

/* plan->tables */
struct pe_learned_tables {
    bool is_split;                                     /* a table for each axis */
    bool is_resized;                                   /* a table resized to the grid */
    struct pe_resample_taps taps[PE_LEARNED_AXES_MAX]; /* of each axis of the grid */
    uint64_t sides[PE_LEARNED_AXES_MAX];               /* table_grid */
    uint64_t window[2];                                /* rows and columns of window_table; 0: none */
    double stretch; /* interpolate: place in the table = row_offset + position · stretch */
};

/* Does the shape of the table state another grid than the sequence has, or is a window repeated over it? */
bool pe_learned_has_other_grid(const struct pe_plan *plan);
/* Reads a table of more axes as [rows, dim]; a grid that its shape alone states becomes table_grid. */
void pe_learned_fold(struct pe_plan *plan);
/* dim and rows are those of the table that was sent. */
enum pe_status pe_learned_fix(struct pe_plan *plan, struct pe_failure *err);
enum pe_status pe_learned_resized_plan(struct pe_plan *plan, struct pe_failure *err);
/* Columns of row i of the encoding, prefix rows first; n <= PE_LEARNED_TILE. */
void pe_learned_resized_row(const struct pe_plan *plan, uint64_t i, uint64_t col, size_t n, double *out);

void pe_learned_resized_derive(const struct pe_plan *plan, const struct pe_address *at, struct pe_derivation *d);

/* Rows of the table along one axis: first … last of n, so many rows of the table apart. */
struct pe_learned_run {
    uint64_t first, last, n, step;
};
/* Adds what code in float32 may lose of n elements of a row: along the first of n_axes runs, and of row i.
 * n <= PE_LEARNED_TILE. */
void pe_learned_add_loss(const struct pe_plan *plan, const struct pe_learned_run *runs, unsigned n_axes, uint64_t col,
                         size_t n, double *loss);
void pe_learned_resized_loss(const struct pe_plan *plan, uint64_t i, uint64_t col, size_t n, double *loss);

/* ---- fourier ---- */

/* Its config, and its columns as features. */

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
enum pe_status pe_fourier_nerf(struct pe_plan *plan, struct pe_failure *err);
enum pe_status pe_fourier_perceiver(struct pe_plan *plan, struct pe_failure *err);
enum pe_status pe_fourier_gaussian(struct pe_plan *plan, struct pe_failure *err);

/* … and adds them, in the order of the columns. */
void pe_fourier_add_nerf(const struct pe_plan *plan, struct pe_features *features);
void pe_fourier_add_perceiver(const struct pe_plan *plan, struct pe_features *features);
void pe_fourier_add_gaussian(const struct pe_plan *plan, struct pe_features *features);

#endif
