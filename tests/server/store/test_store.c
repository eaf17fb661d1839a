/* The parts of the store that need no network: what is read of its answers, the index, what the cache keeps, the keys.
 * What becomes of broken files is asked of a server, tests/http/store/test_store_*.py. */
#include "server/process/process.h"
#include "server/store/store.h"
#include "tests/support/folder.h"

#include <unistd.h>

#define DIGEST "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" /* of nothing */
#define ITEM(key, tag) "<Contents><Key>" key "</Key><ETag>" tag "</ETag><Size>1</Size></Contents>"
#define LIST(truncated, items)                                                                                         \
    "<?xml version=\"1.0\"?><ListBucketResult><IsTruncated>" truncated "</IsTruncated>" items "</ListBucketResult>"

/* ---- Answers ---- */

TEST(lists_are_read)
{
    struct store_list list = {0};
    char next[ANSWERS_TOKEN_BYTES];
    static const char first[] =
        LIST("true", ITEM("p/names/b", "&quot;12&quot;") ITEM("p/names/a", "\"34\"") ITEM("p/names/no name", "5")
                         ITEM("p/other/c", "6")
                             ITEM("p/names/", "7") "<NextContinuationToken>x&lt;y&amp;</NextContinuationToken>");
    static const char last[] = LIST("false", ITEM("p/names/c", "89"));
    assert_true(answers_list(first, "p/names/", 10, &list, next));
    assert_string_equal(next, "x<y&");
    assert_true(answers_list(last, "p/names/", 10, &list, next));
    assert_string_equal(next, "");
    store_list_sort(&list);
    assert_int_equal(list.n, 3);
    assert_string_equal(store_list_find(&list, "a")->version, "34");
    assert_string_equal(store_list_find(&list, "b")->version, "12");
    assert_string_equal(store_list_find(&list, "c")->version, "89");
    assert_null(store_list_find(&list, "d"));
    assert_false(answers_list(first, "p/names/", 4, &list, next)); /* more names than allowed */
    store_list_drop(&list);
}

TEST(what_is_no_list_is_refused)
{
    static const char *const wrong[] = {"",
                                        "<html>",
                                        "{}",
                                        "<Error><Code>X</Code></Error>",
                                        LIST("true", ITEM("p/names/a", "1")), /* it goes on, and nobody says where */
                                        LIST("true", "<NextContinuationToken></NextContinuationToken>"),
                                        LIST("perhaps", ITEM("p/names/a", "1")),
                                        LIST("false", "<Contents><ETag>1</ETag></Contents>"), /* a key is missing */
                                        "<ListBucketResult>" ITEM("p/names/a", "1") "</ListBucketResult>",
                                        LIST("false", ITEM("p/names/a", "1")) "<html>"};
    char next[ANSWERS_TOKEN_BYTES];
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct store_list list = {0};
        assert_false(answers_list(wrong[i], "p/names/", 10, &list, next));
        store_list_drop(&list);
    }
}

TEST(half_a_list_is_refused)
{
    char next[ANSWERS_TOKEN_BYTES], half[1000];
    static const char whole[] = LIST("false", ITEM("p/names/a", "1") ITEM("p/names/b", "2"));
    for (size_t n = 0; n <= sizeof whole - 1; n++) {
        struct store_list list = {0};
        snprintf(half, sizeof half, "%.*s", (int)n, whole);
        assert_int_equal(answers_list(half, "p/names/", 10, &list, next), n == sizeof whole - 1);
        store_list_drop(&list);
    }
    struct store_list list = {0};
    snprintf(half, sizeof half, "%s\r\n", whole);
    assert_true(answers_list(half, "p/names/", 10, &list, next));
    assert_int_equal(list.n, 2);
    store_list_drop(&list);
}

TEST(codes_are_words)
{
    char code[ANSWERS_CODE_BYTES];
    answers_code("<Error><Code>NoSuchBucket</Code></Error>", code);
    assert_string_equal(code, "NoSuchBucket");
    answers_code("<Error><Code>a b\n</Code></Error>", code);
    assert_string_equal(code, "a?b?");
    answers_code("nothing", code);
    assert_string_equal(code, "");
    answers_code(NULL, code);
    assert_string_equal(code, "");
}

