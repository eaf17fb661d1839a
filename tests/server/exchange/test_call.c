/* Calls: a block lives until its last holder drops it, is used again and is clean then; texts of any length; no memory.
 */
#include "server/exchange/exchange.h"
#include "tests/support/alloc.h"
#include "tests/support/cmocka.h"

#include <stddef.h>
#include <string.h>

static void the_last_holder_drops_it(void **state)
{
    struct calls spare = {0};
    struct call *call = call_new(&spare), *shared = call_hold(call);
    call->api.path = strcpy(call_room(call, 8), "/encode");
    assert_true(body_add(&call->body, "{}", 2, 100));
    call_drop(call, &spare);
    assert_int_equal(spare.n, 0);
    assert_string_equal(shared->api.path, "/encode");
    assert_memory_equal(shared->body.bytes, "{}", 2);
    call_drop(shared, &spare);
    assert_int_equal(spare.n, 1);
    calls_free(&spare);
}

static void a_block_that_is_used_again_is_clean(void **state)
{
    struct calls spare = {0};
    struct call *call = call_new(&spare);
    for (size_t i = 0; i < API_N_TEXTS; i++)
        call->api.texts[i] = "text";
    call->strings = call_room(call, 400);
    call_drop(call, &spare);
    struct call *again = call_new(&spare);
    assert_ptr_equal(again, call);
    assert_int_equal(spare.n, 0);
    for (size_t i = 0; i < API_N_TEXTS; i++)
        assert_null(again->api.texts[i]);
    char *place = call_room(again, 400);
    assert_true(place >= again->room && place + 400 <= again->room + sizeof again->room);
    call_drop(again, NULL);
    assert_null(spare.first);
    call_drop(NULL, &spare);
}

static void longer_texts_are_on_the_heap(void **state)
{
    struct calls spare = {0};
    struct call *call = call_new(&spare);
    size_t n = sizeof call->room;
    call->target = memset(call_room(call, n), 'a', n);
    call->strings = memset(call_room(call, 9), 'b', 9);
    assert_true(call->target == call->room && (call->strings < call->room || call->strings >= call->room + n));
    call_drop(call, &spare);
    calls_free(&spare);
}

static void without_memory_there_is_none(void **state)
{
    struct calls spare = {0};
    alloc_fail_at(0);
    assert_null(call_new(&spare));
    alloc_fail_at(-1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_holder_drops_it),
        cmocka_unit_test(a_block_that_is_used_again_is_clean),
        cmocka_unit_test(longer_texts_are_on_the_heap),
        cmocka_unit_test(without_memory_there_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
