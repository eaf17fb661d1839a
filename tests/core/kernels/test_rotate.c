/* The rotation kernels, on every instruction set of this machine: blocks of heads, in float and in double, rows of f16
 * and bf16. */
#include "core/numeric/numeric.h"
#include "core/kernels/kernels.h"
#include "tests/support/cmocka.h"
#include "tests/support/kernel_sets.h"
#include "tests/support/narrow_truth.h"
#include "core/inside.h"

#include <math.h>
#include <string.h>

static uint64_t random_bits(uint64_t n)
{
    uint64_t x = (n + 1) * 0x9e3779b97f4a7c15ULL;
    x ^= x >> 31;
    x *= 0xbf58476d1ce4e5b9ULL;
    return x ^ x >> 29;
}

static double chance(uint64_t n) { return (double)(random_bits(n) >> 11) / 0x1p52 - 1; }

enum { PAIRS_MAX = 21, ROWS = 3, ROOM = 2 * PAIRS_MAX + 5, HEADS_MAX = 6, APART = ROWS * ROOM + 3 };

struct heads {
    size_t n_heads, n_pairs, step, partner, table_step;
    float table[ROWS][2 * PAIRS_MAX]; /* cosines, then sines */
    float x[HEADS_MAX * APART], y[HEADS_MAX * APART];
};

static void make_heads(struct heads *h, size_t n_heads, size_t n_pairs, size_t step, bool same_position)
{
    h->n_heads = n_heads;
    h->n_pairs = n_pairs;
    h->step = step;
    h->partner = step == 1 ? n_pairs : 1;
    h->table_step = same_position ? 0 : 2 * PAIRS_MAX;
    for (size_t r = 0; r < ROWS; r++)
        for (size_t c = 0; c < 2 * PAIRS_MAX; c++)
            h->table[r][c] = (float)(chance(r * 1000 + c) * pow(2, -(double)(c % 9)));
    for (size_t i = 0; i < HEADS_MAX * APART; i++) {
        h->x[i] = (float)chance(i + 77777);
        h->y[i] = 5;
    }
}

static void rotate(const struct pe_kernels *k, const struct heads *h, const float *x, float *y)
{
    k->rotate_rows(h->table[0], h->table[0] + PAIRS_MAX, h->table_step, x, y, ROOM, ROWS, h->n_pairs, h->step,
                   h->partner, h->n_heads, APART);
}

/* The formula for one row, each operation rounded to f32; what does not belong to a pair stays 5. */
static void check_row(const struct heads *h, size_t r, const float *x, const float *y)
{
    const float *table = h->table[h->table_step ? r : 0];
    for (size_t c = 0; c < h->n_pairs; c++) {
        volatile float x1 = x[c * h->step], x2 = x[c * h->step + h->partner];
        volatile float a = x1 * table[c], b = x2 * table[PAIRS_MAX + c];
        volatile float y1 = a - b;
        a = x2 * table[c];
        b = x1 * table[PAIRS_MAX + c];
        volatile float y2 = a + b;
        assert_true((double)y[c * h->step] == (double)y1);
        assert_true((double)y[c * h->step + h->partner] == (double)y2);
    }
    for (size_t c = 2 * h->n_pairs; c < ROOM; c++)
        assert_true(fabs((double)y[c] - 5) <= 0);
}

static void check_heads(const struct pe_kernels *k, size_t n_heads, size_t n_pairs, size_t step, bool same_position)
{
    static struct heads h;
    static float y[HEADS_MAX * APART];
    make_heads(&h, n_heads, n_pairs, step, same_position);
    rotate(k, &h, h.x, h.y);
    for (size_t i = 0; i < n_heads * ROWS; i++) {
        size_t at = i / ROWS * APART + i % ROWS * ROOM;
        check_row(&h, i % ROWS, h.x + at, h.y + at);
    }
    for (size_t i = n_heads * APART; i < HEADS_MAX * APART; i++)
        assert_true(fabs((double)h.y[i] - 5) <= 0);
    memcpy(y, h.x, sizeof y);
    rotate(k, &h, y, y);
    for (size_t i = 0; i < n_heads * APART; i++) {
        bool is_paired = i % APART < ROWS * ROOM && i % APART % ROOM < 2 * n_pairs;
        assert_true((double)y[i] == (double)(is_paired ? h.y[i] : h.x[i]));
    }
}

