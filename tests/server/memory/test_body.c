/* Request bodies and piece buffers: growth, limits, the budget, one buffer for everybody. */
#include "server/memory/memory.h"
#include "tests/support/cmocka.h"

#include <string.h>

TEST(grows_from_the_heap_to_pages)
{
    struct body body = {0};
    static char part[10007];
    enum { N = 200 };
    for (int i = 0; i < N; i++) {
        memset(part, i, sizeof part);
        assert_true(body_add(&body, part, sizeof part, UINT64_MAX));
    }
    assert_int_equal(body.n_bytes, N * sizeof part);
    for (size_t i = 0; i < body.n_bytes; i += 97)
        assert_int_equal((unsigned char)body.bytes[i], i / sizeof part);
    body_drop(&body);
    assert_null(body.bytes);
    assert_int_equal(body.room, 0);
}

TEST(reserved_bodies_do_not_move)
{
    static const size_t sizes[] = {1, 4096, 300000};
    for (size_t i = 0; i < 3; i++) {
        struct body body = {0};
        assert_true(body_reserve(&body, sizes[i]));
        const char *bytes = body.bytes;
        for (size_t n = 0; n < sizes[i]; n++)
            assert_true(body_add(&body, "x", 1, UINT64_MAX));
        assert_ptr_equal(body.bytes, bytes);
        body_drop(&body);
    }
}

TEST(room_stays_within_the_maximum)
{
    struct body body = {0};
    static char part[1000];
    for (int i = 0; i < 700; i++)
        assert_true(body_add(&body, part, sizeof part, 700000));
    assert_int_equal(body.room, 700000);
    body_drop(&body);
}

enum { KIB = 1024, MIB = 1024 * KIB };

/* Adds until there are n bytes; false as soon as there is no memory. */
static bool fill(struct body *body, size_t n, size_t n_max)
{
    static char part[7919];
    while (body->n_bytes < n) {
        size_t left = n - body->n_bytes;
        if (!body_add(body, part, left < sizeof part ? left : sizeof part, n_max))
            return false;
    }
    return true;
}

/* Declared or not: what is taken goes with what has come, an eighth and 16 KiB ahead, or to the next 2 MiB. */
TEST(memory_is_taken_as_bytes_come)
{
    static const size_t steps[] = {1, 300, 16 * KIB, 100 * KIB, 300 * KIB, MIB, 3 * MIB, 11 * MIB, 20 * MIB};
    admission_setup(256 * MIB, 1);
    for (int is_declared = 0; is_declared < 2; is_declared++) {
        struct body body = {.client = 7};
        assert_true(!is_declared || body_reserve(&body, 20 * MIB));
        assert_int_equal(admission_memory(), 0);
        for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
            assert_true(fill(&body, steps[i], 20 * MIB));
            uint64_t taken = admission_memory();
            assert_true(taken >= steps[i] && taken <= 20 * MIB);
            assert_true(taken <= steps[i] + steps[i] / 8 + (steps[i] < 1800 * KIB ? 26 * KIB : 2 * MIB + 26 * KIB));
        }
        body_drop(&body);
        assert_int_equal(admission_memory(), 0);
    }
    struct body small = {.client = 7};
    assert_true(body_reserve(&small, 300) && fill(&small, 300, MIB));
    assert_int_equal(admission_memory(), 300);
    body_drop(&small);
}

/* One client's bodies leave a fifth for others; all together leave an eighth that no body takes but the first bytes
 * of each; what is refused has taken nothing. */
TEST(bodies_leave_room)
{
    enum { N = 64 };
    struct body bodies[N] = {{0}};
    admission_setup(64 * MIB, 1);
    for (uint64_t i = 0; i < N / 2; i++) {
        bodies[i].client = 1;
        fill(&bodies[i], 3 * MIB, 4 * MIB);
        assert_true(admission_memory() <= 64 * MIB / 5 * 4 + N / 2 * 16 * KIB);
    }
    struct body small = {.client = 1}, newcomer = {.client = 9};
    assert_true(admission_memory() > 40 * MIB);
    assert_false(body_may_come(&small, 4 * MIB));
    assert_true(body_may_come(&small, 16 * KIB) && fill(&small, 16 * KIB, MIB));
    assert_true(body_may_come(&newcomer, 3 * MIB) && fill(&newcomer, 3 * MIB, 3 * MIB));
    assert_false(body_may_come(&newcomer, 40 * MIB));
    for (uint64_t i = N / 2; i < N; i++) {
        bodies[i].client = i;
        fill(&bodies[i], 3 * MIB, 4 * MIB);
    }
    assert_true(admission_memory() <= 56 * MIB + (N + 1) * 16 * KIB);
    assert_true(admission_take(6 * MIB));
    admission_give(6 * MIB);
    body_drop(&small);
    body_drop(&newcomer);
    for (size_t i = 0; i < N; i++)
        body_drop(&bodies[i]);
    assert_int_equal(admission_memory(), 0);
    newcomer.client = 9;
    assert_true(body_may_come(&newcomer, 51 * MIB) && !body_may_come(&newcomer, 52 * MIB));
    admission_setup(UINT64_MAX, 1);
}

TEST(budget_holds_but_nobody_starves)
{
    struct pool *pool = pool_new(1 << 20);
    char *a = pool_get(pool, 512 << 10, false), *b = pool_get(pool, 512 << 10, false);
    assert_non_null(a);
    assert_non_null(b);
    assert_int_equal((uintptr_t)a % 64, 0);
    assert_null(pool_get(pool, 1, false));
    char *c = pool_get(pool, 512 << 10, true);
    assert_non_null(c);
    pool_put(pool, c, 512 << 10);
    assert_int_equal(pool_bytes(pool), 1 << 20); /* what was beyond the budget is not kept */
    pool_put(pool, a, 512 << 10);
    assert_ptr_equal(pool_get(pool, 500 << 10, false), a); /* the same size after rounding: reused */
    pool_put(pool, a, 500 << 10);
    pool_put(pool, b, 512 << 10);
    pool_free(pool);
}
