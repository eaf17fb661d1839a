/* Clients that leave at any moment: an abandoned answer is a refusal, and data that other answers share with it (a
 * plan, texts, checksums) still gives them the right bytes. Fresh memory is poisoned, so that bytes that a fill has
 * skipped are detected. */
#include "tests/api/ask.h"

#include <malloc.h>
#include <stdio.h>

struct caller {
    long n_asked, leaves_at; /* gone from that check on; 0: never */
};

static bool is_gone(void *self)
{
    struct caller *caller = self;
    caller->n_asked++;
    return caller->leaves_at && caller->n_asked >= caller->leaves_at;
}

/* WORDS and TENSORS stand for tokens and for q and k of the given length. */
enum { N_WORDS = 300 };

static const struct {
    const char *path, *json;
} cases[] = {
    {"/attention",
     "{\"scheme\":\"cope\",\"tokens\":WORDS,\"num_heads\":2,\"dim\":8,\"npos_max\":8,\"seed\":0,\"format\":\"png\"}"},
    {"/attention",
     "{\"scheme\":\"rope\",\"tokens\":WORDS,\"num_heads\":2,\"dim\":8,\"seed\":0,\"format\":\"text\",\"columns\":40}"},
    {"/attention",
     "{\"scheme\":\"none\",\"tokens\":WORDS,\"num_heads\":2,\"dim\":8,\"seed\":0,\"format\":\"png\",\"legend\":true,"
     "\"slice\":[null,[null,null,7],[null,null,3]],\"reduce\":\"mean\"}"},
    {"/attention", "{\"scheme\":\"transformer_xl\",\"tokens\":WORDS,\"num_heads\":2,\"dim\":8,\"seed\":0,\"format\":"
                   "\"npz\",\"outputs\":["
                   "\"probs\",\"row_entropy\"]}"},
    {"/attention", "{\"scheme\":\"deberta\",\"tokens\":WORDS,\"num_heads\":2,\"dim\":8,\"seed\":0,\"format\":\"raw\"}"},
    {"/attention", "{\"scheme\":\"shaw\",\"tokens\":WORDS,\"num_heads\":2,\"dim\":8,\"seed\":0,\"digits\":4}"},
    {"/attention", "{\"scheme\":\"cope\",\"tokens\":[\"a\",\"b\",\"c\"],\"num_heads\":2,\"dim\":8,\"npos_max\":8,"
                   "\"seed\":0,\"digits\":3}"},
    {"/encode", "{\"scheme\":\"sinusoidal\",\"len\":4000,\"dim\":64,\"format\":\"png\"}"},
    {"/encode",
     "{\"scheme\":\"alibi\",\"num_heads\":1,\"q_len\":1,\"k_len\":1000000,\"format\":\"text\",\"ascii\":true}"},
    {"/encode", "{\"scheme\":\"floater\",\"len\":40,\"dim\":16,\"seed\":1,\"substeps\":2,\"format\":\"png\"}"},
    {"/encode", "{\"scheme\":\"recursive\",\"len\":400,\"dim\":16,\"seed\":1,\"format\":\"text\",\"ascii\":true}"},
    {"/encode", "{\"scheme\":\"recursive\",\"len\":300,\"dim\":600,\"hidden\":4,\"seed\":1,\"format\":\"npz\"}"},
    {"/encode", "{\"scheme\":\"swinv2\",\"grid\":[12,12],\"num_heads\":4,\"hidden\":8,\"seed\":0,\"format\":\"npz\"}"},
    {"/encode", "{\"scheme\":\"swinv2\",\"grid\":[12,12],\"num_heads\":4,\"hidden\":8,\"seed\":0}"},
    {"/encode", "{\"scheme\":\"alibi\",\"len\":400,\"num_heads\":3,\"causal\":true}"},
    {"/encode", "{\"scheme\":\"t5\",\"len\":400,\"num_heads\":3,\"seed\":0}"},
    {"/encode", "{\"scheme\":\"sinusoidal\",\"len\":900,\"dim\":60,\"format\":\"png\",\"slice\":[[null,null,30]],"
                "\"reduce\":\"max\"}"},
    {"/encode", "{\"scheme\":\"sinusoidal\",\"len\":9000,\"dim\":60,\"slice\":[[null,null,300]],\"reduce\":\"mean\"}"},
    {"/v2/models/attention-cope/infer",
     "{\"inputs\":[{\"name\":\"tokens\",\"datatype\":\"BYTES\",\"shape\":[300],\"data\":WORDS}],\"parameters\":{\"num_"
     "heads\":2,"
     "\"dim\":8,\"npos_max\":8,\"seed\":0},\"outputs\":[{\"name\":\"row_entropy\"},{\"name\":\"probs\",\"parameters\":{"
     "\"binary_data\":true}}]}"},
    {"/v2/models/rope/infer", "{\"inputs\":[],\"parameters\":{\"len\":700,\"head_dim\":200},\"outputs\":[{\"name\":"
                              "\"cos\"},{\"name\":\"sin\",\"parameters\":{"
                              "\"binary_data\":true}}]}"},
    {"/v2/models/attention-rope/infer", "{\"inputs\":[{\"name\":\"tokens\",\"datatype\":\"BYTES\",\"shape\":[300],"
                                        "\"data\":WORDS}],\"parameters\":{\"num_heads\":2,"
                                        "\"dim\":8,\"seed\":0}}"},
    {"/v2/models/recursive/infer", "{\"inputs\":[],\"parameters\":{\"len\":20,\"dim\":4,\"seed\":0}}"},
};

