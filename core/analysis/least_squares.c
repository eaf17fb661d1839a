/* Least squares with the smallest norm, and singular values. A = Q1 L Z Pᵀ, with a small triangle L of the numerical
 * rank:
 *
 *     A = Q R0             if A is tall: blocks of reflections, nearly all of the work in matrix products
 *     R0 P = Q1 R          pivoted, so that rows of rounding noise (below 1e-15 of the first) are left out
 *     R = L Z              again by reflections
 *     x = P Zᵀ L⁺ Q1ᵀ b
 *
 * If L is so well conditioned that no singular value can be below the cut, L⁺ is its inverse. Otherwise its singular
 * values are computed by one-sided Jacobi rotations (Demmel and Veselić 1992; with de Rijk's pivots, 1989), which
 * converge quickly on such a triangle and find small singular values with small relative errors.
 *
 * Why not LAPACK's dgelsd, which the OpenBLAS that is linked exports: it does not return before it is done (half a
 * second at 512 columns and as many right sides, 3.5 at 1024), and a client that has left must free its worker within a
 * turn. */
#include "core/analysis/analysis.h"
#include "core/kernels/kernels.h"
#include "core/numeric/numeric.h"
#include "core/inside.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Reflections ---- */

/* Householder's QR decomposition in blocks, with and without pivots (Golub and Van Loan, Matrix Computations, 4th
 * edition, sections 5.2 and 5.4).
 *
 * Reflections one by one pass over the matrix for every column. A block of them is one product, Q = I - V·T·Vᵀ with a
 * small triangle T (compact WY; Schreiber and Van Loan 1989, SIAM J. Sci. Stat. Comput. 10), so nearly all work is
 * matrix products. With pivots the next column is the one with the largest remaining norm (Businger and Golub 1965);
 * norms are updated by subtraction, and computed again where that has lost most of their digits (LAPACK Working Note
 * 176).
 *
 * Matrices are stored by columns: row c of an array [n, stride] is column c of the matrix, so a reflection acts on
 * numbers that are together. A reflection is H = I - tau·v·vᵀ with v_j = 1 and zeros before j; the rest of v replaces
 * the numbers of column j that it made zero. Everything asks pe_is_cancelled() and then ends with arbitrary numbers. */

struct columns {
    double *at; /* [n, stride] */
    size_t n, len, stride;
};

enum { REFLECTIONS = 32, REFLECTED = 128 }; /* in one block; columns that one product turns */

/* Numbers of scratch for columns of this length. */
static size_t reflections_room(size_t len) { return REFLECTIONS * (len + 2 * REFLECTIONS + 2 * REFLECTED); }

enum direction { TRANSPOSED, AS_IS };

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
    double *w, *turned; /* [REFLECTED, n] */
};

/* Column j of T: tau_j on the diagonal, and -tau_j·T·(Vᵀ v_j) above. */
static void make_block_triangle(struct block *b, const double *tau)
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
static struct block make_block(const struct columns *a, const double *tau, size_t j0, size_t n, double *scratch)
{
    struct block b = {.n = n, .len = a->len - j0, .v = scratch};
    b.t = b.v + n * b.len;
    b.dots = b.t + n * n;
    b.w = b.dots + n * n;
    b.turned = b.w + REFLECTED * n;
    for (size_t j = 0; j < b.n; j++) {
        double *v = b.v + j * b.len;
        memset(v, 0, j * sizeof *v);
        v[j] = 1;
        memcpy(v + j + 1, a->at + (j0 + j) * a->stride + j0 + j + 1, (b.len - j - 1) * sizeof *v);
    }
    make_block_triangle(&b, tau + j0);
    return b;
}

/* turned = -w·T or -w·Tᵀ. */
static void turn(const struct block *b, enum direction how, size_t rows)
{
    size_t n = b->n;
    for (size_t r = 0; r < rows; r++)
        for (size_t j = 0; j < n; j++) {
            double sum = 0;
            for (size_t k = how == AS_IS ? j : 0; k < (how == AS_IS ? n : j + 1); k++)
                sum += b->w[r * n + k] * (how == AS_IS ? b->t[j * n + k] : b->t[k * n + j]);
            b->turned[r * n + j] = -sum;
        }
}

