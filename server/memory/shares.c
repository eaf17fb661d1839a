/* Owns the table of what clients hold. A client is in it while it holds something, so the table is never larger than
 * what can be held at a time. */
#include "server/memory/shares.h"

#include <assert.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>

struct holder {
    uint64_t client, held[N_SHARES];
    struct holder *next; /* in its bucket */
};

enum { BUCKET_BITS = 12, RULE = 3 };

static struct {
    pthread_mutex_t lock;
    struct holder *buckets[1 << BUCKET_BITS];
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The place of the client's holder, or where a new one belongs: the end of its bucket. */
static struct holder **place_of(uint64_t client)
{
    struct holder **place = &table.buckets[(client * 0x9e3779b97f4a7c15u) >> (64 - BUCKET_BITS)];
    while (*place && (*place)->client != client)
        place = &(*place)->next;
    return place;
}

/* One stream and one picture anybody may have as long as there is room for it: few are allowed on a small server, and
 * three times nothing would be none. */
static const bool first_is_free[N_SHARES] = {[SHARE_STREAMS] = true, [SHARE_PICTURES] = true};

static uint64_t held_at(struct holder *const *place, enum share share) { return *place ? (*place)->held[share] : 0; }

static bool allows(uint64_t held, uint64_t n_free) { return held / RULE + (held % RULE > 0) <= n_free; }

/* The client's holder, made if it has none; NULL: no memory. */
static struct holder *hold(struct holder **place, uint64_t client)
{
    if (!*place && (*place = calloc(1, sizeof **place)))
        (*place)->client = client;
    return *place;
}

bool shares_take(enum share share, uint64_t client, uint64_t n, uint64_t n_free)
{
    if (!client || !n)
        return true;
    pthread_mutex_lock(&table.lock);
    struct holder **place = place_of(client);
    uint64_t held = held_at(place, share);
    bool is_taken = (allows(held + n, n_free) || (!held && first_is_free[share])) && hold(place, client);
    if (is_taken)
        (*place)->held[share] += n;
    pthread_mutex_unlock(&table.lock);
    return is_taken;
}

static bool holds_nothing(const struct holder *holder)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < N_SHARES; i++)
        sum += holder->held[i];
    return sum == 0;
}

void shares_give(enum share share, uint64_t client, uint64_t n)
{
    if (!client || !n)
        return;
    pthread_mutex_lock(&table.lock);
    struct holder **place = place_of(client), *holder = *place;
    assert(holder && holder->held[share] >= n);
    holder->held[share] -= n;
    bool is_done = holds_nothing(holder);
    if (is_done)
        *place = holder->next;
    pthread_mutex_unlock(&table.lock);
    if (is_done)
        free(holder);
}

uint64_t shares_held(enum share share, uint64_t client)
{
    pthread_mutex_lock(&table.lock);
    uint64_t held = held_at(place_of(client), share);
    pthread_mutex_unlock(&table.lock);
    return held;
}

/* held + n <= RULE (n_free - n) */
uint64_t shares_left(enum share share, uint64_t client, uint64_t n_free)
{
    uint64_t held = client ? shares_held(share, client) : 0;
    uint64_t most = n_free < UINT64_MAX / RULE ? n_free * RULE : UINT64_MAX;
    return !client ? n_free : most > held ? (most - held) / (RULE + 1) : 0;
}
