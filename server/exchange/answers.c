/* Owns the entries of answers that equal calls share: a hash table of all, and a ring of the cached ones in order of
 * use.
 *
 * The key is the bytes of the request, not its plan: a hit then costs a hash and a comparison, without JSON, validation
 * or plan. The same question in other words is computed again, which is right but slower.
 *
 * An entry is created for a leader or for a cached answer, and is one of the two until it is freed. Equal requests at
 * the same time are computed once (Go's singleflight, groupcache): without that, a thousand clients that open one page
 * at the same moment compute the same picture a thousand times, and the cache helps none of them. The first request
 * leads; equal ones wait without a worker and share its answer, whose memory is counted once. If the leader gives up, a
 * follower leads next. A call joins only if a worker would compute its answer, too: what a loop answers at once is not
 * worth the wait.
 *
 * Only answers that are a function of the request are cached, and only small ones: a large answer takes longer to send
 * than to compute. An answer is counted by references, because a reader may still be sending what has been evicted. */
#include "server/exchange/exchange.h"

#include "server/loop/loop.h"
#include "server/process/process.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    N_BUCKETS = 4096,    /* 32 KiB of pointers; 16 MiB hold some ten thousand answers */
    OVERHEAD_BYTES = 512 /* of a cached answer: memory of malloc and of the headers */
};

struct answers_entry {
    struct answers_entry *next;          /* next in its bucket */
    struct answers_entry *newer, *older; /* if cached: the ring; its head is answers.ring */
    struct api_reply *reply;             /* holds one reference; NULL: it is being computed */
    struct answers_part *followers;      /* of one that is being computed; newest first */
    size_t n_bytes;                      /* total memory cost of a cached one */
    uint64_t hash;
    size_t n_key;
    char key[]; /* [n_key] */
};

struct answers {
    size_t bytes_max;     /* never changes */
    pthread_mutex_t lock; /* protects all below, and followers; held during a look-up, some tenths of a microsecond */
    size_t n_bytes;
    struct answers_entry *buckets[N_BUCKETS];
    struct answers_entry ring; /* older: the answer used last; newer: the one used longest ago. Last, for its key[] */
};

/* ---- The key of a call ------------------------------------------------------------------------------------------- */

enum { ABSENT = 1, PRESENT = 2 }; /* bytes that no header can contain */

static bool key_add(struct call_key *key, const void *bytes, size_t n)
{
    if (n > CALL_KEY_MAX - key->n)
        return false;
    memcpy(key->bytes + key->n, bytes, n);
    key->n += n;
    return true;
}

static bool key_add_text(struct call_key *key, const char *text)
{
    const char mark = text ? PRESENT : ABSENT;
    return key_add(key, &mark, 1) && (!text || key_add(key, text, strlen(text) + 1));
}

/* False: too long. The body comes last, so its length need not be stored. */
bool call_key_make(const struct api_call *call, struct call_key *key)
{
    key->n = 0;
    for (size_t i = 0; i < API_N_TEXTS; i++)
        if (!key_add_text(key, call->texts[i]))
            return false;
    return call->body_bytes == 0 || key_add(key, call->body, call->body_bytes);
}

uint64_t call_key_hash(const struct call_key *key) { return siphash_secret(key->bytes, key->n); }

/* ---- The table --------------------------------------------------------------------------------------------------- */

static struct answers_entry **bucket_of(struct answers *answers, uint64_t hash)
{
    return &answers->buckets[hash % N_BUCKETS];
}

static struct answers_entry *find_entry(struct answers *answers, const struct call_key *key, uint64_t hash)
{
    struct answers_entry *entry = *bucket_of(answers, hash);
    while (entry && (entry->hash != hash || entry->n_key != key->n || memcmp(entry->key, key->bytes, key->n) != 0))
        entry = entry->next;
    return entry;
}

