/* Least squares with the smallest norm. A = Q1 L Z Pᵀ, with a small triangle L of the numerical rank:
 *
 *     A = Q R0             if A is tall: blocks of reflections, nearly all of the work in matrix products
 *     R0 P = Q1 R          pivoted, so that rows of rounding noise (below 1e-15 of the first) are left out
 *     R = L Z              again by reflections
 *     x = P Zᵀ L⁺ Q1ᵀ b
 *
 * If L is so well conditioned that no singular value can be below the cut, L⁺ is its inverse. Otherwise its singular
 * values are computed by one-sided Jacobi rotations (Demmel and Veselić 1992; with de Rijk's pivots, 1989), which
 * converge quickly on such a triangle and find small singular values with small relative errors. */
#include "core/analysis/parts/least_squares.h"
#include "core/kernels/kernels.h"
#include "core/numeric/gemm.h"
#include "core/analysis/parts/reflections.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NEGLIGIBLE 1e-15
#define WELL_CONDITIONED 1e5 /* also: the inverse loses at most so many digits */
enum { SWEEPS_MAX = 40, RIGHT_SIDES = 32 };

struct solver {
    size_t n, rank;
    struct pe_columns a, b, x, rows; /* rows: R by rows, [rank, n], then L in and before its diagonal */
    size_t *order;                   /* [n] */
    double *tau, *row_tau;           /* [n] */
    double *norms;                   /* [2, n] */
    double *inverse;                 /* [rank, rank]: L⁻¹ … */
    double *turned; /* … or [rank, 2 rank]: columns of L made orthogonal, and the turns that did it */
    double *scratch;
};

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* ---- Down to a triangle ---- */

static void make_small(struct solver *s, size_t m)
{
    if (m <= s->n)
        return;
    pe_qr(&s->a, s->tau, &s->b, s->scratch);
    for (size_t c = 0; c < s->n && !pe_was_cancelled(); c++)
        memset(s->a.at + c * m + c + 1, 0, (s->n - c - 1) * sizeof(double));
    s->a.len = s->b.len = s->n;
}

static void make_triangle(struct solver *s)
{
    s->rank = pe_qr_pivoted(&s->a, s->tau, s->order, s->norms, NEGLIGIBLE);
    pe_reflect(&s->a, s->tau, s->rank, PE_REFLECT_TRANSPOSED, &s->b, s->scratch);
    s->rows.n = s->rank;
    for (size_t j = 0; j < s->rank && !pe_is_cancelled(); j++)
        for (size_t c = 0; c < s->n; c++)
            s->rows.at[j * s->n + c] = c < j ? 0 : s->a.at[c * s->a.stride + j];
    pe_qr(&s->rows, s->row_tau, NULL, s->scratch);
}

/* L_ij, j ≤ i. */
static double *row_of(const struct solver *s, size_t i) { return s->rows.at + i * s->n; }

/* ---- A triangle without small singular values ---- */

static double square(double x) { return x * x; }

/* Row i of the inverse, by the rows before it. */
static void invert_row(const struct solver *s, size_t i)
{
    double *to = s->inverse + i * s->rank;
    const double *row = row_of(s, i);
    memset(to, 0, s->rank * sizeof *to);
    for (size_t j = 0; j < i; j++)
        pe_kernels()->add_f64(to, s->inverse + j * s->rank, j + 1, -row[j] / row[i]);
    to[i] = 1 / row[i];
}

/* |L|·|L⁻¹| in Frobenius norms is above the ratio of the largest and the smallest singular value. */
static bool invert(const struct solver *s)
{
    double sum = 0, inverse_sum = 0;
    for (size_t i = 0; i < s->rank && !pe_is_cancelled(); i++) {
        invert_row(s, i);
        sum += pe_kernels()->dot_f64(row_of(s, i), row_of(s, i), i + 1);
        inverse_sum += pe_kernels()->dot_f64(s->inverse + i * s->rank, s->inverse + i * s->rank, i + 1);
        if (!(sum * inverse_sum < square(WELL_CONDITIONED)))
            return false;
    }
    return true;
}