/* Columns first … of c, from row j0 on: cᵀ += turned·Vᵀ. */
static void apply_block(const struct block *b, enum direction how, const struct columns *c, size_t first, size_t j0)
{
    for (size_t i = first; i < c->n && !pe_is_cancelled(); i += REFLECTED) {
        size_t rows = least(c->n - i, REFLECTED);
        double *at = c->at + i * c->stride + j0;
        pe_gemm_abt_f64(rows, b->n, b->len, 1, at, c->stride, b->v, b->len, 0, b->w, b->n);
        turn(b, how, rows);
        pe_gemm_ab_f64(rows, b->len, b->n, b->turned, b->n, b->v, b->len, 1, at, c->stride);
    }
}

/* ---- Decompositions ---- */

/* Reflections of the columns j0 … end-1, applied to one another. */
static void reflect_panel(const struct columns *a, double *tau, size_t j0, size_t end)
{
    for (size_t j = j0; j < end && !pe_is_cancelled(); j++) {
        double *column = a->at + j * a->stride + j;
        tau[j] = make_reflection(column, a->len - j);
        for (size_t c = j + 1; c < end; c++)
            reflect_one(column + 1, tau[j], a->at + c * a->stride + j, a->len - j);
    }
}

/* a = Q R: R is in and before the diagonal, tau has min(n, len) numbers. b, if not NULL, becomes Qᵀ b. */
static void qr(const struct columns *a, double *tau, const struct columns *b, double *scratch)
{
    size_t rank = least(a->n, a->len);
    for (size_t j0 = 0; j0 < rank && !pe_was_cancelled(); j0 += REFLECTIONS) {
        size_t end = least(j0 + REFLECTIONS, rank);
        reflect_panel(a, tau, j0, end);
        struct block block = make_block(a, tau, j0, end - j0, scratch);
        apply_block(&block, TRANSPOSED, a, end, j0);
        if (b)
            apply_block(&block, TRANSPOSED, b, 0, j0);
    }
}

static void reflect(const struct columns *a, const double *tau, size_t rank, enum direction how,
                    const struct columns *b, double *scratch)
{
    size_t n_blocks = (rank + REFLECTIONS - 1) / REFLECTIONS;
    for (size_t i = 0; i < n_blocks && !pe_was_cancelled(); i++) {
        size_t j0 = (how == AS_IS ? n_blocks - 1 - i : i) * REFLECTIONS;
        struct block block = make_block(a, tau, j0, least(rank - j0, REFLECTIONS), scratch);
        apply_block(&block, how, b, 0, j0);
    }
}

/* ---- Pivots ---- */

/* norms [2, n]: squares of the remaining columns, and these squares when they were last computed from the numbers. */
static void measure(const struct columns *a, size_t c, size_t from, double *norms)
{
    const double *x = a->at + c * a->stride + from;
    norms[c] = norms[a->n + c] = pe_kernels()->dot_f64(x, x, a->len - from);
}

static void exchange_columns(const struct columns *a, size_t i, size_t j, size_t *order, double *norms)
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
static void reflect_rest(const struct columns *a, double tau, size_t j, double *norms)
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

/* The same with a P = Q R: the column with the largest remaining norm comes next, until none is above `negligible`
 * times the first. order[c]: which column of a has come to place c. norms: 2n numbers of scratch. Returns the number of
 * reflections, the numerical rank. */
static size_t qr_pivoted(const struct columns *a, double *tau, size_t *order, double *norms, double negligible)
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
        exchange_columns(a, j, best, order, norms);
        tau[j] = make_reflection(a->at + j * a->stride + j, a->len - j);
        reflect_rest(a, tau[j], j, norms);
    }
    return j;
}

/* ---- Least squares ---- */

