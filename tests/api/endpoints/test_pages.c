/* The server's pages: bytes, tag and policy as the server supplies them; a page that is not supplied is 404; constant
 * documents are stored once. */
#include "tests/api/ask.h"

static struct answer ask_page(const char *path, const char *if_none_match)
{
    struct api_call call = {.method = "GET", .path = path, .if_none_match = if_none_match};
    return gather(api_answer(&host, &call));
}

static void test_a_page(void **state)
{
    (void)state;
    struct answer whole = ask_page("/docs", "\"other\"");
    assert_int_equal(whole.status, 200);
    assert_string_equal(whole.body, "<p>");
    assert_string_equal(header_of(&whole, "ETag"), "\"t\"");
    assert_string_equal(header_of(&whole, "Content-Security-Policy"), "default-src 'none'");
    assert_string_equal(whole.reply->content_type, "text/html; charset=utf-8");
    assert_string_equal(whole.reply->format, "html");
    answer_drop(&whole);
}

static void test_an_unchanged_page(void **state)
{
    (void)state;
    struct answer kept = ask_page("/docs", "W/\"t\"");
    assert_int_equal(kept.status, 304);
    assert_int_equal(kept.n, 0);
    assert_string_equal(header_of(&kept, "ETag"), "\"t\"");
    answer_drop(&kept);
}

static void test_no_page(void **state)
{
    (void)state;
    struct answer none = ask_page("/", NULL);
    assert_int_equal(none.status, 404);
    answer_drop(&none);
}

/* A document of many kilobytes is in memory once, even if many clients leave it unread. */
static void test_documents_are_shared(void **state)
{
    (void)state;
    static const char *const paths[] = {"/docs", "/openapi.json", "/schemes", "/presets"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        struct answer a = ask_page(paths[i], NULL), b = ask_page(paths[i], NULL);
        assert_true(a.status == 200 && b.status == 200);
        assert_non_null(a.reply->body);
        assert_ptr_equal(a.reply->body, b.reply->body);
        assert_true(a.n == b.n && memcmp(a.body, b.body, a.n) == 0);
        answer_drop(&a);
        assert_memory_equal(b.reply->body, b.body, b.n); /* the first reader's departure changes nothing */
        answer_drop(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_page),
        cmocka_unit_test(test_an_unchanged_page),
        cmocka_unit_test(test_no_page),
        cmocka_unit_test(test_documents_are_shared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
