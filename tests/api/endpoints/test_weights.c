/* Stored weights in api/: a store of one file that counts its holders. After any failure no hold remains. */
#include "tests/api/ask.h"
#include "tests/support/alloc.h"

#include <stdio.h>

/* ---- A store of one file, "one", with a T5 table for two heads ---- */

enum { HEADER_ROOM = 256, TABLE_BYTES = 32 * 2 * 4 };

static _Alignas(64) char file[HEADER_ROOM + TABLE_BYTES];
static size_t n_file;
static struct api_stored_file one = {.name = "one", .bytes = file};
static int n_holders, n_cards, n_changes;

/* What is not in memory has to be asked for: "away" does not answer, "large" does not fit. */
static enum api_found find(void *self, const struct api_wanted *wanted, const struct api_stored_file **weights)
{
    (void)self;
    bool is_one = strcmp(wanted->name, one.name) == 0;
    if (wanted->must_not_block && (!is_one || (wanted->sha256 && strcmp(wanted->sha256, one.sha256) != 0)))
        return API_FOUND_LATER;
    if (!is_one)
        return strcmp(wanted->name, "away") == 0    ? API_FOUND_UNKNOWN
               : strcmp(wanted->name, "large") == 0 ? API_FOUND_TOO_LARGE
                                                    : API_FOUND_NOTHING;
    n_holders++;
    *weights = &one;
    return API_FOUND;
}

static void release(void *self, const struct api_stored_file *weights)
{
    (void)self;
    assert_ptr_equal(weights, &one);
    n_holders--;
}

static void hold_card(void *self, const struct api_stored_file *card)
{
    (void)self;
    assert_ptr_equal(card, &one);
    n_cards++;
}

static void drop_card(void *self, const struct api_stored_file *card)
{
    (void)self;
    assert_ptr_equal(card, &one);
    n_cards--;
}

static size_t list(void *self, const struct api_stored_file **cards)
{
    hold_card(self, &one);
    cards[0] = &one;
    return 1;
}

static bool nearest(void *self, const char *name, char *near)
{
    (void)self, (void)name;
    strcpy(near, one.name);
    return true;
}

static enum api_stored put(void *self, const char *name, const char *bytes, size_t n, void *tensors,
                           const struct api_guard *guard, const struct api_stored_file **weights)
{
    (void)bytes, (void)n;
    api_tensors_free(tensors);
    if (strcmp(name, "away") == 0)
        return guard->if_match ? API_STORED_UNGUARDED : API_STORED_FAILED;
    if (!api_guard_allows(guard, one.sha256))
        return API_STORED_GUARDED;
    n_changes++;
    find(self, &(struct api_wanted){.name = one.name}, weights);
    return API_STORED_REPLACED;
}

static enum api_stored remove_file(void *self, const char *name, const struct api_guard *guard)
{
    (void)self;
    if (strcmp(name, "away") == 0)
        return guard->if_match ? API_STORED_UNGUARDED : API_STORED_FAILED;
    if (strcmp(name, one.name) != 0)
        return API_STORED_ABSENT;
    n_changes++;
    return api_guard_allows(guard, one.sha256) ? API_STORED_REPLACED : API_STORED_GUARDED;
}

static const struct api_store store = {.contents = &api_contents_weights,
                                       .bytes_max = 1 << 20,
                                       .limit = "--max-weights",
                                       .files_max = 1,
                                       .place = "--store",
                                       .find = find,
                                       .release = release,
                                       .list = list,
                                       .hold_card = hold_card,
                                       .drop_card = drop_card,
                                       .nearest = nearest,
                                       .put = put,
                                       .remove = remove_file};

static struct api_host stored_host;

static void make_file(void)
{
    int n =
        snprintf(file + 8, HEADER_ROOM, "{\"table\":{\"dtype\":\"F32\",\"shape\":[32,2],\"data_offsets\":[0,256]}}");
    file[0] = (char)n;
    n_file = 8 + (size_t)n + TABLE_BYTES;
    for (size_t i = 0; i < 64; i++)
        memcpy(file + 8 + n + 4 * i, &(float){(float)i}, 4);
    one.n_bytes = n_file;
    memset(one.sha256, 'a', API_SHA256_CHARS);
    char why[256];
    one.tensors = api_tensors_read(file, n_file, why, sizeof why);
    assert_non_null(one.tensors);
    stored_host = host;
    stored_host.store = &store;
}

