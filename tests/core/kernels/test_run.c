/* The run kernels' check of their own rounding, on every instruction set of this machine: a column is marked doubtful
 * exactly where it must be, and is rounded correctly elsewhere. Columns stand still here (a step of no angle), so that
 * each value is the anchor's; tests/core/waves/test_waves.c checks columns that move. */
#include "core/numeric/numeric.h"
#include "core/kernels/kernels.h"
#include "tests/support/dtype_words.h"
#include "tests/support/kernel_sets.h"

#include <math.h>

enum { N = 2 * PE_WAVES_LANES };

static const enum pe_dtype dtypes[] = {PE_F32, PE_F16, PE_BF16};

static pe_run_fn *kernel_of(enum pe_dtype dtype)
{
    const struct pe_kernels *k = pe_kernels();
    return dtype == PE_F32 ? k->run_f32 : dtype == PE_F16 ? k->run_f16 : k->run_bf16;
}

static void for_all_dtypes(void (*check)(enum pe_dtype))
{
    for (EACH_KERNEL_SET)
        for (int d = 0; d < 3; d++)
            check(dtypes[d]);
}

static bool is_doubted(const uint32_t *doubts, size_t j)
{
    return doubts[j / PE_WAVES_LANES] >> j % PE_WAVES_LANES & 1;
}

/* A column that stays at x among columns that are never doubtful, in every place. y is the largest value of the other
 * columns of the block. Returns whether the column was marked doubtful; if not, it was rounded correctly, as its
 * neighbours always are. */
static bool doubted(enum pe_dtype dtype, double x, double y)
{
    static uint32_t rows[PE_RUN_ROWS * N];
    const double calm = 0.7001953125 + 0x1p-17; /* a quarter on from any middle */
    bool answer = false;
    for (size_t place = 0; place < N; place++) {
        double xs[N], ys[N], zeros[N] = {0}, ones[N];
        uint32_t doubts[N / PE_WAVES_LANES];
        for (size_t j = 0; j < N; j++) {
            ones[j] = 1;
            xs[j] = j == place ? x : j % 2 ? -calm : calm;
            ys[j] = j == place ? y : 0;
        }
        bool any = kernel_of(dtype)(xs, ys, zeros, ones, zeros, ones, N, rows, N, doubts);
        assert_true(any == is_doubted(doubts, place));
        assert_true(place == 0 || answer == any);
        answer = any;
        for (size_t i = 0; i < PE_RUN_ROWS * N; i++) {
            if (i % N != place)
                assert_false(is_doubted(doubts, i % N));
            if (!is_doubted(doubts, i % N))
                assert_int_equal(word_at(dtype, rows, i), word_of(dtype, xs[i % N]));
        }
    }
    return answer;
}

/* Numbers of f32's range where every dtype is normal. */
static const float samples[] = {1, -0.3f, 0.9999999f, 0x1.8p-7f, -0x1.fffffep-13f, 12345.678f};
enum { N_SAMPLES = sizeof samples / sizeof *samples };

TEST(near_middles_of_floats)
{
    static const double inside[] = {0, 0.5, -0.5, 0.98, -0.98}, outside[] = {1.05, -1.05, 30};
    for (EACH_KERNEL_SET)
        for (int i = 0; i < N_SAMPLES; i++) {
            double next = (double)nextafterf(samples[i], 99999), middle = ((double)samples[i] + next) / 2;
            double bound = 2 * PE_RUN_ERROR * fabs(middle);
            for (int k = 0; k < 5; k++)
                assert_true(doubted(PE_F32, middle + inside[k] * bound, 0));
            for (int k = 0; k < 3; k++)
                assert_false(doubted(PE_F32, middle + outside[k] * bound, 0));
            assert_false(doubted(PE_F32, (double)samples[i], 0));
        }
}

