/* Speed of kernels as a share of memcpy or memset of the same values: in cache, one thread, thread CPU time,
 * contestants interleaved, medians. Rows of attention for several lengths, tables of 512 positions × 128 columns for
 * each kind of positions; for each instruction set and type of numbers. */
#include "core/kernels/kernels.h"
#include "core/inside.h"
#include "core/waves/waves.h"
#include "tests/bench/bench.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LONGEST = 2048, ROUNDS = 31, VALUES = 1 << 16, ROWS = 512, PAIRS = 64, COLS = 2 * PAIRS };

static _Alignas(64) float row32[LONGEST], from32[LONGEST], table32[LONGEST];
static _Alignas(64) double row64[LONGEST], from64[LONGEST], table64[LONGEST];
static int32_t indices[LONGEST];

/* One kernel on the row of n that a copy has just renewed, so that no value drifts from round to round. */
#define CASES(bits, real)                                                                                              \
    static void copy_##bits(size_t n) { memcpy(row##bits, from##bits, n * sizeof(real)); }                             \
    static void exp_##bits(size_t n) { pe_kernels()->exp_f##bits(row##bits, n, 3, NULL); }                             \
    static void max_##bits(size_t n) { row##bits[0] = pe_kernels()->max_f##bits(row##bits, n); }                       \
    static void scale_##bits(size_t n) { pe_kernels()->scale_f##bits(row##bits, n, (real)0.7); }                       \
    static void add_##bits(size_t n) { pe_kernels()->add_f##bits(row##bits, from##bits, n, (real)0.7); }               \
    static void gather_##bits(size_t n)                                                                                \
    {                                                                                                                  \
        pe_kernels()->gather_add_f##bits(row##bits, table##bits, indices, n, (real)0.7);                               \
    }                                                                                                                  \
    static void cap_##bits(size_t n) { pe_kernels()->cap_f##bits(row##bits, n, 5); }                                   \
    static void sigmoid_##bits(size_t n) { pe_kernels()->sigmoid_f##bits(row##bits, n, row##bits); }
CASES(32, float)
CASES(64, double)

static const struct contestant {
    const char *name;
    void (*run[2])(size_t n); /* f32, f64 */
} contestants[] = {
    {"exp", {exp_32, exp_64}},
    {"max", {max_32, max_64}},
    {"scale", {scale_32, scale_64}},
    {"add", {add_32, add_64}},
    {"gather", {gather_32, gather_64}},
    {"cap", {cap_32, cap_64}},
    {"sigmoid", {sigmoid_32, sigmoid_64}},
};

static double time_of(void (*run)(size_t), void (*copy)(size_t), size_t n)
{
    size_t repeat = VALUES / n;
    double start = seconds();
    for (size_t i = 0; i < repeat; i++) {
        copy(n);
        if (run)
            run(n);
        __asm__ volatile("" ::: "memory");
    }
    return (seconds() - start) / (double)repeat;
}

static void print(const char *type, const char *what, size_t n, double *ours, double *limit)
{
    double t = median(ours, ROUNDS), m = median(limit, ROUNDS);
    printf("%-7s %-4s %-8s n %5zu: %7.3f Gvalues/s, %9.1f ns, limit/ours %.3f\n", pe_isa_name(pe_isa()), type, what, n,
           (double)n / t / 1e9, t * 1e9, m / t);
}

static void measure_row(const struct contestant *c, int wide, size_t n)
{
    double ours[ROUNDS], copies[ROUNDS];
    void (*copy)(size_t) = wide ? copy_64 : copy_32;
    for (int i = 0; i < ROUNDS; i++) {
        copies[i] = time_of(NULL, copy, n);
        ours[i] = time_of(c->run[wide], copy, n) - copies[i];
    }
    print(wide ? "f64" : "f32", c->name, n, ours, copies);
}

static void measure_table(const struct pe_waves *waves, enum pe_dtype dtype, const struct pe_positions *positions)
{
    static _Alignas(64) char buffer[ROWS * COLS * sizeof(double)];
    double ours[ROUNDS], set[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        double start = seconds();
        pe_waves_fill(waves, dtype, positions, 0, ROWS, 0, COLS, buffer, COLS);
        ours[i] = seconds() - start;
        start = seconds();
        memset(buffer, i + 1, ROWS * COLS * pe_dtype_size(dtype));
        __asm__ volatile("" ::"r"(buffer) : "memory");
        set[i] = seconds() - start;
    }
    print(pe_dtype_name(dtype), positions->list ? "list" : "run", ROWS * COLS, ours, set);
}

static struct pe_waves *waves_new(void)
{
    struct pe_wave columns[COLS];
    struct pe_dd w[PAIRS];
    struct pe_waves *waves;
    pe_ladder(10000, PAIRS, PAIRS, w);
    for (size_t c = 0; c < PAIRS; c++) {
        struct pe_dd f = pe_quarter_turns(w[c]);
        columns[c] = (struct pe_wave){.fh = f.hi, .fl = f.lo, .ah = 1};
        columns[PAIRS + c] = (struct pe_wave){.fh = f.hi, .fl = f.lo, .ah = 1, .quarter = 1};
    }
    return pe_waves_new_for(columns, COLS, PE_BF16, UINT64_MAX, &waves) ? NULL : waves;
}

int main(void)
{
    static const size_t lengths[] = {33, 512, LONGEST};
    static const enum pe_dtype dtypes[] = {PE_F32, PE_F64, PE_F16, PE_BF16};
    static double list[ROWS];
    struct pe_waves *waves = waves_new();
    for (int j = 0; j < LONGEST; j++) {
        from64[j] = fmod(j * 0.754877666, 1) * 20 - 17;
        table64[j] = j;
        from32[j] = (float)from64[j];
        table32[j] = (float)j;
        indices[j] = (j * 37) % LONGEST;
    }
    for (size_t i = 0; i < ROWS; i++)
        list[i] = 1e6 + 3 * (double)i;
    for (enum pe_isa isa = PE_ISA_BASE; isa < PE_N_ISAS && waves && pe_kernels_use(isa); isa++) {
        for (size_t k = 0; k < 2 * 3 * sizeof contestants / sizeof *contestants; k++)
            measure_row(&contestants[k / 6], k / 3 % 2, lengths[k % 3]);
        for (int d = 0; d < 4; d++) {
            measure_table(waves, dtypes[d], &(struct pe_positions){.n = ROWS, .start = 1e6});
            measure_table(waves, dtypes[d], &(struct pe_positions){.n = ROWS, .list = list});
        }
    }
    pe_waves_free(waves);
    return 0;
}