/* x = L⁻¹ b, for all right-hand sides. */
static void solve_by_inverse(const struct solver *s)
{
    for (size_t i = 0; i < s->b.n && !pe_is_cancelled(); i += RIGHT_SIDES)
        pe_gemm_abt_f64(least(s->b.n - i, RIGHT_SIDES), s->rank, s->rank, 1, s->b.at + i * s->b.stride, s->b.stride,
                        s->inverse, s->rank, 0, s->x.at + i * s->n, s->n);
}

/* ---- Jacobi ---- */

static double *column_of(const struct solver *s, size_t j) { return s->turned + j * 2 * s->rank; }

static void start_turns(const struct solver *s)
{
    memset(s->turned, 0, 2 * s->rank * s->rank * sizeof(double));
    for (size_t j = 0; j < s->rank; j++) {
        for (size_t i = j; i < s->rank; i++)
            column_of(s, j)[i] = row_of(s, i)[j];
        column_of(s, j)[s->rank + j] = 1;
    }
}

static void exchange(const struct solver *s, size_t i, size_t j)
{
    double *x = column_of(s, i), *y = column_of(s, j), norm = s->norms[i];
    for (size_t k = 0; i != j && k < 2 * s->rank; k++) {
        double number = x[k];
        x[k] = y[k];
        y[k] = number;
    }
    s->norms[i] = s->norms[j];
    s->norms[j] = norm;
}

/* Makes columns i and j orthogonal; false: they are. */
static bool turn_pair(const struct solver *s, size_t i, size_t j)
{
    double *x = column_of(s, i), *y = column_of(s, j), *norms = s->norms;
    double dot = pe_kernels()->dot_f64(x, y, s->rank);
    if (!(fabs(dot) > 0x1p-52 * sqrt((double)s->rank) * sqrt(norms[i]) * sqrt(norms[j])))
        return false;
    double zeta = (norms[j] - norms[i]) / (2 * dot), tangent = 1 / (fabs(zeta) + sqrt(1 + zeta * zeta));
    tangent = zeta < 0 ? -tangent : tangent;
    double cosine = 1 / sqrt(1 + tangent * tangent);
    pe_kernels()->plane_f64(y, x, 2 * s->rank, cosine, cosine * tangent);
    norms[i] -= tangent * dot;
    norms[j] += tangent * dot;
    return true;
}

static bool sweep(const struct solver *s)
{
    bool has_turned = false;
    for (size_t j = 0; j < s->rank; j++)
        s->norms[j] = pe_kernels()->dot_f64(column_of(s, j), column_of(s, j), s->rank);
    for (size_t i = 0; i < s->rank; i++) {
        size_t best = i;
        for (size_t j = i + 1; j < s->rank; j++)
            best = s->norms[j] > s->norms[best] ? j : best;
        exchange(s, i, best);
        for (size_t j = i + 1; j < s->rank && (j % 64 || !pe_is_cancelled()); j++)
            has_turned = turn_pair(s, i, j) || has_turned;
    }
    return has_turned;
}

/* One over the squares of the singular values, 0 for those that are cut. */
static void invert_squares(const struct solver *s, double cut)
{
    double largest = 0;
    for (size_t j = 0; j < s->rank; j++) {
        s->norms[j] = pe_kernels()->dot_f64(column_of(s, j), column_of(s, j), s->rank);
        largest = fmax(largest, s->norms[j]);
    }
    for (size_t j = 0; j < s->rank; j++)
        s->norms[j] = s->norms[j] >= square(cut) * largest ? 1 / s->norms[j] : 0;
}

