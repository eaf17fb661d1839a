/* Owns the table of what each client holds.
 *
 * The rule, held + n ≤ 4·(free - n): a client may have four times what is then left for others. Alone it has four
 * fifths of everything; beside k others that want as much, each has 4/(4k + 5), and something is always left for a
 * client that is new. A fixed quota would waste a quiet server, and none would let the first client take all.
 * (Choudhury and Hahne 1998, IEEE/ACM ToN 6, the same rule for the buffers of switches, where it is called a dynamic
 * threshold.)
 *
 * A client has an entry only while it holds something, so the size of the table is bounded by the resources themselves,
 * and no sweep of old clients is needed. An answer that several requests of a client read is counted once, by its
 * address. */
#include "server/memory/memory.h"

#include <assert.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>

struct holder {
    uint64_t client, held[N_SHARES];
    struct holder *next; /* next in its bucket */
};

struct held_object;

enum { BUCKET_BITS = 12, RULE = 4 };

static struct {
    pthread_mutex_t lock;
    struct holder *buckets[1 << BUCKET_BITS];
    struct held_object *objects[1 << BUCKET_BITS];
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The link that points to the client's holder, or where a new one belongs: the end of its bucket. */
static struct holder **place_of(uint64_t client)
{
    struct holder **place = &table.buckets[(client * 0x9e3779b97f4a7c15u) >> (64 - BUCKET_BITS)];
    while (*place && (*place)->client != client)
        place = &(*place)->next;
    return place;
}

/* Every client may have one stream and one picture if there is room, whatever the rule gives: on a small server few are
 * allowed, and four times a free number of zero would be none. */
static const bool first_is_free[N_SHARES] = {[SHARE_STREAMS] = true, [SHARE_PICTURES] = true};

static uint64_t held_at(struct holder *const *place, enum share share) { return *place ? (*place)->held[share] : 0; }

static bool allows(uint64_t held, uint64_t n_free) { return held / RULE + (held % RULE > 0) <= n_free; }

/* The client's holder, created if necessary; NULL: no memory. */
static struct holder *hold(struct holder **place, uint64_t client)
{
    if (!*place && (*place = calloc(1, sizeof **place)))
        (*place)->client = client;
    return *place;
}

/* Call these two with the lock held. */
static bool take_share(enum share share, uint64_t client, uint64_t n, uint64_t n_free)
{
    struct holder **place = place_of(client);
    uint64_t held = held_at(place, share);
    bool is_allowed = allows(held + n, n_free) || (!held && first_is_free[share]);
    if (!is_allowed || !hold(place, client))
        return false;
    (*place)->held[share] += n;
    return true;
}

static void give(enum share share, uint64_t client, uint64_t n)
{
    struct holder **place = place_of(client), *holder = *place;
    assert(holder && holder->held[share] >= n);
    holder->held[share] -= n;
    for (size_t i = 0; i < N_SHARES; i++)
        if (holder->held[i])
            return;
    *place = holder->next;
    free(holder);
}

bool shares_take(enum share share, uint64_t client, uint64_t n, uint64_t n_free)
{
    if (!client || !n)
        return true;
    pthread_mutex_lock(&table.lock);
    bool is_taken = take_share(share, client, n, n_free);
    pthread_mutex_unlock(&table.lock);
    return is_taken;
}

void shares_give(enum share share, uint64_t client, uint64_t n)
{
    if (!client || !n)
        return;
    pthread_mutex_lock(&table.lock);
    give(share, client, n);
    pthread_mutex_unlock(&table.lock);
}

/* ---- Objects --------------------------------------------------------------------------------------------------- */

struct held_object {
    const void *object;
    enum share share;
    uint64_t client, n, n_uses;
    struct held_object *next;
};

static struct held_object **place_of_object(enum share share, uint64_t client, const void *object)
{
    uint64_t hash = ((uint64_t)(uintptr_t)object ^ client) * 0x9e3779b97f4a7c15u;
    struct held_object **place = &table.objects[hash >> (64 - BUCKET_BITS)];
    while (*place && ((*place)->object != object || (*place)->share != share || (*place)->client != client))
        place = &(*place)->next;
    return place;
}

static bool take_new(struct held_object **place, struct held_object wanted, uint64_t n_free)
{
    struct held_object *held = malloc(sizeof *held);
    if (!held || !take_share(wanted.share, wanted.client, wanted.n, n_free)) {
        free(held);
        return false;
    }
    *held = wanted;
    *place = held;
    return true;
}

bool shares_take_object(enum share share, uint64_t client, const void *object, uint64_t n, uint64_t n_free)
{
    if (!client || !n)
        return true;
    struct held_object wanted = {.object = object, .share = share, .client = client, .n = n};
    pthread_mutex_lock(&table.lock);
    struct held_object **place = place_of_object(share, client, object);
    bool is_taken = *place || take_new(place, wanted, n_free);
    if (is_taken)
        (*place)->n_uses++;
    pthread_mutex_unlock(&table.lock);
    return is_taken;
}

void shares_give_object(enum share share, uint64_t client, const void *object)
{
    pthread_mutex_lock(&table.lock);
    struct held_object **place = place_of_object(share, client, object), *held = *place;
    if (held && --held->n_uses == 0) {
        give(share, client, held->n);
        *place = held->next;
        free(held);
    }
    pthread_mutex_unlock(&table.lock);
}

/* ---- Figures --------------------------------------------------------------------------------------------------- */

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
