/* Tables of sampled waves: their positions, columns, single values, frequencies and phases. */
#ifndef PE_WAVES_H
#define PE_WAVES_H

#include "core/numeric/numeric.h"
#include "core/inside.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- Positions ---- */

/* Positions of the rows of a table on one axis: a run, a list, or an axis of a grid. */

/* Axes of a sequence: time, height and width are three; Flux has four. */
enum { PE_AXES_MAX = 8 };

/* Row i has index k(i) on its axis and the position start + k, or list[k] if list is not NULL (finite doubles, any
 * order; borrowed). In a run or a plain list k = i. On an axis of a grid (size > 0), row-major, every index is
 * repeated `inner` times, and the whole axis repeats: k = i / inner mod size. In merge order the axis is cut into
 * blocks of `merge`, which are visited one by one: k = (i / inner mod size)·merge + (i / step mod merge), where size
 * counts blocks. n_batches: each row of a batch has n positions of its own, and list has n_batches·n; 0: one sequence
 * is that of all rows. */
struct pe_positions {
    uint64_t n;
    double start;
    const double *list;
    uint64_t inner, size, step, merge;
    uint64_t n_batches;
};

/* How many they are, over the whole batch. */
uint64_t pe_positions_count(const struct pe_positions *positions);
/* How many indices occur, each of which may be repeated: the length of list, if there is one. */
uint64_t pe_positions_indices(const struct pe_positions *positions);

double pe_position_at(const struct pe_positions *positions, uint64_t i);

/* How many rows from i on, at least 1 and at most `most`, have positions *step apart, which is 0 or 1. If *step is
 * 1, the positions are integers. */
size_t pe_positions_stretch(const struct pe_positions *positions, uint64_t i, size_t most, int *step);

bool pe_positions_are_integers(const struct pe_positions *positions);
double pe_positions_largest(const struct pe_positions *positions); /* the largest magnitude */
double pe_positions_last(const struct pe_positions *positions);    /* the largest position */
bool pe_positions_same(const struct pe_positions *a, const struct pe_positions *b);

/* ---- Waves ---- */

/* Tables whose columns are sampled waves: value(p, c) = amplitude_c · sin(π/2 · (p · F_c + quarter_c)), every value the
 * one nearest to the exact real number. All absolute and rotary tables are such tables; only the column constants
 * differ.
 *
 * f32, f16, bf16: correctly rounded for |p| ≤ 2^40 (wave_table.c: a recurrence with a proven error bound, a test of
 * every value against the rounding boundaries, double-double for what the test cannot decide). f64: within 1 ulp for
 * |p| ≤ 2^24, 1e-16 × amplitude absolute beyond. The same bytes for any split, instruction set and machine. */

/* One column: amplitude · sin(π/2 · (p · F + quarter)) with p the row's position on the column's axis, or, where
 * quarter is PE_LINEAR, amplitude · p · F. F is in quarter turns per unit of position, as an unevaluated sum fh + fl
 * (double-double, relative error about 2^-101 at most); so is the amplitude. F may be 0 or negative, of any size with
 * |p · F| < 2^51. */
struct pe_wave {
    double fh, fl;
    double ah, al;
    int quarter; /* 0 sin, 1 cos, 2 -sin, 3 -cos, or PE_LINEAR */
    unsigned axis;
    const struct pe_ggml_steps *steps; /* borrowed; of `arith: ggml` only */
};
enum { PE_LINEAR = 4 };

struct pe_waves; /* prepared columns; immutable, shared by threads */

/* Makes *waves from n >= 1 columns (copied), of axes below PE_AXES_MAX. PE_NO_MEMORY is its only failure. */
enum pe_status pe_waves_new(const struct pe_wave *columns, size_t n, struct pe_waves **waves);
/* The same, if about n_rows rows will be needed in total, mostly in dtype: few rows need less preparation, many rows
 * in bf16 need more. The values are the same. */
enum pe_status pe_waves_new_for(const struct pe_wave *columns, size_t n, enum pe_dtype dtype, uint64_t n_rows,
                                struct pe_waves **waves);
void pe_waves_free(struct pe_waves *waves);

