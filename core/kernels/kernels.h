/* The inner loops: plain pointers in, plain pointers out. Each source is compiled once for each instruction set, with a
 * suffix (_base, _avx2, _avx512) to its names; core/numeric/isa.c chooses one table of them for the process.
 *
 * The problem is to use registers of two, four or eight doubles and still give the same bytes everywhere. The idea is
 * that a lane is a number of its own: sources are written in GCC's vector extensions, an element passes through the
 * same operations in every width, and each operation of IEEE 754 has one right result. Hence -ffp-contract=off. A fused
 * multiplication and addition, which rounds once where two operations round twice, is allowed in two places only: for
 * the error of a product, which is exact either way (product_error in lanes.h), and where the result is an estimate
 * with a proven bound. The kernels of tables (waves, list, run, around) work like that: they report every value that
 * their bound cannot decide, and core/waves computes it anew in double-double, so that a stored number is the one
 * nearest to the exact value, whatever estimate came before.
 *
 * What is not the same: rows of attention (exp, cap, sigmoid), products, sums over rows (apart, dot) and training. They
 * fuse, or add in an order that follows the width, so their last bits differ between instruction sets, and with them
 * the answers of /attention, the metrics of an analysis and the losses of an experiment.
 *
 * A type is the contract of a kernel: what it may read past the end, and which bound it keeps. The next to read is
 * lanes.h, then windows.c and narrow.c, the shortest; for the method in general SLEEF's sleefsimddp.c. */
#ifndef PE_KERNELS_H
#define PE_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The name of a kernel for the instruction set being compiled: PE_ISA_SUFFIX comes from the build. */
#define PE_KERNEL_JOIN(name, suffix) name##_##suffix
#define PE_KERNEL_NAME(name, suffix) PE_KERNEL_JOIN(name, suffix)
#define PE_KERNEL(name) PE_KERNEL_NAME(name, PE_ISA_SUFFIX)

/* A function that works on several registers must be inlined into its caller, or the registers go through memory.
 * Constant arguments also select the code that is compiled. */
#define PE_INLINED static inline __attribute__((always_inline))

/* Columns are processed this many at a time; arrays of columns are padded to a multiple of it. */
enum { PE_WAVES_LANES = 32 };

/* values[j] = a_j · sin(π/2·(p·F_j + quarter_j)), F = fh + fl, a = ah + al (used only if scaled), for j < n rounded
 * up to PE_WAVES_LANES; nexts[j], if nexts is not NULL, is the same a quarter turn on. bounds[j]: the exact value
 * lies within it of values[j]: 2^-50 of it, and 2^-98 of p·F·a_j, four times what the phase is uncertain by. |p·F| <
 * 2^51. */
typedef void pe_waves_fn(double p, const double *fh, const double *fl, const double *ah, const double *al,
                         const int64_t *quarter, bool scaled, size_t n, double *values, double *nexts, double *bounds);

/* Columns at each of the positions as the nearest floats:
 *
 *     out[i·stride + j] = sizes[j] · sin(π/2·(p_i·F_j + quarter_j))
 *
 * centre[j] is PE_LIST_CENTRE + quarter_j; sizes NULL means ones. Arrays are read up to the next multiple of
 * PE_WAVES_LANES; n floats of a row are written. Returns the number of leading rows that are right. It stops after a
 * row with a column whose rounding the doubles cannot decide, or which is next to a zero: the squared distance of its
 * phase from the nearest quarter turn is not above (unsure·p)² and PE_LIST_LEAST. Requires |p·F_j| < PE_LIST_PHASE,
 * unsure of at least 2^-54·|F_j|, and no size whose product with 2^-60 is a subnormal float. */
typedef size_t pe_list_f32_fn(const double *positions, size_t n_rows, double unsure, const double *fh, const double *fl,
                              const double *centre, const double *sizes, size_t n, float *out, size_t stride);
/* The same for n pairs: the column and, next_sizes[j] as large, the same a quarter on, which goes to next[i·stride +
 * j], or right behind the first where next is NULL. */
