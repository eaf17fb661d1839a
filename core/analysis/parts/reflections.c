/* Householder's QR decomposition in blocks, with and without pivots.
 *
 * Reflections one by one pass over the matrix for every column. A block of them is one product, Q = I - V·T·Vᵀ with a
 * small triangle T (compact WY; Schreiber and Van Loan 1989, SIAM J. Sci. Stat. Comput. 10), so nearly all work is
 * matrix products. With pivots the next column is the one with the largest remaining norm (Businger and Golub 1965);
 * norms are updated by subtraction, and computed again where that has lost most of their digits (LAPACK Working Note
 * 176). */
#include "core/analysis/parts/reflections.h"
#include "core/kernels/kernels.h"
#include "core/numeric/gemm.h"
#include "core/posenc.h"

#include <math.h>
#include <string.h>

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* ---- One reflection ---- */

/* x [n] becomes (beta, rest of v). The sign of beta is chosen so that nothing cancels. Numbers are divided by their
 * largest first, whose square may not be a double. */
static double make_reflection(double *x, size_t n)
{
    double largest = 0;
    for (size_t i = 0; i < n; i++)
        largest = fmax(largest, fabs(x[i]));
    if (largest == 0)
        return 0;
    for (size_t i = 0; i < n; i++)
        x[i] /= largest;
    double norm = sqrt(pe_kernels()->dot_f64(x, x, n)), beta = x[0] > 0 ? -norm : norm, head = x[0] - beta;
    double tau = -head / beta;
    for (size_t i = 1; i < n; i++)
        x[i] /= head;
    x[0] = beta * largest;
    return tau;
}

/* Column y, from the same place on, becomes H y; rest is v without its 1. */
static void reflect_one(const double *rest, double tau, double *y, size_t n)
{
    double w = tau * (y[0] + pe_kernels()->dot_f64(rest, y + 1, n - 1));
    y[0] -= w;
    pe_kernels()->add_f64(y + 1, rest, n - 1, -w);
}

/* ---- A block of them: Q = I - V T Vᵀ ---- */

struct block {
    size_t n, len;      /* reflections; their length, from the first one's place on */
    double *v;          /* [n, len]: the rows are v_j */
    double *t;          /* [n, n], upper triangular */
    double *dots;       /* [n, n]: Vᵀ V */
    double *w, *turned; /* [PE_REFLECTED, n] */
};

static void copy_reflections(struct block *b, const struct pe_columns *a, size_t j0)
{
    for (size_t j = 0; j < b->n; j++) {
        double *v = b->v + j * b->len;
        memset(v, 0, j * sizeof *v);
        v[j] = 1;
        memcpy(v + j + 1, a->at + (j0 + j) * a->stride + j0 + j + 1, (b->len - j - 1) * sizeof *v);
    }
}

/* Column j of T: tau_j on the diagonal, and -tau_j·T·(Vᵀ v_j) above. */
static void make_triangle(struct block *b, const double *tau)
{
    size_t n = b->n;
    pe_gemm_abt_f64(n, n, b->len, 1, b->v, b->len, b->v, b->len, 0, b->dots, n);
    memset(b->t, 0, n * n * sizeof *b->t);
    for (size_t j = 0; j < n; j++) {
        b->t[j * n + j] = tau[j];
        for (size_t i = 0; i < j; i++)
            for (size_t k = i; k < j; k++)
                b->t[i * n + j] -= tau[j] * b->t[i * n + k] * b->dots[k * n + j];
    }
}

/* Reflections j0 … j0+n-1 of a. */
static struct block make_block(const struct pe_columns *a, const double *tau, size_t j0, size_t n, double *scratch)
{
    struct block b = {.n = n, .len = a->len - j0, .v = scratch};
    b.t = b.v + n * b.len;
    b.dots = b.t + n * n;
    b.w = b.dots + n * n;
    b.turned = b.w + PE_REFLECTED * n;
    copy_reflections(&b, a, j0);
    make_triangle(&b, tau + j0);
    return b;
}

/* turned = -w·T or -w·Tᵀ. */
static void turn(const struct block *b, enum pe_reflect how, size_t rows)
{
    size_t n = b->n;
    for (size_t r = 0; r < rows; r++)
        for (size_t j = 0; j < n; j++) {
            double sum = 0;
            for (size_t k = how == PE_REFLECT ? j : 0; k < (how == PE_REFLECT ? n : j + 1); k++)
                sum += b->w[r * n + k] * (how == PE_REFLECT ? b->t[j * n + k] : b->t[k * n + j]);
            b->turned[r * n + j] = -sum;
        }
}

