/* Tables of waves: correctly rounded in every narrow dtype, within an ulp in f64, the same by every kernel, split and
 * kind of position. */
#include "core/waves/waves.h"
#include "tests/support/dtype_words.h"
#include "tests/support/kernel_sets.h"
#include "tests/support/wave_truth.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS = 150, COLS_MAX = 256, TALL = 600 };

static const double starts[] = {0, -75, 999999, 16777000, 2147482000.0, 1099511627776.0 - ROWS, -1099511627776.0};
enum { N_STARTS = sizeof starts / sizeof *starts };

static struct pe_waves *waves_of(const struct wave_table *table)
{
    struct pe_wave columns[COLS_MAX];
    struct pe_waves *waves = NULL;
    wave_columns(table, columns);
    assert_int_equal(pe_waves_new_for(columns, 2 * table->n, PE_BF16, UINT64_MAX, &waves), PE_OK);
    return waves;
}

/* Calls check for every table, start and instruction set of this machine. */
static void for_all_tables(void (*check)(const struct wave_table *, const struct pe_waves *,
                                         const struct pe_positions *))
{
    for (EACH_KERNEL_SET)
        for (size_t t = 0; t < N_WAVE_TABLES; t++) {
            struct pe_waves *waves = waves_of(&wave_tables[t]);
            for (size_t s = 0; s < N_STARTS; s++) {
                struct pe_positions positions = {.n = ROWS, .start = starts[s]};
                check(&wave_tables[t], waves, &positions);
            }
            pe_waves_free(waves);
        }
}

static void check_narrow(const struct wave_table *table, const struct pe_waves *waves,
                         const struct pe_positions *positions)
{
    static float f32[ROWS * COLS_MAX];
    static uint16_t f16[ROWS * COLS_MAX], bf16[ROWS * COLS_MAX];
    static uint8_t e4m3[ROWS * COLS_MAX], e5m2[ROWS * COLS_MAX];
    size_t n = 2 * table->n;
    pe_waves_fill(waves, PE_F32, positions, 0, ROWS, 0, n, f32, n);
    pe_waves_fill(waves, PE_F16, positions, 0, ROWS, 0, n, f16, n);
    pe_waves_fill(waves, PE_BF16, positions, 0, ROWS, 0, n, bf16, n);
    pe_waves_fill(waves, PE_F8_E4M3, positions, 0, ROWS, 0, n, e4m3, n);
    pe_waves_fill(waves, PE_F8_E5M2, positions, 0, ROWS, 0, n, e5m2, n);
    for (size_t i = 0; i < ROWS; i++)
        for (size_t j = 0; j < n; j++) {
            double odd;
            int64_t p = (int64_t)pe_position_at(positions, i);
            if (!wave_judge(wave_truth(table->turns[j % table->n], p, j >= table->n), &odd))
                continue;
            assert_true(f32[i * n + j] == (float)odd);
            assert_int_equal(f16[i * n + j], pe_bits(PE_F16, odd));
            assert_int_equal(bf16[i * n + j], pe_bits(PE_BF16, odd));
            assert_int_equal(e4m3[i * n + j], pe_bits(PE_F8_E4M3, odd));
            assert_int_equal(e5m2[i * n + j], pe_bits(PE_F8_E5M2, odd));
        }
}

TEST(narrow_values_are_correctly_rounded)
{
    for_all_tables(check_narrow);
    assert_int_equal(pe_undecided_count(), 0);
}

static void check_double(const struct wave_table *table, const struct pe_waves *waves,
                         const struct pe_positions *positions)
{
    static double f64[ROWS * COLS_MAX];
    size_t n = 2 * table->n;
    pe_waves_fill(waves, PE_F64, positions, 0, ROWS, 0, n, f64, n);
    for (size_t i = 0; i < ROWS; i++)
        for (size_t j = 0; j < n; j++) {
            int64_t p = (int64_t)pe_position_at(positions, i);
            long double truth = wave_truth(table->turns[j % table->n], p, j >= table->n);
            double size = fabs((double)truth), ulp = nextafter(size, 2) - size;
            double error = (double)fabsl((long double)f64[i * n + j] - truth);
            assert_true(error <= (llabs(p) <= 1 << 24 ? ulp : fmax(ulp, 1e-16)));
        }
}

