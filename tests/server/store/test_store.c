/* The parts of the store that need no network: what is read of its answers, the index, the cache, the keys. */
#include "server/process/process.h"
#include "server/store/store.h"
#include "tests/support/cmocka.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIGEST "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" /* of nothing */
#define ITEM(key, tag) "<Contents><Key>" key "</Key><ETag>" tag "</ETag><Size>1</Size></Contents>"
#define LIST(truncated, items)                                                                                         \
    "<?xml version=\"1.0\"?><ListBucketResult><IsTruncated>" truncated "</IsTruncated>" items "</ListBucketResult>"

static char folder[] = "/tmp/posenc-store-XXXXXX";

static int folder_make(void **state)
{
    memcpy(folder + sizeof folder - 7, "XXXXXX", 6);
    return mkdtemp(folder) ? 0 : -1;
}

static int folder_remove(void **state)
{
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

static void write_file(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static bool is_there(const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

/* ---- Drafts ---- */

/* A server that writes "bytes" to the file a.safetensors of the folder. */
static void *write_a(void *result)
{
    char why[STORE_WHY_BYTES];
    struct store *store = folder_store_new(folder, ".safetensors");
    struct store_writing writing = {.bytes = "bytes", .n = 5};
    *(enum store_result *)result = store->write(store->self, "a", &writing, why);
    store_free(store);
    return NULL;
}

/* The number of drafts that have all their bytes. */
static size_t n_drafts(void)
{
    size_t n = 0;
    DIR *entries = opendir(folder);
    for (const struct dirent *entry; (entry = readdir(entries));) {
        struct stat status;
        bool is_draft = strlen(entry->d_name) == strlen(".posenc-") + 16;
        n += is_draft && fstatat(dirfd(entries), entry->d_name, &status, 0) == 0 && status.st_size == 5;
    }
    closedir(entries);
    return n;
}

/* While a writer waits to rename its draft, another server starts; it removes only what a crash has left. */
TEST_BETWEEN(a_starting_server_leaves_drafts_of_others, folder_make, folder_remove)
{
    char path[256];
    enum store_result result = STORE_FAILED;
    pthread_t writer;
    snprintf(path, sizeof path, "%s/.posenc-lock", folder);
    int held = open(path, O_RDWR | O_CREAT, 0600);
    assert_int_equal(flock(held, LOCK_EX), 0);
    assert_int_equal(pthread_create(&writer, NULL, write_a, &result), 0);
    for (int i = 0; i < 2000 && n_drafts() == 0; i++)
        usleep(1000);
    usleep(20000); /* bytes to disk, and the wait for the lock */
    write_file(".posenc-0123456789abcdef", "crash");
    assert_int_equal(n_drafts(), 2);
    struct store *starting = folder_store_new(folder, ".safetensors");
    assert_int_equal(n_drafts(), 1);
    assert_false(is_there(".posenc-0123456789abcdef"));
    close(held);
    pthread_join(writer, NULL);
    assert_int_equal(result, STORE_DONE);
    assert_true(is_there("a.safetensors"));
    assert_int_equal(n_drafts(), 0);
    store_free(starting);
}

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

static const char *word_at(const void *words, size_t i) { return ((const char *const *)words)[i]; }

TEST(a_name_has_its_place)
{
    static const char *const words[] = {"A", "b", "ba", "c"};
    static const struct {
        const char *name;
        size_t n, place;
        bool is_there;
    } cases[] = {{"A", 4, 0, true},  {"c", 4, 3, true},  {"ba", 4, 2, true}, {"", 4, 0, false},
                 {"a", 4, 1, false}, {"d", 4, 4, false}, {"c", 3, 3, false}, {"x", 0, 0, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool is_there;
        assert_int_equal(store_place(words, cases[i].n, word_at, cases[i].name, &is_there), cases[i].place);
        assert_int_equal(is_there, cases[i].is_there);
    }
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

TEST_BETWEEN(spoiled_blobs_are_removed, folder_make, folder_remove)
{
    char a[STORE_DIGEST_BYTES], file[128];
    struct cache *cache = cache_new(folder, 1000, is_used, NULL);
    put_blob(cache, 'a', a);
    snprintf(file, sizeof file, "%s.safetensors", a);
    assert_true(has_blob(cache, a) && is_there(file));
    write_file(file, "short");
    assert_false(has_blob(cache, a));
    assert_false(is_there(file));
    assert_int_equal(cache_figures(cache).n_spoiled, 1);
    assert_false(has_blob(cache, a));
    assert_int_equal(cache_figures(cache).n_spoiled, 1);
    assert_null(cache_read_index(cache));
    cache_write_index(cache, "text", 4);
    char *index = cache_read_index(cache);
    assert_string_equal(index, "text");
    free(index);
    cache_free(cache);
}

/* It may be readable later. */
TEST_BETWEEN(what_cannot_be_read_is_missing_and_stays, folder_make, folder_remove)
{
    char path[256];
    struct cache *cache = cache_new(folder, 1000, is_used, NULL);
    snprintf(path, sizeof path, "%s/%s.safetensors", folder, DIGEST);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_false(has_blob(cache, DIGEST));
    assert_int_equal(cache_figures(cache).n_spoiled, 0);
    assert_int_equal(cache_figures(cache).n_misses, 1);
    assert_int_equal(access(path, F_OK), 0);
    cache_free(cache);
}

/* What cannot be read under a blob's name is replaced by it: a folder, a pipe, a link to nowhere, a file of another
 * size. A folder with something in it stays, and is a failure; it hinders no other blob. */
TEST_BETWEEN(what_cannot_be_read_is_replaced, folder_make, folder_remove)
{
    char path[256], inner[300], sha256[STORE_DIGEST_BYTES], other[STORE_DIGEST_BYTES];
    struct cache *cache = cache_new(folder, 150, is_used, NULL);
    char bytes[100];
    memset(bytes, 'a', sizeof bytes);
    store_digest(bytes, sizeof bytes, sha256);
    snprintf(path, sizeof path, "%s/%s.safetensors", folder, sha256);
    for (int kind = 0; kind < 4; kind++) {
        switch (kind) {
        case 0: assert_int_equal(mkdir(path, 0700), 0); break;
        case 1: assert_int_equal(mkfifo(path, 0600), 0); break;
        case 2: assert_int_equal(symlink("/nowhere/at/all", path), 0); break;
        default: snprintf(inner, sizeof inner, "%s.safetensors", sha256); write_file(inner, "short");
        }
        put_blob(cache, 'a', sha256);
        assert_true(has_blob(cache, sha256));
        assert_int_equal(cache_figures(cache).n_failed, 0);
        assert_int_equal(unlink(path), 0);
    }
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(inner, sizeof inner, "%s/file", path);
    assert_int_equal(mkdir(inner, 0700), 0);
    put_blob(cache, 'a', sha256);
    put_blob(cache, 'a', sha256);
    assert_false(has_blob(cache, sha256));
    assert_int_equal(cache_figures(cache).n_failed, 2);
    for (char c = 'b'; c < 'e'; c++) {
        put_blob(cache, c, other);
        assert_true(has_blob(cache, other));
    }
    assert_int_equal(cache_figures(cache).n_failed, 2);
    cache_free(cache);
}

/* ---- Keys ---- */

TEST_BETWEEN(keys_come_from_the_first_section, folder_make, folder_remove)
{
    char path[256], error[CREDENTIALS_ERROR_BYTES];
    struct credentials keys;
    snprintf(path, sizeof path, "%s/keys", folder);
    write_file("keys", "# mine\n[default]\n aws_access_key_id = one\r\nAWS_SECRET_ACCESS_KEY=two=\nregion=eu\n"
                       "[other]\naws_access_key_id=three\n");
    struct credential_source *source = credential_source_new(path, error);
    assert_non_null(source);
    credentials_get(source, &keys);
    assert_string_equal(keys.access_key, "one");
    assert_string_equal(keys.secret_key, "two=");
    assert_string_equal(keys.session_token, "");
    assert_string_equal(keys.region, "eu");
    write_file("keys", "aws_access_key_id = four\naws_session_token = five\n");
    credentials_get(source, &keys);
    assert_string_equal(keys.access_key, "four");
    assert_string_equal(keys.secret_key, "");
    assert_string_equal(keys.session_token, "five");
    assert_int_equal(unlink(path), 0);
    credentials_get(source, &keys); /* it stays as it was */
    assert_string_equal(keys.access_key, "four");
    credentials_wipe(&keys);
    assert_string_equal(keys.access_key, "");
    credential_source_free(source);
    assert_null(credential_source_new(path, error));
    assert_non_null(strstr(error, "--store-credentials"));
}

void tests_begin(void) { log_setup(LOG_FORMAT_TEXT, LOG_ERROR, STDERR_FILENO); }
