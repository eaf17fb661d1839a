/* Numbers below any scheme: element types, double-double, matrix products, Toeplitz matrices, resampling. */
#ifndef PE_NUMERIC_H
#define PE_NUMERIC_H

#include "core/inside.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- Element types ---- */

/* Element types inside the core: what a dtype's row (core/numeric/dtype.c) states, and elements by dtype. */

/* What a real dtype can hold. */
struct pe_real_type {
    int fraction_bits;   /* those that are stored */
    double unit;         /* what one rounding changes of a normal number at most, relative to it */
    double largest;      /* of the finite ones */
    double least_normal; /* below it numbers are `least` apart */
    double least;
};
const struct pe_real_type *pe_real_type(enum pe_dtype dtype); /* zeros: an integer dtype */

/* A real dtype with fewer bits than f32, by way of floats: every number of it, and every midpoint between two, is one.
 */
struct pe_narrow_type {
    void (*widen)(const void *from, size_t n, float *to);
    void (*narrow)(const float *from, size_t n, void *to); /* ties to even */
    bool (*has_middle)(const float *from, size_t n);       /* is one of the floats such a midpoint? */
    bool (*is_middle)(float x);
};
const struct pe_narrow_type *
pe_narrow_type(enum pe_dtype dtype); /* NULL: it has as many bits, or is an integer dtype */

double pe_element(enum pe_dtype dtype, const void *src, size_t i); /* src[i], exact but for 64-bit integers */
void pe_store(enum pe_dtype dtype, void *dst, size_t i, double x); /* dst[i] = x, one rounding */
double pe_round_to(enum pe_dtype dtype, double x); /* the nearest number of a real dtype; x for an integer one */
uint64_t pe_bits(enum pe_dtype dtype, double x);   /* those of that number; a zero's sign counts */
int64_t pe_place(enum pe_dtype dtype, double x);   /* in the order of a real dtype: neighbours are one apart */

extern const char *const pe_dtypes_by_bits[]; /* f64, f32, f16, bf16: those in which programs compute, then NULL */

/* True if a and b round to the same number of a real dtype. */
static inline bool pe_rounds_alike(enum pe_dtype dtype, double a, double b)
{
    switch (dtype) {
    case PE_F32: return (float)a == (float)b;
    case PE_F64: return a == b;
    default: return pe_bits(dtype, a) == pe_bits(dtype, b);
    }
}

int pe_rising(const void *a, const void *b); /* the order of two doubles, for qsort */

/* ---- Double-double ---- */

/* Double-double arithmetic: a number is the unevaluated sum hi + lo with |lo| ≤ ulp(hi)/2, about 106 bits. Plain C with
 * error-free transformations (Dekker, Knuth); correct only without contraction and reassociation (-ffp-contract=off).
 *
 * Relative errors, v = 2^-106 (Joldes, Muller, Popescu 2017, ACM TOMS 44, 15; for the product Muller, Rideau 2022, ACM
 * TOMS 48, 9): a sum at most 3v, also where it cancels; a product 5v. They hold for numbers as above: a pair whose
 * parts overlap must be normalised first (dd_two_sum).
 *
 * Why not long double or __float128: the first is 64 bits on x86 and 53 or 113 elsewhere, the second is a library in
 * integers. These functions give the same bits on every machine with IEEE doubles. */

struct pe_dd {
    double hi, lo;
};

static inline struct pe_dd dd(double x) { return (struct pe_dd){x, 0}; }

/* a + b exactly, for any a, b (Knuth). */
static inline struct pe_dd dd_two_sum(double a, double b)
{
    double s = a + b, bb = s - a;
    return (struct pe_dd){s, (a - (s - bb)) + (b - bb)};
}

/* a + b exactly, for |a| ≥ |b| (Dekker). */
static inline struct pe_dd dd_quick_sum(double a, double b)
{
    double s = a + b;
    return (struct pe_dd){s, b - (s - a)};
}

/* a · b exactly (while no part under- or overflows): Dekker's product by Veltkamp's split, so that the value is the
 * same with and without a fused multiply-add in the machine. */
static inline struct pe_dd dd_two_prod(double a, double b)
{
    double p = a * b;
    double ca = a * 134217729.0, cb = b * 134217729.0;
    double ah = ca - (ca - a), al = a - ah, bh = cb - (cb - b), bl = b - bh;
    return (struct pe_dd){p, ((ah * bh - p) + ah * bl + al * bh) + al * bl};
}

static inline struct pe_dd dd_neg(struct pe_dd a) { return (struct pe_dd){-a.hi, -a.lo}; }

