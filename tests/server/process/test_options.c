/* Options: which source wins, what is refused and how, and that the printed configuration reads back. */
#include "server/process/process.h"
#include "tests/support/cmocka.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char error[OPTIONS_TEXT_BYTES];

static enum options_action read_with(struct options *options, const char *const *flags, const char *const *environment)
{
    char *argv[16] = {(char[]){"posencd"}};
    int argc = 1;
    for (; flags[argc - 1]; argc++)
        argv[argc] = (char *)(uintptr_t)flags[argc - 1];
    return options_read(options, argc, argv, (char *const *)(uintptr_t)environment, error);
}

#define READ(options, environment, ...) read_with(options, (const char *const[]){__VA_ARGS__, NULL}, environment)
static const char *const empty[] = {NULL};

TEST(defaults)
{
    struct options options;
    assert_int_equal(read_with(&options, empty, empty), OPTIONS_RUN);
    assert_string_equal(options.host, "127.0.0.1");
    assert_int_equal(options.port, 8080);
    assert_int_equal(options.max_body, 256 << 20);
    assert_int_equal(options.max_memory, 0);  /* half of the control group's limit */
    assert_int_equal(options.max_weights, 0); /* a quarter */
    assert_true(options.max_answer == 64ULL << 30);
    assert_int_equal(options.drain_seconds, 30);
    assert_int_equal(options.drain_delay, 0);
    assert_string_equal(options.sources[0], "default");
    options_drop(&options);
}