TEST(doubles_are_within_an_ulp) { for_all_tables(check_double); }

static const enum pe_dtype dtypes[] = {PE_F32, PE_F64, PE_F16, PE_BF16, PE_F8_E4M3, PE_F8_E5M2};
enum { N_DTYPES = sizeof dtypes / sizeof *dtypes };

/* Any rectangle, and the same positions as a list, are the same bytes as the whole run; nothing else is written. */
TEST(parts_and_lists_are_the_whole)
{
    static _Alignas(64) char whole[ROWS * COLS_MAX * 8], part[ROWS * COLS_MAX * 8 + 64];
    double list[ROWS];
    unsigned seed = 1;
    for (size_t t = 0; t < N_WAVE_TABLES; t++)
        for (int d = 0; d < N_DTYPES; d++) {
            struct pe_waves *waves = waves_of(&wave_tables[t]);
            struct pe_positions run = {.n = ROWS, .start = starts[t] + 13}, listed = {.n = ROWS, .list = list};
            size_t n = 2 * wave_tables[t].n, size = pe_dtype_size(dtypes[d]);
            for (size_t i = 0; i < ROWS; i++)
                list[i] = pe_position_at(&run, i);
            pe_waves_fill(waves, dtypes[d], &run, 0, ROWS, 0, n, whole, n);
            for (int round = 0; round < 40; round++) {
                seed = seed * 1664525 + 1013904223;
                size_t row0 = seed / 7 % ROWS, col0 = seed / 1103 % n, rows = 1 + seed / 65537 % (ROWS - row0);
                size_t cols = 1 + seed / 389 % (n - col0), stride = cols + 3;
                memset(part, 0x5a, sizeof part);
                pe_waves_fill(waves, dtypes[d], round % 2 ? &run : &listed, row0, rows, col0, cols, part, stride);
                for (size_t i = 0; i < rows; i++) {
                    assert_memory_equal(part + i * stride * size, whole + ((row0 + i) * n + col0) * size, cols * size);
                    for (size_t k = cols * size; k < stride * size && i + 1 < rows; k++)
                        assert_int_equal(part[i * stride * size + k], 0x5a);
                }
            }
            pe_waves_free(waves);
        }
}

/* Fractional positions, amplitudes, signs, constants: against the value in double-double, which its own tests and the
 * exact runs above hold. */
TEST(odd_columns)
{
    struct pe_wave columns[40];
    struct pe_dd w[10];
    const double list[] = {0.5, -0.25, 1e-3, 123456.789, 0,     1099511627775.75, 3, 4, 5, 6, 7, 8, 9,
                           10,  11,    12,   13,         -1e-30};
    enum { N = sizeof list / sizeof *list };
    pe_ladder(10000, 10, 10, w);
    for (int j = 0; j < 40; j++) {
        struct pe_dd f = pe_quarter_turns(w[j / 4]);
        columns[j] =
            (struct pe_wave){f.hi, f.lo, j % 3 ? 1 : 1.3465735902799727, j % 3 ? 0 : 0x1.8p-55, j % 4, 0, NULL};
    }
    columns[8].fh = columns[8].fl = 0;
    columns[9].fh = columns[9].fl = 0;
    columns[10].fh = columns[10].fl = 0;
    columns[12].fh = -columns[12].fh;
    columns[12].fl = -columns[12].fl;
    columns[17].fh = 1e-42; /* f32 is subnormal here */
    columns[17].fl = 0;
    columns[17].quarter = 0;
    struct pe_waves *waves = NULL;
    assert_int_equal(pe_waves_new_for(columns, 40, PE_BF16, UINT64_MAX, &waves), PE_OK);
    struct pe_positions positions[] = {{.n = N, .list = list}, {.n = 40, .start = -20}, {.n = 40, .start = 0.1}};
    for (int k = 0; k < 3; k++) {
        float f32[40 * 40];
        uint16_t f16[40 * 40], bf16[40 * 40];
        pe_waves_fill(waves, PE_F32, &positions[k], 0, (size_t)positions[k].n, 0, 40, f32, 40);
        pe_waves_fill(waves, PE_F16, &positions[k], 0, (size_t)positions[k].n, 0, 40, f16, 40);
        pe_waves_fill(waves, PE_BF16, &positions[k], 0, (size_t)positions[k].n, 0, 40, bf16, 40);
        for (size_t i = 0; i < positions[k].n; i++)
            for (size_t j = 0; j < 40; j++) {
                double p = pe_position_at(&positions[k], i), phase;
                double odd = dd_round_odd(pe_wave_value(&columns[j], p, &phase));
                if (f32[i * 40 + j] != (float)odd || f16[i * 40 + j] != pe_bits(PE_F16, odd) ||
                    bf16[i * 40 + j] != pe_bits(PE_BF16, odd))
                    fail_msg("column %zu at %.17g: %a, %#x and %#x, not %a", j, p, (double)f32[i * 40 + j],
                             f16[i * 40 + j], bf16[i * 40 + j], odd);
                if (p == 0 || columns[j].fh == 0)
                    assert_true(columns[j].quarter % 2 || !signbit(f32[i * 40 + j])); /* a sine of nothing is +0 */
            }
    }
    pe_waves_free(waves);
}