static inline struct pe_dd dd_add(struct pe_dd a, struct pe_dd b)
{
    struct pe_dd s = dd_two_sum(a.hi, b.hi), t = dd_two_sum(a.lo, b.lo);
    s = dd_quick_sum(s.hi, s.lo + t.hi);
    return dd_quick_sum(s.hi, s.lo + t.lo);
}

static inline struct pe_dd dd_sub(struct pe_dd a, struct pe_dd b) { return dd_add(a, dd_neg(b)); }

static inline struct pe_dd dd_mul(struct pe_dd a, struct pe_dd b)
{
    struct pe_dd p = dd_two_prod(a.hi, b.hi);
    return dd_quick_sum(p.hi, p.lo + (a.hi * b.lo + a.lo * b.hi));
}

static inline struct pe_dd dd_mul_d(struct pe_dd a, double b)
{
    struct pe_dd p = dd_two_prod(a.hi, b);
    return dd_quick_sum(p.hi, p.lo + a.lo * b);
}

/* a / b by three steps of long division. */
static inline struct pe_dd dd_div(struct pe_dd a, struct pe_dd b)
{
    double q1 = a.hi / b.hi;
    struct pe_dd r = dd_sub(a, dd_mul_d(b, q1));
    double q2 = r.hi / b.hi;
    r = dd_sub(r, dd_mul_d(b, q2));
    double q3 = r.hi / b.hi;
    struct pe_dd q = dd_quick_sum(q1, q2);
    return dd_add(q, dd(q3));
}

/* hi + lo rounded to odd in 53 bits: a double that any narrower format then rounds as it would round the sum itself. */
static inline double dd_round_odd(struct pe_dd a)
{
    if (a.lo == 0)
        return a.hi;
    union {
        double d;
        unsigned long long u;
    } bits = {.d = a.hi};
    if (bits.u & 1)
        return a.hi; /* already odd: the sum lies within half an ulp of it */
    /* even: step one ulp towards lo; away from zero when lo has hi's sign */
    bits.u += ((a.lo > 0) == (a.hi > 0)) ? 1 : -1ULL;
    return bits.d;
}

/* e^a and ln(a) for a > 0, relative (absolute for the logarithm: × max(1, |ln a|)) error about 2^-102. In
 * core/numeric/dd.c. */
struct pe_dd pe_dd_exp(struct pe_dd a);
struct pe_dd pe_dd_log(struct pe_dd a);

/* ---- Double-double, fast ---- */

/* Logarithm, exponential and cosine to about 2^-58 in some tens of nanoseconds, by plain arithmetic: the same on
 * every machine. Accurate enough for f64 within 1 ulp, and to decide the rounding to narrower types for all but a
 * few values, for which core/numeric/dd.c has a hundred bits. */

struct pe_dd pe_dd_fast_log(struct pe_dd a);   /* ln(a), a > 0 */
struct pe_dd pe_dd_fast_log1p(struct pe_dd x); /* ln(1 + x), x ≥ 0 */
struct pe_dd pe_dd_fast_exp(struct pe_dd a);   /* e^a, |a| < 700; relative error also that of a, absolute */

/* cos(π/2·F·p), |p·F| < 2^51; absolute error below 2^-62. */
struct pe_dd pe_dd_fast_cos(struct pe_dd f, struct pe_dd p);

/* ln(1 + x), x ≥ 0, relative error about 2^-94. */
struct pe_dd pe_dd_log1p(struct pe_dd x);

/* 2π, error about 2^-105 of it. */
static inline struct pe_dd pe_dd_two_pi(void) { return (struct pe_dd){0x1.921fb54442d18p+2, 0x1.1a62633145c07p-52}; }

/* ---- Choices of the whole process ---- */

void pe_settle(void); /* from now on pe_isa_use and pe_on_wait change nothing: each plan calls it */
bool pe_is_settled(void);
bool pe_kernels_use(enum pe_isa isa); /* pe_isa_use at any time: for tests, while no other thread fills */

/* ---- Long work ---- */

void pe_wait(void); /* one wait of a filling thread: see pe_on_wait */
/* free() of memory from malloc that may be large, with calls of pe_is_cancelled in between. NULL is accepted. */
void pe_free_large(void *memory, size_t n_bytes);

/* ---- Matrix products ---- */

/* Matrix products; only this file calls BLAS. All matrices are row-major with the given row strides (elements);
 * products run on the calling thread. keep is 0 (c is only written) or 1 (the product is added to it). */

/* c[m, n] = keep · c + scale · a[m, k] · b[n, k]ᵀ: each row of the result is the dot products of a row of a with the
 * rows of b: queries with keys. */
void pe_gemm_abt_f32(size_t m, size_t n, size_t k, double scale, const void *a, size_t a_stride, const void *b,
                     size_t b_stride, double keep, void *c, size_t c_stride);
