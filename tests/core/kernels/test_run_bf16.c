/* The around kernel's check of its own rounding, on every instruction set of this machine: a value is marked doubtful
 * where it must be, and is rounded correctly elsewhere. Columns stand still here (steps of no angle), so that each
 * value is the anchor's; tests/core/waves/test_waves.c checks columns that move. */
#include "tests/support/kernel_sets.h"

#include <math.h>
#include <string.h>

enum { N = 2 * PE_WAVES_LANES, HALF = N / 2 };

/* A value that is never doubtful: a quarter away from any middle. */
static const double calm = 0.7001953125 + 0x1p-11;

/* Arrays in the form that the kernels need: cosines of 1, sines of 0, amplitudes of size, no reach; every column
 * turns. */
struct table {
    double x[N], y[N], bounds[N];
    float ones[HALF], zeros[HALF], sizes[HALF], squares[2][HALF];
    uint16_t rows[PE_RUN_ROWS * N], doubts[N / PE_WAVES_LANES * PE_RUN_HALF];
};

static bool run(struct table *t)
{
    const float *const sizes[2] = {t->sizes, t->sizes}, *const reach[2] = {t->zeros, t->zeros};
    const float *const turns[2] = {t->ones, t->ones};
    pe_kernels()->around_squares(t->x, t->y, t->bounds, sizes, reach, turns, N,
                                 (float *const[]){t->squares[0], t->squares[1]});
    struct pe_anchors at = {t->x, t->y, {t->squares[0], t->squares[1]}, {t->ones, t->ones, t->zeros, t->zeros}, 0};
    return pe_kernels()->around_bf16(&at, N, t->rows, N, t->doubts);
}

static struct table calm_table(float size)
{
    struct table t = {.rows = {0}};
    for (size_t j = 0; j < N; j++)
        t.x[j] = j % 2 ? -calm : calm;
    for (size_t j = 0; j < HALF; j++) {
        t.ones[j] = 1;
        t.sizes[j] = size;
    }
    return t;
}

/* Only the doubts of this place's pair of columns, and in all rows. */
static void check_doubts(const struct table *t, size_t place, bool expected)
{
    for (size_t i = 0; i < sizeof t->doubts / sizeof *t->doubts; i++) {
        bool here = i / PE_RUN_HALF == place / PE_WAVES_LANES;
        assert_int_equal(t->doubts[i], here && expected ? 1U << place % PE_WAVES_LANES / 2 : 0);
    }
}

/* A column that stays at x among columns that are never doubtful, in every place. Returns whether the column was marked
 * doubtful; all others are rounded correctly, and so is this one if it was not marked. */
static bool doubted(double x, double bound)
{
    bool answer = false;
    for (size_t place = 0; place < N; place++) {
        struct table t = calm_table(1);
        t.x[place] = x;
        t.bounds[place] = bound;
        bool any = run(&t);
        assert_true(place == 0 || answer == any);
        answer = any;
        check_doubts(&t, place, any);
        for (size_t i = 0; i < PE_RUN_ROWS * N; i++)
            if (!any || i % N != place)
                assert_int_equal(t.rows[i], pe_bits(PE_BF16, t.x[i % N]));
    }
    return answer;
}

/* Sizes from one half to one have a bound of 2^-22, those from a quarter one of half of it. */
static void check_middles(const struct pe_kernels *unused)
{
    static const double inside[] = {0, 0.5, -0.5, 0.98, -0.98},
                        outside[] = {1.3, -1.3, 30, -30}; /* a float is a quarter of the bound */
    static const double samples[] = {1 - 0x1p-9, -0.5 - 0x1p-9, 0.25 + 0x1p-10, -0x1p-11 - 0x1p-19};
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        double m = samples[i], bound = exp2(ceil(log2(fabs(m)))) * 0x1p-22;
        for (int k = 0; k < 5; k++)
            assert_true(doubted(m + inside[k] * bound, 0));
        for (int k = 0; k < 4; k++)
            assert_false(doubted(m + outside[k] * bound, 0));
    }
    assert_false(doubted(1, 0));
}

TEST(near_middles) { for_all(check_middles); }

/* Below a power of two the middles are twice as dense: a value is doubtful as soon as the next middle below is within
 * the bound, although the one above is twice as far away. Here the other columns' amplitude of 1 makes the bound. */
static void check_powers(const struct pe_kernels *unused)
{
    struct table t = calm_table(1);
    for (size_t j = 0; j < N; j++)
        t.y[j] = 1; /* and x small: with a reach the bound is of size 1, not of x's */
    for (size_t j = 0; j < HALF; j++)
        t.zeros[j] = 1;
    static const double powers[] = {0x1p-12, 0x1p-13, 0x1p-14, 0x1p-15};
    for (int i = 0; i < 4; i++) {
        struct table still = calm_table(1);
        run(&t);
        memcpy(still.squares, t.squares, sizeof t.squares);
        for (size_t j = 0; j < N; j++)
            still.x[j] = powers[i];
        struct pe_anchors at = {still.x,
                                still.y,
                                {still.squares[0], still.squares[1]},
                                {still.ones, still.ones, still.zeros, still.zeros},
                                0};
        assert_true(pe_kernels()->around_bf16(&at, N, still.rows, N, still.doubts) == (powers[i] < 0x1p-13));
    }
}

TEST(near_powers_of_two) { for_all(check_powers); }

/* An anchor that is itself uncertain, or too small for the squares of floats; and zeros, which are exact. */
static void check_small(const struct pe_kernels *unused)
{
    assert_false(doubted(0.3, 0x1p-31));
    assert_true(doubted(0.3, 0x1p-29));
    assert_false(doubted(0x1p-38, 0));
    assert_true(doubted(0x1p-41, 0));
    struct table t = calm_table(1);
    memset(t.x, 0, sizeof t.x);
    memset(t.squares, 0, sizeof t.squares);
    struct pe_anchors at = {t.x, t.y, {t.squares[0], t.squares[1]}, {t.ones, t.ones, t.zeros, t.zeros}, 0};
    assert_false(pe_kernels()->around_bf16(&at, N, t.rows, N, t.doubts));
    for (size_t i = 0; i < PE_RUN_ROWS * N; i++)
        assert_int_equal(t.rows[i], 0);
}

TEST(small_anchors) { for_all(check_small); }