typedef size_t pe_list_pairs_f32_fn(const double *positions, size_t n_rows, double unsure, const double *fh,
                                    const double *fl, const double *centre, const double *sizes,
                                    const double *next_sizes, size_t n, float *out, float *next, size_t stride);
#define PE_LIST_CENTRE 0x1.8p52
#define PE_LIST_PHASE 0x1p40
#define PE_LIST_LEAST 0x1p-120

/* Rows of a run, in blocks around an anchor: row n of the block is position p + n - PE_RUN_HALF. */
enum { PE_RUN_HALF = 16, PE_RUN_ROWS = 2 * PE_RUN_HALF };

/* Writes columns j < n (rounded up to PE_WAVES_LANES) of PE_RUN_ROWS rows to out, PE_RUN_ROWS × stride elements. x[j]
 * and y[j] are the column's value and its next quarter at the anchor, cosines[j] and sines[j] those of one step,
 * reach[j] how far a block moves at most from its anchor, of 1: min(1, PE_RUN_HALF·|sine|).
 *
 * Bit i of doubts[g] is set where some value of column 32g + i may have been rounded wrong; returns whether one is. The
 * column's doubles are right to PE_RUN_ERROR·(|x| + |y|·reach) + bounds[j], where x and y have been moved at most
 * PE_RUN_TURNS times by pe_turn since they were right to 2^-50 of themselves, and cosines and sines are right to 2^-52
 * of themselves and to 1.3·2^-53. Next to subnormals floats have other middles, so all is doubted there; so is a column
 * of zeros whose zeros may be negative.
 *
 * f16 and bf16 are rounded from the value's float. That is right where the float is above PE_RUN_CLEAR times the error
 * and no middle between two of them (run.c). Every |value| is below half of the largest number of the dtype. */
typedef bool pe_run_fn(const double *x, const double *y, const double *bounds, const double *cosines,
                       const double *sines, const double *reach, size_t n, void *out, size_t stride, uint32_t *doubts);
#define PE_RUN_CLEAR 0x1.04p25 /* 2^25, and room for the value being a rounded one */
#define PE_RUN_ERROR 0x1.48p-41
#define PE_RUN_TINY_F32 0x1p-100 /* at or below this a block of f32 or bf16 is near f32's subnormals */
#define PE_RUN_TINY_F16 0x1p-14  /* f16's smallest normal value */
enum { PE_RUN_TURNS = 15 };

/* x and y after a turn by an angle of these cosines and sines: x·c + y·s, y·c - x·s. */
typedef void pe_turn_fn(double *x, double *y, const double *cosines, const double *sines, size_t n);

/* The same rows in bf16, from an anchor between them: row n is its position + n - PE_RUN_HALF + 1/2. x and y as above,
 * by column; the rest as floats, those of the even columns of x in one array and those of the odd in another: [0] and
 * [1], and of steps the cosines' [0] and [1], the sines' [2] and [3], of n + 1/2 steps in row n of step_stride floats.
 *
 * Writes columns j < n (rounded up to PE_WAVES_LANES). Bit i of doubts[g·PE_RUN_HALF + k] is set where column 32g + 2i
 * or the one behind it may be rounded wrong k rows above the anchor or k below; returns whether one is. squares: of how
 * far a float must be from the middle between two bf16 for that, PE_AROUND_CLEAR times a power of two that no |value|
 * passes, nor x·cosine and y·sine together, and 2^-28 of which x and y are right to; infinite for all to be doubted. */
struct pe_anchors {
    const double *x, *y;
    const float *squares[2], *steps[4];
    size_t step_stride;
};
typedef bool pe_around_bf16_fn(const struct pe_anchors *anchors, size_t n, uint16_t *out, size_t stride,
                               uint16_t *doubts);
/* squares for an exact anchor, right to bounds, and PE_RUN_TURNS turns by PE_RUN_ROWS: of amplitudes sizes, and reach,
 * the largest sine of PE_RUN_HALF - 1/2 steps or fewer; turns is 0 for a column that does not, else 1. */
typedef void pe_around_squares_fn(const double *x, const double *y, const double *bounds, const float *const sizes[2],
                                  const float *const reach[2], const float *const turns[2], size_t n,
                                  float *const squares[2]);