#define NEGLIGIBLE 1e-15
#define WELL_CONDITIONED 1e5 /* also: the inverse loses at most so many digits */
enum { SWEEPS_MAX = 40, RIGHT_SIDES = 32 };

struct solver {
    size_t n, rank;
    struct columns a, b, x, rows; /* rows: R by rows, [rank, n], then L in and before its diagonal */
    size_t *order;                /* [n] */
    double *tau, *row_tau;        /* [n] */
    double *norms;                /* [2, n] */
    double *inverse;              /* [rank, rank]: L⁻¹ … */
    double *turned;               /* … or [rank, 2 rank]: columns of L made orthogonal, and the turns that did it */
    double *scratch;
};

/* ---- Down to a triangle ---- */

static void make_small(struct solver *s, size_t m)
{
    if (m <= s->n)
        return;
    qr(&s->a, s->tau, &s->b, s->scratch);
    for (size_t c = 0; c < s->n && !pe_was_cancelled(); c++)
        memset(s->a.at + c * m + c + 1, 0, (s->n - c - 1) * sizeof(double));
    s->a.len = s->b.len = s->n;
}

/* L_ij, j ≤ i. */
static double *row_of(const struct solver *s, size_t i) { return s->rows.at + i * s->n; }

/* ---- A triangle without small singular values ---- */

static double square(double x) { return x * x; }

/* |L|·|L⁻¹| in Frobenius norms is above the ratio of the largest and the smallest singular value. */
static bool invert(const struct solver *s)
{
    double sum = 0, inverse_sum = 0;
    for (size_t i = 0; i < s->rank && !pe_is_cancelled(); i++) {
        /* Row i of the inverse, by the rows before it. */
        double *to = s->inverse + i * s->rank;
        const double *row = row_of(s, i);
        memset(to, 0, s->rank * sizeof *to);
        for (size_t j = 0; j < i; j++)
            pe_kernels()->add_f64(to, s->inverse + j * s->rank, j + 1, -row[j] / row[i]);
        to[i] = 1 / row[i];
        sum += pe_kernels()->dot_f64(row_of(s, i), row_of(s, i), i + 1);
        inverse_sum += pe_kernels()->dot_f64(s->inverse + i * s->rank, s->inverse + i * s->rank, i + 1);
        if (!(sum * inverse_sum < square(WELL_CONDITIONED)))
            return false;
    }
    return true;
}

/* ---- Jacobi ---- */

static double *column_of(const struct solver *s, size_t j) { return s->turned + j * 2 * s->rank; }

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

/* L = U S J: U S in `turned` and J beside it, columns by column. */
static void make_orthogonal(const struct solver *s)
{
    bool goes_on = true;
    memset(s->turned, 0, 2 * s->rank * s->rank * sizeof(double));
    for (size_t j = 0; j < s->rank; j++) {
        for (size_t i = j; i < s->rank; i++)
            column_of(s, j)[i] = row_of(s, i)[j];
        column_of(s, j)[s->rank + j] = 1;
    }
    for (int i = 0; goes_on && i < SWEEPS_MAX && !pe_was_cancelled(); i++)
        goes_on = sweep(s);
}

/* x = Jᵀ S⁻² (U S)ᵀ b. */
static void solve_by_turns(const struct solver *s, double cut)
{
    make_orthogonal(s);
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

/* Numbers of scratch: blocks of reflections, and some right-hand sides. */
static size_t scratch_room(size_t m, size_t n) { return reflections_room(m > n ? m : n) + RIGHT_SIDES * n; }

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
    s->rows = (struct columns){malloc(rank * n * sizeof(double)), 0, n, n};
    s->inverse = malloc(3 * rank * rank * sizeof(double));
    if (!s->order || !s->tau || !s->rows.at || !s->inverse)
        return false;
    s->row_tau = s->tau + n;
    s->norms = s->tau + 2 * n;
    s->scratch = s->tau + 4 * n;
    s->turned = s->inverse + rank * rank;
    return true;
}

