/* What an S3-compatible store answers, and the index that is kept of it. A list has only valid names, at most as many
 * as are allowed; a name says the same after it was printed again; an index that was read and printed is read as the
 * same. Nothing is read past the end of a text. */
#include "tests/fuzz/laws.h"
#include "api/api.h"
#include "server/store/store.h"

enum { NAMES_MAX = 8 };

static void check_list(const char *text)
{
    struct store_list list = {0};
    char next[ANSWERS_TOKEN_BYTES], code[ANSWERS_CODE_BYTES];
    bool fine = answers_list(text, "a/names/", NAMES_MAX, &list, next);
    REQUIRE(list.n <= NAMES_MAX && strlen(next) < sizeof next);
    for (size_t i = 0; i < list.n; i++)
        REQUIRE(api_weight_name_is_valid(list.entries[i].name) &&
                memchr(list.entries[i].version, '\0', STORE_VERSION_BYTES));
    store_list_sort(&list);
    for (size_t i = 0; fine && i < list.n; i++)
        REQUIRE(store_list_find(&list, list.entries[i].name));
    store_list_drop(&list);
    answers_code(text, code);
    REQUIRE(strlen(code) < sizeof code && !strpbrk(code, "\n\" <>"));
}

static void check_name(const char *text)
{
    char sha256[STORE_DIGEST_BYTES], again[STORE_DIGEST_BYTES], printed[ANSWERS_NAME_BYTES];
    uint64_t n, n_again;
    if (!answers_name(text, sha256, &n))
        return;
    REQUIRE(strspn(sha256, "0123456789abcdef") == STORE_DIGEST_BYTES - 1);
    REQUIRE(answers_print_name(printed, sha256, n) < sizeof printed);
    REQUIRE(answers_name(printed, again, &n_again) && n == n_again && strcmp(sha256, again) == 0);
}

static const char head[] = "# http://127.0.0.1:9/bucket/names";

static char *print_index(char *text, size_t *n)
{
    struct s3_index *index = s3_index_new();
    struct store_list list;
    REQUIRE(index);
    s3_index_parse(index, head, text);
    REQUIRE(s3_index_list(index, &list) && list.n == s3_index_n(index));
    for (size_t i = 0; i < list.n; i++) {
        char etag[STORE_VERSION_BYTES], sha256[STORE_DIGEST_BYTES];
        uint64_t n_bytes;
        REQUIRE(api_weight_name_is_valid(list.entries[i].name));
        REQUIRE(s3_index_get(index, list.entries[i].name, etag, sha256, &n_bytes) && s3_index_has_blob(index, sha256));
    }
    store_list_drop(&list);
    char *printed = s3_index_print(index, head, n);
    REQUIRE(printed);
    s3_index_free(index);
    return printed;
}

static void check_index(const char *text)
{
    size_t n, n_again, n_headed = strlen(head) + strlen(text) + 2;
    char *headed = malloc(n_headed);
    REQUIRE(headed);
    snprintf(headed, n_headed, "%s\n%s", head, text);
    char *once = print_index(headed, &n);
    char *copy = text_of((const uint8_t *)once, n);
    char *twice = print_index(copy, &n_again);
    REQUIRE(n == n_again && memcmp(once, twice, n) == 0);
    free(once);
    free(twice);
    free(copy);
    free(headed);
}

TEXT_TARGET(text, size)
{
    check_list(text);
    check_name(text);
    check_index(text);
}
