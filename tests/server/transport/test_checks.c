/* Bodies of methods, request targets, request ids and trace contexts. Heads that can be read in two ways are rows of
 * tests/cases/heads.jsonl, for test_head.c. */
#include "server/transport/heads.h"
#include "tests/support/cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_OF(array) (sizeof(array) / sizeof *(array))

/* headers: "Name: value" each, NULL-terminated. */
static struct http_head head_of(const char *version, const char *const *headers)
{
    struct http_head head = {.version = version};
    for (; *headers; headers++) {
        char name[64] = "";
        const char *colon = strchr(*headers, ':');
        memcpy(name, *headers, (size_t)(colon - *headers));
        http_head_take(&head, name, colon + 2);
    }
    return head;
}

/* Whatever is kept under a URL may depend on the URL only; an empty body is none. */
TEST(some_methods_have_no_body)
{
    static const char *const bodies[] = {"Content-Length: 1", "Content-Length: 007", "Transfer-Encoding: chunked"};
    static const char *const none[] = {"Content-Length: 0", "Content-Length: 000", "Accept: a/b"};
    static const char *const methods[] = {"GET", "HEAD", "POST", "QUERY", "PUT", "DELETE", "OPTIONS"};
    for (size_t m = 0; m < N_OF(methods); m++)
        for (size_t i = 0; i < N_OF(bodies); i++) {
            struct http_head head = head_of("HTTP/1.1", (const char *const[]){"Host: a", bodies[i], NULL});
            head.method = methods[m];
            struct http_refusal refusal = http_head_check(&head);
            assert_int_equal(refusal.status, m < 2 ? 400 : 0);
            assert_true(m >= 2 || (strstr(refusal.detail, "POST") && strstr(refusal.detail, "QUERY")));
            head = head_of("HTTP/1.1", (const char *const[]){"Host: a", none[i], NULL});
            head.method = methods[m];
            assert_int_equal(http_head_check(&head).status, 0);
        }
}

TEST(lengths)
{
    static const struct {
        const char *field;
        uint64_t length;
        bool has_body;
    } cases[] = {
        {"Accept: a/b", UINT64_MAX, false}, {"Content-Length: 0", 0, false},
        {"Content-Length: 000", 0, false},  {"Content-Length: 1234567890123", 1234567890123, true},
        {"Content-Length: 1", 1, true},     {"Transfer-Encoding: chunked", UINT64_MAX, true},
    };
    for (size_t i = 0; i < N_OF(cases); i++) {
        struct http_head head = head_of("HTTP/1.1", (const char *const[]){"Host: a", cases[i].field, NULL});
        assert_true(http_head_length(&head) == cases[i].length);
        assert_int_equal(http_head_has_body(&head), cases[i].has_body);
    }
}

TEST(targets)
{
    static const struct {
        const char *target, *path, *query; /* path NULL: refused */
    } cases[] = {
        {"/", "/", NULL},
        {"/encode", "/encode", NULL},
        {"/encode?", "/encode", ""},
        {"/encode?a=%2F?b", "/encode", "a=%2F?b"},
        {"/a%2fb%20c+d", "/a/b c+d", NULL},
        {"http://host:1/x?y", "/x", "y"},
        {"HTTPS://host/x", "/x", NULL},
        {"http://host", "/", NULL},
        {"http://host?y", "/", "y"},
        {"/%00", NULL, NULL},
        {"/a%0", NULL, NULL},
        {"/a%", NULL, NULL},
        {"/a%g0", NULL, NULL},
        {"*", NULL, NULL},
        {"host:80", NULL, NULL},
        {"?x", NULL, NULL},
        {"ftp://host/", NULL, NULL},
    };
    for (size_t i = 0; i < N_OF(cases); i++) {
        char target[64];
        const char *host, *path, *query;
        snprintf(target, sizeof target, "%s", cases[i].target);
        struct http_refusal refusal = http_target_split(target, &host, &path, &query);
        assert_int_equal(refusal.status, cases[i].path ? 0 : 400);
        if (!cases[i].path)
            continue;
        assert_string_equal(path, cases[i].path);
        assert_true(!host == (*cases[i].target == '/'));
        if (host)
            assert_true(strcmp(host, "host") == 0 || strcmp(host, "host:1") == 0);
        assert_true(!query == !cases[i].query);
        if (query)
            assert_string_equal(query, cases[i].query);
    }
}