#define PE_AROUND_CLEAR 0x1.08p-22F

/* One head at one position: for c < n_pairs rotates the pair x[c·step], x[c·step + partner] into y. */
typedef void pe_rotate_f32_fn(const double *cosines, const double *sines, const float *x, float *y, size_t n_pairs,
                              size_t step, size_t partner);
typedef void pe_rotate_f64_fn(const double *cosines, const double *sines, const double *x, double *y, size_t n_pairs,
                              size_t step, size_t partner);

/* n_heads heads, `apart` floats from one to the next, of n_rows rows of row_len floats, whose cosines and sines are
 * table_step floats apart (0: all at one position) and the same for each head. Rotates the pairs x[c], x[c +
 * partner] for step 1, x[2c], x[2c + 1] for step 2, and writes nothing else. y is x or does not overlap it. Two
 * products and their sum, each rounded to f32. */
typedef void pe_rotate_rows_fn(const float *cosines, const float *sines, size_t table_step, const float *x, float *y,
                               size_t row_len, size_t n_rows, size_t n_pairs, size_t step, size_t partner,
                               size_t n_heads, size_t apart);

/* Rows of a type with fewer bits than f32 to floats, and of floats to it, ties to even, NaN to NaN. */
typedef void pe_widen_fn(const void *from, size_t n, float *to);
typedef void pe_narrow_fn(const float *from, size_t n, void *to);

/* Rows of attention, of any length n, aligned to their elements. The last bits of exp, cap and sigmoid may differ
 * between instruction sets. An element's value does not depend on its place in the row, and a sum depends only on
 * its elements and n.
 *
 * exp: s[j] = e^(s[j] - max), within an ulp, 0 for -inf; max is a row's largest, or no s[j] is above it by more than
 * 70. Returns the sum of these; *weighted, where weighted is not NULL, is the sum of e^x·x for x = s[j] - max, in
 * which 0·-inf is 0. */
typedef double pe_exp_f32_fn(float *s, size_t n, float max, double *weighted);
typedef double pe_exp_f64_fn(double *s, size_t n, double max, double *weighted);

/* The largest; NaN if there is one, -inf for n = 0. */
typedef float pe_max_f32_fn(const float *s, size_t n);
typedef double pe_max_f64_fn(const double *s, size_t n);

/* s *= factor; s += factor·b; s[j] += factor·table[index[j]]. Two roundings on every machine; nothing overlaps. */
typedef void pe_scale_f32_fn(float *s, size_t n, float factor);
typedef void pe_scale_f64_fn(double *s, size_t n, double factor);
typedef void pe_add_f32_fn(float *s, const float *b, size_t n, float factor);
typedef void pe_add_f64_fn(double *s, const double *b, size_t n, double factor);
typedef void pe_gather_add_f32_fn(float *s, const float *table, const int32_t *index, size_t n, float factor);
typedef void pe_gather_add_f64_fn(double *s, const double *table, const int32_t *index, size_t n, double factor);

/* s = cap·tanh(s/cap); infinities become ±cap. The tanh is within 2.6 ulp; quotient and product add a rounding each,
 * which brings it to 4.1 at the worst of 5·10^7 values. */
typedef void pe_cap_f32_fn(float *s, size_t n, float cap);
typedef void pe_cap_f64_fn(double *s, size_t n, double cap);

/* out = 1/(1 + e^-s), within 2.5 ulp; out may be s. */
typedef void pe_sigmoid_f32_fn(const float *s, size_t n, float *out);
typedef void pe_sigmoid_f64_fn(const double *s, size_t n, double *out);

/* s[j] += table[index[j]]; s[i, j] += factor · table[j, index[j - i]]. Along index, numbers go up by one or stay, or
 * go down by one or stay; index reaches from -n_rows + 1 to n - 1. 15 numbers after any entry that index names must
 * be readable. */
