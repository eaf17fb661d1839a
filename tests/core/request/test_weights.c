/* Weights from a seed: their moments, and parts of a tensor. Values are those of Python's statistics.NormalDist on the
 * same bits (tests/truth/absolute.py), over a socket. */
#include "core/request/request.h"
#include "tests/support/cmocka.h"

#include <math.h>

/* Mean 0, variance 1, a third moment of 0, a fourth of 3: within five standard errors of a million values. */
TEST(moments)
{
    enum { N = 1000000 };
    double sum[5] = {0};
    uint64_t hash = pe_seed_hash(42, "moments");
    for (uint64_t i = 0; i < N; i++) {
        double x = pe_seed_normal(hash, i), power = 1;
        for (int k = 1; k <= 4; k++)
            sum[k] += power *= x;
    }
    assert_true(fabs(sum[1] / N) < 5 * sqrt(1.0 / N));
    assert_true(fabs(sum[2] / N - 1) < 5 * sqrt(2.0 / N));
    assert_true(fabs(sum[3] / N) < 5 * sqrt(15.0 / N));
    assert_true(fabs(sum[4] / N - 3) < 5 * sqrt(96.0 / N));
}

/* Any part of a tensor is that part of the whole. */
TEST(parts)
{
    struct pe_weights w = {.tensor = {.dtype = PE_F32, .rank = 1, .shape = {100}}, .is_seeded = true, .std = 0.5};
    double whole[100], part[37];
    w.hash = pe_seed_hash(1, "b1");
    pe_weights_read(&w, 0, 100, whole);
    pe_weights_read(&w, 20, 37, part);
    for (int i = 0; i < 37; i++)
        assert_true(part[i] == whole[20 + i]);
}