/* Columns first … of c, from row j0 on: cᵀ += turned·Vᵀ. */
static void apply_block(const struct block *b, enum pe_reflect how, const struct pe_columns *c, size_t first, size_t j0)
{
    for (size_t i = first; i < c->n && !pe_is_cancelled(); i += PE_REFLECTED) {
        size_t rows = least(c->n - i, PE_REFLECTED);
        double *at = c->at + i * c->stride + j0;
        pe_gemm_abt_f64(rows, b->n, b->len, 1, at, c->stride, b->v, b->len, 0, b->w, b->n);
        turn(b, how, rows);
        pe_gemm_ab_f64(rows, b->len, b->n, b->turned, b->n, b->v, b->len, 1, at, c->stride);
    }
}

/* ---- Decompositions ---- */

/* Reflections of the columns j0 … end-1, applied to one another. */
static void reflect_panel(const struct pe_columns *a, double *tau, size_t j0, size_t end)
{
    for (size_t j = j0; j < end && !pe_is_cancelled(); j++) {
        double *column = a->at + j * a->stride + j;
        tau[j] = make_reflection(column, a->len - j);
        for (size_t c = j + 1; c < end; c++)
            reflect_one(column + 1, tau[j], a->at + c * a->stride + j, a->len - j);
    }
}

void pe_qr(const struct pe_columns *a, double *tau, const struct pe_columns *b, double *scratch)
{
    size_t rank = least(a->n, a->len);
    for (size_t j0 = 0; j0 < rank && !pe_was_cancelled(); j0 += PE_REFLECTIONS) {
        size_t end = least(j0 + PE_REFLECTIONS, rank);
        reflect_panel(a, tau, j0, end);
        struct block block = make_block(a, tau, j0, end - j0, scratch);
        apply_block(&block, PE_REFLECT_TRANSPOSED, a, end, j0);
        if (b)
            apply_block(&block, PE_REFLECT_TRANSPOSED, b, 0, j0);
    }
}

void pe_reflect(const struct pe_columns *a, const double *tau, size_t rank, enum pe_reflect how,
                const struct pe_columns *b, double *scratch)
{
    size_t n_blocks = (rank + PE_REFLECTIONS - 1) / PE_REFLECTIONS;
    for (size_t i = 0; i < n_blocks && !pe_was_cancelled(); i++) {
        size_t j0 = (how == PE_REFLECT ? n_blocks - 1 - i : i) * PE_REFLECTIONS;
        struct block block = make_block(a, tau, j0, least(rank - j0, PE_REFLECTIONS), scratch);
        apply_block(&block, how, b, 0, j0);
    }
}

/* ---- Pivots ---- */

/* norms [2, n]: squares of the remaining columns, and these squares when they were last computed from the numbers. */
static void measure(const struct pe_columns *a, size_t c, size_t from, double *norms)
{
    const double *x = a->at + c * a->stride + from;
    norms[c] = norms[a->n + c] = pe_kernels()->dot_f64(x, x, a->len - from);
}

static void exchange(const struct pe_columns *a, size_t i, size_t j, size_t *order, double *norms)
{
    double *x = a->at + i * a->stride, *y = a->at + j * a->stride;
    size_t place = order[i];
    for (size_t k = 0; i != j && k < a->len; k++) {
        double number = x[k];
        x[k] = y[k];
        y[k] = number;
    }
    order[i] = order[j];
    order[j] = place;
    norms[j] = norms[i];
    norms[a->n + j] = norms[a->n + i];
}

static size_t find_largest(const double *norms, size_t from, size_t n)
{
    size_t best = from;
    for (size_t c = from + 1; c < n; c++)
        best = norms[c] > norms[best] ? c : best;
    return best;
}

/* Reflects the columns after j. A square that has lost most of its digits is computed again. */
static void reflect_rest(const struct pe_columns *a, double tau, size_t j, double *norms)
{
    const double *v = a->at + j * a->stride + j + 1;
    for (size_t c = j + 1; c < a->n && (c % 64 || !pe_is_cancelled()); c++) {
        double *y = a->at + c * a->stride + j;
        reflect_one(v, tau, y, a->len - j);
        norms[c] -= y[0] * y[0];
        if (!(norms[c] > 1e-6 * norms[a->n + c]))
            measure(a, c, j + 1, norms);
    }
}

size_t pe_qr_pivoted(const struct pe_columns *a, double *tau, size_t *order, double *norms, double negligible)
{
    size_t rank = least(a->n, a->len), j = 0;
    double first = 0;
    for (size_t c = 0; c < a->n && !pe_is_cancelled(); c++) {
        order[c] = c;
        measure(a, c, 0, norms);
    }
    for (; j < rank && !pe_is_cancelled(); j++) {
        size_t best = find_largest(norms, j, a->n);
        first = j == 0 ? sqrt(norms[best]) : first;
        if (!(sqrt(norms[best]) > negligible * first))
            break;
        exchange(a, j, best, order, norms);
        tau[j] = make_reflection(a->at + j * a->stride + j, a->len - j);
        reflect_rest(a, tau[j], j, norms);
    }
    return j;
}