/* axes: the positions on each axis that a column names, all of the same n. Writes rows row0 … row0+n_rows-1, columns
 * col0 … col0+n_cols-1, to dst: element (i, j) at dst + (i · stride + j) elements of dtype (f32, f64, f16, bf16; stride
 * ≥ n_cols). dst is aligned to its element. Cannot fail; no allocation; any thread. */
void pe_waves_fill(const struct pe_waves *waves, enum pe_dtype dtype, const struct pe_positions *axes, uint64_t row0,
                   size_t n_rows, size_t col0, size_t n_cols, void *dst, size_t stride);

/* cos and sin of an exact angle in radians, both correctly rounded to f32 (|angle| < 2^40). For `arith: float32`. */
void pe_sincos_f32(double angle, float *cos_out, float *sin_out);

/* ---- One value ---- */

/* One value of a wave in double-double: the truth behind the kernels, and their fallback. */

/* The wave at position p. *phase: |p·F| in quarter turns. Relative error below 2^-99 for F as its two doubles say; F's
 * own error adds phase·2^-100·amplitude, absolute. */
struct pe_dd pe_wave_value(const struct pe_wave *wave, double p, double *phase);

/* A double that rounds to dtype (f32, f16, bf16) as the exact value does. If even this arithmetic cannot decide, it
 * rounds the value it has and counts the case (pe_undecided_count). A frequency is known to two doubles and no
 * better, so an f32 is open with a chance of about 2^-72 times the larger of 1 and the phase, over all values and
 * not only those asked about: 2^-46 at phases of 2^26, 2^-32 at 2^40; and is then the wrong one of the two some ten
 * times less often. */
double pe_wave_decide(const struct pe_wave *wave, enum pe_dtype dtype, double p);

/* ---- Waves of one axis ---- */

/* Waves of one axis: the columns in the form that kernels need (core/waves/waves.h states the accuracy of every value).
 */

struct pe_wave_table;

/* dtype, n_rows: as in pe_waves_new_for. */
enum pe_status pe_wave_table_new(const struct pe_wave *columns, size_t n, enum pe_dtype dtype, uint64_t n_rows,
                                 struct pe_wave_table **table);
void pe_wave_table_free(struct pe_wave_table *table); /* NULL is accepted */
void pe_wave_table_fill(const struct pe_wave_table *table, enum pe_dtype dtype, const struct pe_positions *positions,
                        uint64_t row0, size_t n_rows, size_t col0, size_t n_cols, void *dst, size_t stride);

/* ---- Columns ---- */

/* The columns of a wave table in the form that kernels need: each array is padded to whole groups of PE_WAVES_LANES. */

struct pe_wave_table {
    size_t n;
    bool scaled;                   /* some amplitude is not 1 */
    double most;                   /* the largest amplitude: runs want it below half of what the dtype holds */
    bool has_runs;                 /* else there are no arrays of steps, and rows are computed one by one */
    double *fh, *fl;               /* frequencies; every array follows the struct in the same allocation */
    double *ah, *al;               /* amplitudes */
    double *cosine, *sine;         /* of one step */
    double *far_cosine, *far_sine; /* of PE_RUN_ROWS steps */
    double *reach; /* the largest movement of a run from its anchor, relative to 1: min(1, PE_RUN_HALF·|sine|) */
    int64_t *quarter;
    struct pe_run_bf16 *around; /* the same columns for runs in bf16, or NULL */
    struct pe_wave_list *list;  /* the same columns for positions in no order, or NULL */
};

/* Columns at a time: a few KiB of doubles on the stack. */
enum { PE_WAVE_GROUP = 256 };

/* Computes n columns from col on at position p: values, their next quarters (if nexts is not NULL), and bounds. */
void pe_wave_evaluate(const struct pe_wave_table *table, double p, size_t col, size_t n, double *values, double *nexts,
                      double *bounds);

/* A double that rounds to dtype as column j's exact value at p does. */
double pe_wave_table_decide(const struct pe_wave_table *table, enum pe_dtype dtype, size_t j, double p);

/* The same, from doubles if they decide the rounding, as they mostly do. */
double pe_wave_settle(const struct pe_wave_table *table, enum pe_dtype dtype, size_t j, double p);

/* A double that rounds to a narrow dtype as column j at p does, from a double x with a known error: its float decides
 * the rounding as in a run (kernels/run.c), and below the normal range too, whose midpoints are also recognised; else
 * the value is computed separately. */
