/* Request bodies and piece buffers: growth, limits, the budget, one buffer for everybody. */
#include "server/memory/body.h"
#include "server/memory/pool.h"
#include "server/process.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void grows_from_the_heap_to_pages(void **state)
{
    (void)state;
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

static void reserved_bodies_do_not_move(void **state)
{
    (void)state;
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

static void room_stays_within_the_maximum(void **state)
{
    (void)state;
    struct body body = {0};
    static char part[1000];
    for (int i = 0; i < 700; i++)
        assert_true(body_add(&body, part, sizeof part, 700000));
    assert_int_equal(body.room, 700000);
    body_drop(&body);
}

static void budget_holds_but_nobody_starves(void **state)
{
    (void)state;
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

static void quotas(void **state)
{
    (void)state;
    assert_int_equal(process_quota_parse("200000 100000\n"), 2);
    assert_int_equal(process_quota_parse("150000 100000\n"), 2);
    assert_int_equal(process_quota_parse("10000 100000\n"), 1);
    assert_int_equal(process_quota_parse("max 100000\n"), 0);
    assert_int_equal(process_quota_parse(""), 0);
    assert_true(process_n_cores() >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grows_from_the_heap_to_pages),
        cmocka_unit_test(reserved_bodies_do_not_move),
        cmocka_unit_test(room_stays_within_the_maximum),
        cmocka_unit_test(budget_holds_but_nobody_starves),
        cmocka_unit_test(quotas),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
