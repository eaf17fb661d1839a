/* Interpolation of one axis: laws, and a plain formulation over every row for random sizes. Numbers of other libraries:
 * tests/cases/schemes_by_hand.jsonl. */
#include "core/numeric/numeric.h"
#include "tests/support/alloc.h"
#include "tests/support/cmocka.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE_MAX = 64, N_KINDS = 5 };

static const char *const kinds[N_KINDS] = {"bicubic", "bicubic_antialias", "bilinear", "bilinear_aligned",
                                           "bilinear_antialias"};

static struct pe_resample usual(enum pe_resample_kind kind, double offset)
{
    return (struct pe_resample){kind, offset, pe_resample_cubic_a(kind)};
}

/* out = matrix · in, taps added up where they name the same row. */
struct matrix {
    double at[SIDE_MAX][SIDE_MAX];
};

static void set_matrix(struct matrix *m, enum pe_resample_kind kind, uint64_t n_in, uint64_t n_out, double offset)
{
    struct pe_resample_taps taps;
    const struct pe_resample how = usual(kind, offset);
    memset(m, 0, sizeof *m);
    assert_int_equal(pe_resample_init(&taps, &how, n_in, n_out), PE_OK);
    assert_int_equal(taps.n_out, n_out);
    for (uint64_t i = 0; i < n_out * taps.n_taps; i++) {
        assert_in_range(taps.index[i], 0, n_in - 1);
        m->at[i / taps.n_taps][taps.index[i]] += taps.weight[i];
    }
    pe_resample_drop(&taps);
}

static void assert_near(double found, double expected, double tolerance, const char *what, uint64_t o, uint64_t i)
{
    if (!(fabs(found - expected) <= tolerance))
        fail_msg("%s: output %llu, input %llu: %.17g, expected %.17g", what, (unsigned long long)o,
                 (unsigned long long)i, found, expected);
}

/* Before the first row's middle x is 0, not negative: one row is read and its value is met exactly, where two weights
 * of the same row might round. */
TEST(bilinear_does_not_reach_before_the_first_row)
{
    struct pe_resample_taps taps;
    assert_int_equal(pe_resample_init(&taps, &(struct pe_resample){PE_BILINEAR, 0, -0.5}, 3, 10), PE_OK);
    for (unsigned o = 0; o < 2; o++) /* x = -0.35, -0.05 */
        assert_true(taps.index[2 * o] == 0 && taps.weight[2 * o] == 1 && taps.weight[2 * o + 1] == 0);
    assert_true(fabs(taps.weight[5] - 0.25) < 1e-16); /* x = 0.25 */
    pe_resample_drop(&taps);
}

TEST(same_size_changes_nothing)
{
    struct matrix m;
    for (unsigned kind = 0; kind < N_KINDS; kind++)
        for (uint64_t n = 1; n <= 20; n++) {
            set_matrix(&m, (enum pe_resample_kind)kind, n, n, 0);
            for (uint64_t o = 0; o < n; o++)
                for (uint64_t i = 0; i < n; i++)
                    assert_near(m.at[o][i], i == o, 0, kinds[kind], o, i);
        }
}

/* ---- Any size ---- */

static long double keys(long double x, long double a)
{
    x = fabsl(x);
    return x >= 2   ? 0
           : x >= 1 ? a * x * x * x - 5 * a * x * x + 8 * a * x - 4 * a
                    : (a + 2) * x * x * x - (a + 3) * x * x + 1;
}

static long double triangle(long double x) { return fmaxl(0, 1 - fabsl(x)); }

/* Every row there is, and three beyond each border that repeat it; the antialiased kernel sees only those there are. */
static void set_plainly(struct matrix *m, unsigned kind, int n_in, int n_out, double offset)
{
    memset(m, 0, sizeof *m);
    for (int o = 0; o < n_out; o++) {
        long double step = n_in / (n_out + (long double)offset), x = (o + 0.5L) * step - 0.5L, sum = 0;
        long double stretch = fmaxl(1, step);
        if (kind == PE_BILINEAR_ALIGNED)
            x = n_out > 1 ? (long double)o * (n_in - 1) / (n_out - 1) : 0;
        if (kind == PE_BILINEAR)
            x = fmaxl(x, 0);
        for (int i = 0; i < n_in; i++)
            sum += kind == PE_BILINEAR_ANTIALIAS ? triangle((i - x) / stretch) : keys((i - x) / stretch, -0.5L);
        for (int i = -3; i < n_in + 3; i++) {
            int row = i < 0 ? 0 : i >= n_in ? n_in - 1 : i;
            if (kind == PE_BICUBIC)
                m->at[o][row] += (double)keys(i - x, -0.75L);
            else if (kind == PE_BICUBIC_ANTIALIAS && row == i)
                m->at[o][i] = (double)(keys((i - x) / stretch, -0.5L) / sum);
            else if (kind == PE_BILINEAR_ANTIALIAS && row == i)
                m->at[o][i] = (double)(triangle((i - x) / stretch) / sum);
            else if (kind == PE_BILINEAR || kind == PE_BILINEAR_ALIGNED)
                m->at[o][row] += (double)triangle(i - x);
        }
    }
}