double pe_wave_settle_narrow(const struct pe_wave_table *table, enum pe_dtype dtype, size_t j, double p, double x,
                             double error);

/* Rows at the consecutive integers from p on, none of them 0, in a dtype that has a kernel of runs. */
bool pe_wave_run_has(enum pe_dtype dtype);
void pe_wave_run_fill(const struct pe_wave_table *table, enum pe_dtype dtype, double p, size_t n_rows, size_t col0,
                      size_t n_cols, void *dst, size_t stride);

/* ---- Runs of bf16 ---- */

/* Waves at consecutive integers in bf16, computed in floats around anchors: preparation, then rows. */

/* Tables with at least this many rows are worth the preparation. */
enum { PE_AROUND_ROWS_MIN = 512 };

struct pe_run_bf16;
bool pe_wave_has_around(enum pe_dtype dtype); /* bf16 */

/* Prepares n columns with frequencies fh + fl, amplitudes ah and the cosines of one step, in arrays as in
 * struct pe_wave_table. Returns NULL without memory, or if an amplitude is too large for squares of floats: rows are
 * then computed in another way. */
struct pe_run_bf16 *pe_run_bf16_new(const double *fh, const double *fl, const double *ah, const double *cosines,
                                    size_t n);
void pe_run_bf16_free(struct pe_run_bf16 *around); /* NULL is accepted */

/* Rows at the consecutive integers from p on, none of them 0. */
void pe_run_bf16_fill(const struct pe_wave_table *table, double p, size_t n_rows, size_t col0, size_t n_cols,
                      uint16_t *dst, size_t stride);

/* ---- Positions in any order ---- */

/* Rows of waves at positions in no order, in f32. */

struct pe_wave_list;

/* *list is NULL if the columns are not suitable; the other functions accept NULL. */
enum pe_status pe_wave_list_new(const struct pe_wave *columns, size_t n, struct pe_wave_list **list);
void pe_wave_list_free(struct pe_wave_list *list);

/* Writes columns col0 … of rows at these positions to dst, a row every stride floats, and returns how many rows are
 * right, counted from the first; the caller must compute the row after them, if any, in another way. */
size_t pe_wave_list_rows(const struct pe_wave_list *list, const double *positions, size_t n_rows, size_t col0,
                         size_t n_cols, float *dst, size_t stride);

/* ---- Frequencies ---- */

/* Geometric lists of frequencies, which sinusoidal and rotary schemes share, in double-double. */

/* out[i] = base^(-i/denominator), i < n. Relative error about 2^-102, tested to be below 2^-99. base > 0. */
void pe_ladder(double base, double denominator, size_t n, struct pe_dd *out);

/* The same for a base that is given by its natural logarithm because the base itself is not a double. */
void pe_ladder_dd(struct pe_dd log_base, double denominator, size_t n, struct pe_dd *out);

/* The same as the frameworks compute it in float32: exponent, power and reciprocal each rounded to f32, i counted in
 * pairs over 2·pairs channels: f32(1 / f32(base^f32(i/denominator))). */
void pe_ladder_float32(double base, double denominator, size_t n, struct pe_dd *out);

/* One step of that: f32(base^f32(i/denominator)) from log_base = ln(f32(base)). */
float pe_power_float32(struct pe_dd log_base, size_t i, double denominator);

/* Radians to quarter turns: × 2/π. */
struct pe_dd pe_quarter_turns(struct pe_dd radians);

/* ---- Phases that are no product ---- */

/* Sines of phases that are not a product of a position and a frequency: sums over axes, and exact fractions. */

/* A phase of whole + part quarter turns. The relative error of part is below 2^-95, and |part| ≤ 1/2 (slightly more
 * is allowed). So no accuracy is lost near a zero of the sine, and for a whole number of quarters part is exactly 0. */
struct pe_phase {
    int64_t whole; /* only its value modulo 4 matters */
    struct pe_dd part;
};

/* numerator/denominator quarter turns times p. Exact but for one division where |numerator|, denominator ≤ 2^53 are
 * integers; |p · numerator/denominator| < 2^51. */
struct pe_phase pe_phase_of_fraction(double p, double numerator, double denominator);

/* The sum of all a[i]·b[i], i < n ≤ PE_PHASE_TERMS, as if exactly; its magnitude is below 2^51. */
enum { PE_PHASE_TERMS = 16 };
struct pe_phase pe_phase_of_products(const double *a, const double *b, size_t n);

