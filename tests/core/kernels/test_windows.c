/* Rows of a Toeplitz map on every instruction set of this machine: each byte is where the definition puts it, and none
 * beyond, for every element size and any number, length, place and distance of rows. */
#include "tests/support/kernel_sets.h"
#include "tests/support/random.h"

#include <string.h>

enum { ROWS = 150, COLS = 300, SIZE = 8, MARGIN = 64, FILLER = 0xaa };

static size_t chance(size_t n) { return (size_t)(random_bits() % n); }

static void check_one(const struct pe_kernels *kernels, size_t size, size_t n_rows, size_t n_cols)
{
    static uint8_t vector[MARGIN + (ROWS + COLS) * SIZE], map[(ROWS * (COLS + 8) + 64) * SIZE + 2 * MARGIN];
    uint8_t *from = vector + chance(MARGIN), *to = map + MARGIN + chance(MARGIN);
    size_t stride = (n_cols + chance(8)) * size;
    for (size_t i = 0; i < sizeof vector; i++)
        vector[i] = (uint8_t)chance(FILLER);
    memset(map, FILLER, sizeof map);
    kernels->windows(from, size, n_rows, n_cols, to, stride);
    for (size_t i = 0; i < n_rows; i++) {
        assert_memory_equal(to + i * stride, from + (n_rows - 1 - i) * size, n_cols * size);
        memset(to + i * stride, FILLER, n_cols * size);
    }
    for (size_t i = 0; i < sizeof map; i++)
        assert_int_equal(map[i], FILLER);
}

static void check_lines(const struct pe_kernels *kernels, size_t n_lines, size_t n)
{
    static uint8_t from[ROWS * COLS + PE_LINES_SLACK], out[ROWS * COLS / 2 + 2 * MARGIN];
    size_t step = chance(2 * n), at = chance(MARGIN);
    for (size_t i = 0; i < sizeof from; i++)
        from[i] = (uint8_t)chance(FILLER);
    memset(out, FILLER, sizeof out);
    kernels->lines(from, step, n_lines, n, out + at);
    for (size_t i = 0; i < n_lines; i++)
        assert_memory_equal(out + at + i * n, from + i * step, n);
    for (size_t i = 0; i < sizeof out; i++)
        assert_true((i >= at && i < at + n_lines * n) || out[i] == FILLER);
}

TEST(lines_one_after_the_other)
{
    for (EACH_KERNEL_SET)
        for (int round = 0; round < 300; round++)
            check_lines(pe_kernels(), 1 + chance(ROWS), 1 + chance(COLS / 2));
}

TEST(every_byte_in_its_place)
{
    for (EACH_KERNEL_SET)
        for (size_t size = 1; size <= SIZE; size *= 2)
            for (int round = 0; round < 100; round++)
                check_one(pe_kernels(), size, 1 + chance(ROWS), 1 + chance(round % 2 ? COLS : 40));
}