TEST(any_size_matches_the_plain_form)
{
    struct matrix fast, plain;
    srand(7);
    for (int round = 0; round < 400; round++) {
        unsigned kind = (unsigned)round % N_KINDS;
        int n_in = 1 + rand() % SIDE_MAX, n_out = 1 + rand() % SIDE_MAX;
        double offset = round % 3 == 2 ? 0.1 : 0; /* DINO's */
        set_matrix(&fast, (enum pe_resample_kind)kind, (uint64_t)n_in, (uint64_t)n_out, offset);
        set_plainly(&plain, kind, n_in, n_out, offset);
        for (int o = 0; o < n_out; o++)
            for (int i = 0; i < n_in; i++)
                assert_near(fast.at[o][i], plain.at[o][i], 1e-15, kinds[kind], (uint64_t)o, (uint64_t)i);
    }
}

/* A table of equal rows stays what it is; turning the axis around changes nothing. */
TEST(weights_sum_to_one_and_mirror)
{
    struct matrix m;
    for (unsigned kind = 0; kind < N_KINDS; kind++)
        for (uint64_t n_in = 1; n_in <= 33; n_in += 4)
            for (uint64_t n_out = 1; n_out <= 40; n_out += 3) {
                bool is_one_sided = kind == PE_BILINEAR_ALIGNED && n_out == 1; /* linspace of one begins at row 0 */
                set_matrix(&m, (enum pe_resample_kind)kind, n_in, n_out, 0);
                for (uint64_t o = 0; o < n_out; o++) {
                    double sum = 0;
                    for (uint64_t i = 0; i < n_in; i++) {
                        sum += m.at[o][i];
                        if (!is_one_sided)
                            assert_near(m.at[o][i], m.at[n_out - 1 - o][n_in - 1 - i], 1e-15, kinds[kind], o, i);
                    }
                    assert_near(sum, 1, 1e-15, kinds[kind], o, 0);
                }
            }
}

/* Long axes keep their accuracy: x is taken from integers, so the coordinate of the last output has no error to
 * speak of. n_in = 2^40, n_out = 3: x of the middle output is (2^40 - 1)/2 exactly. */
TEST(long_axes_stay_exact)
{
    struct pe_resample_taps taps;
    uint64_t n = 1ULL << 40;
    assert_int_equal(pe_resample_init(&taps, &(struct pe_resample){PE_BILINEAR, 0, -0.5}, n, 3), PE_OK);
    assert_true(taps.index[2] == (int64_t)(n / 2 - 1) && taps.index[3] == (int64_t)(n / 2));
    assert_true(taps.weight[2] == 0.5 && taps.weight[3] == 0.5);
    pe_resample_drop(&taps);
    assert_int_equal(pe_resample_init(&taps, &(struct pe_resample){PE_BILINEAR_ALIGNED, 0, -0.5}, n, 4), PE_OK);
    assert_true(taps.index[7] == (int64_t)n - 1 && taps.index[6] == (int64_t)n - 1);
    assert_true(taps.index[2] == (int64_t)((n - 1) / 3) && taps.weight[2] == 1); /* 3 divides 2^40 - 1 */
    pe_resample_drop(&taps);
}

TEST(no_memory_is_said)
{
    struct pe_resample_taps taps = {0};
    alloc_fail_at(0);
    assert_int_equal(pe_resample_init(&taps, &(struct pe_resample){PE_BICUBIC, 0, -0.5}, 4, 7), PE_NO_MEMORY);
    alloc_fail_at(-1);
    assert_int_equal(pe_resample_init(&taps, &(struct pe_resample){PE_BICUBIC, 0, -0.5}, 4, UINT64_MAX), PE_NO_MEMORY);
    assert_int_equal(pe_resample_init(&taps, &(struct pe_resample){PE_BICUBIC_ANTIALIAS, 0, -0.5}, 1ULL << 40, 1),
                     PE_NO_MEMORY);
    assert_null(taps.index);
    pe_resample_drop(&taps);
    long before = alloc_count();
    assert_int_equal(pe_resample_init(&taps, &(struct pe_resample){PE_BICUBIC_ANTIALIAS, 0, -0.5}, 16, 24), PE_OK);
    assert_int_equal(alloc_count() - before, 1);
    pe_resample_drop(&taps);
}
