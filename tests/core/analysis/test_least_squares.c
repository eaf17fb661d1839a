/* Least squares with the smallest norm: matrices U S Vᵀ with known singular values, of any shape and rank, against
 * V S⁺ Uᵀ b in plain loops; small cases by hand; failures. */
#include "core/analysis/analysis.h"
#include "tests/support/cmocka.h"
#include "tests/support/plans.h"

#include <math.h>
#include <stdlib.h>

#define CUT 1e-12

static uint64_t state = 1;

static double number(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(state >> 11) / 0x1p52 - 1;
}

/* The first k columns of a random orthogonal matrix [n, n]: q[c] is column c; by Gram-Schmidt, twice. */
static double *orthogonal(size_t n, size_t k)
{
    double *q = malloc(k * n * sizeof *q);
    assert_non_null(q);
    for (size_t c = 0; c < k; c++) {
        for (size_t i = 0; i < n; i++)
            q[c * n + i] = number();
        for (size_t again = 0; again < 2; again++)
            for (size_t d = 0; d <= c; d++) {
                double dot = 0;
                for (size_t i = 0; i < n; i++)
                    dot += q[c * n + i] * q[d * n + i];
                for (size_t i = 0; i < n; i++)
                    q[c * n + i] = d < c ? q[c * n + i] - dot * q[d * n + i] : q[c * n + i] / sqrt(dot);
            }
    }
    return q;
}

struct problem {
    size_t m, n, k, n_rhs; /* k = min(m, n) */
    double *u, *v, *s, *a, *b, *x, *expected;
};

static void expect(struct problem *p)
{
    double largest = 0;
    for (size_t k = 0; k < p->k; k++)
        largest = fmax(largest, p->s[k]);
    for (size_t r = 0; r < p->n_rhs; r++)
        for (size_t k = 0; k < p->k; k++) {
            double dot = 0;
            for (size_t i = 0; i < p->m; i++)
                dot += p->u[k * p->m + i] * p->b[r * p->m + i];
            for (size_t c = 0; c < p->n && p->s[k] >= CUT * largest && p->s[k] > 0; c++)
                p->expected[r * p->n + c] += p->v[k * p->n + c] * dot / p->s[k];
        }
}

static struct problem make(size_t m, size_t n, size_t n_rhs, double (*singular)(size_t k))
{
    struct problem p = {m, n, m < n ? m : n, n_rhs, NULL, NULL, NULL, NULL, NULL, NULL, NULL};
    p.u = orthogonal(m, p.k);
    p.v = orthogonal(n, p.k);
    p.s = calloc(p.k, sizeof *p.s);
    p.a = calloc(n * m, sizeof *p.a);
    p.b = calloc(n_rhs * m, sizeof *p.b);
    p.x = calloc(n_rhs * n, sizeof *p.x);
    p.expected = calloc(n_rhs * n, sizeof *p.expected);
    for (size_t k = 0; k < p.k; k++) {
        p.s[k] = singular(k);
        for (size_t c = 0; c < n; c++)
            for (size_t i = 0; i < m; i++)
                p.a[c * m + i] += p.u[k * m + i] * p.s[k] * p.v[k * n + c];
    }
    for (size_t i = 0; i < n_rhs * m; i++)
        p.b[i] = number();
    expect(&p);
    return p;
}

static void drop(struct problem *p)
{
    double *all[] = {p->u, p->v, p->s, p->a, p->b, p->x, p->expected};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
}

static double flat(size_t k) { return 3 + (double)(k % 7); }
static double deficient(size_t k) { return k % 3 ? 0 : 100 + (double)k; }
static double moderate(size_t k) { return pow(10, -(double)(k % 8)); }
static double steep(size_t k)
{
    return k < 18 ? pow(10, -(double)k / 2) : 1e-14;
} /* down to 3e-9, then below the cut */

/* Least kept singular value 3e-9: its part of x is right to about 1e-16/3e-9 of it. */
static void check(size_t m, size_t n, double (*singular)(size_t k), double tolerance)
{
    struct pe_failure err;
    struct problem p = make(m, n, 3, singular);
    assert_int_equal(pe_least_squares(m, n, 3, p.a, p.b, CUT, p.x, &err), PE_OK);
    for (size_t r = 0; r < 3; r++) {
        double error = 0, size = 0;
        for (size_t c = 0; c < n; c++) {
            error = fmax(error, fabs(p.x[r * n + c] - p.expected[r * n + c]));
            size = fmax(size, fabs(p.expected[r * n + c]));
        }
        if (!(error <= tolerance * size))
            fail_msg("[%zu, %zu]: error %g of %g", m, n, error, size);
    }
    drop(&p);
}

TEST(all_shapes)
{
    static const size_t shapes[][2] = {{1, 1},   {5, 1},   {1, 5},   {7, 7},    {40, 13},
                                       {13, 40}, {90, 70}, {70, 90}, {300, 80}, {64, 64}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        check(shapes[i][0], shapes[i][1], flat, 1e-13);
        check(shapes[i][0], shapes[i][1], deficient, 1e-12);
        check(shapes[i][0], shapes[i][1], moderate, 1e-8);
        check(shapes[i][0], shapes[i][1], steep, 1e-5);
    }
}

/* [1 2; 2 4] has the singular value 5 with u = v = (1, 2)/sqrt(5): x = v (uᵀ b)/5. A matrix of zeros gives zeros. */
TEST(by_hand)
{
    struct pe_failure err;
    double a[] = {1, 2, 2, 4}, b[] = {3, 1}, x[2];
    assert_int_equal(pe_least_squares(2, 2, 1, a, b, CUT, x, &err), PE_OK);
    assert_true(fabs(x[0] - 0.2) < 1e-15 && fabs(x[1] - 0.4) < 1e-15);
    double zeros[6] = {0}, right[] = {1, 2, 3}, none[2] = {7, 7};
    assert_int_equal(pe_least_squares(3, 2, 1, zeros, right, CUT, none, &err), PE_OK);
    assert_true(none[0] == 0 && none[1] == 0);
}

/* Each side of the cut, by a hair: diag(1, s) x = (1, 1). */
TEST(the_cut)
{
    for (int kept = 0; kept < 2; kept++) {
        struct pe_failure err;
        double small = kept ? 1.01e-12 : 0.99e-12, a[] = {1, 0, 0, small}, b[] = {1, 1}, x[2];
        assert_int_equal(pe_least_squares(2, 2, 1, a, b, CUT, x, &err), PE_OK);
        assert_true(fabs(x[0] - 1) < 1e-15);
        assert_true(kept ? fabs(x[1] * small - 1) < 1e-12 : x[1] == 0);
    }
}

/* ---- Failures ---- */

static enum pe_status solve(void *problem)
{
    struct pe_failure err;
    struct problem *p = problem;
    return pe_least_squares(p->m, p->n, p->n_rhs, p->a, p->b, CUT, p->x, &err);
}

static bool left(void *count) { return ++*(int *)count > 3; }

TEST(failures)
{
    int count = 0;
    struct problem p = make(40, 30, 2, steep);
    test_each_allocation_fails(solve, &p);
    pe_watch(left, &count);
    assert_int_equal(solve(&p), PE_CANCELLED);
    pe_watch(NULL, NULL);
    drop(&p);
}