static const enum pe_dtype narrow[] = {PE_F32, PE_F16, PE_BF16, PE_F8_E4M3, PE_F8_E5M2};
enum { N_NARROW = sizeof narrow / sizeof *narrow, N_FEW = 8 };

/* Every value as double-double decides it: once, because it takes longer than all kernels together. */
static double truths[N_NARROW][TALL * N_FEW];

static void decide(const struct pe_wave *columns, size_t n, const struct pe_positions *positions)
{
    for (size_t d = 0; d < N_NARROW; d++)
        for (size_t i = 0; i < (size_t)positions->n * n; i++)
            truths[d][i] = pe_wave_decide(&columns[i % n], narrow[d], pe_position_at(positions, i / n));
}

/* Every bit, signs of zeros as well. */
static void check_against_values(const struct pe_waves *waves, const struct pe_wave *columns, size_t n,
                                 const struct pe_positions *positions)
{
    static float values[TALL * N_FEW];
    size_t n_rows = (size_t)positions->n;
    for (size_t d = 0; d < N_NARROW; d++) {
        pe_waves_fill(waves, narrow[d], positions, 0, n_rows, 0, n, values, n);
        for (size_t i = 0; i < n_rows * n; i++)
            if (word_at(narrow[d], values, i) != word_of(narrow[d], truths[d][i]))
                fail_msg("%s, amplitude %a, frequency %a at %.17g: %#x, not %a", pe_dtype_name(narrow[d]),
                         columns[i % n].ah, columns[i % n].fh, pe_position_at(positions, i / n),
                         word_at(narrow[d], values, i), truths[d][i]);
    }
}

/* Runs short and tall, and the same positions as a list, on every instruction set. */
static void check_everywhere(const struct pe_wave *columns, size_t n, double start)
{
    struct pe_waves *waves = NULL;
    double list[TALL];
    for (int i = 0; i < TALL; i++)
        list[i] = start + i;
    struct pe_positions run = {.n = TALL, .start = start}, listed = {.n = TALL, .list = list};
    decide(columns, n, &run);
    for (int is_tall = 0; is_tall < 2; is_tall++) {
        assert_int_equal(pe_waves_new_for(columns, n, PE_BF16, is_tall ? UINT64_MAX : 100, &waves), PE_OK);
        for (EACH_KERNEL_SET)
            for (int k = 0; k < 2; k++)
                check_against_values(waves, columns, n, k ? &listed : &run);
        pe_waves_free(waves);
    }
}

/* Whole numbers of quarter turns a step, where the signs of zeros are all that could differ; and columns of nothing. */
TEST(zeros_have_no_sign)
{
    for (int f = -6; f <= 6; f++) {
        struct pe_wave columns[N_FEW];
        for (int j = 0; j < N_FEW; j++)
            columns[j] = (struct pe_wave){.fh = f, .ah = j < 4 ? 1 : j < 6 ? 0 : -1.5, .quarter = j % 4};
        check_everywhere(columns, N_FEW, 1);
        check_everywhere(columns, N_FEW, -1 - TALL);
    }
}

/* Amplitudes slightly beside the middle between two numbers, in columns so slow that they stay there: only the side
 * decides the rounding, and some are nearer to the middle than the doubles of a run can resolve. */