/* dst[first + i] = sin(π/2·phase_i), i < n, in dtype (f32, f16, bf16: correctly rounded; f64: within 1 ulp). The cosine
 * is the sine of a whole quarter more. Any thread; cannot fail. */
void pe_phases_fill(enum pe_dtype dtype, const struct pe_phase *phases, size_t n, void *dst, size_t first);

/* ---- Recipes of rounding ---- */

/* The steps in which libraries compute a table (recipes.c). Those before PE_N_KNOWN_RECIPES begin with base and width;
 * the others round a frequency that is given. */
enum pe_recipe {
    PE_RECIPE_EXACT, /* no recipe */
    PE_RECIPE_F64,
    PE_RECIPE_F32_TORCH,
    PE_RECIPE_F32_CAST,
    PE_RECIPE_F32_DIVIDE,
    PE_RECIPE_F32_EXPLOG,
    PE_RECIPE_F32_PRODUCT,
    PE_RECIPE_TF32,
    PE_RECIPE_BF16_INV_FREQ,
    PE_RECIPE_F16_INV_FREQ,
    PE_RECIPE_BF16,
    PE_RECIPE_F16,
    PE_N_KNOWN_RECIPES,
    PE_RECIPE_F32 = PE_N_KNOWN_RECIPES,
    PE_RECIPE_F32_BF16,
    PE_RECIPE_BF16_INV_FREQ_DIVIDED,
    PE_RECIPE_BF16_DIVIDED,
    PE_RECIPE_GGML,
    PE_N_RECIPES
};

/* How the frequency of a pair is formed, or what takes its place. */
enum pe_rungs {
    PE_RUNGS_EXACT,       /* in f64 or better */
    PE_RUNGS_RECIPROCAL,  /* 1/b, b = base^e */
    PE_RUNGS_DIVISOR,     /* b, by which the position is divided */
    PE_RUNGS_EXPONENTIAL, /* e^x of the product x with a logarithm */
    PE_RUNGS_PRODUCT      /* t, the factor from pair to pair */
};

struct pe_recipe_row {
    const char *name;
    const char *chain; /* recipes whose steps a table cannot tell apart have one */
    const char *who;   /* a sentence; both NULL: a frequency is given */
    enum pe_dtype w, p, product, result;
    enum pe_rungs rungs;
    bool is_divided; /* base and power are rounded before 1 is divided by them */
    bool is_tf32;    /* both factors have 11 bits */
};
extern const struct pe_recipe_row pe_recipes[PE_N_RECIPES];
extern const char *pe_recipe_words[PE_N_RECIPES + 1]; /* their names, then NULL */

/* A frequency that is given, as the recipe rounds it; base: of the ladder, for those divided. */
double pe_recipe_round(enum pe_recipe recipe, double w, double base);
bool pe_recipe_is_of_frequencies(enum pe_recipe recipe); /* does it round these alone, to few bits? */
/* The frequency of pair c in a recipe's steps, or what takes its place. width: channels that are rotated, r; by: so
 * many steps of float32 higher. */
double pe_recipe_frequency(enum pe_recipe recipe, double base, double width, uint32_t c, int by);
/* The angle at position p of that frequency times scale, a power of two; and the frequency itself, for a ladder. */
double pe_recipe_angle(enum pe_recipe recipe, double p, double w, uint32_t c, double scale);
double pe_recipe_rung(enum pe_recipe recipe, double w, uint32_t c, double scale);
/* The number that an angle gives in the dtype of the tensor: quarter as in struct pe_wave. */
double pe_recipe_number(enum pe_recipe recipe, double angle, int quarter, double sign, double factor,
                        enum pe_dtype dtype);
double pe_sine_of(double angle, int quarter); /* in double */

/* ---- Derivations ---- */

/* The steps of one number, as the formula itself takes them (derivation.c). */

enum { PE_DERIVED_MAX = 48, PE_DERIVED_BYTES = 256 };

struct pe_derived {
    const char *symbol;          /* "w'" */
    char text[PE_DERIVED_BYTES]; /* the formula with its numbers; "": none */
    char says[PE_DERIVED_BYTES]; /* what is to be said of it, in the language of pe_speak_in; "": nothing */
    bool has_value;              /* false: a case, which decides how the formula goes on */
    struct pe_dd value;
    int64_t numerator, denominator; /* of a value that is a short ratio; 0: not stated */
};

