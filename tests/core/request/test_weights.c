/* Weights from a seed, against values of Python's statistics.NormalDist on the same bits
 * (tests/truth/absolute.py). */
#include "core/request/request.h"
#include "tests/support/cmocka.h"
#include "tests/support/request.h"

#include <math.h>
#include <stdlib.h>

TEST(generator)
{
    const float table[] = {0x1.9022d6p-6f, -0x1.02f77ap-6f, -0x1.ec8d4cp-6f, -0x1.cd95e2p-6f};
    const float w1[] = {-0x1.8fcc40p-3f, -0x1.2e6a84p+0f, -0x1.f0d78ep-1f};
    uint64_t hash = pe_seed_hash(0, "table"), other = pe_seed_hash(7, "w1");
    for (uint64_t i = 0; i < 4; i++)
        assert_true((float)(0.02 * pe_seed_normal(hash, i)) == table[i]);
    for (uint64_t i = 0; i < 3; i++)
        assert_true((float)pe_seed_normal(other, i) == w1[i]);
}

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

/* Numbers of JSON text without a dtype are f32; with f64 they stay. */
TEST(text_is_f32)
{
    struct test_request r;
    size_t n;
    struct pe_plan *plan = test_plan(&r, "{'scheme':'learned','len':1,'table':[[0.1]]}");
    pe_plan_free(plan);
    r.request.dtype = PE_F64;
    struct pe_failure err;
    assert_int_equal(pe_plan_new(&r.request, &plan, &err), PE_OK);
    double *v = test_values(plan, 0, &n);
    assert_true(n == 1 && v[0] == (double)0.1f);
    free(v);
    pe_plan_free(plan);
    test_request_drop(&r);
}

TEST(refusals)
{
    test_refused("{'scheme':'learned','len':2}", "/table", "seed");
    test_refused("{'scheme':'learned','len':2,'table':3}", "/table", "not a tensor");
    test_refused("{'scheme':'learned','len':2,'dim':3,'table':[[1,2],[3,4]]}", "/dim", "makes it 2");
    test_refused("{'scheme':'learned','len':2,'seed':1,'table':[[1,2],[3,4]]}", "/seed", "no tensor");
    test_refused("{'scheme':'learned','len':2,'seed':-1}", "/seed", "-1");
}
