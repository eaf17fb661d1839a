/* Rotation of heads: y1 = x1·cos - x2·sin, y2 = x2·cos + x1·sin for every pair (RoFormer, 2104.09864).
 *
 * Blocks of floats in floats, as frameworks do it: two products and their sum, each rounded. Cosine and sine were
 * rounded before, so each term has an error of 2u of itself and the sum of u, u = 2^-24: together at most 6u of the
 * larger term. Single heads, tensors of doubles, and factors outside a float's range are computed in double and
 * rounded once at the store.
 *
 * Why not double for all: floats and doubles are converted into each other at half the speed of a product, and a
 * table of doubles is twice the bytes. Measured on a Zen 3 with 4 MiB in place, double takes twice as long. Floats
 * with all that they lose kept beside them (Kahan's difference of products, cosines with their rests) are right to a
 * unit and a half of the result, take 1.3 to 1.5 times as long, and want a fused product on every machine.
 *
 * No contraction (the build forbids it), so all machines give the same bytes. */
#include "core/kernels/kernels.h"

#include <string.h>

/* ---- One head, in double ---- */

/* -1, but the compiler does not know. Where it sees a difference beside a sum of products, gcc 12 makes one fused
 * instruction of both (vfmaddsub) although contraction is forbidden, and the bytes would depend on the instruction set.
 * It lets two differences be; the second sine's sign is turned by an exact multiplication. */
static inline double minus_one(void)
{
    double x = -1;
    __asm__ volatile("" : "+m"(x));
    return x;
}

/* The two usual layouts get loops whose strides the compiler knows, so that it can vectorise them. */
#define ROTATE_LOOP(T, step, partner)                                                                                  \
    for (size_t c = 0; c < n_pairs; c++) {                                                                             \
        double x1 = (double)x[c * (step)], x2 = (double)x[c * (step) + (partner)];                                     \
        y[c * (step)] = (T)(x1 * cosines[c] - x2 * sines[c]);                                                          \
        y[c * (step) + (partner)] = (T)(x2 * cosines[c] - x1 * (sines[c] * minus));                                    \
    }

#define ROTATE(T, name)                                                                                                \
    void PE_KERNEL(name)(const double *restrict cosines, const double *restrict sines, const T *restrict x,            \
                         T *restrict y, size_t n_pairs, size_t step, size_t partner)                                   \
    {                                                                                                                  \
        double minus = minus_one();                                                                                    \
        if (step == 1)                                                                                                 \
            ROTATE_LOOP(T, 1, partner)                                                                                 \
        else if (step == 2 && partner == 1)                                                                            \
            ROTATE_LOOP(T, 2, 1)                                                                                       \
        else                                                                                                           \
            ROTATE_LOOP(T, step, partner)                                                                              \
    }

ROTATE(float, pe_rotate_f32)
ROTATE(double, pe_rotate_f64)

/* ---- Blocks of floats ---- */

/* The floats of a register, at most eight: half a head of 64 channels is only two registers of 16, and many heads would
 * leave a remainder. */
#if defined(__AVX2__)
enum { WIDE = 8 };
#else
enum { WIDE = 4 };
#endif
typedef float vw __attribute__((vector_size(WIDE * sizeof(float))));

/* The first and the second channels of pairs of neighbours, and back. AVX2 shuffles in halves of a register, so that
 * the pairs come in an order of their own, which IN_ORDER gives their cosines too. */
#if defined(__AVX2__)
#define IN_ORDER(x) __builtin_shufflevector(x, x, 0, 1, 4, 5, 2, 3, 6, 7)
#define FIRSTS(low, high) __builtin_shufflevector(low, high, 0, 2, 8, 10, 4, 6, 12, 14)
#define SECONDS(low, high) __builtin_shufflevector(low, high, 1, 3, 9, 11, 5, 7, 13, 15)
#define LOW(firsts, seconds) __builtin_shufflevector(firsts, seconds, 0, 8, 1, 9, 4, 12, 5, 13)
#define HIGH(firsts, seconds) __builtin_shufflevector(firsts, seconds, 2, 10, 3, 11, 6, 14, 7, 15)
#else
#define IN_ORDER(x) (x)
#define FIRSTS(low, high) __builtin_shufflevector(low, high, 0, 2, 4, 6)
#define SECONDS(low, high) __builtin_shufflevector(low, high, 1, 3, 5, 7)
#define LOW(firsts, seconds) __builtin_shufflevector(firsts, seconds, 0, 4, 1, 5)
#define HIGH(firsts, seconds) __builtin_shufflevector(firsts, seconds, 2, 6, 3, 7)
#endif

PE_INLINED vw wide_load(const float *from)
{
    vw v;
    memcpy(&v, from, sizeof v);
    return v;
}

PE_INLINED void wide_store(float *to, vw v) { memcpy(to, &v, sizeof v); }

/* Rotates WIDE pairs of n_heads heads, `apart` floats from one head to the next; the table is read once for all
 * heads. All values of a head are read before the first is written. */