struct pe_derivation {
    enum pe_recipe recipe; /* PE_RECIPE_EXACT: nothing is rounded */
    const struct pe_derivation *given;
    size_t n_given;    /* the first so many steps of it are taken over */
    bool is_looked_up; /* the number is in a table: no recipe rounds on the way to it */
    size_t n;
    struct pe_derived at[PE_DERIVED_MAX];
};

/* A step, with its value; returns the value to go on with. */
struct pe_dd pe_derived(struct pe_derivation *d, const char *symbol, struct pe_dd value, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void pe_derived_case(struct pe_derivation *d, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* What is to be said of the step or case before; English, and printed in the language of pe_speak_in. */
void pe_derived_says(struct pe_derivation *d, const char *format, ...) __attribute__((format(printf, 2, 3)));
void pe_derived_ratio(struct pe_derivation *d, int64_t numerator, int64_t denominator);
const struct pe_derived *pe_derivation_find(const struct pe_derivation *d, const char *symbol); /* NULL: none has it */

/* The same in code that has a derivation sometimes: NULL costs a comparison. */
#define PE_STEP(d, symbol, value, ...) ((d) ? pe_derived(d, symbol, value, __VA_ARGS__) : (value))
#define PE_STEP_CASE(d, ...) ((d) ? pe_derived_case(d, __VA_ARGS__) : (void)0)
#define PE_STEP_SAYS(d, ...) ((d) ? pe_derived_says(d, __VA_ARGS__) : (void)0)

/* A number for the text of a step. */
struct pe_shown pe_brief(struct pe_dd x, unsigned n_digits);

/* Steps by the recipe of the derivation: a rounding; the frequency base^(-c/denominator), which is stated, or what the
 * recipe has in its place; the angle x·w of pair c; the sine of an angle in radians, quarter as in struct pe_wave. */
struct pe_dd pe_derived_round(const struct pe_derivation *d, enum pe_dtype dtype, struct pe_dd x);
struct pe_dd pe_derived_frequency(struct pe_derivation *d, double base, double denominator, size_t c);
struct pe_dd pe_derived_angle(const struct pe_derivation *d, struct pe_dd x, struct pe_dd w, size_t c);
struct pe_dd pe_derived_sine(const struct pe_derivation *d, struct pe_dd angle, int quarter);

/* ---- Like the frameworks ---- */

/* `arith: float32`: tables as frameworks compute them, each step rounded to f32, for parity with models trained that
 * way. */

/* The common parameter `arith`: a scheme computes exactly, or in float32 like the frameworks; rope also as ggml. */
enum pe_arith { PE_ARITH_EXACT, PE_ARITH_FLOAT32, PE_ARITH_GGML };
extern const char *const pe_arith_words[]; /* the first two */

/* ggml's way to the angle of a pair at position p, each step rounded to f32 (ggml, src/ggml-cpu/ops.cpp at d99724f:
 * ggml_rope_cache_init, ggml_mrope_cache_init, rope_yarn):
 *
 *     theta_0 = f32(p), theta_{c+1} = theta_c · power,   x = theta_pair/divisor,   y = scale · x
 *     angle = y · (1 - keep) + x · keep
 *
 * ggml takes the last step with YaRN only; with keep = 0 it changes nothing. */
struct pe_ggml_steps {
    uint32_t pair;
    float power, divisor, scale, keep;
};

/* The products of a position so far: pairs that are asked for in rising order take one product each. Begins as zeros.
 */
struct pe_ggml_chain {
    float position, theta;
    uint32_t pair;
};

float pe_ggml_angle(const struct pe_ggml_steps *steps, struct pe_ggml_chain *chain, double position);

/* Like pe_waves_fill, for n_cols columns whose F is an f32 frequency in radians: angle = f32(f32(p) · F), or by the
 * column's steps, then the cosine or sine of that float and the product with the amplitude, each rounded to f32. */
void pe_float32_fill(const struct pe_wave *columns, enum pe_dtype dtype, const struct pe_positions *axes, uint64_t row0,
                     size_t n_rows, size_t n_cols, void *dst, size_t stride);

#endif
