/* The log: lines as text and JSON, hostile texts, a reader that does not read. */
#define _GNU_SOURCE /* F_SETPIPE_SZ */
#include "server/process/process.h"
#include "tests/support/cmocka.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define NOW "2026-01-02T03:04:05.678Z"
#define N_OF(array) (sizeof(array) / sizeof *(array))

TEST(text_and_json)
{
    const struct log_field fields[] = {
        LOG_TEXT("id", "a-1"),       LOG_TEXT("path", "/a b"),    LOG_TEXT("scheme", ""),   LOG_COUNT("status", 200),
        LOG_MS("total_ms", 1234567), LOG_FLAG("cancelled", true), LOG_FLAG("other", false), LOG_TEXT("none", NULL)};
    char line[512];
    log_print(line, sizeof line, LOG_FORMAT_TEXT, LOG_INFO, "request", NOW, fields, N_OF(fields));
    assert_string_equal(line, NOW " info request id=a-1 path=\"/a b\" status=200 total_ms=1.235 cancelled=true\n");
    log_print(line, sizeof line, LOG_FORMAT_JSON, LOG_WARN, "request", NOW, fields, N_OF(fields));
    assert_string_equal(line, "{\"time\":\"" NOW "\",\"level\":\"warn\",\"event\":\"request\",\"id\":\"a-1\","
                              "\"path\":\"/a b\",\"status\":200,\"total_ms\":1.235,\"cancelled\":true}\n");
}

TEST(hostile_texts_stay_in_their_quotes)
{
    static const struct {
        const char *text, *quoted;
    } cases[] = {
        {"a\"b\\c", "\"a\\\"b\\\\c\""},
        {"x\nlevel=error", "\"x\\u000alevel=error\""},
        {"\033[31m\x7f", "\"\\u001b[31m\\u007f\""},
        {"\xc3\xa4\xf0\x9f\x98\x80", "\"\xc3\xa4\xf0\x9f\x98\x80\""},
        {"\xc2\x9b"
         "31m\xc2\x85\xc2\xa0",
         "\"\\u009b31m\\u0085\xc2\xa0\""}, /* C1; not the blank behind */
        {"a\xe2\x80\xa8"
         "b\xe2\x80\xae\xe2\x81\xa6\xe2\x80\xaf",
         "\"a\\u2028b\\u202e\\u2066\xe2\x80\xaf\""}, /* ends of lines, turns */
        {"\xff\xc3", "\"\xef\xbf\xbd\xef\xbf\xbd\""},
        {"\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""}, /* a surrogate */
        {"\xc0\xaf", "\"\xef\xbf\xbd\xef\xbf\xbd\""},                 /* overlong */
    };
    for (size_t i = 0; i < N_OF(cases); i++) {
        const struct log_field field = LOG_TEXT("v", cases[i].text);
        char line[256], expected[256];
        log_print(line, sizeof line, LOG_FORMAT_JSON, LOG_INFO, "e", "t", &field, 1);
        snprintf(expected, sizeof expected, "{\"time\":\"t\",\"level\":\"info\",\"event\":\"e\",\"v\":%s}\n",
                 cases[i].quoted);
        assert_string_equal(line, expected);
    }
}

TEST(long_lines_are_cut_and_end)
{
    char text[3000], line[128];
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    const struct log_field field = LOG_TEXT("v", text);
    for (size_t room = 64; room <= sizeof line; room++) {
        size_t n = log_print(line, room, LOG_FORMAT_TEXT, LOG_INFO, "e", "t", &field, 1);
        assert_true(n < room && line[n] == '\0' && line[n - 1] == '\n');
    }
}

/* Nobody reads: the calls return, lines are dropped and counted; what was kept comes out whole afterwards. */
TEST(a_full_pipe_does_not_block)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    fcntl(ends[1], F_SETPIPE_SZ, 4096);
    log_setup(LOG_FORMAT_TEXT, LOG_INFO, ends[1]);
    enum { N = 20000 };
    for (int i = 0; i < N; i++) {
        const struct log_field field = LOG_COUNT("i", (uint64_t)i);
        log_line(LOG_INFO, "test", &field, 1);
        log_flush();
    }
    uint64_t n_dropped = log_n_dropped();
    assert_true(n_dropped > 0 && n_dropped < N);

    static char all[1 << 20];
    size_t n = 0;
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    for (ssize_t got; (got = read(ends[0], all + n, sizeof all - n - 1)) > 0; n += (size_t)got)
        log_flush();
    size_t n_lines = 0;
    for (char *line = strtok(all, "\n"); line; line = strtok(NULL, "\n"), n_lines++) {
        unsigned long i = 0;
        char end = 0;
        assert_int_equal(sscanf(strstr(line, "test "), "test i=%lu%c", &i, &end), 1);
        assert_int_equal(i, n_lines); /* the first ones were kept, in order */
    }
    assert_int_equal(n_lines + n_dropped, N);
    log_setup(LOG_FORMAT_TEXT, LOG_INFO, STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
}

TEST(level_and_listening)
{
    int ends[2];
    char all[512];
    assert_int_equal(pipe(ends), 0);
    log_setup(LOG_FORMAT_TEXT, LOG_WARN, ends[1]);
    log_info("not seen");
    log_listening("http://127.0.0.1:8080");
    log_setup(LOG_FORMAT_JSON, LOG_ERROR, ends[1]);
    log_warn("not seen");
    log_listening("http://127.0.0.1:8080");
    log_setup(LOG_FORMAT_TEXT, LOG_INFO, STDERR_FILENO);
    close(ends[1]);
    ssize_t n = read(ends[0], all, sizeof all - 1);
    close(ends[0]);
    assert_true(n > 0);
    all[n] = '\0';
    assert_memory_equal(all, "listening on http://127.0.0.1:8080\n{\"time\"", 42);
    assert_non_null(strstr(all, "\"message\":\"listening on http://127.0.0.1:8080\"}\n"));
    assert_null(strstr(all, "not seen"));
}