#define T5 "\"scheme\":\"t5\",\"num_heads\":2,\"len\":3"
#define A16 "aaaaaaaaaaaaaaaa"

static const struct {
    const char *method, *path, *query, *if_match, *if_none_match;
    const char *body; /* NULL: the file */
    int status;
} calls[] = {
    {"POST", "/encode", NULL, NULL, NULL, "{" T5 ",\"weights\":\"one\"}", 200},
    {"POST", "/encode", NULL, NULL, NULL, "{" T5 ",\"weights\":{\"name\":\"one\",\"map\":{\"table\":\"table\"}}}", 200},
    {"GET", "/encode", "scheme=t5&num_heads=2&len=3&weights=one", NULL, NULL, "", 200},
    {"POST", "/encode", NULL, NULL, NULL, "{" T5 ",\"weights\":{\"name\":\"one\",\"sha256\":\"" A16 A16 A16 A16 "\"}}",
     200},
    {"POST", "/encode", NULL, NULL, NULL,
     "{" T5 ",\"weights\":{\"name\":\"one\",\"sha256\":\"b" A16 A16 A16 "aaaaaaaaaaaaaaa\"}}", 412},
    {"POST", "/encode", NULL, NULL, NULL, "{" T5 ",\"weights\":{\"name\":\"one\",\"map\":{\"table\":\"none\"}}}", 422},
    {"POST", "/encode", NULL, NULL, NULL, "{" T5 ",\"weights\":\"on\"}", 422},
    {"POST", "/encode", NULL, NULL, NULL, "{\"scheme\":\"rope\",\"len\":3,\"weights\":\"one\"}", 422},
    {"POST", "/encode", NULL, NULL, NULL, "{" T5 ",\"dtype\":\"f9\",\"weights\":\"one\"}", 422},
    {"GET", "/weights", NULL, NULL, NULL, "", 200},
    {"GET", "/weights/one", NULL, NULL, NULL, "", 200},
    {"GET", "/weights/one", NULL, "\"b\"", NULL, "", 412},
    {"GET", "/weights/one", NULL, NULL, "*", "", 304},
    {"GET", "/weights/two", NULL, NULL, NULL, "", 404},
    {"PUT", "/weights/one", NULL, NULL, NULL, NULL, 200},
    {"PUT", "/weights/one", NULL, NULL, "*", NULL, 412},
    {"PUT", "/weights/one", NULL, NULL, NULL, "{}", 400},
    {"PUT", "/weights/.one", NULL, NULL, NULL, NULL, 422},
    {"DELETE", "/weights/one", NULL, NULL, NULL, "", 204},
    {"DELETE", "/weights/two", NULL, NULL, NULL, "", 404},
    {"GET", "/weights/away", NULL, NULL, NULL, "", 503},
    {"GET", "/weights/large", NULL, NULL, NULL, "", 413},
    {"POST", "/encode", NULL, NULL, NULL, "{" T5 ",\"weights\":\"away\"}", 503},
    {"POST", "/encode", NULL, NULL, NULL, "{" T5 ",\"weights\":\"large\"}", 413},
    {"POST", "/analyze", NULL, NULL, NULL, "{\"scheme\":\"t5\",\"num_heads\":2,\"weights\":\"away\"}", 503},
    {"PUT", "/weights/away", NULL, NULL, NULL, NULL, 503},
    {"PUT", "/weights/away", NULL, "*", NULL, NULL, 501},
    {"DELETE", "/weights/away", NULL, NULL, NULL, "", 503},
    {"DELETE", "/weights/away", NULL, "*", NULL, "", 501},
};

