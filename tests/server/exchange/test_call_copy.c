/* Copies of calls: all that is borrowed is copied, also nothing; counted; no memory. */
#include "server/exchange/call_copy.h"
#include "tests/support/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void everything_is_its_own(void **state)
{
    (void)state;
    char method[] = "POST", path[] = "/encode", query[] = "", header[] = "7", body[] = "\0{}";
    struct api_call call = {.method = method,
                            .path = path,
                            .query = query,
                            .inference_header = header,
                            .body = body,
                            .body_bytes = 3,
                            .body_is_ours = true};
    struct call_copy *copy = call_copy_new(&call), *other = call_copy_hold(copy);
    char *const texts[] = {method, path, header, body};
    for (size_t i = 0; i < 4; i++)
        memset(texts[i], 'x', 1);
    call_copy_drop(copy);
    const struct api_call *own = call_copy_call(other);
    assert_string_equal(own->method, "POST");
    assert_string_equal(own->path, "/encode");
    assert_string_equal(own->query, "");
    assert_string_equal(own->inference_header, "7");
    assert_null(own->accept);
    assert_true(own->body_bytes == 3 && memcmp(own->body, "\0{}", 3) == 0 && own->body_is_ours);
    assert_int_equal((uintptr_t)own->body % _Alignof(max_align_t), 0); /* tensors stand where they stood */
    call_copy_drop(other);
}

static void every_text_is_copied(void **state)
{
    (void)state;
    char text[] = "text";
    for (size_t i = 0; i < API_N_TEXTS; i++) {
        struct api_call call = {.body = NULL};
        call.texts[i] = text;
        struct call_copy *copy = call_copy_new(&call);
        for (size_t k = 0; k < API_N_TEXTS; k++)
            assert_true(k == i || !call_copy_call(copy)->texts[k]);
        assert_ptr_not_equal(call_copy_call(copy)->texts[i], text);
        assert_string_equal(call_copy_call(copy)->texts[i], "text");
        call_copy_drop(copy);
    }
}

static void nothing_is_copied_as_nothing(void **state)
{
    (void)state;
    struct api_call call = {.method = "GET", .path = "/"};
    struct call_copy *copy = call_copy_new(&call);
    assert_null(call_copy_call(copy)->body);
    call_copy_drop(copy);
    call_copy_drop(NULL);
    assert_null(call_copy_hold(NULL));
}

static void without_memory_there_is_none(void **state)
{
    (void)state;
    struct api_call call = {.method = "GET", .path = "/"};
    alloc_fail_at(0);
    assert_null(call_copy_new(&call));
    alloc_fail_at(-1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_is_its_own),
        cmocka_unit_test(every_text_is_copied),
        cmocka_unit_test(nothing_is_copied_as_nothing),
        cmocka_unit_test(without_memory_there_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