typedef void pe_pick_add_f32_fn(float *s, const float *table, const int32_t *index, size_t n);
typedef void pe_pick_add_f64_fn(double *s, const double *table, const int32_t *index, size_t n);
typedef void pe_pick_across_add_f32_fn(float *s, size_t s_stride, const float *table, size_t t_stride,
                                       const int32_t *index, size_t n_rows, size_t n, float factor);
typedef void pe_pick_across_add_f64_fn(double *s, size_t s_stride, const double *table, size_t t_stride,
                                       const int32_t *index, size_t n_rows, size_t n, double factor);

/* Panels of the rows of b [n, k]: [n/P rounded up, k, P], P = PE_PANEL_BYTES of numbers; zeros after the last row. */
enum { PE_PANEL_BYTES = 128 };
typedef void pe_pack_f32_fn(const float *b, size_t b_stride, size_t n, size_t k, float *panels);
typedef void pe_pack_f64_fn(const double *b, size_t b_stride, size_t n, size_t k, double *panels);

/* c [m, n] = scale · a·bᵀ for rows a [m, k] and rows first … first+n-1 of b, which is in panels. An element is the
 * same whatever m, first and n are. */
typedef void pe_products_f32_fn(size_t m, size_t first, size_t n, size_t k, float scale, const float *a,
                                size_t a_stride, const float *panels, float *c, size_t c_stride);
typedef void pe_products_f64_fn(size_t m, size_t first, size_t n, size_t k, double scale, const double *a,
                                size_t a_stride, const double *panels, double *c, size_t c_stride);

/* Rows compared with rows, in doubles. c[i, j] = sum over x < k of (a_ix - b_jx)^2, added to what is there if `adds`,
 * for rows a [m, k] and n rows b, which are in panels; columns up to the next multiple of a panel are written too.
 * An element is the same whatever m and n are; its last bits may differ between instruction sets, as those of
 * products. */
typedef void pe_apart_f64_fn(size_t m, size_t n, size_t k, const double *a, size_t a_stride, const double *panels,
                             bool adds, double *c, size_t c_stride);

/* The smallest; infinity for n = 0; unspecified if there is a NaN. */
typedef double pe_least_f64_fn(const double *x, size_t n);

/* sum[i] += x[i], and least[i] and most[i] are the smallest and largest so far. */
typedef void pe_tally_f64_fn(const double *x, size_t n, double *sum, double *least, double *most);

/* The sum of a[i]·b[i]; its last bits may differ between instruction sets. */
typedef double pe_dot_f64_fn(const double *a, const double *b, size_t n);

/* A turn of two rows in their plane: x = c·x + s·y, y = c·y - s·x. */
typedef void pe_plane_f64_fn(double *x, double *y, size_t n, double c, double s);

/* Is one of n floats the midpoint between two numbers of a narrow type? */
typedef bool pe_middles_fn(const float *from, size_t n);

/* Rows of a Toeplitz map: element j of row i is element n_rows-1-i+j of the vector, which has n_rows+n_cols-1. Elements
 * have `size` bytes, a power of two up to 8; rows of dst are stride bytes apart, a multiple of size. Any alignment. */
typedef void pe_windows_fn(const void *vector, size_t size, size_t n_rows, size_t n_cols, void *dst, size_t stride);

/* n_lines lines of n bytes, one after the other at dst; those of `from` are step bytes apart. After each of them
 * PE_LINES_SLACK more bytes may be read, with any contents. */
typedef void pe_lines_fn(const void *from, size_t step, size_t n_lines, size_t n, void *dst);
enum { PE_LINES_SLACK = 64 };

/* Training (core/training/): a decoder of PE_TRAIN_WIDTH channels in heads of PE_TRAIN_HEAD. */
enum { PE_TRAIN_WIDTH = 32, PE_TRAIN_HEAD = 8 };
#define PE_TRAIN_EPS 1e-5                                     /* of layer norm */
#define PE_TRAIN_SCRATCH(n) (10 * PE_TRAIN_HEAD * ((n) + 64)) /* numbers of scratch for n positions */

/* Causal attention of one head over n positions, whose rows of q, k and v are stride apart:
 *
 *     s_ij = scale·(q_i · k_j) + bias[n-1 - (i-j)],  j ≤ i;   o_i = sum over j of softmax(s_i)_j · v_j
 *
 * bias [n] ends with distance 0; NULL: none. maxima and sums [n]: of each row's scores and exponentials. */
