/* The kernels of rotation, on every instruction set of this machine: octets, blocks of heads beside single ones, tables
 * made from anchors, rows of f16 and bf16. */
#include "core/dtype.h"
#include "core/kernels/kernels.h"
#include "tests/support/kernel_sets.h"
#include "core/posenc.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint64_t random_bits(uint64_t n)
{
    uint64_t x = (n + 1) * 0x9e3779b97f4a7c15ULL;
    x ^= x >> 31;
    x *= 0xbf58476d1ce4e5b9ULL;
    return x ^ x >> 29;
}

static double chance(uint64_t n) { return (double)(random_bits(n) >> 11) / 0x1p52 - 1; }

enum { PAIRS_MAX = 21, ROWS = 3, ROOM = 2 * PAIRS_MAX + 5, OCTETS = (PAIRS_MAX + PE_OCTET - 1) / PE_OCTET };

/* x nearest to a double of 36 bits behind the first, as the octets keep it. */
static double kept(double x)
{
    int exponent;
    double fraction = frexp(x, &exponent);
    return ldexp(nearbyint(fraction * 0x1p37), exponent - 37);
}

struct heads {
    double cosines[ROWS][PAIRS_MAX], sines[ROWS][PAIRS_MAX];
    struct pe_octet table[ROWS * OCTETS];
    float x[ROWS * ROOM], y[ROWS * ROOM];
};

static void make_heads(const struct pe_kernels *k, struct heads *h, size_t n_pairs)
{
    size_t n_octets = (n_pairs + PE_OCTET - 1) / PE_OCTET;
    for (size_t r = 0; r < ROWS; r++) {
        for (size_t c = 0; c < n_pairs; c++) {
            h->cosines[r][c] = chance(r * 1000 + c) * pow(2, -(double)(c % 9));
            h->sines[r][c] = chance(r * 1000 + c + 500);
        }
        k->pack(h->cosines[r], h->sines[r], n_pairs, h->table + r * n_octets);
    }
    for (size_t i = 0; i < ROWS * ROOM; i++) {
        h->x[i] = (float)chance(i + 77777);
        h->y[i] = 5;
    }
}

/* The formula for one pair; what does not belong to a pair stays 5. */
static void check_heads(const struct pe_kernels *k, size_t n_pairs, size_t step, bool same_position)
{
    static struct heads h;
    size_t partner = step == 1 ? n_pairs : 1, n_octets = (n_pairs + PE_OCTET - 1) / PE_OCTET;
    make_heads(k, &h, n_pairs);
    k->rotate_rows(h.table, same_position ? 0 : n_octets, h.x, h.y, ROOM, ROWS, n_pairs, step, partner);
    for (size_t r = 0; r < ROWS; r++) {
        const float *x = h.x + r * ROOM, *y = h.y + r * ROOM;
        size_t at = same_position ? 0 : r;
        for (size_t c = 0; c < n_pairs; c++) {
            double cosine = kept(h.cosines[at][c]), sine = kept(h.sines[at][c]);
            double x1 = (double)x[c * step], x2 = (double)x[c * step + partner];
            double y1 = x1 * cosine - x2 * sine, y2 = x2 * cosine + x1 * sine;
            assert_true((double)y[c * step] == (double)(float)y1);
            assert_true((double)y[c * step + partner] == (double)(float)y2);
        }
        for (size_t c = 2 * n_pairs; c < ROOM; c++)
            assert_true(fabs((double)y[c] - 5) <= 0);
    }
    static float y[ROWS * ROOM];
    memcpy(y, h.x, sizeof y);
    k->rotate_rows(h.table, same_position ? 0 : n_octets, y, y, ROOM, ROWS, n_pairs, step, partner);
    for (size_t i = 0; i < ROWS * ROOM; i++)
        assert_true((double)y[i] == (double)(i % ROOM < 2 * n_pairs ? h.y[i] : h.x[i]));
}

static void all_heads(const struct pe_kernels *k)
{
    for (size_t n_pairs = 1; n_pairs <= PAIRS_MAX; n_pairs++)
        for (size_t step = 1; step <= 2; step++) {
            check_heads(k, n_pairs, step, false);
            check_heads(k, n_pairs, step, true);
        }
}

