/* Rows at unordered positions: every value that the light kernel accepts is the float nearest to the exact value, in
 * every arrangement of columns and by every instruction set; the kernel rarely gives up; and it writes only the
 * requested bytes. */
#include "core/waves/waves.h"
#include "tests/support/kernel_sets.h"
#include "tests/support/wave_truth.h"

#include <string.h>

enum { ROWS = 300, COLS_MAX = 256 };

/* Where a pair's two columns stand, their quarters and their amplitudes, which are powers of two: scaling the exact
 * value by one changes no rounding. */
static const struct style {
    size_t step, apart; /* apart 0: half of the columns */
    int quarters[2];
    double sizes[2];
} styles[] = {
    {1, 0, {0, 1}, {1, 1}},  {2, 1, {0, 1}, {1, 1}},     {2, 1, {1, 0}, {1, 1}}, {1, 0, {1, 2}, {1, 1}},
    {2, 1, {3, 0}, {4, -2}}, {1, 0, {0, 3}, {0.25, 16}}, {1, 0, {0, 2}, {1, 1}}, {2, 1, {1, 1}, {1, -8}},
};
enum { N_STYLES = sizeof styles / sizeof *styles };

static size_t place(const struct style *style, size_t n, size_t pair, int second)
{
    return pair * style->step + (second ? style->apart ? style->apart : n / 2 : 0);
}

static struct pe_wave_list *list_of(const struct wave_table *table, const struct style *style)
{
    struct pe_wave plain[COLS_MAX], columns[COLS_MAX];
    struct pe_wave_list *list = NULL;
    size_t n = 2 * table->n;
    wave_columns(table, plain);
    for (size_t i = 0; i < table->n; i++)
        for (int k = 0; k < 2; k++) {
            struct pe_wave *column = &columns[place(style, n, i, k)];
            *column = plain[i];
            column->quarter = style->quarters[k];
            column->ah = style->sizes[k];
        }
    assert_int_equal(pe_wave_list_new(columns, n, &list), PE_OK);
    assert_non_null(list);
    return list;
}

/* Integers up to 2^bits, either sign. */
static void scatter(double *positions, unsigned seed, int bits)
{
    uint64_t state = seed;
    for (size_t i = 0; i < ROWS; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        positions[i] = (double)((int64_t)state >> (63 - bits));
    }
}

static void check_row(const struct wave_table *table, const struct style *style, int64_t p, const float *row)
{
    for (size_t i = 0; i < table->n; i++)
        for (int k = 0; k < 2; k++) {
            double odd;
            int quarter = style->quarters[k];
            float got = row[place(style, 2 * table->n, i, k)];
            if (wave_judge(wave_truth(table->turns[i], p, quarter & 1), &odd))
                assert_true(got == (float)(odd * style->sizes[k] * (quarter & 2 ? -1 : 1)));
        }
}

static void check(const struct wave_table *table, const struct style *style, int bits)
{
    static float rows[ROWS * COLS_MAX];
    double positions[ROWS];
    size_t n = 2 * table->n, n_failed = 0;
    struct pe_wave_list *list = list_of(table, style);
    scatter(positions, (unsigned)bits + 1, bits);
    for (size_t i = 0; i < ROWS; i++) {
        size_t m = pe_wave_list_rows(list, positions + i, ROWS - i, 0, n, rows, n);
        for (size_t k = 0; k < m; k++)
            check_row(table, style, (int64_t)positions[i + k], rows + k * n);
        i += m;
        n_failed += i < ROWS && positions[i] != 0;
    }
    /* 256 values of which one in 2^18 is too near a middle; up to one in 2^13 too near a zero at positions of 2^39 */
    assert_true(n_failed < (bits < 30 ? 5 : 30));
    pe_wave_list_free(list);
}

TEST(what_is_right_is_right)
{
    for (EACH_KERNEL_SET)
        for (size_t s = 0; s < N_STYLES; s++)
            for (int bits = 8; bits < 40; bits += 6)
                check(&wave_tables[(s + (size_t)bits / 6) % N_WAVE_TABLES], &styles[s], bits);
}

/* Any rectangle is the same bytes as in the whole; nothing else is written. */
TEST(parts_are_the_whole)
{
    static float whole[ROWS * COLS_MAX], part[ROWS * COLS_MAX + 64];
    double positions[ROWS];
    unsigned seed = 1;
    scatter(positions, 7, 20);
    for (size_t s = 0; s < N_STYLES; s++) {
        const struct wave_table *table = &wave_tables[s % N_WAVE_TABLES];
        size_t n = 2 * table->n;
        struct pe_wave_list *list = list_of(table, &styles[s]);
        size_t n_rows = pe_wave_list_rows(list, positions, ROWS, 0, n, whole, n);
        assert_true(n_rows > 5);
        for (int round = 0; round < 200; round++) {
            seed = seed * 1664525 + 1013904223;
            size_t row0 = seed / 7 % n_rows, rows = 1 + seed / 65537 % (n_rows - row0), col0 = seed / 1103 % n;
            size_t cols = 1 + seed / 389 % (n - col0), stride = cols + 3;
            memset(part, 0x5a, sizeof part);
            size_t m = pe_wave_list_rows(list, positions + row0, rows, col0, cols, part, stride);
            for (size_t i = 0; i < rows; i++)
                for (size_t j = 0; j < stride; j++)
                    if (j >= cols)
                        assert_memory_equal(&part[i * stride + j], "ZZZZ", sizeof *part);
                    else if (i < m)
                        assert_memory_equal(&part[i * stride + j], &whole[(row0 + i) * n + col0 + j], sizeof *part);
        }
        pe_wave_list_free(list);
    }
}

/* Rows that it must reject: position 0, a phase on a zero, phases too long; and columns that it does not accept. */
TEST(what_it_leaves)
{
    struct pe_wave columns[2] = {{.fh = 0.5, .ah = 1}, {.fh = 0.3, .ah = 1}};
    struct pe_wave_list *list;
    float out[2];
    assert_int_equal(pe_wave_list_new(columns, 2, &list), PE_OK);
    for (double p = -4; p <= 4; p += 0.25)
        assert_int_equal(pe_wave_list_rows(list, &p, 1, 0, 2, out, 2), p != 2 * floor(p / 2));
    for (double p = 0x1p39 + 1.3; p < 0x1p43; p *= 2)
        assert_int_equal(pe_wave_list_rows(list, &p, 1, 0, 2, out, 2), p * 0.5 < PE_LIST_PHASE);
    double tiny = 1e-40; /* the sine is a subnormal float */
    assert_int_equal(pe_wave_list_rows(list, &tiny, 1, 0, 2, out, 2), 0);
    pe_wave_list_free(list);
    for (int k = 0; k < 3; k++) {
        columns[1] = (struct pe_wave){.fh = k ? 0.3 : 0, .ah = k == 1 ? 1e-30 : k == 2 ? 1e30 : 1};
        assert_int_equal(pe_wave_list_new(columns, 2, &list), PE_OK);
        assert_null(list);
    }
    assert_int_equal(pe_wave_list_rows(NULL, &tiny, 1, 0, 2, out, 2), 0);
    pe_wave_list_free(NULL);
}
