/* Owns the listening socket while it is served: accepting, the limit of connections, the refusal of those over it, and
 * their distribution among the loops.
 *
 * The problem: descriptors are finite, and a client that opens thousands of connections, by mistake or not, must not
 * keep others out. Timeouts alone are too slow, a limit for each address is either too low for a proxy or too high for
 * an attacker.
 *
 * The idea: all places belong to all. When they are taken, a new connection of a client with fewer connections closes
 * one of the client with the most: the one that has waited longest for its client and does no work. So the server is
 * fair only when it must be, and an idle keep-alive connection costs its owner nothing until a place is needed.
 * transport.h has the exact order; probes (/healthz) have spare places.
 *
 * Invariant: a connection is taken from another client only if that one still has at least as many afterwards, else the
 * two would take places from each other in turn.
 *
 * One thread accepts for all loops and deals connections out in turn: SO_REUSEPORT distributes by a hash of addresses,
 * and with four clients one of two loops had 70 to 95 % of the work. */
#define _GNU_SOURCE /* accept4 */
#include "server/transport/connections.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    TURN_MAX = 64,    /* connections accepted in one turn of the loop, which also has other clients to serve */
    RETRY_MS = 100,   /* delay before accept is tried again after the process ran out of descriptors or memory */
    LINGER_MS = 250,  /* minimum time for which a refused connection stays open */
    LINGER_MAX = 16,  /* refused connections open at a time */
    SPARE_MAX = 16,   /* spare places */
    SURVEY_MS = 10,   /* for so long after nothing was found to be closed for another, it is not looked for again */
    CLOSING_MAX = 64, /* connections that have been closed for others and have not ended yet */
    N_BUCKETS = 4096, /* of a hash of client numbers */
    LAST_MAX = 4096   /* maximum number of connections taken from the queue at the end: a full backlog, even if new
                         clients keep connecting */
};

/* A client while it has connections. */
struct accept_client {
    uint64_t number;
    size_t n; /* places, without those that are closing */
    LIST_HEAD(, accept_place) places;
    struct accept_client *next; /* in its bucket */
};

struct accept {
    struct loop *loop;
    int fd; /* -1: closed */
    uint64_t max;
    const struct transport_loop *loops;
    size_t n_loops, next;
    struct loop_watch *watch;
    struct loop_timer *retry;
    atomic_size_t n_open, n_late;
    pthread_mutex_t lock; /* of the following, and of every place in a list */
    struct accept_client *clients[N_BUCKETS];
    struct accept_client proxied, spare; /* all connections of trusted proxies; all in spare places */
    size_t n_closing;
    /* Of the last walk over all places: who had the most, and, if it found nothing, among whom until when. */
    uint64_t greediest, nothing_until;
    size_t nothing_beyond;
    /* Refused connections, oldest first. If they were closed at once, with unread bytes, they would be reset, and the
     * client might never see the reason. */
    int lingering[LINGER_MAX];
    size_t n_lingering, n_settled; /* n_settled: those that were here at the last tick of the timer */
    struct loop_timer *linger;
};

struct accept *accept_new(struct loop *loop, int listen_fd, uint64_t max)
{
    struct accept *accept = calloc(1, sizeof *accept);
    if (!accept) {
        close(listen_fd);
        return NULL;
    }
    accept->loop = loop;
    accept->fd = listen_fd;
    accept->max = max;
    pthread_mutex_init(&accept->lock, NULL);
    return accept;
}

size_t accept_n_open(const struct accept *accept) { return atomic_load(&accept->n_open); }

void accept_count_late(struct accept *accept, int change) { atomic_fetch_add(&accept->n_late, (size_t)change); }

size_t accept_n_early(const struct accept *accept)
{
    size_t n_late = atomic_load(&accept->n_late), n_open = atomic_load(&accept->n_open);
    return n_open > n_late ? n_open - n_late : 0;
}

/* ---- Places ---------------------------------------------------------------------------------------------------- */