static void blocks_of_heads(void **unused)
{
    (void)unused;
    for_all(all_heads);
}

/* Neighbours in double: a compiler that fuses what it may not makes other bytes of them. */
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

static void nothing_is_fused(void **unused)
{
    (void)unused;
    for_all(all_doubles);
}

static void check_angles(const struct pe_kernels *k, size_t n, double at, int away)
{
    double anchor[2 * PAIRS_MAX], steps[2 * PAIRS_MAX], row[2 * PAIRS_MAX];
    for (size_t c = 0; c < n; c++) {
        double f = pow(100, -(double)c / (double)n);
        anchor[c] = cos(at * f);
        anchor[n + c] = sin(at * f);
        steps[c] = cos(abs(away) * f);
        steps[n + c] = sin(abs(away) * f);
    }
    bool lost = k->angles(anchor, steps, away < 0 ? -1 : 1, n, row), is_zero = at + away < 0.5 && at + away > -0.5;
    assert_true(lost || !is_zero); /* sin 0 has nothing left */
    for (size_t c = 0; c < n; c++) {
        double f = pow(100, -(double)c / (double)n);
        /* The angles here are rounded, which is an error of at - away's last place, not of the kernel. */
        double slack = 4 * fabs(at) * f * 0x1p-53 + 8 * 0x1p-53;
        assert_true(fabs(row[c] - cos((at + away) * f)) <= slack);
        assert_true(fabs(row[n + c] - sin((at + away) * f)) <= slack);
    }
}

static void all_angles(const struct pe_kernels *k)
{
    for (size_t n = 1; n <= PAIRS_MAX; n++)
        for (int away = -16; away < 16; away++) {
            check_angles(k, n, 16, away);
            check_angles(k, n, 1000, away);
        }
}

static void tables_from_anchors(void **unused)
{
    (void)unused;
    for_all(all_angles);
}

static void all_halves(const struct pe_kernels *k)
{
    static uint16_t from[65536], to[65536];
    static float wide[65536];
    for (size_t i = 0; i < 65536; i++)
        from[i] = (uint16_t)i;
    for (int is_f16 = 0; is_f16 < 2; is_f16++) {
        size_t first = 3, n = 65536 - first; /* at no round place, and of no round length */
        (is_f16 ? k->of_f16 : k->of_bf16)(from + first, n, wide);
        (is_f16 ? k->to_f16 : k->to_bf16)(wide, n, to);
        for (size_t i = 0; i < n; i++) {
            double value = is_f16 ? pe_f16_value(from[first + i]) : pe_bf16_value(from[first + i]);
            assert_true(isnan(value) ? isnan(wide[i]) : (double)wide[i] == value);
            assert_true(isnan(value) || to[i] == from[first + i]);
        }
    }
}

static void sixteen_bits_come_and_go(void **unused)
{
    (void)unused;
    for_all(all_halves);
}

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
        assert_true(is_nan ? isnan(pe_f16_value(f16[i])) : f16[i] == pe_f16_round((double)wide[i]));
        assert_true(is_nan ? isnan(pe_bf16_value(bf16[i])) : bf16[i] == pe_bf16_round((double)wide[i]));
    }
    static uint16_t first16[RANDOM], first[RANDOM]; /* NaN's bits too are the same on all */
    if (k->to_f16 == pe_to_f16_base) {
        memcpy(first16, f16, sizeof f16);
        memcpy(first, bf16, sizeof bf16);
    }
    assert_memory_equal(f16, first16, sizeof f16);
    assert_memory_equal(bf16, first, sizeof bf16);
}

static void sixteen_bits_are_rounded(void **unused)
{
    (void)unused;
    for_all(all_roundings);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_of_heads),          cmocka_unit_test(nothing_is_fused),
        cmocka_unit_test(tables_from_anchors),      cmocka_unit_test(sixteen_bits_come_and_go),
        cmocka_unit_test(sixteen_bits_are_rounded),
    };
    return cmocka_run_group_tests_name("rotate kernels", tests, NULL, NULL);
}
