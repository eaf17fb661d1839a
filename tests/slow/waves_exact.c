/* Correct rounding on many values: tables in every narrow dtype, as runs and as lists, by every instruction set,
 * against 128-bit phases and the C library's long double. Argument: how many values of each dtype (default 10^8). Takes
 * about a minute for each 10^8. */
#include "core/numeric/numeric.h"
#include "tests/support/wave_truth.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 512, COLS_MAX = 256 };

static uint64_t passed, failed, unjudged;
static float f32[ROWS * COLS_MAX], listed[ROWS * COLS_MAX];
static uint16_t f16[ROWS * COLS_MAX], bf16[ROWS * COLS_MAX];

static void judge(const struct wave_table *table, int64_t start)
{
    size_t n = 2 * table->n;
    for (size_t i = 0; i < ROWS; i++)
        for (size_t j = 0; j < n; j++) {
            double odd;
            long double truth = wave_truth(table->turns[j % table->n], start + (int64_t)i, j >= table->n);
            if (!wave_judge(truth, &odd)) {
                unjudged++;
                continue;
            }
            size_t at = i * n + j;
            bool right = f32[at] == (float)odd && listed[at] == (float)odd && f16[at] == pe_f16_round(odd) &&
                         bf16[at] == pe_bf16_round(odd);
            *(right ? &passed : &failed) += 1;
        }
}

/* The rows one by one, from the last to the first: positions in no order. */
static void list_at(const struct pe_waves *waves, int64_t start, size_t n)
{
    double list[ROWS];
    struct pe_positions positions = {.n = ROWS, .list = list};
    for (size_t i = 0; i < ROWS; i++)
        list[i] = (double)(start + ROWS - 1 - (int64_t)i);
    pe_waves_fill(waves, PE_F32, &positions, 0, ROWS, 0, n, listed, n);
    for (size_t i = 0; i < ROWS / 2; i++) {
        float row[COLS_MAX], *a = listed + i * n, *b = listed + (ROWS - 1 - i) * n;
        memcpy(row, a, n * sizeof *row);
        memcpy(a, b, n * sizeof *row);
        memcpy(b, row, n * sizeof *row);
    }
}

static void table_at(const struct wave_table *table, const struct pe_waves *waves, int64_t start)
{
    struct pe_positions run = {.n = ROWS, .start = (double)start};
    size_t n = 2 * table->n;
    pe_waves_fill(waves, PE_F32, &run, 0, ROWS, 0, n, f32, n);
    pe_waves_fill(waves, PE_F16, &run, 0, ROWS, 0, n, f16, n);
    pe_waves_fill(waves, PE_BF16, &run, 0, ROWS, 0, n, bf16, n);
    list_at(waves, start, n);
    judge(table, start);
}

int main(int argc, char **argv)
{
    uint64_t wanted = argc > 1 ? strtoull(argv[1], NULL, 10) : 100000000, seed = 42;
    struct pe_waves *waves[N_WAVE_TABLES] = {NULL};
    for (size_t t = 0; t < N_WAVE_TABLES; t++) {
        struct pe_wave columns[COLS_MAX];
        wave_columns(&wave_tables[t], columns);
        if (pe_waves_new_for(columns, 2 * wave_tables[t].n, PE_BF16, UINT64_MAX, &waves[t]))
            return 1;
    }
    for (uint64_t round = 0; passed + failed < wanted; round++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        int bits = (int)(round % 41); /* starts of every size up to 2^40 */
        int64_t start = (int64_t)(seed >> (63 - bits)) - (round % 3 == 0 ? ROWS / 2 : 0);
        pe_kernels_use((enum pe_isa)(round % PE_N_ISAS));
        table_at(&wave_tables[round % N_WAVE_TABLES], waves[round % N_WAVE_TABLES],
                 start < (1LL << 40) - ROWS ? start : 0);
    }
    for (size_t t = 0; t < N_WAVE_TABLES; t++)
        pe_waves_free(waves[t]);
    printf("too near a middle for long double: %" PRIu64 ", undecided in double-double: %" PRIu64 "\n", unjudged,
           pe_undecided_count());
    printf("%" PRIu64 " passed, %" PRIu64 " failed\n", passed, failed);
    return failed > 0;
}