TEST(beside_middles)
{
    static const double middles[] = {1 + 0x1p-24, 0.75 + 0x1p-25, 1 + 0x1p-11,   0.6875 + 0x1p-12, 1 + 0x1p-8,
                                     0x1.55p-5,   1 + 0x1p-4,     0.75 + 0x1p-5, 1 + 0x1p-3,       0x1.8p-10};
    for (size_t m = 0; m < sizeof middles / sizeof *middles; m++)
        for (int e = 30; e < 60; e += 2) {
            struct pe_wave columns[N_FEW];
            for (int j = 0; j < N_FEW; j++)
                columns[j] = (struct pe_wave){.fh = ldexp(1, -20 - 4 * (j / 2)),
                                              .ah = middles[m] * (1 + (j % 2 ? -1 : 1) * ldexp(1.1, -e)),
                                              .quarter = 1};
            check_everywhere(columns, N_FEW, 1);
        }
}

/* From below every dtype's smallest number to beyond f16's largest, slow columns and fast ones. */
TEST(amplitudes_of_every_size)
{
    static const int exponents[] = {-150, -127, -112, -100, -99, -25, -15, -14, -13, 0, 8, 14, 15, 16, 40, 51, 120};
    struct pe_dd w[N_FEW / 2];
    pe_ladder(10000, N_FEW / 2, N_FEW / 2, w);
    for (size_t e = 0; e < sizeof exponents / sizeof *exponents; e++) {
        struct pe_wave columns[N_FEW];
        for (int j = 0; j < N_FEW; j++) {
            struct pe_dd f = pe_quarter_turns(w[j / 2]);
            columns[j] = (struct pe_wave){
                .fh = f.hi, .fl = f.lo, .ah = ldexp(1.3465735902799727, exponents[e]), .quarter = j % 2};
        }
        check_everywhere(columns, N_FEW, 1);
        check_everywhere(columns, N_FEW, 1e9);
    }
}

/* The largest error of a block's upper half from this anchor, of what the bound allows. */
static double block_error(const uint64_t *turns, int64_t p, double x, double y, double c, double s)
{
    double most = fabs(x) + fabs(y) * fmin(1, PE_RUN_HALF * fabs(s)), before = x * c - y * s, now = x, worst = 0;
    for (int n = 0; n < PE_RUN_HALF; n++) {
        worst = fmax(worst, fabs((double)((long double)now - wave_truth(turns, p + n, 0))) / (PE_RUN_ERROR * most));
        double next = 2 * c * now - before;
        before = now;
        now = next;
    }
    return worst;
}

/* The bound that runs are tested against holds for the recurrence itself, in plain C, with room to spare; and it is not
 * so wide that every value fails the test. */
TEST(run_bound_holds)
{
    double worst = 0;
    for (size_t t = 0; t < N_WAVE_TABLES; t++)
        for (size_t i = 0; i < wave_tables[t].n; i++)
            for (int64_t p = 100; p < 3000000; p = p * 3 + 7) {
                const uint64_t *turns = wave_tables[t].turns[i];
                double x = (double)wave_truth(turns, p, 0), y = (double)wave_truth(turns, p, 1);
                double c = (double)wave_truth(turns, 1, 1), s = (double)wave_truth(turns, 1, 0);
                double far_c = (double)wave_truth(turns, PE_RUN_ROWS, 1),
                       far_s = (double)wave_truth(turns, PE_RUN_ROWS, 0);
                for (int turn = 0; turn <= PE_RUN_TURNS; turn++) {
                    worst = fmax(worst, block_error(turns, p + turn * PE_RUN_ROWS, x, y, c, s));
                    double before = x;
                    x = before * far_c + y * far_s;
                    y = y * far_c - before * far_s;
                }
            }
    assert_true(worst < 0.7);
    assert_true(worst > 0.01);
}

TEST(sincos_of_floats)
{
    for (float angle = 1e-20f; angle < 1e9f; angle *= 1.37f) {
        float c, s;
        pe_sincos_f32((double)angle, &c, &s);
        assert_true(fabsl((long double)c - cosl((long double)angle)) <= 0x1.001p-25L);
        assert_true(fabsl((long double)s - sinl((long double)angle)) <=
                    0x1.001p-25L * fminl(1, (long double)angle * 2));
        pe_sincos_f32(-(double)angle, &c, &s);
        assert_true(fabsl((long double)s + sinl((long double)angle)) <= 0x1.001p-25L);
    }
}