enum { N_CASES = sizeof cases / sizeof *cases, TRIES = 60 };

static const char *json_of(size_t i)
{
    static char json[1 << 14];
    const char *from = cases[i].json, *words = strstr(from, "WORDS");
    size_t n = (size_t)snprintf(json, sizeof json, "%.*s", (int)(words ? words - from : (long)strlen(from)), from);
    for (int k = 0; words && k < N_WORDS; k++)
        n += (size_t)snprintf(json + n, sizeof json - n, "%s\"%d\"", k ? "," : "[", k * k % 37);
    snprintf(json + n, sizeof json - n, "%s%s", words ? "]" : "", words ? words + 5 : "");
    return json;
}

static struct api_reply *ask(size_t i, struct caller *caller)
{
    const char *json = json_of(i);
    struct api_call call = {.method = "POST",
                            .path = cases[i].path,
                            .body = json,
                            .body_bytes = strlen(json),
                            .is_gone = is_gone,
                            .caller = caller};
    struct api_host of_pictures = host;
    of_pictures.max_pictures = 1 << 26;
    return api_answer(&of_pictures, &call);
}

static struct answer whole(size_t i)
{
    struct caller stays = {0};
    struct answer a = gather(ask(i, &stays));
    if (a.status != 200)
        fail_msg("%s: %d %.300s", cases[i].json, a.status, a.body);
    return a;
}

static void assert_same(size_t i, long k, const struct answer *got, const struct answer *expected)
{
    if (got->n != expected->n || memcmp(got->body, expected->body, got->n) != 0)
        fail_msg("%s %s, left at question %ld: other bytes", cases[i].path, cases[i].json, k);
}

/* Some of the checks 1 … n: all if they are few, else the first, the last and some between. */
static long next_question(long k, long n) { return k + 1 + (k > TRIES / 2 && n - k > TRIES / 2 ? n / TRIES : 0); }

TEST(test_what_was_given_up_is_refused)
{
    long n_given_up = 0;
    for (size_t i = 0; i < N_CASES; i++) {
        struct caller stays = {0};
        struct answer expected = gather(ask(i, &stays));
        assert_int_equal(expected.status, 200);
        for (long k = 1; k <= stays.n_asked; k = next_question(k, stays.n_asked)) {
            struct caller leaves = {.leaves_at = k};
            struct answer got = gather(ask(i, &leaves));
            if (got.status == 200 || got.reply->is_repeatable)
                fail_msg("%s %s, left at question %ld of %ld: status %d, %s", cases[i].path, cases[i].json, k,
                         stays.n_asked, got.status,
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
    char *piece = aligned_alloc(64, (reply->body->piece_max + 64) / 64 * 64);
    pe_watch(is_gone, caller);
    for (uint64_t p = 0; p < reply->body->n_pieces && !pe_was_cancelled(); p++)
        api_reply_piece(reply, p, piece);
    pe_watch(NULL, NULL);
    free(piece);
}

TEST(test_those_who_stay_get_their_bytes)
{
    for (size_t i = 0; i < N_CASES; i++) {
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

void tests_begin(void) { mallopt(M_PERTURB, 0x5a); }