/* Just above a power of two the next middle below is half as far as the one above. */
TEST(above_a_power_of_two)
{
    const double x = 1 + 0x1p-40, far_middle = 0x1p-24, near_middle = 0x1p-25;
    for (EACH_KERNEL_SET) {
        assert_true(doubted(PE_F32, x, 0.9 * far_middle / PE_RUN_ERROR));
        assert_true(doubted(PE_F32, x, 1.1 * near_middle / PE_RUN_ERROR));
        assert_false(doubted(PE_F32, x, 0.9 * near_middle / PE_RUN_ERROR));
    }
}

/* The middle next to a sample, above it in size. */
static float middle_of(enum pe_dtype dtype, float sample)
{
    union {
        float f;
        uint32_t u;
    } v = {.f = sample};
    int dropped = dtype == PE_F16 ? 13 : 16;
    v.u = (v.u >> dropped << dropped) | 1U << (dropped - 1);
    return v.f;
}

static void check_narrow(enum pe_dtype dtype)
{
    if (dtype == PE_F32)
        return;
    for (int i = 0; i < N_SAMPLES; i++) {
        float middle = middle_of(dtype, samples[i]), above = nextafterf(middle, 99999);
        double m = (double)middle, step = (double)above - m;
        assert_true(doubted(dtype, m, 0));
        assert_true(doubted(dtype, m + 0.49 * step, 0)); /* its float is the middle */
        assert_true(doubted(dtype, m - 0.24 * step, 0));
        assert_false(doubted(dtype, m + 0.51 * step, 0));
        assert_false(doubted(dtype, m - 0.51 * step, 0));
    }
}

TEST(middles_of_halves) { for_all_dtypes(check_narrow); }

/* A value much smaller than its block's largest is known to fewer bits than its float has. */
static void check_small(enum pe_dtype dtype)
{
    const double calm = 0x1.664p-6;
    if (dtype == PE_F32)
        return;
    assert_true(doubted(dtype, calm, 1.01 * calm / (PE_RUN_CLEAR * PE_RUN_ERROR)));
    assert_false(doubted(dtype, calm, 0.98 * calm / (PE_RUN_CLEAR * PE_RUN_ERROR)));
}

TEST(small_beside_large) { for_all_dtypes(check_small); }

/* Columns of zeros, whose sign the recurrence could keep or change. */
static bool zeros_are_doubted(enum pe_dtype dtype, double x, double cosine)
{
    double xs[PE_WAVES_LANES], ys[PE_WAVES_LANES], zeros[PE_WAVES_LANES] = {0}, cosines[PE_WAVES_LANES];
    static uint32_t rows[PE_RUN_ROWS * PE_WAVES_LANES];
    uint32_t doubts;
    for (size_t j = 0; j < PE_WAVES_LANES; j++) {
        xs[j] = x;
        ys[j] = 1;
        cosines[j] = cosine;
    }
    kernel_of(dtype)(xs, ys, zeros, cosines, zeros, zeros, PE_WAVES_LANES, rows, PE_WAVES_LANES, &doubts);
    for (size_t i = 0; doubts == 0 && i < PE_RUN_ROWS * PE_WAVES_LANES; i++)
        assert_int_equal(word_at(dtype, rows, i), 0);
    assert_true(doubts == 0 || doubts == UINT32_MAX);
    return doubts;
}

static void check_zeros(enum pe_dtype dtype)
{
    assert_false(zeros_are_doubted(dtype, 0.0, 1));
    assert_true(zeros_are_doubted(dtype, 0.0, -1));
    assert_true(zeros_are_doubted(dtype, -0.0, 1));
}

TEST(zeros_have_no_sign) { for_all_dtypes(check_zeros); }

static void check_ends(enum pe_dtype dtype)
{
    assert_false(doubted(dtype, 0, 0)); /* a column of zeros */
    assert_true(doubted(dtype, 0, 1));
    assert_true(doubted(dtype, (double)NAN, 0));
    assert_true(doubted(dtype, 0x1.664p-130, 0));
    assert_true(doubted(dtype, 0x1.664p-15, 0) == (dtype == PE_F16));
    assert_false(doubted(dtype, 0x1.664p-14, 0));
    assert_false(doubted(dtype, -0x1.664p14, 0));
}

TEST(ends_of_the_range) { for_all_dtypes(check_ends); }
