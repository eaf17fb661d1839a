/* Pieces of an answer are the same bytes in any order, computed alone or by any number of threads, in every format. */
#include "tests/api/ask.h"

#include <pthread.h>
#include <stdio.h>

/* Many pieces of several outputs, one piece each, light ones, lines that are copied, and units of attention. The format
 * is at the end. */
static const struct {
    const char *path, *body;
    bool is_single; /* one output, as npy needs */
} requests[] = {
    {"/encode", "{\"scheme\":\"alibi\",\"num_heads\":6,\"q_len\":500,\"k_len\":601,\"outputs\":[\"bias\",\"slopes\"],",
     false},
    {"/encode", "{\"scheme\":\"kerple\",\"num_heads\":2,\"q_len\":400,\"k_len\":300,", true},
    {"/encode", "{\"scheme\":\"rope\",\"len\":20000,\"head_dim\":128,", false},
    {"/encode", "{\"scheme\":\"rope\",\"len\":3,\"head_dim\":4,\"outputs\":[\"sin\",\"inv_freq\"],", false},
    {"/attention",
     "{\"scheme\":\"alibi\",\"num_heads\":4,\"outputs\":[\"probs\",\"row_entropy\"],\"tokens\":[\"a\",\"b\",\"c\","
     "\"a\","
     "\"d\",\"b\",\"e\",\"f\",\"g\"],",
     false},
};
static const char *const formats[] = {"json", "raw", "safetensors", "npz", "npy"};
enum { N_REQUESTS = sizeof requests / sizeof *requests, N_FORMATS = sizeof formats / sizeof *formats, NPZ = 3 };

static struct api_reply *ask(size_t request, const char *format)
{
    char body[400];
    snprintf(body, sizeof body, "%s\"format\":\"%s\"}", requests[request].body, format);
    return post_to(&host, requests[request].path, body);
}

/* The start of each piece of a, whose pieces have been computed in order once. */
static size_t *beginnings(const struct answer *a)
{
    size_t *at = calloc(a->reply->body->n_pieces + 1, sizeof *at);
    char *piece = piece_room(a->reply);
    for (uint64_t i = 0; i < a->reply->body->n_pieces; i++)
        at[i + 1] = at[i] + api_reply_piece(a->reply, i, piece);
    free(piece);
    return at;
}

static void assert_piece(struct api_reply *reply, uint64_t i, const struct answer *whole, const size_t *at)
{
    char *piece = piece_room(reply);
    assert_int_equal(api_reply_piece(reply, i, piece), at[i + 1] - at[i]);
    assert_memory_equal(piece, whole->body + at[i], at[i + 1] - at[i]);
    free(piece);
}

/* Does `check` with the answer of each request in each format that has it. */
static void each_answer(void (*check)(size_t request, const char *format, const struct answer *whole, const size_t *at))
{
    for (size_t r = 0; r < N_REQUESTS; r++)
        for (size_t f = 0; f < (requests[r].is_single ? N_FORMATS : N_FORMATS - 1u); f++) {
            struct answer whole = gather(ask(r, formats[f]));
            if (whole.status != 200)
                fail_msg("%s in %s: %s", requests[r].body, formats[f], whole.body);
            size_t *at = beginnings(&whole);
            check(r, formats[f], &whole, at);
            free(at);
            answer_drop(&whole);
        }
}

/* Of npz no checksum is recorded yet when the directory is computed first. */
static void check_backwards(size_t request, const char *format, const struct answer *whole, const size_t *at)
{
    struct api_reply *fresh = ask(request, format);
    for (uint64_t i = fresh->body->n_pieces; i-- > 0;)
        assert_piece(fresh, i, whole, at);
    api_reply_free(fresh);
}

TEST(backwards) { each_answer(check_backwards); }