typedef void pe_train_attend_f32_fn(size_t n, float scale, const float *q, const float *k, const float *v,
                                    size_t stride, const float *bias, float *o, size_t o_stride, float *maxima,
                                    float *sums, float *scratch);
typedef void pe_train_attend_f64_fn(size_t n, double scale, const double *q, const double *k, const double *v,
                                    size_t stride, const double *bias, double *o, size_t o_stride, double *maxima,
                                    double *sums, double *scratch);
/* Its gradients: from go, that of o, those of q, k, v (written) and of bias (added; NULL: not wanted). */
typedef void pe_train_attend_back_f32_fn(size_t n, float scale, const float *q, const float *k, const float *v,
                                         size_t stride, const float *bias, const float *o, const float *go,
                                         size_t o_stride, const float *maxima, const float *sums, float *gq, float *gk,
                                         float *gv, float *gbias, float *scratch);
typedef void pe_train_attend_back_f64_fn(size_t n, double scale, const double *q, const double *k, const double *v,
                                         size_t stride, const double *bias, const double *o, const double *go,
                                         size_t o_stride, const double *maxima, const double *sums, double *gq,
                                         double *gk, double *gv, double *gbias, double *scratch);

/* out = GELU(x) by tanh; g *= its derivative at x. */
typedef void pe_train_gelu_f32_fn(const float *x, size_t n, float *out);
typedef void pe_train_gelu_f64_fn(const double *x, size_t n, double *out);
typedef void pe_train_gelu_back_f32_fn(const float *x, size_t n, float *g);
typedef void pe_train_gelu_back_f64_fn(const double *x, size_t n, double *g);

/* Layer norm of n rows [PE_TRAIN_WIDTH]; moments [n, 2]: mean and inverse deviation. Its gradients are added to gx,
 * ggain and gbias. */
typedef void pe_train_norm_f32_fn(size_t n, const float *x, const float *gain, const float *bias, float *out,
                                  float *moments);
typedef void pe_train_norm_f64_fn(size_t n, const double *x, const double *gain, const double *bias, double *out,
                                  double *moments);
typedef void pe_train_norm_back_f32_fn(size_t n, const float *x, const float *moments, const float *gain,
                                       const float *g, float *gx, float *ggain, float *gbias);
typedef void pe_train_norm_back_f64_fn(size_t n, const double *x, const double *moments, const double *gain,
                                       const double *g, double *gx, double *ggain, double *gbias);

/* out [n_rows, n]: the same row each time; sums [n] += all rows. n is a multiple of PE_TRAIN_HEAD. */
typedef void pe_train_repeat_f32_fn(size_t n_rows, size_t n, const float *row, float *out);
typedef void pe_train_repeat_f64_fn(size_t n_rows, size_t n, const double *row, double *out);
typedef void pe_train_add_up_f32_fn(size_t n_rows, size_t n, const float *rows, float *sums);
typedef void pe_train_add_up_f64_fn(size_t n_rows, size_t n, const double *rows, double *sums);

/* The heads of row i, which are one after the other, each multiplied by matrix i, which is stored by columns. */
typedef void pe_train_turn_f32_fn(size_t n, size_t n_heads, const float *matrices, float *x, size_t stride);
typedef void pe_train_turn_f64_fn(size_t n, size_t n_heads, const double *matrices, double *x, size_t stride);

/* All kernels of one instruction set; the list is core/kernels/names.h. */
struct pe_kernels {
#define PE_KERNEL_ROW(name, type) type *name;
#include "core/kernels/names.h"
};
const struct pe_kernels *pe_kernels(void); /* those in use (core/numeric/isa.c) */

#define PE_KERNEL_ROW(name, type) type pe_##name##_base;
#include "core/kernels/names.h"
#if defined(__x86_64__)
#define PE_KERNEL_ROW(name, type) type pe_##name##_avx2, pe_##name##_avx512;
#include "core/kernels/names.h"
#endif

#endif
