/* Owns the requests in progress and their followers: equal requests at the same time are computed once (Go's
 * singleflight, groupcache).
 *
 * Without it, a thousand clients that open one page at the same moment compute the same picture a thousand times, and
 * the cache helps none of them. The first request leads; equal ones wait without a worker and share its answer, whose
 * memory is counted once. If the leader gives up, a follower leads the next flight.
 *
 * There are at most as many as workers have been given, so a list is enough: comparing its hashes takes less than a
 * microsecond, while a request that a worker answers takes a hundred. All loops share the list, under one lock. */
#include "server/exchange/flights.h"

#include "server/exchange/call.h"
#include "server/loop/clock.h"
#include "server/process/metrics.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct flight {
    struct flight *next;
    struct flight_seat *followers; /* newest first */
    uint64_t hash;
    size_t n_key;
    char key[]; /* [n_key] */
};

struct flights {
    pthread_mutex_t lock; /* protects the list, and the followers of its members */
    struct flight *first;
};

struct flights *flights_new(void)
{
    struct flights *flights = calloc(1, sizeof *flights);
    if (!flights)
        return NULL;
    pthread_mutex_init(&flights->lock, NULL);
    return flights;
}

void flights_free(struct flights *flights)
{
    if (!flights)
        return;
    for (struct flight *flight = flights->first, *next; flight; flight = next) {
        next = flight->next;
        free(flight);
    }
    pthread_mutex_destroy(&flights->lock);
    free(flights);
}

static struct flight *find(const struct flights *flights, const struct call_key *key, uint64_t hash)
{
    struct flight *flight = flights->first;
    while (flight && (flight->hash != hash || flight->n_key != key->n || memcmp(flight->key, key->bytes, key->n) != 0))
        flight = flight->next;
    return flight;
}

static enum flights_role begin(struct flights *flights, const struct call_key *key, uint64_t hash,
                               struct flight_seat *seat)
{
    struct flight *flight = malloc(sizeof *flight + key->n);
    if (!flight)
        return FLIGHTS_ALONE;
    *flight = (struct flight){.next = flights->first, .hash = hash, .n_key = key->n};
    memcpy(flight->key, key->bytes, key->n);
    flights->first = flight;
    seat->flight = flight;
    return FLIGHTS_LEADS;
}

enum flights_role flights_join(struct flights *flights, const struct api_call *call, struct flight_seat *seat)
{
    struct call_key key;
    if (!call_key_make(call, &key))
        return FLIGHTS_ALONE;
    uint64_t hash = call_key_hash(&key);
    enum flights_role role = FLIGHTS_FOLLOWS;
    pthread_mutex_lock(&flights->lock);
    struct flight *flight = find(flights, &key, hash);
    if (flight) {
        seat->joined_at = seat->joined_at ? seat->joined_at : clock_now();
        seat->next = flight->followers;
        flight->followers = seat;
    } else {
        role = begin(flights, &key, hash, seat);
    }
    pthread_mutex_unlock(&flights->lock);
    return role;
}

/* Removes the flight from the list; from here on no request can join. */
static struct flight_seat *close_flight(struct flights *flights, struct flight *flight)
{
    pthread_mutex_lock(&flights->lock);
    struct flight **at = &flights->first;
    while (*at != flight)
        at = &(*at)->next;
    *at = flight->next;
    pthread_mutex_unlock(&flights->lock);
    struct flight_seat *followers = flight->followers;
    free(flight);
    return followers;
}

void flights_land(struct flights *flights, struct flight_seat *leader, struct api_reply *reply, struct call *call)
{
    struct flight_seat *seat = close_flight(flights, leader->flight);
    leader->flight = NULL;
    bool is_shared = reply && (reply->is_repeatable || reply->status == 503); /* what it waited for in vain, all did */
    for (struct flight_seat *next; seat; seat = next) {
        next = seat->next; /* once posted, the seat belongs to its loop */
        seat->reply = is_shared ? api_reply_hold(reply) : NULL;
        seat->call = is_shared ? call_hold(call) : NULL;
        seat->may_join = !reply;
        bool is_later = leader->waits_since && seat->joined_at > leader->waits_since;
        seat->waits_since = is_later ? seat->joined_at : leader->waits_since;
        metrics_add(METRICS_ANSWERS_SHARED, is_shared);
        loop_post(seat->loop, &seat->landed);
    }
}

void flights_abandon(struct flights *flights)
{
    for (struct flight *flight = flights->first; flight; flight = flight->next)
        for (struct flight_seat *seat = flight->followers, *next; seat; seat = next) {
            next = seat->next;
            flight->followers = next;
            seat->reply = NULL;
            seat->landed.fire(&seat->landed);
        }
}
