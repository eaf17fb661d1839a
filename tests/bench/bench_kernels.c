/* Speed of the kernels of attention's rows as a share of memcpy of the same values: in cache, one thread, thread CPU
 * time, contestants interleaved, medians; for several lengths, each instruction set and type of numbers. Tables are
 * rows of bench_answers, which POSENC_KERNELS gives an instruction set. */
#include "core/kernels/kernels.h"
#include "core/numeric/numeric.h"
#include "tests/bench/bench.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LONGEST = 2048, ROUNDS = 31, VALUES = 1 << 16 };

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

static void measure_row(const struct contestant *c, int wide, size_t n)
{
    double ours[ROUNDS], copies[ROUNDS];
    void (*copy)(size_t) = wide ? copy_64 : copy_32;
    for (int i = 0; i < ROUNDS; i++) {
        copies[i] = time_of(NULL, copy, n);
        ours[i] = time_of(c->run[wide], copy, n) - copies[i];
    }
    double t = median(ours, ROUNDS), m = median(copies, ROUNDS);
    printf("%-7s %-4s %-8s n %5zu: %7.3f Gvalues/s, %9.1f ns, limit/ours %.3f\n", pe_isa_name(pe_isa()),
           wide ? "f64" : "f32", c->name, n, (double)n / t / 1e9, t * 1e9, m / t);
}

int main(void)
{
    static const size_t lengths[] = {33, 512, LONGEST};
    for (int j = 0; j < LONGEST; j++) {
        from64[j] = fmod(j * 0.754877666, 1) * 20 - 17;
        table64[j] = j;
        from32[j] = (float)from64[j];
        table32[j] = (float)j;
        indices[j] = (j * 37) % LONGEST;
    }
    for (enum pe_isa isa = PE_ISA_BASE; isa < PE_N_ISAS && pe_kernels_use(isa); isa++)
        for (size_t k = 0; k < 2 * 3 * sizeof contestants / sizeof *contestants; k++)
            measure_row(&contestants[k / 6], k / 3 % 2, lengths[k % 3]);
    return 0;
}