/* The functions of this section are called with the lock held. */

static struct accept_client **client_at(struct accept *accept, uint64_t number)
{
    /* Clients can choose addresses, so the hash has a secret key, as that of the workers' turns. */
    struct accept_client **at = &accept->clients[siphash_secret(&number, sizeof number) % N_BUCKETS];
    while (*at && (*at)->number != number)
        at = &(*at)->next;
    return at;
}

/* NULL: no memory. */
static struct accept_client *client_of(struct accept *accept, uint64_t number)
{
    struct accept_client **at = client_at(accept, number);
    if (!*at && (*at = calloc(1, sizeof **at)))
        (*at)->number = number;
    return *at;
}

static void drop_if_unused(struct accept *accept, struct accept_client *client)
{
    if (!LIST_EMPTY(&client->places) || client == &accept->proxied || client == &accept->spare)
        return;
    struct accept_client **at = client_at(accept, client->number);
    *at = client->next;
    free(client);
}

/* A connection that may be closed for another. */
struct candidate {
    struct accept_place *place; /* NULL: none */
    uint64_t since;
};

static const struct candidate nothing = {NULL, UINT64_MAX};

/* When it began to wait for its client; 0: it is not closed now. A body is work in progress while its bytes arrive at a
 * good rate (http_received), and so is an answer that is read at one (deadlines.c) or may not be cut. */
static uint64_t since_when(const struct accept_place *place, bool may_cut, uint64_t now)
{
    uint64_t since = atomic_load_explicit(&place->waits_since, memory_order_relaxed);
    if (place->is_closing)
        return 0;
    if (since >= ACCEPT_LAST)
        return may_cut && since < ACCEPT_LAST + now ? since : 0;
    return since < ACCEPT_LATER + now ? since : 0;
}

/* The client's connection that has waited longest. */
static struct candidate idlest_of(const struct accept_client *client, bool may_cut, uint64_t now)
{
    struct candidate idlest = nothing;
    for (struct accept_place *place = LIST_FIRST(&client->places); place; place = LIST_NEXT(place, link)) {
        uint64_t since = since_when(place, may_cut, now);
        if (since && since < idlest.since)
            idlest = (struct candidate){place, since};
    }
    return idlest;
}

static int order_of(const struct candidate *candidate)
{
    return candidate->since >= ACCEPT_LAST ? 2 : candidate->since >= ACCEPT_LATER ? 1 : 0;
}

/* One without a request goes before one whose body has stopped, and that one before one whose answer is read slowly;
 * then one of the client with more connections; then the one that has waited longer. */
static bool goes_before(const struct candidate *a, const struct candidate *b)
{
    if (!b->place || order_of(a) != order_of(b))
        return !b->place || order_of(a) < order_of(b);
    size_t n = a->place->client->n, n_other = b->place->client->n;
    return n != n_other ? n > n_other : a->since < b->since;
}

/* Of the clients with more than n connections. A walk over thousands of places costs more than a refusal, so one that
 * finds nothing holds for a moment. */
static struct candidate idlest_beyond(struct accept *accept, size_t n)
{
    struct candidate first = nothing;
    uint64_t now = clock_now();
    size_t most = 0;
    if (n >= accept->nothing_beyond && now < accept->nothing_until)
        return first;
    for (size_t i = 0; i < N_BUCKETS; i++)
        for (struct accept_client *client = accept->clients[i]; client; client = client->next) {
            bool may_cut = client->n > accept->max / 2;
            struct candidate own = client->n > n ? idlest_of(client, may_cut, now) : nothing;
            if (own.place && goes_before(&own, &first))
                first = own;
            if (client->n > most)
                most = client->n, accept->greediest = client->number;
        }
    if (!first.place)
        accept->nothing_beyond = n, accept->nothing_until = now + SURVEY_MS * CLOCK_MS;
    return first;
}

/* Only its receiving side is shut: a request that is arriving at this moment is still read and answered. An answer is
 * cut by its loop (deadlines.c), which knows whether it is still the same. */