TEST(names_say_digest_and_size)
{
    char text[ANSWERS_NAME_BYTES], sha256[STORE_DIGEST_BYTES];
    uint64_t n = 0;
    answers_print_name(text, DIGEST, 1104);
    assert_true(answers_name(text, sha256, &n));
    assert_string_equal(sha256, DIGEST);
    assert_int_equal(n, 1104);
    assert_true(answers_name("{\"sha256\":\"" DIGEST "\",\"bytes\":8,\"tensors\":{}}", sha256, &n));
    static const char *const wrong[] = {"",
                                        "{}",
                                        "{\"sha256\":\"" DIGEST "\"}",
                                        "{\"sha256\":\"" DIGEST "0\",\"bytes\":8}",
                                        "{\"sha256\":\"E3B0\",\"bytes\":8}",
                                        "{\"sha256\":\"" DIGEST "\",\"bytes\":-8}",
                                        "{\"sha256\":\"" DIGEST "\",\"bytes\":8.5}",
                                        "{\"sha256\":\"" DIGEST "\",\"bytes\":8",
                                        "{\"sha256\":\"" DIGEST "\",\"bytes\":9999999999999999999}"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(answers_name(wrong[i], sha256, &n));
}

/* ---- The index ---- */

TEST(the_index_remembers)
{
    struct s3_index *index = s3_index_new(), *again = s3_index_new();
    struct store_entry kept = {.name = "b"};
    struct store_list list = {.entries = &kept, .n = 1};
    char tag[STORE_VERSION_BYTES], sha256[STORE_DIGEST_BYTES];
    uint64_t n_bytes;
    size_t n;
    assert_true(s3_index_put(index, "b", "tag with blanks", DIGEST, 7));
    assert_true(s3_index_put(index, "a", "", DIGEST, 0));
    assert_false(s3_index_put(index, "a", "", DIGEST, 0));
    static const char head[] = "# http://127.0.0.1:1/bucket/team/names";
    char *text = s3_index_print(index, head, &n), *other = strdup(text), *old = strdup(strchr(text, '\n') + 1);
    assert_false(s3_index_parse(again, "# http://127.0.0.1:1/bucket/other/names", other));
    assert_false(s3_index_parse(again, head, old)); /* of a version that wrote no head */
    assert_int_equal(s3_index_n(again), 0);
    assert_true(s3_index_parse(again, head, text));
    free(other);
    free(old);
    assert_int_equal(s3_index_n(again), 2);
    assert_true(s3_index_get(again, "b", tag, sha256, &n_bytes));
    assert_string_equal(tag, "tag with blanks");
    assert_int_equal(n_bytes, 7);
    assert_true(s3_index_keep_listed(again, &list));
    assert_false(s3_index_keep_listed(again, &list));
    assert_false(s3_index_get(again, "a", tag, sha256, &n_bytes));
    assert_true(s3_index_has_blob(again, DIGEST));
    assert_true(s3_index_remove(again, "b"));
    assert_false(s3_index_remove(again, "b"));
    assert_false(s3_index_has_blob(again, DIGEST));
    free(text);
    s3_index_free(index);
    s3_index_free(again);
}

/* ---- The cache ---- */

static char used[STORE_DIGEST_BYTES];

static bool is_used(void *self, const char *sha256)
{
    (void)self;
    return strcmp(used, sha256) == 0;
}

/* Writes 100 bytes, all c; their digest. */
static void put_blob(struct cache *cache, char c, char *sha256)
{
    char bytes[100];
    memset(bytes, c, sizeof bytes);
    store_digest(bytes, sizeof bytes, sha256);
    cache_write(cache, sha256, bytes, sizeof bytes);
    usleep(20000); /* file systems may count time in steps of 4 ms */
}

static bool has_blob(struct cache *cache, const char *sha256)
{
    char *bytes = cache_read(cache, sha256, 100);
    free(bytes);
    usleep(20000);
    return bytes;
}

TEST_BETWEEN(the_longest_unused_goes_first, folder_make, folder_remove)
{
    char a[STORE_DIGEST_BYTES], b[STORE_DIGEST_BYTES], c[STORE_DIGEST_BYTES], d[STORE_DIGEST_BYTES],
        e[STORE_DIGEST_BYTES];
    struct cache *cache = cache_new(folder, 300, is_used, NULL);
    assert_non_null(cache);
    put_blob(cache, 'a', a);
    put_blob(cache, 'b', b);
    put_blob(cache, 'c', c);
    assert_true(has_blob(cache, a)); /* so b is the oldest now */
    put_blob(cache, 'd', d);
    assert_false(has_blob(cache, b));
    strcpy(used, c); /* belongs to a name: it stays though it is the oldest */
    put_blob(cache, 'e', e);
    assert_true(has_blob(cache, c) && has_blob(cache, d) && has_blob(cache, e));
    assert_false(has_blob(cache, a));
    assert_int_equal(cache_figures(cache).n_bytes, 300);
    cache_free(cache);
    cache = cache_new(folder, 250, is_used, NULL);
    assert_int_equal(cache_figures(cache).n_bytes, 300); /* another process may have left more */
    put_blob(cache, 'f', a);
    assert_int_equal(cache_figures(cache).n_bytes, 200);
    assert_true(has_blob(cache, c));
    cache_free(cache);
}

/* ---- Keys ---- */

TEST_BETWEEN(keys_come_from_the_first_section, folder_make, folder_remove)
{
    static const char two_sections[] = "# mine\n[default]\n aws_access_key_id = one\r\nAWS_SECRET_ACCESS_KEY=two=\n"
                                       "region=eu\n[other]\naws_access_key_id=three\n";
    static const char no_section[] = "aws_access_key_id = four\naws_session_token = five\n";
    char error[CREDENTIALS_ERROR_BYTES];
    struct credentials keys;
    write_file("keys", two_sections, sizeof two_sections - 1);
    struct credential_source *source = credential_source_new(path_of("keys"), error);
    assert_non_null(source);
    credentials_get(source, &keys);
    assert_string_equal(keys.access_key, "one");
    assert_string_equal(keys.secret_key, "two=");
    assert_string_equal(keys.session_token, "");
    assert_string_equal(keys.region, "eu");
    write_file("keys", no_section, sizeof no_section - 1);
    credentials_get(source, &keys);
    assert_string_equal(keys.access_key, "four");
    assert_string_equal(keys.secret_key, "");
    assert_string_equal(keys.session_token, "five");
    assert_int_equal(unlink(path_of("keys")), 0);
    credentials_get(source, &keys); /* it stays as it was */
    assert_string_equal(keys.access_key, "four");
    credentials_wipe(&keys);
    assert_string_equal(keys.access_key, "");
    credential_source_free(source);
    assert_null(credential_source_new(path_of("keys"), error));
    assert_non_null(strstr(error, "--store-credentials"));
}

void tests_begin(void) { log_setup(LOG_FORMAT_TEXT, LOG_ERROR, STDERR_FILENO); }