void pe_gemm_abt_f64(size_t m, size_t n, size_t k, double scale, const void *a, size_t a_stride, const void *b,
                     size_t b_stride, double keep, void *c, size_t c_stride);

/* c[m, n] = keep · c + a[m, k] · b[k, n]: weights with values. */
void pe_gemm_ab_f32(size_t m, size_t n, size_t k, const void *a, size_t a_stride, const void *b, size_t b_stride,
                    double keep, void *c, size_t c_stride);
void pe_gemm_ab_f64(size_t m, size_t n, size_t k, const void *a, size_t a_stride, const void *b, size_t b_stride,
                    double keep, void *c, size_t c_stride);

/* c[m, n] = keep · c + a[k, m]ᵀ · b[k, n]: gradients of weights, a sum over all rows. */
void pe_gemm_atb_f32(size_t m, size_t n, size_t k, const void *a, size_t a_stride, const void *b, size_t b_stride,
                     double keep, void *c, size_t c_stride);
void pe_gemm_atb_f64(size_t m, size_t n, size_t k, const void *a, size_t a_stride, const void *b, size_t b_stride,
                     double keep, void *c, size_t c_stride);

/* ---- Arithmetic in one of two precisions ---- */

/* Attention's arithmetic in one of two precisions: f32, or f64 for f64 tensors and for logits so large that f32
 * would not distinguish neighbouring values. Code that works on rows calls these functions and need not know the
 * precision. */

struct pe_arithmetic {
    enum pe_dtype dtype;
    size_t size; /* bytes of a number */
    /* Matrix products, as in core/numeric/gemm.h. */
    void (*abt)(size_t m, size_t n, size_t k, double scale, const void *a, size_t a_stride, const void *b,
                size_t b_stride, double keep, void *c, size_t c_stride);
    void (*ab)(size_t m, size_t n, size_t k, const void *a, size_t a_stride, const void *b, size_t b_stride,
               double keep, void *c, size_t c_stride);
    /* Products with rows that are used many times: laid out in panels first, pe_panels_size numbers. */
    void (*pack)(const void *b, size_t b_stride, size_t n, size_t k, void *panels);
    void (*products)(size_t m, size_t first, size_t n, size_t k, double scale, const void *a, size_t a_stride,
                     const void *panels, void *c, size_t c_stride);
    /* Rows of n numbers. */
    double (*max)(const void *s, size_t n);                         /* NaN if one is; -inf of none */
    double (*exp)(void *s, size_t n, double max, double *weighted); /* s = e^(s - max); returns the sum; *weighted,
                                                                       where not NULL: sum of e^(s-max)·(s-max) */
    void (*scale)(void *s, size_t n, double factor);                /* s *= factor */
    void (*add)(void *s, const void *b, size_t n, double factor);   /* s += factor·b */
    void (*cap)(void *s, size_t n, double cap);                     /* s = cap·tanh(s/cap) */
    void (*sigmoid)(const void *s, size_t n, void *out);            /* out = 1/(1 + e^-s) */
    void (*gather_add)(void *s, const void *table, const int32_t *index, size_t n, double factor);
    /* s[j] += table[index[j]] and s[i, j] += factor · table[j, index[j - i]], where numbers along index only go up,
     * or only go down, by one at most; PE_PICK_BEHIND numbers after the table must be readable. */
    void (*pick_add)(void *s, const void *table, const int32_t *index, size_t n);
    void (*pick_across_add)(void *s, size_t s_stride, const void *table, size_t t_stride, const int32_t *index,
                            size_t n_rows, size_t n, double factor);
};

enum { PE_PICK_BEHIND = 16 };

/* The size in numbers of the panels of n rows of k, in either precision; the next array after them has the same
 * alignment. */
static inline size_t pe_panels_size(size_t n, size_t k) { return (n + 31) / 32 * 32 * k; }

/* dtype: PE_F32 or PE_F64. */
const struct pe_arithmetic *pe_arithmetic(enum pe_dtype dtype);

/* f64 whose products are summed in the order of k, slowly: BLAS sums the last rows of a matrix in another order than
 * the first, so equal rows would differ in their last bits. Used for words, because equal words must give equal
 * rows. */
const struct pe_arithmetic *pe_arithmetic_in_order(void);

/* The number i of a row. */
static inline double pe_number(const struct pe_arithmetic *a, const void *row, size_t i)
{
    return a->dtype == PE_F64 ? ((const double *)row)[i] : (double)((const float *)row)[i];
}

