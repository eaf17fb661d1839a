/* The web page when memory is missing or its bytes are broken; files of a folder, and none; constant documents are
 * stored once. How its files are sent is in tests/http/catalogue/test_page_delivery.py. */
#include "tests/api/ask.h"
#include "tests/support/alloc.h"

#include <stdio.h>

#define BUILD "/ui/0123456789abcdef/"

/* A name longer than any is cut before it is looked up; it must not become the name of a file. */
TEST(test_long_names)
{
    char path[2048] = BUILD;
    memset(path + strlen(path), 'a', 2000);
    assert_answer(get(path), 404, NULL);
    memset(path, '/', 3);
    memcpy(path, "/ui/", 4);
    memset(path + 4, 'b', 1000);
    assert_answer(get(path), 404, NULL);
}

TEST(test_no_page)
{
    struct api_host bare = host;
    bare.page = NULL;
    const char *const paths[] = {"/", "/docs", BUILD "index.html"};
    for (size_t i = 0; i < 3; i++) {
        struct api_call call = {.method = "GET", .path = paths[i]};
        assert_answer(gather(api_answer(&bare, &call)), 404, NULL);
    }
}

/* ---- A folder ---- */

static bool read_folder(void *self, const char *name, char **bytes, size_t *n)
{
    ++*(int *)self;
    *n = 2;
    *bytes = strcmp(name, "no_memory.js") == 0 ? NULL : strdup("{}");
    return strcmp(name, "absent.js") != 0 || (free(*bytes), false);
}

TEST(test_a_folder)
{
    int n_read = 0;
    const struct api_page page = {.build = "dev", .read = read_folder, .self = &n_read};
    struct api_host developing = host;
    developing.page = &page;
    struct api_call call = {.method = "GET", .path = "/ui/dev/text/en.json", .must_not_block = true};
    assert_null(api_answer(&developing, &call)); /* a disk may be slow */
    assert_int_equal(n_read, 0);
    call.must_not_block = false;
    call.accept_encoding = "gzip";
    struct answer file = gather(api_answer(&developing, &call));
    assert_int_equal(file.status, 200);
    assert_string_equal(file.body, "{}");
    assert_string_equal(header_of(&file, "Cache-Control"), "no-store");
    assert_null(header_of(&file, "ETag"));
    assert_false(file.reply->is_repeatable);
    answer_drop(&file);
    call.path = "/ui/dev/no_memory.js";
    assert_answer(gather(api_answer(&developing, &call)), 503, NULL);
    call.path = "/ui/dev/absent.js";
    assert_answer(gather(api_answer(&developing, &call)), 404, NULL);
    call.path = BUILD "index.html";
    assert_answer(gather(api_answer(&developing, &call)), 404, WORDS("it has dev"));
    assert_int_equal(n_read, 3);
}

/* ---- Memory ---- */

/* A document of many kilobytes is in memory once, even if many clients leave it unread. */
TEST(test_documents_are_shared)
{
    static const char *const paths[] = {"/docs", "/openapi.json", "/schemes", "/presets", "/cmaps"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        struct answer a = get(paths[i]), b = get(paths[i]);
        assert_true(a.status == 200 && b.status == 200);
        assert_non_null(a.reply->body->bytes);
        assert_ptr_equal(a.reply->body->bytes, b.reply->body->bytes);
        assert_true(a.n == b.n && memcmp(a.body, b.body, a.n) == 0);
        answer_drop(&a);
        assert_memory_equal(b.reply->body->bytes, b.body, b.n); /* the first reader's departure changes nothing */
        answer_drop(&b);
    }
}

TEST(test_no_memory_to_decompress)
{
    free(plain_files[0]);
    plain_files[0] = NULL;
    alloc_fail_at(0);
    assert_answer(get("/"), 503, NULL);
    alloc_fail_at(-1);
    assert_answer(get("/"), 200, WORDS("<p>"));
}

/* Bytes that are not what the table says are never sent. */
TEST(test_a_broken_file)
{
    static char *_Atomic plain;
    struct api_page_file file = page_files[0];
    file.plain = &plain;
    const struct api_page page = {.build = "x", .files = &file, .n_files = 1};
    struct api_host broken = host;
    broken.page = &page;
    struct api_call call = {.method = "GET", .path = "/"};
    for (file.n_bytes = 0; file.n_bytes < 9; file.n_bytes++)
        if (file.n_bytes != page_files[0].n_bytes)
            assert_answer(gather(api_answer(&broken, &call)), 503, NULL);
    file.n_bytes = page_files[0].n_bytes;
    file.n_gzip--;
    assert_answer(gather(api_answer(&broken, &call)), 503, NULL);
}