/* Each part of npz that waits, of a new reply: all its checksums come from pieces computed again. */
TEST(alone)
{
    struct answer whole = gather(ask(0, "npz"));
    size_t *at = beginnings(&whole);
    for (uint64_t i = 0; i < whole.reply->body->n_pieces; i++) {
        struct api_reply *fresh = ask(0, "npz");
        if (api_reply_waits(fresh, i))
            assert_piece(fresh, i, &whole, at);
        api_reply_free(fresh);
    }
    free(at);
    answer_drop(&whole);
}

/* The descriptors and the directory of npz wait, the head and the elements do not; nor does anything of another
 * format. */
TEST(waits)
{
    for (size_t f = 0; f < N_FORMATS - 1; f++) {
        struct api_reply *reply = ask(0, formats[f]);
        uint64_t n = reply->body->n_pieces;
        assert_true(n > 4);
        for (uint64_t i = 0; i < n; i++)
            assert_int_equal(api_reply_waits(reply, i), f == NPZ && (i + 3 == n || i + 1 == n));
        api_reply_free(reply);
    }
}

/* The entries and the directory have the version, the flags and the date that they had yesterday: the bytes do not
 * depend on the time. What readers make of an archive is in tests/http/formats/test_npz.py. */
TEST(an_archive_has_no_time)
{
    static const char end[] = "PK\5\6\0\0\0\0\2\0\2\0";
    struct answer a = gather(ask(3, "npz"));
    uint32_t at;
    memcpy(&at, a.body + a.n - 6, sizeof at);
    const char *directory = a.body + at;
    assert_memory_equal(a.body, "PK\3\4\x14\0\x08\0\0\0\0\0\x21\0\0\0\0\0", 18);
    assert_memory_equal(directory, "PK\1\2\x14\0\x14\0\x08\0\0\0\0\0\x21\0", 16);
    assert_memory_equal(a.body + a.n - 22, end, sizeof end - 1);
    answer_drop(&a);
}

/* Who answers at once says so. */
TEST(paces)
{
    struct api_reply *small = ask(3, "npz"), *large = ask(0, "json");
    assert_int_equal(small->pace, API_PACE_READY);
    assert_int_not_equal(large->pace, API_PACE_READY);
    assert_int_equal(large->body->length, API_LENGTH_UNKNOWN);
    api_reply_free(small);
    api_reply_free(large);
}

/* ---- Threads ---- */

enum { N_THREADS = 4 };

struct crowd {
    struct api_reply *reply;
    const size_t *at;
    char *body;
    pthread_barrier_t start;
    uint64_t next; /* threads take numbers by atomic increments, from the end, so that none is at a line's start */
};

static void *work(void *self)
{
    struct crowd *crowd = self;
    char *piece = piece_room(crowd->reply);
    uint64_t n_pieces = crowd->reply->body->n_pieces, taken;
    pthread_barrier_wait(&crowd->start);
    while ((taken = __atomic_fetch_add(&crowd->next, 1, __ATOMIC_RELAXED)) < n_pieces) {
        uint64_t i = n_pieces - 1 - taken;
        size_t n = api_reply_piece(crowd->reply, i, piece);
        memcpy(crowd->body + crowd->at[i], piece, n);
    }
    free(piece);
    return NULL;
}

/* The threads ignore waits(): the descriptors race with the elements before them. */
static void check_threads(size_t request, const char *format, const struct answer *whole, const size_t *at)
{
    struct crowd crowd = {.reply = ask(request, format), .at = at, .body = calloc(1, whole->n)};
    pthread_t threads[N_THREADS];
    pthread_barrier_init(&crowd.start, NULL, N_THREADS);
    for (size_t i = 0; i < N_THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, &crowd), 0);
    for (size_t i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_memory_equal(crowd.body, whole->body, whole->n);
    pthread_barrier_destroy(&crowd.start);
    free(crowd.body);
    api_reply_free(crowd.reply);
}

TEST(threads)
{
    for (int round = 0; round < 4; round++)
        each_answer(check_threads);
}