/* L = U S J, with U S in `turned` and J beside it: x = Jᵀ S⁻² (U S)ᵀ b. */
static void solve_by_turns(const struct solver *s, double cut)
{
    bool goes_on = true;
    start_turns(s);
    for (int i = 0; goes_on && i < SWEEPS_MAX && !pe_was_cancelled(); i++)
        goes_on = sweep(s);
    invert_squares(s, cut);
    for (size_t i = 0; i < s->b.n && !pe_is_cancelled(); i += RIGHT_SIDES) {
        size_t rows = least(s->b.n - i, RIGHT_SIDES);
        pe_gemm_abt_f64(rows, s->rank, s->rank, 1, s->b.at + i * s->b.stride, s->b.stride, s->turned, 2 * s->rank, 0,
                        s->scratch, s->rank);
        for (size_t k = 0; k < rows * s->rank; k++)
            s->scratch[k] *= s->norms[k % s->rank];
        pe_gemm_ab_f64(rows, s->rank, s->rank, s->scratch, s->rank, s->turned + s->rank, 2 * s->rank, 0,
                       s->x.at + i * s->n, s->n);
    }
}

/* ---- The whole ---- */

/* x = P Zᵀ x. */
static void put_in_place(const struct solver *s)
{
    for (size_t i = 0; i < s->x.n; i++)
        memset(s->x.at + i * s->n + s->rank, 0, (s->n - s->rank) * sizeof(double));
    pe_reflect(&s->rows, s->row_tau, s->rank, PE_REFLECT, &s->x, s->scratch);
    for (size_t i = 0; i < s->x.n && !pe_is_cancelled(); i++) {
        memcpy(s->scratch, s->x.at + i * s->n, s->n * sizeof(double));
        for (size_t c = 0; c < s->n; c++)
            s->x.at[i * s->n + s->order[c]] = s->scratch[c];
    }
}

/* Numbers of scratch: blocks of reflections, and some right-hand sides. */
static size_t scratch_room(size_t m, size_t n) { return pe_reflections_room(m > n ? m : n) + RIGHT_SIDES * n; }

double pe_least_squares_bytes(size_t m, size_t n)
{
    size_t rank = least(m, n);
    return (double)(n * sizeof(size_t)) +
           (double)(4 * n + scratch_room(m, n) + rank * n + 3 * rank * rank) * sizeof(double);
}

static bool allocate(struct solver *s, size_t m)
{
    size_t n = s->n, rank = least(m, n);
    s->order = malloc(n * sizeof *s->order);
    s->tau = malloc((4 * n + scratch_room(m, n)) * sizeof(double));
    s->rows = (struct pe_columns){malloc(rank * n * sizeof(double)), 0, n, n};
    s->inverse = malloc(3 * rank * rank * sizeof(double));
    if (!s->order || !s->tau || !s->rows.at || !s->inverse)
        return false;
    s->row_tau = s->tau + n;
    s->norms = s->tau + 2 * n;
    s->scratch = s->tau + 4 * n;
    s->turned = s->inverse + rank * rank;
    return true;
}

static void solve(struct solver *s, size_t m, double cut)
{
    make_small(s, m);
    make_triangle(s);
    bool is_well_conditioned = invert(s);
    if (s->rank > 0 && is_well_conditioned)
        solve_by_inverse(s);
    else if (s->rank > 0 && !pe_was_cancelled())
        solve_by_turns(s, cut);
    put_in_place(s);
}

enum pe_status pe_least_squares(size_t m, size_t n, size_t n_rhs, double *a, double *b, double cut, double *x,
                                struct pe_error *err)
{
    struct solver s = {.n = n, .a = {a, n, m, m}, .b = {b, n_rhs, m, m}, .x = {x, n_rhs, n, n}};
    enum pe_status status = allocate(&s, m) ? PE_OK : pe_no_memory(err);
    if (!status)
        solve(&s, m, cut);
    free(s.order);
    free(s.tau);
    free(s.rows.at);
    pe_free_large(s.inverse, 3 * (m < n ? m : n) * (m < n ? m : n) * sizeof *s.inverse);
    return !status && pe_was_cancelled() ? pe_cancelled(err) : status;
}