static void all_heads(const struct pe_kernels *k)
{
    for (size_t n_heads = 1; n_heads <= HEADS_MAX; n_heads++)
        for (size_t n_pairs = 1; n_pairs <= PAIRS_MAX; n_pairs++)
            for (size_t step = 1; step <= 2; step++) {
                check_heads(k, n_heads, n_pairs, step, false);
                check_heads(k, n_heads, n_pairs, step, true);
            }
}

TEST(blocks_of_heads) { for_all(all_heads); }

/* Neighbouring values in double: a compiler that fuses operations wrongly would change their bytes. */
static void all_doubles(const struct pe_kernels *k)
{
    for (size_t n_pairs = 1; n_pairs <= PAIRS_MAX; n_pairs++) {
        double cosines[PAIRS_MAX], sines[PAIRS_MAX], x[2 * PAIRS_MAX], y[2 * PAIRS_MAX];
        for (size_t c = 0; c < n_pairs; c++) {
            cosines[c] = chance(c);
            sines[c] = chance(c + 100);
            x[2 * c] = chance(c + 200);
            x[2 * c + 1] = chance(c + 300);
        }
        k->rotate_f64(cosines, sines, x, y, n_pairs, 2, 1);
        for (size_t c = 0; c < n_pairs; c++) {
            volatile double a = x[2 * c] * cosines[c], b = x[2 * c + 1] * sines[c];
            assert_true(fabs(y[2 * c] - (a - b)) <= 0);
            a = x[2 * c + 1] * cosines[c];
            b = x[2 * c] * sines[c];
            assert_true(fabs(y[2 * c + 1] - (a + b)) <= 0);
        }
    }
}

TEST(nothing_is_fused) { for_all(all_doubles); }

static void all_halves(const struct pe_kernels *k)
{
    static uint16_t from[65536], to[65536];
    static float wide[65536];
    (void)k;
    for (size_t i = 0; i < 65536; i++)
        from[i] = (uint16_t)i;
    for (EACH_NARROW_TRUTH) {
        const struct pe_narrow_type *type = pe_narrow_type(t->dtype);
        if (pe_dtype_size(t->dtype) < sizeof *from)
            continue;
        size_t first = 3, n = 65536 - first; /* at an unaligned place, with an odd length */
        type->widen(from + first, n, wide);
        type->narrow(wide, n, to);
        for (size_t i = 0; i < n; i++) {
            double value = narrow_value(t, from[first + i]);
            assert_true(isnan(value) ? isnan(wide[i]) : (double)wide[i] == value);
            assert_true(isnan(value) || to[i] == from[first + i]);
        }
    }
}

TEST(sixteen_bits_come_and_go) { for_all(all_halves); }

enum { RANDOM = 100003 };

static void all_roundings(const struct pe_kernels *k)
{
    static float wide[RANDOM];
    static uint16_t f16[RANDOM], bf16[RANDOM];
    for (size_t i = 0; i < RANDOM; i++) { /* any bits: NaN, infinities, subnormals; then many near f16's range */
        uint32_t bits = (uint32_t)random_bits(i);
        bits = i % 2 ? (bits & 0x8fffffff) | 0x30000000 : bits;
        memcpy(&wide[i], &bits, sizeof bits);
    }
    k->to_f16(wide, RANDOM, f16);
    k->to_bf16(wide, RANDOM, bf16);
    for (size_t i = 0; i < RANDOM; i++) {
        bool is_nan = isnan(wide[i]);
        assert_true(is_nan ? isnan(pe_element(PE_F16, f16, i)) : f16[i] == pe_bits(PE_F16, (double)wide[i]));
        assert_true(is_nan ? isnan(pe_element(PE_BF16, bf16, i)) : bf16[i] == pe_bits(PE_BF16, (double)wide[i]));
    }
    static uint16_t first16[RANDOM], first[RANDOM]; /* the bits of NaN are also equal on all instruction sets */
    if (k->to_f16 == pe_to_f16_base) {
        memcpy(first16, f16, sizeof f16);
        memcpy(first, bf16, sizeof bf16);
    }
    assert_memory_equal(f16, first16, sizeof f16);
    assert_memory_equal(bf16, first, sizeof bf16);
}

TEST(sixteen_bits_are_rounded) { for_all(all_roundings); }