TEST(request_ids)
{
    char id[131];
    memset(id, 'x', sizeof id);
    id[128] = '\0';
    assert_true(http_id_is_valid(id));
    id[128] = 'x', id[129] = '\0';
    assert_false(http_id_is_valid(id));
    assert_true(http_id_is_valid("A.b_c-9"));
    static const char *const bad[] = {"", "a b", "a\n", "\xc3\xa4", "a\"", "a/b", "<x>"};
    for (size_t i = 0; i < N_OF(bad); i++)
        assert_false(http_id_is_valid(bad[i]));
}

TEST(trace_contexts)
{
    assert_true(http_traceparent_is_valid("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"));
    assert_true(http_traceparent_is_valid("01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-ab"));
    static const char *const bad[] = {
        "",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0",
        "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-ab",
        "0--0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-\r\n",
    };
    for (size_t i = 0; i < N_OF(bad); i++)
        if (http_traceparent_is_valid(bad[i]))
            fail_msg("accepted: %s", bad[i]);
}

TEST(first_bytes)
{
    static const struct {
        bool is_bulky;
        const char *bytes;
    } cases[] = {
        {false, ""},
        {false, "\n"},
        {false, "GET / HTTP/1.1"},
        {false, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"},
        {false, "POST / HTTP/1.1\r\nContent-Length: 65536\r\n\r\n"},
        {true, "POST / HTTP/1.1\r\nContent-Length: 65537\r\n\r\n"},
        {true, "PUT / HTTP/1.1\r\nHost: a\r\ncontent-length:\t 99999999999999999999999999\r\n\r\n"},
        {true, "POST / HTTP/1.1\nTRANSFER-ENCODING: chunked\n\n"},
        {false, "POST / HTTP/1.1\r\nX-Content-Length: 99999999\r\n\r\n"},
        {false, "POST / HTTP/1.1\r\n\r\nContent-Length: 99999999\r\n\r\n"}, /* that is the body */
        {false, "POST / HTTP/1.1\r\nContent-Length:"},
        {false, "POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n"},
        {false, "POST / HTTP/1.1\r\nTransfer-Encodin"},
    };
    for (size_t i = 0; i < N_OF(cases); i++) {
        size_t n = strlen(cases[i].bytes);
        char *bytes = malloc(n); /* without an end, so that reading too far is seen */
        memcpy(bytes, cases[i].bytes, n);
        if (http_begins_bulky(bytes, n) != cases[i].is_bulky)
            fail_msg("case %zu: %s", i, cases[i].bytes);
        free(bytes);
    }
}

static bool names_us(const char *host)
{
    struct http_head head = {.version = "HTTP/1.1"};
    http_head_take(&head, "Host", host);
    return http_head_names_us(&head, "posenc.local", "a.example, B.example");
}

TEST(names_of_this_machine)
{
    static const char *const ours[] = {
        "localhost", "LocalHost:80",  "a.localhost", "127.0.0.1", "127.255.0.1:1", "[::1]:8080", "posenc.local",
        "a.example", "b.example:443", "localhost.",  ""};
    static const char *const others[] = {"evil.example", "localhostx", "xlocalhost",  ".localhost.x", "127.0.0.1.x",
                                         "[::1]x",       "::1",        "127.1",       "[]",           "c.example",
                                         "a.example:x",  ",",          "..localhost", "-.localhost",  "a-.localhost",
                                         "a..localhost", ".localhost"};
    for (size_t i = 0; i < N_OF(ours); i++)
        assert_true(names_us(ours[i]));
    for (size_t i = 0; i < N_OF(others); i++)
        assert_false(names_us(others[i]));
    assert_true(http_head_names_us(&(struct http_head){.version = "HTTP/1.0"}, "", ""));
}

TEST(pages_of_other_origins)
{
    static const struct {
        bool is_foreign;
        const char *headers[4];
    } cases[] = {
        {false, {"Host: a"}},
        {false, {"Host: a", "Origin: "}},
        {false, {"Host: a:8080", "Origin: http://A:8080"}},
        {false, {"Host: a", "Origin: https://a"}},
        {false, {"Host: a:443", "Origin: https://a"}},
        {true, {"Host: a:443", "Origin: http://a"}},
        {true, {"Host: a", "Origin: http://a:8080"}},
        {true, {"Host: a", "Origin: http://b"}},
        {true, {"Host: a", "Origin: null"}},
        {true, {"Host: a", "Origin: a"}},
        {true, {"Host: ", "Origin: http://"}},
        {true, {"Origin: http://a"}},
        {true, {"Host: a", "Origin: http://a", "Origin: http://b"}},
    };
    for (size_t i = 0; i < N_OF(cases); i++) {
        struct http_head head = head_of("HTTP/1.1", cases[i].headers);
        assert_int_equal(http_head_is_foreign(&head), cases[i].is_foreign);
    }
}
