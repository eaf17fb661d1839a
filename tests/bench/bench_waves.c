/* Speed of tables as a share of memset of the same buffer: 512 positions × 128 columns, in cache, one thread, thread
 * CPU time, contestants interleaved, medians. For each instruction set, dtype and kind of positions. */
#include "core/waves/waves.h"
#include "tests/bench/bench.h"

#include <stdio.h>
#include <string.h>

enum { ROWS = 512, PAIRS = 64, COLS = 2 * PAIRS, ROUNDS = 31, REPEAT = 4 };

static _Alignas(64) char buffer[ROWS * COLS * sizeof(double)];

static double time_fill(const struct pe_waves *waves, enum pe_dtype dtype, const struct pe_positions *positions)
{
    double start = seconds();
    for (int i = 0; i < REPEAT; i++)
        pe_waves_fill(waves, dtype, positions, 0, ROWS, 0, COLS, buffer, COLS);
    return (seconds() - start) / REPEAT;
}

static double time_memset(size_t n, int byte)
{
    double start = seconds();
    for (int i = 0; i < REPEAT; i++) {
        memset(buffer, byte, n);
        __asm__ volatile("" ::"r"(buffer) : "memory");
    }
    return (seconds() - start) / REPEAT;
}

static void measure(const struct pe_waves *waves, enum pe_dtype dtype, const struct pe_positions *positions,
                    const char *what)
{
    double fill[ROUNDS], set[ROUNDS];
    size_t bytes = ROWS * COLS * pe_dtype_size(dtype);
    for (int i = 0; i < ROUNDS; i++) {
        fill[i] = time_fill(waves, dtype, positions);
        set[i] = time_memset(bytes, i + 1);
    }
    double ours = median(fill, ROUNDS), theirs = median(set, ROUNDS);
    printf("%-7s %-4s %-5s %6.2f Gvalues/s %6.2f GB/s, memset %6.2f GB/s, ratio %.3f\n", pe_isa_name(pe_isa()),
           pe_dtype_name(dtype), what, ROWS * COLS / ours / 1e9, (double)bytes / ours / 1e9,
           (double)bytes / theirs / 1e9, theirs / ours);
}

int main(void)
{
    static const enum pe_dtype dtypes[] = {PE_F32, PE_F64, PE_F16, PE_BF16};
    struct pe_wave columns[COLS];
    struct pe_dd w[PAIRS];
    double list[ROWS];
    struct pe_waves *waves;
    pe_ladder(10000, PAIRS, PAIRS, w);
    for (size_t c = 0; c < PAIRS; c++) {
        struct pe_dd f = pe_quarter_turns(w[c]);
        columns[c] = (struct pe_wave){.fh = f.hi, .fl = f.lo, .ah = 1};
        columns[PAIRS + c] = (struct pe_wave){.fh = f.hi, .fl = f.lo, .ah = 1, .quarter = 1};
    }
    for (size_t i = 0; i < ROWS; i++)
        list[i] = 1e6 + 3 * (double)i;
    if (pe_waves_new_for(columns, COLS, PE_BF16, UINT64_MAX, &waves))
        return 1;
    struct pe_positions run = {.n = ROWS, .start = 1e6}, listed = {.n = ROWS, .list = list};
    for (enum pe_isa isa = PE_ISA_BASE; isa < PE_N_ISAS; isa++)
        for (int d = 0; d < 4 && pe_kernels_use(isa); d++) {
            measure(waves, dtypes[d], &run, "run");
            measure(waves, dtypes[d], &listed, "list");
        }
    pe_waves_free(waves);
    return 0;
}
