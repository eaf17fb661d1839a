/* Owns finished answers: a hash table, and a ring in order of use; the least recently used is dropped first.
 *
 * The key is the bytes of the request, not its plan: a hit then costs a hash and a comparison, without JSON, validation
 * or plan. The same question in other words is computed again, which is right but slower. Only answers that are a
 * function of the request are stored, and only small ones: a large answer takes longer to send than to compute.
 *
 * An answer is counted by references, because a reader may still be sending what has been dropped. */
#include "server/exchange/answers.h"

#include "server/exchange/call.h"
#include "server/process/metrics.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { N_BUCKETS = 4096 }; /* 32 KiB of pointers; 16 MiB hold some ten thousand answers */

struct answer {
    struct answer *next;          /* next in its bucket */
    struct answer *newer, *older; /* the ring; its head is answers.ring */
    struct api_reply *reply;      /* holds one reference */
    size_t n_bytes;               /* total memory cost */
    uint64_t hash;
    size_t n_key;
    char *key; /* stored after the struct */
};

struct answers {
    size_t bytes_max;     /* never changes */
    pthread_mutex_t lock; /* protects all fields below; held during a look-up, some tenths of a microsecond */
    size_t n_bytes;
    struct answer ring; /* older: the answer used last; newer: the one used longest ago */
    struct answer *buckets[N_BUCKETS];
};

/* ---- Lifetime -------------------------------------------------------------------------------------------------- */

struct answers *answers_new(size_t bytes_max)
{
    struct answers *answers = calloc(1, sizeof *answers);
    if (!answers)
        return NULL;
    pthread_mutex_init(&answers->lock, NULL);
    answers->bytes_max = bytes_max;
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
    if (!answers)
        return;
    while (answers->ring.newer != &answers->ring)
        forget(answers, answers->ring.newer);
    pthread_mutex_destroy(&answers->lock);
    free(answers);
}

/* ---- Use ------------------------------------------------------------------------------------------------------- */

static struct answer *find(struct answers *answers, const struct call_key *key, uint64_t hash)
{
    struct answer *answer = *bucket_of(answers, hash);
    while (answer && (answer->hash != hash || answer->n_key != key->n || memcmp(answer->key, key->bytes, key->n) != 0))
        answer = answer->next;
    return answer;
}

/* Returns the answer of an equal call with one more reference, and marks it as used last. */
static struct api_reply *take(struct answers *answers, const struct call_key *key, uint64_t hash)
{
    struct answer *answer = find(answers, key, hash);
    if (!answer)
        return NULL;
    ring_remove(answer);
    ring_add(answers, answer);
    return api_reply_hold(answer->reply);
}

struct api_reply *answers_find(struct answers *answers, const struct api_call *call)
{
    struct call_key key;
    if (answers->bytes_max == 0 || !call_key_make(call, &key))
        return NULL;
    uint64_t hash = call_key_hash(&key);
    pthread_mutex_lock(&answers->lock);
    struct api_reply *reply = take(answers, &key, hash);
    pthread_mutex_unlock(&answers->lock);
    metrics_add(reply ? METRICS_ANSWERS_HITS : METRICS_ANSWERS_MISSES, 1);
    return reply;
}

/* Memory of malloc and of the headers. */
enum { OVERHEAD_BYTES = 512 };

/* NULL: no memory, or the answer is larger than the whole cache. */
static struct answer *answer_new(const struct answers *answers, const struct call_key *key, uint64_t hash,
                                 struct api_reply *reply)
{
    size_t n_bytes = sizeof(struct answer) + key->n + reply->body->length + OVERHEAD_BYTES;
    struct answer *answer = n_bytes <= answers->bytes_max ? malloc(sizeof *answer + key->n) : NULL;
    if (!answer)
        return NULL;
    *answer =
        (struct answer){.reply = reply, .n_bytes = n_bytes, .hash = hash, .n_key = key->n, .key = (char *)(answer + 1)};
    memcpy(answer->key, key->bytes, key->n);
    return answer;
}

static void insert(struct answers *answers, struct answer *answer)
{
    while (answer->n_bytes > answers->bytes_max - answers->n_bytes)
        forget(answers, answers->ring.newer);
    struct answer **bucket = bucket_of(answers, answer->hash);
    answer->next = *bucket;
    *bucket = answer;
    ring_add(answers, answer);
    api_reply_hold(answer->reply);
    answers->n_bytes += answer->n_bytes;
    metrics_add(METRICS_ANSWERS_BYTES, (int64_t)answer->n_bytes);
}

void answers_keep(struct answers *answers, const struct api_call *call, struct api_reply *reply)
{
    struct call_key key;
    if (answers->bytes_max == 0 || !reply->is_repeatable || !reply->body->bytes || !call_key_make(call, &key))
        return;
    struct answer *answer = answer_new(answers, &key, call_key_hash(&key), reply);
    if (!answer)
        return;
    pthread_mutex_lock(&answers->lock);
    bool is_known =
        find(answers, &key, answer->hash); /* another loop may have answered the same request at the same time */
    if (!is_known)
        insert(answers, answer);
    pthread_mutex_unlock(&answers->lock);
    if (is_known)
        free(answer);
}