static struct answers_entry *entry_new(const struct call_key *key, uint64_t hash)
{
    struct answers_entry *entry = malloc(sizeof *entry + key->n);
    if (!entry)
        return NULL;
    *entry = (struct answers_entry){.hash = hash, .n_key = key->n};
    memcpy(entry->key, key->bytes, key->n);
    return entry;
}

static void table_add(struct answers *answers, struct answers_entry *entry)
{
    struct answers_entry **bucket = bucket_of(answers, entry->hash);
    entry->next = *bucket;
    *bucket = entry;
}

static void table_remove(struct answers *answers, struct answers_entry *entry)
{
    struct answers_entry **at = bucket_of(answers, entry->hash);
    while (*at != entry)
        at = &(*at)->next;
    *at = entry->next;
}

/* ---- Cached answers ---------------------------------------------------------------------------------------------- */

static void ring_remove(struct answers_entry *entry)
{
    entry->newer->older = entry->older;
    entry->older->newer = entry->newer;
}

static void ring_add(struct answers *answers, struct answers_entry *entry)
{
    entry->newer = &answers->ring;
    entry->older = answers->ring.older;
    entry->older->newer = entry;
    answers->ring.older = entry;
}

static void evict(struct answers *answers, struct answers_entry *entry)
{
    table_remove(answers, entry);
    ring_remove(entry);
    answers->n_bytes -= entry->n_bytes;
    metrics_add(METRICS_ANSWERS_BYTES, -(int64_t)entry->n_bytes);
    api_reply_free(entry->reply);
    free(entry);
}

/* Returns the answer of an equal call with one more reference, and marks it as used last. */
static struct api_reply *hold_reply(struct answers *answers, const struct call_key *key, uint64_t hash)
{
    struct answers_entry *entry = find_entry(answers, key, hash);
    if (!entry || !entry->reply)
        return NULL;
    ring_remove(entry);
    ring_add(answers, entry);
    return api_reply_hold(entry->reply);
}

struct api_reply *answers_find(struct answers *answers, const struct api_call *call)
{
    struct call_key key;
    if (answers->bytes_max == 0 || !call_key_make(call, &key))
        return NULL;
    uint64_t hash = call_key_hash(&key);
    pthread_mutex_lock(&answers->lock);
    struct api_reply *reply = hold_reply(answers, &key, hash);
    pthread_mutex_unlock(&answers->lock);
    metrics_add(reply ? METRICS_ANSWERS_HITS : METRICS_ANSWERS_MISSES, 1);
    return reply;
}

void answers_keep(struct answers *answers, const struct api_call *call, struct api_reply *reply)
{
    struct call_key key;
    if (answers->bytes_max == 0 || !reply->is_repeatable || !reply->body->bytes || !call_key_make(call, &key))
        return;
    size_t n_bytes = sizeof(struct answers_entry) + key.n + reply->body->length + OVERHEAD_BYTES;
    struct answers_entry *entry = n_bytes <= answers->bytes_max ? entry_new(&key, call_key_hash(&key)) : NULL;
    if (!entry)
        return;
    entry->reply = reply;
    entry->n_bytes = n_bytes;
    pthread_mutex_lock(&answers->lock);
    bool is_known = find_entry(answers, &key, entry->hash); /* another loop may have answered it at the same time */
    if (!is_known) {
        while (entry->n_bytes > answers->bytes_max - answers->n_bytes)
            evict(answers, answers->ring.newer);
        table_add(answers, entry);
        ring_add(answers, entry);
        api_reply_hold(entry->reply);
        answers->n_bytes += entry->n_bytes;
        metrics_add(METRICS_ANSWERS_BYTES, (int64_t)entry->n_bytes);
    }
    pthread_mutex_unlock(&answers->lock);
    if (is_known)
        free(entry);
}

/* ---- Answers that are being computed ----------------------------------------------------------------------------- */

static enum answers_role lead(struct answers *answers, const struct call_key *key, uint64_t hash,
                              struct answers_part *part)
{
    part->entry = entry_new(key, hash);
    if (!part->entry)
        return ANSWERS_ALONE;
    table_add(answers, part->entry);
    return ANSWERS_LEADS;
}