static struct api_reply *answer_call(size_t i)
{
    size_t n = calls[i].body ? strlen(calls[i].body) : n_file;
    struct api_call call = {.method = calls[i].method,
                            .path = calls[i].path,
                            .query = calls[i].query,
                            .if_match = calls[i].if_match,
                            .if_none_match = calls[i].if_none_match,
                            .body = !n              ? NULL
                                    : calls[i].body ? calls[i].body
                                                    : file,
                            .body_bytes = n};
    return api_answer(&stored_host, &call);
}

/* A hold ends with its reply, not before, because the reply's pieces are read from the file. */
TEST(holds_end_with_replies)
{
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        struct answer a = gather(answer_call(i));
        if (a.status != calls[i].status)
            fail_msg("call %zu: %d %s", i, a.status, a.body);
        bool is_streamed = a.status == 200 && (strcmp(calls[i].path, "/encode") == 0 || i == 10);
        assert_int_equal(n_holders, is_streamed ? 1 : 0);
        assert_int_equal(n_cards, a.status == 200 && (i == 9 || i == 14) ? 1 : 0); /* the list, and what was stored */
        if (i == 10)
            assert_true(a.n == n_file && memcmp(a.body, file, n_file) == 0);
        answer_drop(&a);
        assert_int_equal(n_holders + n_cards, 0);
    }
}

TEST(every_allocation_may_fail)
{
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        long before = alloc_count();
        api_reply_free(answer_call(i));
        long n = alloc_count() - before;
        for (long k = 0; k < n; k++) {
            alloc_fail_at(k);
            struct api_reply *reply = answer_call(i);
            alloc_fail_at(-1);
            if (reply->status != 503 && reply->status != calls[i].status)
                fail_msg("call %zu, allocation %ld: %d %s", i, k, reply->status, gather(reply).body);
            api_reply_free(reply);
            assert_int_equal(n_holders + n_cards, 0);
        }
    }
}

/* A call with must_not_block is sent to a worker before it changes anything or waits. */
TEST(the_hurried_ask_again)
{
    static const char *const methods[] = {"PUT", "DELETE"};
    for (size_t i = 0; i < 2; i++) {
        struct api_call call = {
            .method = methods[i], .path = "/weights/one", .body = file, .body_bytes = n_file, .must_not_block = true};
        n_changes = 0;
        assert_null(api_answer(&stored_host, &call));
        assert_int_equal(n_changes + n_holders, 0);
        call.must_not_block = false;
        api_reply_free(api_answer(&stored_host, &call));
        assert_int_equal(n_changes, 1);
    }
}

/* The loop answers what is in memory; whatever the store has to be asked for, a worker does. */
TEST(the_loop_asks_no_store)
{
    static const struct {
        size_t call;
        bool is_here;
    } asked[] = {{0, true},   {2, true},   {3, true},   {4, false},  {6, false},  {10, true},
                 {13, false}, {20, false}, {21, false}, {22, false}, {23, false}, {24, false}};
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        size_t c = asked[i].call;
        struct api_call call = {.method = calls[c].method,
                                .path = calls[c].path,
                                .query = calls[c].query,
                                .body = *calls[c].body ? calls[c].body : NULL,
                                .body_bytes = strlen(calls[c].body),
                                .must_not_block = true};
        struct api_reply *reply = api_answer(&stored_host, &call);
        if ((reply != NULL) != asked[i].is_here)
            fail_msg("call %zu: %d", c, reply ? reply->status : 0);
        api_reply_free(reply);
        assert_int_equal(n_holders + n_cards, 0);
    }
}

TEST(without_a_store)
{
    static const int statuses[][2] = {{0, 422}, {9, 200}, {10, 404}, {14, 503}, {18, 503}};
    stored_host.store = NULL;
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        struct api_reply *reply = answer_call((size_t)statuses[i][0]);
        assert_int_equal(reply->status, statuses[i][1]);
        api_reply_free(reply);
    }
    stored_host.store = &store;
}

void tests_begin(void) { make_file(); }

void tests_end(void) { api_tensors_free((struct api_tensors *)(uintptr_t)one.tensors); }
