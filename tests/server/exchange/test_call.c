/* Calls: a block lives until its last holder drops it, is used again and is clean then; texts of any length; no memory.
 */
#include "server/exchange/exchange.h"
#include "tests/support/alloc.h"
#include "tests/support/cmocka.h"

#include <string.h>

TEST(the_last_holder_drops_it)
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

TEST(a_block_that_is_used_again_is_clean)
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

TEST(longer_texts_are_on_the_heap)
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

TEST(without_memory_there_is_none)
{
    struct calls spare = {0};
    alloc_fail_at(0);
    assert_null(call_new(&spare));
    alloc_fail_at(-1);
}
