/* Attention's arithmetic in one of two precisions: f32, or f64 for f64 tensors and for logits so large that f32
 * would not distinguish neighbouring values. Code that works on rows calls these functions and need not know the
 * precision. */
#ifndef PE_ARITHMETIC_H
#define PE_ARITHMETIC_H

#include "core/posenc.h"

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

#endif
