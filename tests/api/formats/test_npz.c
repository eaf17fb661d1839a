/* npz as bytes: the layout, and the same bytes for any order of pieces and any number of threads. */
#include "tests/api/ask.h"

#include <pthread.h>

/* ---- A reader written from APPNOTE 6.3.10 ---- */

/* Bit by bit, from the polynomial. */
static uint32_t crc32_of(const char *bytes, size_t n)
{
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < n; i++) {
        crc ^= (unsigned char)bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

static uint32_t load(const char *p, size_t n)
{
    uint32_t value = 0;
    for (size_t i = n; i-- > 0;)
        value = value << 8 | (unsigned char)p[i];
    return value;
}

struct found {
    char name[64];
    uint32_t crc, bytes;
    const char *data;
};

/* Reads the entry at *at, checks its descriptor, and moves *at behind it. */
static struct found entry_next(const struct answer *a, size_t *at)
{
    const char *p = a->body + *at;
    struct found found = {.crc = load(p + 30 + load(p + 26, 2) + load(p + 22, 4) + 4, 4), .bytes = load(p + 22, 4)};
    assert_memory_equal(p, "PK\3\4\x14\0\x08\0\0\0\0\0\x21\0\0\0\0\0", 18);
    assert_int_equal(load(p + 18, 4), found.bytes);
    assert_int_equal(load(p + 28, 2), 0);
    memcpy(found.name, p + 30, load(p + 26, 2));
    found.data = p + 30 + load(p + 26, 2);
    const char *descriptor = found.data + found.bytes;
    assert_memory_equal(descriptor, "PK\7\10", 4);
    assert_int_equal(load(descriptor + 8, 4), found.bytes);
    assert_int_equal(load(descriptor + 12, 4), found.bytes);
    assert_int_equal(found.crc, crc32_of(found.data, found.bytes));
    *at = (size_t)(descriptor + 16 - a->body);
    return found;
}

static void assert_central(const char *p, const struct found *found, size_t offset)
{
    assert_memory_equal(p, "PK\1\2\x14\0\x14\0\x08\0\0\0\0\0\x21\0", 16);
    assert_int_equal(load(p + 16, 4), found->crc);
    assert_int_equal(load(p + 20, 4), found->bytes);
    assert_int_equal(load(p + 24, 4), found->bytes);
    assert_int_equal(load(p + 42, 4), offset);
    assert_memory_equal(p + 46, found->name, strlen(found->name));
}

static void assert_zip(const struct answer *a, size_t n, const char *const *names)
{
    struct found entries[8];
    size_t at = 0, offsets[8];
    for (size_t i = 0; i < n; i++) {
        offsets[i] = at;
        entries[i] = entry_next(a, &at);
        assert_string_equal(entries[i].name, names[i]);
    }
    size_t directory = at;
    for (size_t i = 0; i < n; i++) {
        assert_central(a->body + at, &entries[i], offsets[i]);
        at += 46 + strlen(names[i]);
    }
    assert_int_equal(a->n, at + 22);
    assert_memory_equal(a->body + at, "PK\5\6\0\0\0\0", 8);
    assert_int_equal(load(a->body + at + 8, 2), n);
    assert_int_equal(load(a->body + at + 10, 2), n);
    assert_int_equal(load(a->body + at + 12, 4), at - directory);
    assert_int_equal(load(a->body + at + 16, 4), directory);
    assert_int_equal(load(a->body + at + 20, 2), 0);
}

/* ---- What stands where ---- */

TEST(test_small)
{
    struct answer a = post("/encode", "{\"scheme\":\"rope\",\"len\":3,\"head_dim\":4,\"dtype\":\"f16\","
                                      "\"outputs\":[\"sin\",\"inv_freq\",\"cos\"],\"format\":\"npz\"}");
    assert_int_equal(a.status, 200);
    assert_string_equal(a.reply->content_type, "application/zip");
    assert_string_equal(a.reply->format, "npz");
    assert_int_equal(a.reply->pace, API_PACE_READY);
    assert_zip(&a, 3, WORDS("sin.npy", "inv_freq.npy", "cos.npy"));
    assert_memory_equal(a.body + 37, "\x93NUMPY\x01\x00\x76\x00{'descr': '<f2', 'fortran_order': False", 48);
    answer_drop(&a);
}

#define LARGE "{\"scheme\":\"alibi\",\"num_heads\":6,\"q_len\":500,\"k_len\":601,\"outputs\":[\"bias\",\"slopes\"],"

/* An entry is the .npy file of the same output. */
TEST(test_entry_is_npy)
{
    struct answer a = post("/encode", LARGE "\"format\":\"npz\"}");
    struct answer b = post("/encode", "{\"scheme\":\"alibi\",\"num_heads\":6,\"q_len\":500,\"k_len\":601,"
                                      "\"outputs\":[\"bias\"],\"format\":\"npy\"}");
    size_t at = 0;
    assert_zip(&a, 2, WORDS("bias.npy", "slopes.npy"));
    struct found bias = entry_next(&a, &at);
    assert_int_equal(bias.bytes, b.n);
    assert_memory_equal(bias.data, b.body, b.n);
    answer_drop(&a);
    answer_drop(&b);
}

TEST(test_refused)
{
    assert_answer(post("/encode", "{\"scheme\":\"none\",\"len\":2,\"dtype\":\"bf16\",\"format\":\"npz\"}"), 406,
                  WORDS("/dtype", "bf16", "npz", "safetensors"));
    assert_answer(post("/encode", "{\"scheme\":\"rope\",\"len\":2,\"dtype\":\"bf16\",\"format\":\"npz\","
                                  "\"outputs\":[\"inv_freq\",\"cos\"]}"),
                  406, WORDS("bf16", "cannot hold cos", "safetensors"));
    assert_answer(post("/encode", "{\"scheme\":\"rope\",\"len\":2,\"dtype\":\"bf16\",\"format\":\"npz\","
                                  "\"outputs\":[\"inv_freq\"]}"),
                  200, NULL);
    assert_answer(post("/encode", "{\"scheme\":\"none\",\"len\":2,\"digits\":3,\"format\":\"npz\"}"), 422,
                  WORDS("/digits", "npz"));
}

/* ---- Order ---- */

/* Many pieces of several outputs, one piece each, light ones, and units of attention. */
static const struct {
    const char *path, *body;
} requests[] = {
    {"/encode", LARGE "\"format\":\"npz\"}"},
    {"/encode", "{\"scheme\":\"rope\",\"len\":20000,\"head_dim\":128,\"format\":\"npz\"}"},
    {"/encode", "{\"scheme\":\"rope\",\"len\":3,\"head_dim\":4,\"format\":\"npz\"}"},
    {"/attention", "{\"scheme\":\"alibi\",\"num_heads\":4,\"outputs\":[\"probs\",\"row_entropy\"],\"format\":\"npz\","
                   "\"tokens\":[\"a\",\"b\",\"c\",\"a\",\"d\",\"b\",\"e\",\"f\",\"g\"]}"},
};
enum { N_REQUESTS = sizeof requests / sizeof requests[0] };

static const struct api_host roomy = {.max_body = 1 << 20, .max_answer = 1 << 26, .max_work = 1 << 30, .commit = "abc"};

static struct api_reply *ask(size_t i)
{
    struct api_call call = {
        .method = "POST", .path = requests[i].path, .body = requests[i].body, .body_bytes = strlen(requests[i].body)};
    return api_answer(&roomy, &call);
}

static char *piece_buffer(const struct api_reply *reply)
{
    return aligned_alloc(64, (reply->body->piece_max + 64) / 64 * 64);
}

/* The start of each piece of a, whose pieces have been computed in order once. */
static size_t *beginnings(const struct answer *a)
{
    size_t *at = calloc(a->reply->body->n_pieces + 1, sizeof *at);
    char *piece = piece_buffer(a->reply);
    for (uint64_t i = 0; i < a->reply->body->n_pieces; i++)
        at[i + 1] = at[i] + api_reply_piece(a->reply, i, piece);
    free(piece);
    return at;
}

/* No CRC is recorded yet when the directory is computed first. */
TEST(test_backwards)
{
    for (size_t r = 0; r < N_REQUESTS; r++) {
        struct answer a = gather(ask(r));
        assert_int_equal(a.status, 200);
        size_t *at = beginnings(&a);
        struct api_reply *fresh = ask(r);
        char *piece = piece_buffer(fresh);
        for (uint64_t i = fresh->body->n_pieces; i-- > 0;) {
            assert_int_equal(api_reply_piece(fresh, i, piece), at[i + 1] - at[i]);
            assert_memory_equal(piece, a.body + at[i], at[i + 1] - at[i]);
        }
        free(piece);
        free(at);
        api_reply_free(fresh);
        answer_drop(&a);
    }
}

/* Each part is computed from a new reply, so that all its CRCs come from pieces computed again. */
TEST(test_alone)
{
    struct answer a = gather(ask(0));
    size_t *at = beginnings(&a);
    for (uint64_t i = 0; i < a.reply->body->n_pieces; i++) {
        struct api_reply *fresh = ask(0);
        char *piece = piece_buffer(fresh);
        if (api_reply_waits(fresh, i)) {
            assert_int_equal(api_reply_piece(fresh, i, piece), at[i + 1] - at[i]);
            assert_memory_equal(piece, a.body + at[i], at[i + 1] - at[i]);
        }
        free(piece);
        api_reply_free(fresh);
    }
    free(at);
    answer_drop(&a);
}

/* The descriptors and the directory wait, the head and the elements do not; nor does anything of another format. */
TEST(test_waits)
{
    struct api_reply *reply = ask(0);
    assert_true(reply->body->n_pieces > 8);
    for (uint64_t i = 0; i < reply->body->n_pieces; i++)
        assert_int_equal(api_reply_waits(reply, i), i + 3 == reply->body->n_pieces || i + 1 == reply->body->n_pieces);
    api_reply_free(reply);
    struct answer a = post("/encode", LARGE "\"format\":\"raw\"}");
    for (uint64_t i = 0; i < a.reply->body->n_pieces; i++)
        assert_false(api_reply_waits(a.reply, i));
    answer_drop(&a);
    a = get("/healthz");
    assert_false(api_reply_waits(a.reply, 0));
    answer_drop(&a);
}

enum { N_THREADS = 4 };

struct crowd {
    struct api_reply *reply;
    const size_t *at;
    char *body;
    pthread_barrier_t start;
    unsigned next; /* threads take numbers by atomic increments */
};

static void *work(void *self)
{
    struct crowd *crowd = self;
    char *piece = piece_buffer(crowd->reply);
    pthread_barrier_wait(&crowd->start);
    for (;;) {
        uint64_t i = __atomic_fetch_add(&crowd->next, 1, __ATOMIC_RELAXED);
        if (i >= crowd->reply->body->n_pieces)
            break;
        size_t n = api_reply_piece(crowd->reply, i, piece);
        memcpy(crowd->body + crowd->at[i], piece, n);
    }
    free(piece);
    return NULL;
}

/* The threads ignore waits(): the descriptors race with the elements before them. */
TEST(test_threads)
{
    for (size_t r = 0; r < 10 * N_REQUESTS; r++) {
        struct answer a = gather(ask(r % N_REQUESTS));
        size_t *at = beginnings(&a);
        struct crowd crowd = {.reply = ask(r % N_REQUESTS), .at = at, .body = calloc(1, a.n)};
        pthread_t threads[N_THREADS];
        pthread_barrier_init(&crowd.start, NULL, N_THREADS);
        for (size_t i = 0; i < N_THREADS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, work, &crowd), 0);
        for (size_t i = 0; i < N_THREADS; i++)
            pthread_join(threads[i], NULL);
        assert_memory_equal(crowd.body, a.body, a.n);
        pthread_barrier_destroy(&crowd.start);
        free(crowd.body);
        free(at);
        api_reply_free(crowd.reply);
        answer_drop(&a);
    }
}

void tests_begin(void) { api_setup(); }