static inline void pe_number_set(const struct pe_arithmetic *a, void *row, size_t i, double x)
{
    if (a->dtype == PE_F64)
        ((double *)row)[i] = x;
    else
        ((float *)row)[i] = (float)x;
}

void pe_numbers_set(const struct pe_arithmetic *a, void *row, size_t first, size_t end, double x);
/* The address of number i of a row. */
static inline void *pe_numbers_at(const struct pe_arithmetic *a, const void *row, size_t i)
{
    return (char *)(uintptr_t)row + i * a->size;
}

/* ---- Toeplitz matrices ---- */

/* Toeplitz outputs: if queries and keys are runs and a value depends only on k_pos - q_pos, each matrix is determined
 * by one line of numbers, and every row of the matrix is a window of it. The line begins with the distance from the
 * last query to the first key. */

struct pe_plan;
struct pe_block;

/* Are both sequences runs? */
bool pe_toeplitz_fits(const struct pe_plan *plan);

/* k_pos - q_pos of a line's first number; the others follow by steps of 1. */
double pe_toeplitz_start(const struct pe_plan *plan);

/* Writes the numbers at the distances rel, rel+1, …, n of them. */
typedef void pe_distances_fn(const struct pe_plan *plan, const void *context, double rel, size_t n, void *out);

/* A block of a matrix [q_len, k_len] of elements of `size` bytes, at most 8. */
void pe_toeplitz_fill(const struct pe_plan *plan, pe_distances_fn *make, const void *context, size_t size,
                      const struct pe_block *block, void *dst);

/* Rows of a part of a matrix from its part of the line, n_rows + n_cols - 1 elements of `size` bytes: row i begins with
 * element n_rows-1-i. Rows of dst are stride bytes apart. */
void pe_toeplitz_copy(const void *line, size_t size, size_t n_rows, size_t n_cols, void *dst, size_t stride);

/* One row of a matrix whose blocks are Toeplitz (windows of patches): n_parts parts of n bytes, which are step bytes
 * apart in the table, are written one after the other. After each of them PE_TOEPLITZ_SLACK bytes may be read. */
void pe_toeplitz_join(const void *table, size_t step, size_t n_parts, size_t n, void *dst);
enum { PE_TOEPLITZ_SLACK = 64 };

/* Like pe_fill_line. */
bool pe_toeplitz_line(const struct pe_plan *plan, pe_distances_fn *make, const void *context, uint64_t first, size_t n,
                      void *dst);

/* ---- Resampling ---- */

/* Interpolation of a grid of learned rows to another size, as vision models do for an image of another size than in
 * training. It is separable: an output row is a weighted sum of a few rows of the table. */

enum pe_resample_kind {
    PE_BICUBIC,            /* torch bicubic, align_corners False: indices clamped at the border, no antialias */
    PE_BICUBIC_ANTIALIAS,  /* timm: kernel stretched by max(1, in/out), weights renormalised, also to enlarge */
    PE_BILINEAR,           /* align_corners False, source coordinate clamped at 0 */
    PE_BILINEAR_ALIGNED,   /* align_corners True: Qwen3-VL */
    PE_BILINEAR_ANTIALIAS, /* SigLIP 2: as PE_BICUBIC_ANTIALIAS, of the triangle */
};

extern const char *const pe_resample_words[]; /* of the field `interpolate`, NULL-terminated */

/* How an axis is resized. */
struct pe_resample {
    enum pe_resample_kind kind;
    double offset;  /* added to n_out in the step from output to output, in [0, 1); of aligned corners it is not used */
    double cubic_a; /* of the cubic kinds */
};
bool pe_resample_is_cubic(enum pe_resample_kind kind);
bool pe_resample_is_antialiased(enum pe_resample_kind kind); /* reads every row in between, where it shrinks */
/* Torch's a of a kind; NaN: it has none. */
double pe_resample_cubic_a(enum pe_resample_kind kind);

/* The source rows and weights of each output index o of one axis: out[o] = sum weight[t] * in[index(t)]. */
struct pe_resample_taps {
    uint64_t n_out;
    unsigned n_taps; /* of every output index; weights beyond those needed are 0 */
    int64_t *index;  /* [n_out, n_taps], within 0 … n_in-1 (clamped already). The one allocation. */
    double *weight;  /* [n_out, n_taps] */
};

/* Computes the taps that resize an axis from n_in rows to n_out. PE_NO_MEMORY is its only failure. n_in, n_out >= 1,
 * and at most 2^20 with an offset. */
enum pe_status pe_resample_init(struct pe_resample_taps *taps, const struct pe_resample *how, uint64_t n_in,
                                uint64_t n_out);
void pe_resample_drop(struct pe_resample_taps *taps); /* of zeros: nothing */

#endif