static enum answers_role follow(struct answers_entry *entry, struct answers_part *part)
{
    if (entry->reply) /* another loop has cached it since this one has looked */
        return ANSWERS_ALONE;
    part->joined_at = part->joined_at ? part->joined_at : clock_now();
    part->next = entry->followers;
    entry->followers = part;
    return ANSWERS_FOLLOWS;
}

enum answers_role answers_join(struct answers *answers, const struct api_call *call, struct answers_part *part)
{
    struct call_key key;
    if (!call_key_make(call, &key))
        return ANSWERS_ALONE;
    uint64_t hash = call_key_hash(&key);
    pthread_mutex_lock(&answers->lock);
    struct answers_entry *entry = find_entry(answers, &key, hash);
    enum answers_role role = entry ? follow(entry, part) : lead(answers, &key, hash, part);
    pthread_mutex_unlock(&answers->lock);
    return role;
}

void answers_complete(struct answers *answers, struct answers_part *leader, struct api_reply *reply, struct call *call)
{
    if (!leader->entry)
        return;
    /* From here on no request can join. */
    pthread_mutex_lock(&answers->lock);
    table_remove(answers, leader->entry);
    pthread_mutex_unlock(&answers->lock);
    struct answers_part *part = leader->entry->followers;
    free(leader->entry);
    leader->entry = NULL;
    bool is_shared = reply && (reply->is_repeatable || reply->status == 503); /* what it waited for in vain, all did */
    for (struct answers_part *next; part; part = next) {
        next = part->next; /* once posted, the part belongs to its loop */
        part->reply = is_shared ? api_reply_hold(reply) : NULL;
        part->call = is_shared ? call_hold(call) : NULL;
        part->may_join = !reply;
        bool is_later = leader->waits_since && part->joined_at > leader->waits_since;
        part->waits_since = is_later ? part->joined_at : leader->waits_since;
        metrics_add(METRICS_ANSWERS_SHARED, is_shared);
        loop_post(part->loop, &part->completed);
    }
}

bool answers_are_awaited(struct answers *answers, const struct answers_part *leader)
{
    bool is_awaited = false;
    if (!leader->entry)
        return false;
    pthread_mutex_lock(&answers->lock);
    for (const struct answers_part *part = leader->entry->followers; part && !is_awaited; part = part->next)
        is_awaited = !part->is_unwanted(part);
    pthread_mutex_unlock(&answers->lock);
    return is_awaited;
}

/* With the lock, because a worker that computes for a leader may still ask answers_are_awaited. */
static struct answers_part *take_followers(struct answers *answers, struct answers_entry *entry)
{
    pthread_mutex_lock(&answers->lock);
    struct answers_part *followers = entry->followers;
    entry->followers = NULL;
    pthread_mutex_unlock(&answers->lock);
    return followers;
}

void answers_abandon(struct answers *answers)
{
    for (size_t i = 0; i < N_BUCKETS; i++)
        for (struct answers_entry *entry = answers->buckets[i]; entry; entry = entry->next)
            for (struct answers_part *part = take_followers(answers, entry), *next; part; part = next) {
                next = part->next; /* fire may free the part */
                part->reply = NULL;
                part->completed.fire(&part->completed);
            }
}

/* ---- Lifetime ---------------------------------------------------------------------------------------------------- */

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

void answers_free(struct answers *answers)
{
    if (!answers)
        return;
    while (answers->ring.newer != &answers->ring)
        evict(answers, answers->ring.newer);
    for (size_t i = 0; i < N_BUCKETS; i++)
        for (struct answers_entry *entry = answers->buckets[i], *next; entry; entry = next) {
            next = entry->next;
            free(entry); /* its leader has not completed it */
        }
    pthread_mutex_destroy(&answers->lock);
    free(answers);
}