/* Every numeric row sets its own field, by its own variable, and no other. */
TEST(each_row_sets_its_field)
{
    static const struct {
        const char *name;
        size_t offset;
        bool is_number;
    } rows[] = {
#define OPTION(TYPE, name, ...)                                                                                        \
    {#name, offsetof(struct options, name), _Generic(((struct options *)0)->name, uint64_t : true, default : false)},
#include "server/process/options_list.h"
#undef OPTION
    };
    for (size_t i = 0; i < OPTIONS_N; i++) {
        if (!rows[i].is_number)
            continue;
        struct options usual, options;
        assert_int_equal(read_with(&usual, empty, empty), OPTIONS_RUN);
        bool is_chosen = strcmp(rows[i].name, "max_memory") == 0 || strcmp(rows[i].name, "max_weights") == 0;
        uint64_t step = is_chosen ? 1 << 20 : 1; /* 0 is "the server chooses" */
        uint64_t own = *(const uint64_t *)(const void *)((const char *)&usual + rows[i].offset) + step;
        char variable[128] = "POSENC_";
        for (size_t k = 0; rows[i].name[k]; k++)
            variable[7 + k] = (char)toupper((unsigned char)rows[i].name[k]);
        snprintf(variable + strlen(variable), 32, "=%llu", (unsigned long long)own);
        assert_int_equal(read_with(&options, empty, (const char *[]){variable, NULL}), OPTIONS_RUN);
        for (size_t k = 0; k < OPTIONS_N; k++) {
            const void *here = (const char *)&options + rows[k].offset, *there = (const char *)&usual + rows[k].offset;
            if (rows[k].is_number)
                assert_true(*(const uint64_t *)here == *(const uint64_t *)there + (k == i ? step : 0));
            assert_string_equal(options.sources[k], k == i ? "environment" : "default");
        }
        options_drop(&options);
        options_drop(&usual);
    }
}

/* A temporary file with the given text; unlinked by the caller. */
static void write_file(char *path, const char *text)
{
    strcpy(path, "/tmp/posenc-test-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

TEST(flag_before_environment_before_file)
{
    char path[64];
    write_file(path, "{\"port\": 1, \"max_body\": \"1MiB\", \"workers\": 3, \"host\": null}");
    const char *environment[] = {"POSENC_PORT=2", "POSENC_MAX_BODY=2MiB", "HOME=/", NULL};
    struct options options;
    assert_int_equal(READ(&options, environment, "--config", path, "--port=3"), OPTIONS_RUN);
    unlink(path);
    assert_int_equal(options.port, 3);
    assert_int_equal(options.max_body, 2 << 20);
    assert_int_equal(options.workers, 3);
    assert_string_equal(options.host, "127.0.0.1");
    options_drop(&options);
}

TEST(refusals_say_what_is_allowed)
{
    static char path[64];
    static const struct {
        const char *flags[4], *words[3];
    } cases[] = {
        {{"--prot", "1"}, {"--prot", "nearest: --port"}},
        {{"--port", "65536"}, {"65536", "0 to 65535"}},
        {{"--port", "-1"}, {"\"-1\""}},
        {{"--port", "80x"}, {"80x"}},
        {{"--trusted-proxy", "proxy.example.org"}, {"--trusted-proxy", "proxy.example.org", "2001:db8::/32"}},
        {{"--trusted-proxy", "::1", "--trusted-proxy=10.0.0.0/40"}, {"--trusted-proxy", "10.0.0.0/40", "unix"}},
        {{"--port", " 80"}, {"integer"}},
        {{"--port", ""}, {"integer"}},
        {{"--port"}, {"needs a value"}},
        {{"--port", "1", "--port=2"}, {"twice"}},
        {{"--max-body", "12MB"}, {"MiB"}},
        {{"--max-body", "99999999999999999999"}, {"max-body"}},
        {{"--max-memory", "1023"}, {"--max-memory", "or 0"}},
        {{"--max-weights", "1"}, {"--max-weights", "or 0"}},
        {{"--max-answer", "18446744073709551615GiB"}, {"max-answer"}},
        {{"--log-format", "xml"}, {"text, json"}},
        {{"serve"}, {"serve", "--help"}},
        {{"--config", "/nonexistent/file"}, {"/nonexistent/file"}},
        {{"--config", path}, {"line 2", "unknown key max_bodi; nearest: max_body"}},
    };
    write_file(path, "{\n  \"max_bodi\": 1}");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct options options;
        assert_int_equal(read_with(&options, cases[i].flags, empty), OPTIONS_ERROR);
        for (size_t w = 0; w < 3 && cases[i].words[w]; w++)
            if (!strstr(error, cases[i].words[w]))
                fail_msg("\"%s\" lacks \"%s\"", error, cases[i].words[w]);
        options_drop(&options);
    }
    unlink(path);
}

/* Each list is its own, wherever its parts stand among the flags; and each source replaces the one before it whole. */
TEST(repeated_flags_are_lists)
{
    const char *environment[] = {"POSENC_CORS_ORIGIN=https://c", "POSENC_TRUSTED_PROXY=::1,unix", NULL};
    struct options options;
    assert_int_equal(READ(&options, empty, "--trusted-proxy", "10.0.0.0/8", "--cors-origin=https://a",
                          "--trusted-proxy=unix", "--cors-origin", "https://b"),
                     OPTIONS_RUN);
    assert_string_equal(options.trusted_proxy, "10.0.0.0/8 unix");
    assert_string_equal(options.cors_origin, "https://a https://b");
    options_drop(&options);
    assert_int_equal(READ(&options, environment, "--cors-origin=https://a"), OPTIONS_RUN);
    assert_string_equal(options.trusted_proxy, "::1,unix");
    assert_string_equal(options.cors_origin, "https://a");
    options_drop(&options);
}

TEST(unknown_variables_warn)
{
    const char *environment[] = {"POSENC_MAX_BODDY=1", "POSENC_PORT=tcp://10.0.0.1:8080",
                                 "POSENC_SERVICE_HOST=10.0.0.1", "POSENC_PORT_8080_TCP=tcp://10.0.0.1:8080", NULL};
    struct options options;
    assert_int_equal(read_with(&options, empty, environment), OPTIONS_RUN);
    assert_int_equal(options.port, 8080); /* what Kubernetes puts there is not for us */
    assert_string_equal(options.warning, "unknown environment variable POSENC_MAX_BODDY; nearest: POSENC_MAX_BODY");
    options_drop(&options);
}

TEST(actions)
{
    static const struct {
        const char *flag;
        enum options_action action;
    } cases[] = {{"--help", OPTIONS_HELP},
                 {"--version", OPTIONS_VERSION},
                 {"--print-config", OPTIONS_PRINT_CONFIG},
                 {"--print-man", OPTIONS_PRINT_MAN}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct options options;
        assert_int_equal(READ(&options, empty, cases[i].flag), cases[i].action);
        options_drop(&options);
    }
}

static char *printed(const struct options *options)
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    options_print_config(options, out);
    fclose(out);
    return text;
}

TEST(printed_config_reads_back)
{
    struct options options, again;
    char dir[801] = "", origins[4000] = "";
    memset(dir, 'd', sizeof dir - 1);
    memset(origins, 'o', sizeof origins - 1); /* a long list of a repeated flag */
    assert_int_equal(READ(&options, empty, "--port", "17", "--max-body=3KiB", "--log-format", "json", "--host",
                          "a\"b\\\b\f\n\r\t", "--weights-dir", dir, "--cors-origin", origins),
                     OPTIONS_RUN);
    char path[64], *text = printed(&options);
    write_file(path, text);
    assert_int_equal(READ(&again, empty, "--config", path), OPTIONS_RUN);
    unlink(path);
    char *text_again = printed(&again);
    assert_string_equal(text, text_again);
    assert_string_equal(again.host, options.host);
    assert_string_equal(again.weights_dir, dir);
    assert_string_equal(again.cors_origin, origins);
    assert_non_null(strstr(text, "\"max_body\": 3072"));
    free(text);
    free(text_again);
    options_drop(&options);
    options_drop(&again);
}

TEST(bytes)
{
    uint64_t n = 0;
    assert_true(options_bytes_parse("17", &n) && n == 17);
    assert_true(options_bytes_parse("17B", &n) && n == 17);
    assert_true(options_bytes_parse("2KiB", &n) && n == 2048);
    assert_true(options_bytes_parse("2 GiB", &n) && n == 2ULL << 30);
    assert_true(options_bytes_parse("1TiB", &n) && n == 1ULL << 40);
    static const char *const bad[] = {"", "KiB", "-1", "1.5GiB", "1kb", "1 KiB ", "0x10", "99999999TiB"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(options_bytes_parse(bad[i], &n));
}

/* ---- The file's syntax ------------------------------------------------------------------------------------------ */

static bool collect(void *self, const char *key, const char *value, char *reason)
{
    (void)reason;
    char *all = self;
    sprintf(all + strlen(all), "%s=%s;", key, value);
    return true;
}

TEST(config_file_members)
{
    char all[256] = "", why[CONFIG_FILE_ERROR_BYTES];
    static const char text[] = " {\"a\" : \"x\\\"y\\n\", \"b\":-1.5e+3,\r\n\t\"c\":true, \"d\":null, \"e\":\"\" } \n";
    assert_true(config_file_parse(text, strlen(text), collect, all, why));
    assert_string_equal(all, "a=x\"y\n;b=-1.5e+3;c=true;e=;");
    all[0] = '\0';
    assert_true(config_file_parse("{}", 2, collect, all, why));
    assert_string_equal(all, "");
}

TEST(config_file_refusals)
{
    static const char *const bad[] = {"",
                                      "[]",
                                      "{",
                                      "{\"a\"}",
                                      "{\"a\":}",
                                      "{\"a\":1,}",
                                      "{\"a\":01}",
                                      "{\"a\":+1}",
                                      "{\"a\":.5}",
                                      "{\"a\":1.}",
                                      "{\"a\":1e}",
                                      "{\"a\":[1]}",
                                      "{\"a\":{}}",
                                      "{\"a\":\"}",
                                      "{a:1}",
                                      "{\"a\":\"\t\"}",
                                      "{\"a\":1}x",
                                      "{\"a\":yes}",
                                      "{\"a\":\"\\x\"}",
                                      "{\"a\":1 \"b\":2}",
                                      "{,}",
                                      "{\"a\":nul}",
                                      "{\"a\":1,\"a\":2}",
                                      "{\"a\":\"\\u0041\"}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char all[256] = "", why[CONFIG_FILE_ERROR_BYTES] = "";
        if (config_file_parse(bad[i], strlen(bad[i]), collect, all, why))
            fail_msg("accepted: %s", bad[i]);
        assert_non_null(strstr(why, "line 1, column "));
    }
}

/* What is too long is refused where it stands, and what is not arrives whole. */
TEST(config_file_long_values)
{
    enum { MAX = 4096 };
    static char text[MAX + 64], all[MAX + 64], expected[MAX + 64];
    static const char *const quotes[] = {"\"", ""};
    for (int n = MAX - 2; n <= MAX + 2; n++)
        for (size_t i = 0; i < 2; i++) {
            char why[CONFIG_FILE_ERROR_BYTES] = "";
            int n_filled = sprintf(text, "{\n \"a\": 1,\n \"b\": %s1", quotes[i]);
            memset(text + n_filled, '0', (size_t)n - 1);
            sprintf(text + n_filled + n - 1, "%s}", quotes[i]);
            sprintf(expected, "a=1;b=1");
            memset(expected + 7, '0', (size_t)n - 1);
            strcpy(expected + 7 + n - 1, ";");
            *all = '\0';
            bool is_fine = config_file_parse(text, strlen(text), collect, all, why);
            assert_int_equal(is_fine, n <= MAX - (i == 1));
            if (is_fine)
                assert_string_equal(all, expected);
            else
                assert_non_null(strstr(why, "line 3, column "));
        }
}

/* What is too long together is refused, not cut. */
TEST(lists_that_are_too_long)
{
    static char origins[2100];
    struct options options;
    memset(origins, 'o', sizeof origins - 1);
    assert_int_equal(READ(&options, empty, "--cors-origin", origins, "--cors-origin", origins), OPTIONS_ERROR);
    assert_non_null(strstr(error, "--cors-origin is too long, all of them together"));
    options_drop(&options);
}

TEST(config_file_many_keys)
{
    enum { MAX = 64 };
    for (int n = MAX; n <= MAX + 1; n++) {
        char text[1024] = "{", all[1024] = "", why[CONFIG_FILE_ERROR_BYTES] = "";
        for (int i = 0; i < n; i++)
            sprintf(text + strlen(text), "%s\"k%d\":1", i ? "," : "", i);
        strcat(text, "}");
        assert_int_equal(config_file_parse(text, strlen(text), collect, all, why), n == MAX);
        assert_true(n == MAX || strstr(why, "more than 64 keys"));
    }
}
