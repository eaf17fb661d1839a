/* Tables whose columns are sampled waves: value(p, c) = amplitude_c · sin(π/2 · (p · F_c + quarter_c)), every value the
 * one nearest to the exact real number. All absolute and rotary tables are such tables; only the column constants
 * differ.
 *
 * f32, f16, bf16: correctly rounded for |p| ≤ 2^40 (wave_table.c: a recurrence with a proven error bound, a test of
 * every value against the rounding boundaries, double-double for what the test cannot decide). f64: within 1 ulp for
 * |p| ≤ 2^24, 1e-16 × amplitude absolute beyond. The same bytes for any split, instruction set and machine. */
#ifndef PE_WAVES_H
#define PE_WAVES_H

#include "core/posenc.h"
#include "core/waves/positions.h"

/* One column: amplitude · sin(π/2 · (p · F + quarter)) with p the row's position on the column's axis, or, where
 * quarter is PE_LINEAR, amplitude · p · F. F is in quarter turns per unit of position, as an unevaluated sum fh + fl
 * (double-double, relative error about 2^-101 at most); so is the amplitude. F may be 0 or negative, of any size with
 * |p · F| < 2^51. */
struct pe_wave {
    double fh, fl;
    double ah, al;
    int quarter; /* 0 sin, 1 cos, 2 -sin, 3 -cos, or PE_LINEAR */
    unsigned axis;
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

#endif
