/* The web page: its files in both codings, with their tags; files of another build, of a folder, and none; constant
 * documents are stored once. */
#include "tests/api/ask.h"
#include "tests/support/alloc.h"

#include <stdio.h>

#define BUILD "/ui/0123456789abcdef/"

static struct answer ask_page(const char *path, const char *accept_encoding, const char *if_none_match)
{
    struct api_call call = {
        .method = "GET", .path = path, .accept_encoding = accept_encoding, .if_none_match = if_none_match};
    return gather(api_answer(&host, &call));
}

TEST(test_the_page)
{
    static const struct {
        const char *path, *tag;
        enum api_access access;
    } rows[] = {{"/", "\"abc\"", API_ACCESS_OPEN},
                {"/docs", "\"ghi\"", API_ACCESS_OPEN},
                {"/", "\"ghi\"", API_ACCESS_NONE}, /* an <img> sends no token */
                {"/", "\"ghi\"", API_ACCESS_WRITE}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct api_call call = {
            .method = "GET", .path = rows[i].path, .if_none_match = "\"other\"", .access = rows[i].access};
        struct answer whole = gather(api_answer(&host, &call));
        assert_int_equal(whole.status, 200);
        assert_string_equal(whole.body, "<p>");
        assert_string_equal(header_of(&whole, "ETag"), rows[i].tag);
        assert_string_equal(header_of(&whole, "Cache-Control"), "no-cache");
        assert_string_equal(header_of(&whole, "Vary"), "Accept-Encoding");
        assert_non_null(strstr(header_of(&whole, "Content-Security-Policy"), "default-src 'none'"));
        assert_null(header_of(&whole, "Content-Encoding"));
        assert_string_equal(whole.reply->content_type, "text/html; charset=utf-8");
        assert_string_equal(whole.reply->format, "page");
        answer_drop(&whole);
    }
}

TEST(test_compressed)
{
    struct answer gzip = ask_page("/", "gzip, br", NULL);
    assert_int_equal(gzip.status, 200);
    assert_int_equal(gzip.n, page_files[0].n_gzip);
    assert_memory_equal(gzip.body, page_files[0].gzip, gzip.n);
    assert_string_equal(header_of(&gzip, "Content-Encoding"), "gzip");
    assert_string_equal(header_of(&gzip, "ETag"), "\"abc-gzip\"");
    answer_drop(&gzip);
    assert_answer(ask_page("/", "identity;q=0", NULL), 406, WORDS("Accept-Encoding"));
}

TEST(test_an_unchanged_page)
{
    struct answer kept = ask_page("/", NULL, "W/\"abc\"");
    assert_int_equal(kept.status, 304);
    assert_int_equal(kept.n, 0);
    assert_string_equal(header_of(&kept, "ETag"), "\"abc\"");
    assert_string_equal(header_of(&kept, "Vary"), "Accept-Encoding");
    answer_drop(&kept);
    assert_answer(ask_page("/", "gzip", "\"abc\""), 200, NULL); /* the tag of other bytes */
    assert_answer(ask_page("/", "gzip", "\"abc-gzip\""), 304, NULL);
}

TEST(test_files)
{
    struct answer file = ask_page(BUILD "views/table.js", NULL, NULL);
    assert_int_equal(file.status, 200);
    assert_int_equal(file.n, 0);
    assert_string_equal(header_of(&file, "Cache-Control"), "public, max-age=31536000, immutable");
    assert_string_equal(file.reply->content_type, "text/javascript; charset=utf-8");
    assert_string_equal(file.reply->route, "/ui/{build}/{file}");
    answer_drop(&file);
    assert_answer(ask_page(BUILD "index.html", NULL, NULL), 200, WORDS("<p>"));
}

TEST(test_what_is_not_there)
{
    static const char *const names[] = {"views",           "views/",       "views/table.js/", "/views/table.js",
                                        "views//table.js", "./index.html", "../index.html",   "index.html/",
                                        "index.html/..",   "INDEX.HTML",   "index",           "index.htm",
                                        "index.html ",     "%69ndex.html"};
    char path[128];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, BUILD "%s", names[i]);
        assert_answer(ask_page(path, NULL, NULL), 404, NULL);
    }
    assert_answer(ask_page(BUILD "table.js", NULL, NULL), 404, WORDS("the page has no file \\\"table.js\\\""));
    assert_answer(ask_page("/ui/0123456789abcde/index.html", NULL, NULL), 404,
                  WORDS("build \\\"0123456789abcde\\\"", "it has 0123456789abcdef"));
    assert_answer(ask_page("/ui/0123456789abcdef0/index.html", NULL, NULL), 404, NULL);
    assert_answer(ask_page("/ui/0123456789abcdef", NULL, NULL), 404, NULL);
    assert_answer(ask_page("/ui/", NULL, NULL), 404, NULL);
    assert_answer(ask_page("/ui//index.html", NULL, NULL), 404, NULL);
}

/* A name longer than any is cut before it is looked up; it must not become the name of a file. */
TEST(test_long_names)
{
    char path[2048] = BUILD;
    memset(path + strlen(path), 'a', 2000);
    assert_answer(ask_page(path, NULL, NULL), 404, NULL);
    memset(path, '/', 3);
    memcpy(path, "/ui/", 4);
    memset(path + 4, 'b', 1000);
    assert_answer(ask_page(path, NULL, NULL), 404, NULL);
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
    static const char *const paths[] = {"/docs", "/openapi.json", "/schemes", "/presets"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        struct answer a = ask_page(paths[i], NULL, NULL), b = ask_page(paths[i], NULL, NULL);
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
    assert_answer(ask_page("/", NULL, NULL), 503, NULL);
    alloc_fail_at(-1);
    assert_answer(ask_page("/", NULL, NULL), 200, WORDS("<p>"));
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