static bool close_for_another(struct accept *accept, struct candidate candidate)
{
    struct accept_place *place = candidate.place;
    if (!place)
        return false;
    place->is_closing = true;
    place->client->n--;
    accept->n_closing++;
    atomic_store(&place->is_cut, candidate.since >= ACCEPT_LAST);
    shutdown(place->fd, SHUT_RD);
    return true;
}

enum admission { ADMITTED, ADMITTED_SPARE, TURNED_AWAY };

static size_t n_spare_of(const struct accept *accept, uint64_t number)
{
    size_t n = 0;
    for (const struct accept_place *place = LIST_FIRST(&accept->spare.places); place; place = LIST_NEXT(place, link))
        n += place->number == number && !place->is_closing;
    return n;
}

/* Of the spare places, those of the client with the most, so that one which connects hundreds of times a second takes
 * them from itself only. */
static struct candidate idlest_spare(const struct accept *accept)
{
    struct candidate first = nothing;
    uint64_t now = clock_now();
    size_t most = 0;
    for (struct accept_place *place = LIST_FIRST(&accept->spare.places); place; place = LIST_NEXT(place, link)) {
        uint64_t since = since_when(place, true, now);
        size_t n = since ? n_spare_of(accept, place->number) : 0;
        if (n > most || (n == most && since && since < first.since))
            first = (struct candidate){place, since}, most = n;
    }
    return first;
}

static enum admission admit_spare(struct accept *accept)
{
    if (accept->spare.n < SPARE_MAX)
        return ADMITTED_SPARE;
    bool may_close = accept->n_closing < CLOSING_MAX;
    return may_close && close_for_another(accept, idlest_spare(accept)) ? ADMITTED_SPARE : TURNED_AWAY;
}

/* A connection is taken from another client only if that one still has at least as many afterwards: otherwise the two
 * would take it from each other in turn. A client without any gets the place of whoever has waited longest. */
static enum admission admit(struct accept *accept, const struct accept_client *client)
{
    size_t n_open = atomic_load(&accept->n_open) - accept->n_closing - accept->spare.n;
    if (n_open < accept->max)
        return ADMITTED;
    size_t n = client == &accept->proxied ? 0 : client->n;
    bool may_close = accept->n_closing < CLOSING_MAX;
    if (may_close && close_for_another(accept, idlest_beyond(accept, n > 0 ? n + 1 : 0)))
        return ADMITTED;
    return n > 0 && accept->greediest == client->number ? TURNED_AWAY : admit_spare(accept);
}

static void enter(struct accept_client *client, struct accept_place *place)
{
    place->client = client;
    LIST_INSERT_HEAD(&client->places, place, link);
    client->n++;
}

/* NULL: there is none for it, or no memory. */
static struct accept_place *place_new(struct accept *accept, int fd)
{
    struct address address;
    bool has_address = address_of_peer(fd, &address);
    bool is_proxy = has_address && networks_have(&accept->loops[0].http->door->proxies, &address);
    struct accept_place *place = calloc(1, sizeof *place);
    pthread_mutex_lock(&accept->lock);
    uint64_t number = has_address ? address_number(&address) : 1;
    struct accept_client *client = is_proxy ? &accept->proxied : client_of(accept, number);
    enum admission admission = place && client ? admit(accept, client) : TURNED_AWAY;
    if (admission != TURNED_AWAY) {
        *place = (struct accept_place){
            .accept = accept, .number = number, .fd = fd, .is_spare = admission == ADMITTED_SPARE};
        accept_waits(place, clock_now());
        enter(place->is_spare ? &accept->spare : client, place);
        atomic_fetch_add(&accept->n_open, 1);
    }
    if (client)
        drop_if_unused(accept, client);
    pthread_mutex_unlock(&accept->lock);
    if (admission != TURNED_AWAY)
        return place;
    free(place);
    return NULL;
}