static void drop(struct solver *s, size_t m)
{
    size_t rank = least(m, s->n);
    free(s->order);
    free(s->tau);
    free(s->rows.at);
    pe_free_large(s->inverse, 3 * rank * rank * sizeof *s->inverse);
}

/* Down to L, and b to Q1ᵀ b. */
static void make_triangle(struct solver *s, size_t m)
{
    make_small(s, m);
    s->rank = qr_pivoted(&s->a, s->tau, s->order, s->norms, NEGLIGIBLE);
    reflect(&s->a, s->tau, s->rank, TRANSPOSED, &s->b, s->scratch);
    s->rows.n = s->rank;
    for (size_t j = 0; j < s->rank && !pe_is_cancelled(); j++)
        for (size_t c = 0; c < s->n; c++)
            s->rows.at[j * s->n + c] = c < j ? 0 : s->a.at[c * s->a.stride + j];
    qr(&s->rows, s->row_tau, NULL, s->scratch);
}

/* x = P Zᵀ x, of which the first numbers are known, as many as the rank. */
static void turn_back(struct solver *s)
{
    for (size_t i = 0; i < s->x.n; i++)
        memset(s->x.at + i * s->n + s->rank, 0, (s->n - s->rank) * sizeof(double));
    reflect(&s->rows, s->row_tau, s->rank, AS_IS, &s->x, s->scratch);
    for (size_t i = 0; i < s->x.n && !pe_is_cancelled(); i++) {
        memcpy(s->scratch, s->x.at + i * s->n, s->n * sizeof(double));
        for (size_t c = 0; c < s->n; c++)
            s->x.at[i * s->n + s->order[c]] = s->scratch[c];
    }
}

enum pe_status pe_least_squares(size_t m, size_t n, size_t n_rhs, double *a, double *b, double cut, double *x,
                                struct pe_failure *err)
{
    struct solver s = {.n = n, .a = {a, n, m, m}, .b = {b, n_rhs, m, m}, .x = {x, n_rhs, n, n}};
    enum pe_status status = allocate(&s, m) ? PE_OK : pe_no_memory(err);
    if (!status) {
        make_triangle(&s, m);
        bool is_well_conditioned = invert(&s);
        if (s.rank > 0 && is_well_conditioned) {
            /* x = L⁻¹ b, for all right-hand sides. */
            for (size_t i = 0; i < s.b.n && !pe_is_cancelled(); i += RIGHT_SIDES)
                pe_gemm_abt_f64(least(s.b.n - i, RIGHT_SIDES), s.rank, s.rank, 1, s.b.at + i * s.b.stride, s.b.stride,
                                s.inverse, s.rank, 0, s.x.at + i * s.n, s.n);
        } else if (s.rank > 0 && !pe_was_cancelled())
            solve_by_turns(&s, cut);
        turn_back(&s);
    }
    drop(&s, m);
    return !status && pe_was_cancelled() ? pe_cancelled(err) : status;
}

enum pe_status pe_singular_values(size_t m, size_t n, double *a, double *values, double *vectors, size_t *rank,
                                  struct pe_failure *err)
{
    struct solver s = {.n = n, .a = {a, n, m, m}, .b = {a, 0, m, m}, .x = {vectors, 0, n, n}};
    enum pe_status status = allocate(&s, m) ? PE_OK : pe_no_memory(err);
    *rank = 0;
    if (!status) {
        make_triangle(&s, m);
        make_orthogonal(&s);
        *rank = s.x.n = s.rank;
        for (size_t j = 0; j < s.rank && !pe_is_cancelled(); j++) {
            values[j] = sqrt(pe_kernels()->dot_f64(column_of(&s, j), column_of(&s, j), s.rank));
            memcpy(vectors + j * n, column_of(&s, j) + s.rank, s.rank * sizeof *vectors);
        }
        turn_back(&s);
    }
    drop(&s, m);
    return !status && pe_was_cancelled() ? pe_cancelled(err) : status;
}