PE_INLINED void turn_halves(const float *cosines, const float *sines, const float *x, float *y, size_t partner,
                            size_t n_heads, size_t apart)
{
    vw cosine = wide_load(cosines), sine = wide_load(sines);
    for (size_t h = 0; h < n_heads; h++, x += apart, y += apart) {
        vw a = wide_load(x), b = wide_load(x + partner);
        wide_store(y, a * cosine - b * sine);
        wide_store(y + partner, b * cosine + a * sine);
    }
}

PE_INLINED void turn_neighbours(const float *cosines, const float *sines, const float *x, float *y, size_t n_heads,
                                size_t apart)
{
    vw cosine = IN_ORDER(wide_load(cosines)), sine = IN_ORDER(wide_load(sines));
    for (size_t h = 0; h < n_heads; h++, x += apart, y += apart) {
        vw low = wide_load(x), high = wide_load(x + WIDE), a = FIRSTS(low, high), b = SECONDS(low, high);
        vw first = a * cosine - b * sine, second = b * cosine + a * sine;
        wide_store(y, LOW(first, second));
        wide_store(y + WIDE, HIGH(first, second));
    }
}

/* The same for n < WIDE pairs, with padding. */
static void turn_rest(const float *cosines, const float *sines, const float *x, float *y, size_t n, size_t step,
                      size_t partner)
{
    float cosine[WIDE] = {0}, sine[WIDE] = {0}, pairs[2 * WIDE] = {0};
    memcpy(cosine, cosines, n * sizeof *cosines);
    memcpy(sine, sines, n * sizeof *sines);
    memcpy(pairs, x, n * step * sizeof *x);
    if (step == 1)
        memcpy(pairs + WIDE, x + partner, n * sizeof *x);
    if (step == 1)
        turn_halves(cosine, sine, pairs, pairs, WIDE, 1, 0);
    else
        turn_neighbours(cosine, sine, pairs, pairs, 1, 0);
    memcpy(y, pairs, n * step * sizeof *y);
    if (step == 1)
        memcpy(y + partner, pairs + WIDE, n * sizeof *y);
}

/* Prefetch distance in bytes. Out of place, the cache sees four streams and prefetches less of each; with this
 * prefetch a row takes 0.8 of the time. In place, where the lines are already in the cache, it would take 1.1. */
enum { AHEAD = 4096 };

PE_INLINED void call_for(const float *x) { __builtin_prefetch((const char *)x + AHEAD); }

/* Heads that are rotated together. If the table is read for each head, it has as many bytes as the tensor: four
 * heads at a time reach 0.95 of the speed of reading and writing alone, two 0.9, one 0.75 (a Zen 3, 4 MiB in place). */
enum { HEADS = 4 };

PE_INLINED void turn_row(const float *cosines, const float *sines, const float *x, float *y, size_t n_pairs,
                         size_t step, size_t partner, size_t n_heads, size_t apart)
{
    size_t c = 0;
    for (; c + WIDE <= n_pairs; c += WIDE) {
        for (size_t h = 0; x != y && h < n_heads; h++) {
            call_for(x + c * step + h * apart);
            if (step == 1)
                call_for(x + c + partner + h * apart);
        }
        if (step == 1)
            turn_halves(cosines + c, sines + c, x + c, y + c, partner, n_heads, apart);
        else
            turn_neighbours(cosines + c, sines + c, x + 2 * c, y + 2 * c, n_heads, apart);
    }
    for (size_t h = 0; c < n_pairs && h < n_heads; h++, x += apart, y += apart)
        turn_rest(cosines + c, sines + c, x + c * step, y + c * step, n_pairs - c, step, partner);
}

/* step and n_heads are constants, so the compiler makes a loop for each layout and each number of heads. */
PE_INLINED void turn_rows(const float *cosines, const float *sines, size_t table_step, const float *x, float *y,
                          size_t row_len, size_t n_rows, size_t n_pairs, size_t step, size_t partner, size_t n_heads,
                          size_t apart)
{
    for (size_t r = 0; r < n_rows; r++, cosines += table_step, sines += table_step, x += row_len, y += row_len)
        turn_row(cosines, sines, x, y, n_pairs, step, partner, n_heads, apart);
}

void PE_KERNEL(pe_rotate_rows)(const float *cosines, const float *sines, size_t table_step, const float *x, float *y,
                               size_t row_len, size_t n_rows, size_t n_pairs, size_t step, size_t partner,
                               size_t n_heads, size_t apart)
{
    size_t h = 0;
    for (; h + HEADS <= n_heads; h += HEADS, x += HEADS * apart, y += HEADS * apart)
        if (step == 1)
            turn_rows(cosines, sines, table_step, x, y, row_len, n_rows, n_pairs, 1, partner, HEADS, apart);
        else
            turn_rows(cosines, sines, table_step, x, y, row_len, n_rows, n_pairs, 2, 1, HEADS, apart);
    for (; h < n_heads; h++, x += apart, y += apart)
        if (step == 1)
            turn_rows(cosines, sines, table_step, x, y, row_len, n_rows, n_pairs, 1, partner, 1, 0);
        else
            turn_rows(cosines, sines, table_step, x, y, row_len, n_rows, n_pairs, 2, 1, 1, 0);
}
