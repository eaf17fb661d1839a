/* Owns finished answers: a table by hash, and a ring by time of use. */
#include "server/answers.h"

#include "server/metrics.h"

#include <stdlib.h>
#include <string.h>

enum {
    KEY_MAX = 4096,  /* a longer request is computed anew: comparing it would cost as much as planning it */
    N_BUCKETS = 4096 /* 32 KiB of pointers; 16 MiB hold some ten thousand answers */
};

/* What tells calls apart: every text with its end, absent ones as a byte of their own, then the body. */
struct key {
    size_t n;
    char bytes[KEY_MAX];
};

struct answer {
    struct answer *next;          /* of its bucket */
    struct answer *newer, *older; /* the ring; its head is answers.ring */
    struct api_reply *reply;      /* held */
    size_t n_bytes;               /* all that it costs */
    uint64_t hash;
    size_t n_key;
    char *key; /* behind the struct */
};

struct answers {
    size_t n_bytes, bytes_max;
    uint64_t seed;
    struct answer ring; /* older: the one used last; newer: longest ago */
    struct answer *buckets[N_BUCKETS];
};

/* ---- Keys ------------------------------------------------------------------------------------------------------ */

enum { ABSENT = 1, PRESENT = 2 }; /* bytes no header can hold */

static bool add(struct key *key, const void *bytes, size_t n)
{
    if (n > KEY_MAX - key->n)
        return false;
    memcpy(key->bytes + key->n, bytes, n);
    key->n += n;
    return true;
}

static bool add_text(struct key *key, const char *text)
{
    const char mark = text ? PRESENT : ABSENT;
    return add(key, &mark, 1) && (!text || add(key, text, strlen(text) + 1));
}

/* False: too long. The body comes last, so its length needs no saying. */
static bool make_key(const struct api_call *call, struct key *key)
{
    const char *const texts[] = {
        call->method, call->path,          call->query,          call->content_type,     call->content_encoding,
        call->accept, call->if_match,      call->if_none_match,  call->if_range,         call->range,
        call->origin, call->access_method, call->access_headers, call->inference_header,
    };
    key->n = 0;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (!add_text(key, texts[i]))
            return false;
    return call->body_bytes == 0 || add(key, call->body, call->body_bytes);
}

/* Eight bytes at a time; the product carries each of them upwards, the shift brings them down again. */
static uint64_t hash_of(uint64_t seed, const struct key *key)
{
    uint64_t hash = seed ^ key->n;
    for (size_t i = 0; i < key->n; i += 8) {
        uint64_t word = 0;
        memcpy(&word, key->bytes + i, key->n - i < 8 ? key->n - i : 8);
        hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }
    return hash;
}

/* ---- Lifetime -------------------------------------------------------------------------------------------------- */

struct answers *answers_new(size_t bytes_max, uint64_t seed)
{
    struct answers *answers = calloc(1, sizeof *answers);
    if (!answers)
        return NULL;
    answers->bytes_max = bytes_max;
    answers->seed = seed;
    answers->ring.newer = answers->ring.older = &answers->ring;
    return answers;
}

static struct answer **bucket_of(struct answers *answers, uint64_t hash) { return &answers->buckets[hash % N_BUCKETS]; }

static void ring_remove(struct answer *answer)
{
    answer->newer->older = answer->older;
    answer->older->newer = answer->newer;
}

static void ring_add(struct answers *answers, struct answer *answer)
{
    answer->newer = &answers->ring;
    answer->older = answers->ring.older;
    answer->older->newer = answer;
    answers->ring.older = answer;
}

static void forget(struct answers *answers, struct answer *answer)
{
    struct answer **at = bucket_of(answers, answer->hash);
    while (*at != answer)
        at = &(*at)->next;
    *at = answer->next;
    ring_remove(answer);
    answers->n_bytes -= answer->n_bytes;
    metrics_add(METRICS_ANSWERS_BYTES, -(int64_t)answer->n_bytes);
    api_reply_free(answer->reply);
    free(answer);
}

void answers_free(struct answers *answers)
{
    while (answers && answers->ring.newer != &answers->ring)
        forget(answers, answers->ring.newer);
    free(answers);
}

/* ---- Use ------------------------------------------------------------------------------------------------------- */

static struct answer *find(struct answers *answers, const struct key *key, uint64_t hash)
{
    struct answer *answer = *bucket_of(answers, hash);
    while (answer && (answer->hash != hash || answer->n_key != key->n || memcmp(answer->key, key->bytes, key->n) != 0))
        answer = answer->next;
    return answer;
}

struct api_reply *answers_find(struct answers *answers, const struct api_call *call)
{
    struct key key;
    if (answers->bytes_max == 0 || !make_key(call, &key))
        return NULL;
    struct answer *answer = find(answers, &key, hash_of(answers->seed, &key));
    metrics_add(answer ? METRICS_ANSWERS_HITS : METRICS_ANSWERS_MISSES, 1);
    if (!answer)
        return NULL;
    ring_remove(answer);
    ring_add(answers, answer);
    return api_reply_hold(answer->reply);
}

/* What malloc and the headers take besides. */
enum { OVERHEAD_BYTES = 512 };

void answers_keep(struct answers *answers, const struct api_call *call, struct api_reply *reply)
{
    struct key key;
    if (answers->bytes_max == 0 || !reply->is_repeatable || !reply->body || !make_key(call, &key))
        return;
    uint64_t hash = hash_of(answers->seed, &key);
    size_t n_bytes = sizeof(struct answer) + key.n + reply->length + OVERHEAD_BYTES;
    struct answer *answer = NULL;
    if (n_bytes > answers->bytes_max || find(answers, &key, hash) || !(answer = malloc(sizeof *answer + key.n)))
        return;
    while (n_bytes > answers->bytes_max - answers->n_bytes)
        forget(answers, answers->ring.newer);
    struct answer **bucket = bucket_of(answers, hash);
    *answer = (struct answer){.next = *bucket,
                              .reply = api_reply_hold(reply),
                              .n_bytes = n_bytes,
                              .hash = hash,
                              .n_key = key.n,
                              .key = (char *)(answer + 1)};
    memcpy(answer->key, key.bytes, key.n);
    *bucket = answer;
    ring_add(answers, answer);
    answers->n_bytes += n_bytes;
    metrics_add(METRICS_ANSWERS_BYTES, (int64_t)n_bytes);
}