void accept_closed(struct accept_place *place)
{
    struct accept *accept = place->accept;
    pthread_mutex_lock(&accept->lock);
    struct accept_client *client = place->client;
    LIST_REMOVE(place, link);
    client->n -= !place->is_closing;
    accept->n_closing -= place->is_closing;
    drop_if_unused(accept, client);
    atomic_fetch_sub(&accept->n_open, 1);
    pthread_mutex_unlock(&accept->lock);
    metrics_add(METRICS_CONNECTIONS, -1);
    free(place);
}

/* ---- Over the limit -------------------------------------------------------------------------------------------- */

static void close_lingering(struct accept *accept, size_t n)
{
    for (size_t i = 0; i < n; i++)
        close(accept->lingering[i]);
    accept->n_lingering -= n;
    memmove(accept->lingering, accept->lingering + n, accept->n_lingering * sizeof *accept->lingering);
}

static void linger_on(void *self)
{
    struct accept *accept = self;
    close_lingering(accept, accept->n_settled);
    accept->n_settled = accept->n_lingering;
    if (accept->n_lingering == 0)
        loop_timer_stop(accept->linger);
}

/* The client's request is not read: it may be anything, and it will not be answered. */
static void turn_away(struct accept *accept, int fd)
{
    http_turn_away(accept->loops[0].http, fd);
    shutdown(fd, SHUT_WR);
    if (accept->n_lingering == LINGER_MAX) {
        close_lingering(accept, 1);
        accept->n_settled -= accept->n_settled > 0;
    }
    accept->lingering[accept->n_lingering++] = fd;
    if (accept->n_lingering == 1)
        loop_timer_start(accept->linger, LINGER_MS, LINGER_MS);
}

/* ---- Within it ------------------------------------------------------------------------------------------------- */

static void hand_out(struct accept *accept, struct accept_place *place)
{
    metrics_add(METRICS_CONNECTIONS, 1);
    http_take(accept->loops[accept->next].http, place, accept->next == 0);
    accept->next = (accept->next + 1) % accept->n_loops;
}

/* False: no connection waits, or none can be accepted now (the watch is paused, and resumes by itself). */
static bool take_one(struct accept *accept)
{
    int fd = accept4(accept->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
        struct accept_place *place = place_new(accept, fd);
        if (place)
            hand_out(accept, place);
        else
            turn_away(accept, fd);
        return true;
    }
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        loop_watch_pause(accept->watch, true);
        loop_timer_start(accept->retry, RETRY_MS, 0);
    }
    return errno == EINTR || errno == ECONNABORTED; /* that client left while it was in the queue */
}

static void take_turn(void *self)
{
    struct accept *accept = self;
    for (int i = 0; i < TURN_MAX && take_one(accept); i++) {
    }
}

static void go_on(void *self)
{
    struct accept *accept = self;
    if (accept->watch)
        loop_watch_pause(accept->watch, false);
}

bool accept_begin(struct accept *accept, const struct transport_loop *loops, size_t n)
{
    accept->loops = loops;
    accept->n_loops = n;
    accept->retry = loop_timer_new(accept->loop, go_on, accept);
    accept->linger = loop_timer_new(accept->loop, linger_on, accept);
    bool has_timers = accept->retry && accept->linger;
    accept->watch = has_timers ? loop_watch_new(accept->loop, accept->fd, LOOP_READABLE, take_turn, accept) : NULL;
    return accept->watch;
}

void accept_take_queue(struct accept *accept)
{
    for (int i = 0; accept->watch && i < LAST_MAX && take_one(accept); i++) {
    }
}

void accept_close(struct accept *accept)
{
    accept_take_queue(accept);
    loop_watch_free(accept->watch);
    accept->watch = NULL;
    close_lingering(accept, accept->n_lingering);
    accept->n_settled = 0;
    if (accept->fd >= 0)
        close(accept->fd);
    accept->fd = -1;
}

void accept_free(struct accept *accept)
{
    if (accept)
        pthread_mutex_destroy(&accept->lock);
    free(accept);
}
