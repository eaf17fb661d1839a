/* Clients that leave at any moment: an abandoned answer is a refusal, and data that other answers share with it (a
 * plan, texts, checksums) still gives them the right bytes. Fresh memory is poisoned, so that bytes that a fill has
 * skipped are detected. */
#include "tests/api/ask.h"
#include "tests/support/rows.h"

#include <malloc.h>

struct caller {
    long n_asked, leaves_at; /* gone from that check on; 0: never */
};

static bool is_gone(void *self)
{
    struct caller *caller = self;
    caller->n_asked++;
    return caller->leaves_at && caller->n_asked >= caller->leaves_at;
}

enum { N_WORDS = 300, N_SORTS = 37, TRIES = 60 };

static json_t *rows; /* of tests/cases/left.jsonl */
static size_t n_rows;

static const char *name_of(size_t i) { return row_text(json_array_get(rows, i), "id"); }

static struct api_reply *ask(size_t i, struct caller *caller)
{
    const json_t *row = json_array_get(rows, i);
    char *json = row_request(json_object_get(row, "request"), N_WORDS, N_SORTS);
    struct api_call call = {.method = "POST", .path = row_text(row, "path"), .body = json, .body_bytes = strlen(json)};
    struct api_host of_pictures = host;
    of_pictures.max_pictures = 1 << 26;
    pe_watch(is_gone, caller);
    struct api_reply *reply = api_answer(&of_pictures, &call);
    pe_watch(NULL, NULL);
    free(json);
    return reply;
}

static struct answer whole(size_t i)
{
    struct caller stays = {0};
    struct answer a = gather(ask(i, &stays));
    if (a.status != 200)
        fail_msg("%s: %d %.300s", name_of(i), a.status, a.body);
    return a;
}

static void assert_same(size_t i, long k, const struct answer *got, const struct answer *expected)
{
    if (got->n != expected->n || memcmp(got->body, expected->body, got->n) != 0)
        fail_msg("%s, left at question %ld: other bytes", name_of(i), k);
}

/* Some of the checks 1 … n: all if they are few, else the first, the last and some between. */
static long next_question(long k, long n) { return k + 1 + (k > TRIES / 2 && n - k > TRIES / 2 ? n / TRIES : 0); }

TEST(test_what_was_given_up_is_refused)
{
    long n_given_up = 0;
    for (size_t i = 0; i < n_rows; i++) {
        struct caller stays = {0};
        struct answer expected = gather(ask(i, &stays));
        assert_int_equal(expected.status, 200);
        for (long k = 1; k <= stays.n_asked; k = next_question(k, stays.n_asked)) {
            struct caller leaves = {.leaves_at = k};
            struct answer got = gather(ask(i, &leaves));
            if (got.status == 200 || got.reply->is_repeatable)
                fail_msg("%s, left at question %ld of %ld: status %d, %s", name_of(i), k, stays.n_asked, got.status,
                         got.n == expected.n && memcmp(got.body, expected.body, got.n) == 0 ? "the usual bytes"
                                                                                            : "other bytes");
            assert_true(got.status == 503 && strstr(got.body, "left"));
            assert_int_equal(leaves.n_asked, k); /* it stops at the first yes */
            n_given_up++;
            answer_drop(&got);
        }
        answer_drop(&expected);
    }
    assert_true(n_given_up > 100);
}

/* Computes pieces until the caller leaves. */
static void make_some(const struct api_reply *reply, struct caller *caller)
{
    char *piece = piece_room(reply);
    pe_watch(is_gone, caller);
    for (uint64_t p = 0; p < reply->body->n_pieces && !pe_was_cancelled(); p++)
        api_reply_piece(reply, p, piece);
    pe_watch(NULL, NULL);
    free(piece);
}

TEST(test_those_who_stay_get_their_bytes)
{
    for (size_t i = 0; i < n_rows; i++) {
        struct answer expected = whole(i);
        struct caller stays = {0}, nobody = {0};
        struct api_reply *fresh = ask(i, &nobody);
        make_some(fresh, &stays);
        api_reply_free(fresh);
        for (long k = 1; k <= stays.n_asked; k = next_question(k, stays.n_asked)) {
            struct caller leaves = {.leaves_at = k}, opens = {0};
            struct api_reply *shared = ask(i, &opens);
            make_some(shared, &leaves);
            struct answer got = gather(shared);
            assert_same(i, k, &got, &expected);
            answer_drop(&got);
        }
        answer_drop(&expected);
    }
}

void tests_begin(void)
{
    mallopt(M_PERTURB, 0x5a);
    rows = rows_of("left");
    n_rows = json_array_size(rows);
}

void tests_end(void) { json_decref(rows); }
