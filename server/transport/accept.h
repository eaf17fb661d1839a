/* The one place where connections are accepted: it counts them and hands them to the I/O loops in turn.
 *
 * The alternative, a listening socket per loop (SO_REUSEPORT), was measured: the kernel distributes by a hash of
 * addresses, and with four clients one loop did 70 to 95 % of the work. */
#ifndef SERVER_TRANSPORT_ACCEPT_H
#define SERVER_TRANSPORT_ACCEPT_H

#include "server/transport/http.h"

#include <stdatomic.h>

struct accept;
struct accept_client;

/* A connection's place, from accept() until accept_closed.
 *
 * While all places are taken, a client with fewer connections than another gets one of that one's: the connection which
 * has waited longest for its client is closed. A body that arrives at a good rate, or an answer, is work and is not,
 * but for one client's slow readers: while it holds more than half of all places, its answers that are read at little
 * more than the minimum rate are cut for others, if nothing else can be closed. The client with the most that has such
 * a connection gives it. A trusted proxy serves many clients, so its connections are not counted together, and are not
 * closed for others. If none can be closed, because every one of them is being answered, a few spare places remain,
 * where one request each is answered if its path is open (api_is_open: probes), and refused with 503 otherwise. The
 * client with the most connections gets the 503 at once, without its request being read. */
struct accept_place {
    struct accept *accept;
    struct accept_client *client;
    struct accept_place *prev, *next; /* of the same client */
    uint64_t number;                  /* of the client at the other end */
    int fd;
    bool is_spare, is_closing;
    atomic_bool is_cut; /* its answer is to be cut; the connection's loop does it */
    /* When it began to wait for its client, in ns; 0: it is being answered, or is just being passed to a daemon. For a
     * body, until when its bytes are enough for a good rate, and ACCEPT_LATER; for an answer that is being sent, until
     * when those are that its client has read, and ACCEPT_LAST. */
    _Atomic uint64_t waits_since;
};

/* Added to times: such a connection is closed for another only if none without a request is there, or no such one. */
#define ACCEPT_LATER (UINT64_C(1) << 62)
#define ACCEPT_LAST (UINT64_C(1) << 63)
#define ACCEPT_SILENCE_NS UINT64_C(2000000000) /* in which bytes are missing before a good rate is in doubt */

/* Call it when the connection begins to wait for its client, for a request or the rest of one; since 0: no more. */
static inline void accept_waits(struct accept_place *place, uint64_t since)
{
    atomic_store_explicit(&place->waits_since, since, memory_order_relaxed);
}

/* Takes listen_fd. max: the number of connections open at a time, beside the spare ones. NULL: no memory, and listen_fd
 * is closed. */
struct accept *accept_new(struct loop *loop, int listen_fd, uint64_t max);

/* Starts accepting, on this loop, for these daemons (borrowed until accept_close); the first of them is on that
 * loop too. False: no memory. */
bool accept_begin(struct accept *accept, struct http *const *https, size_t n);

/* Reports that a connection has ended, before its descriptor is closed; frees its place. Any thread. */
void accept_closed(struct accept_place *place);
size_t accept_n_open(const struct accept *accept); /* connections handed out and not ended; any thread */

/* Late connections are those that a loop takes after draining has begun. They only get refusals, so the end of the
 * process does not wait for them: accept_n_early counts the others. Adds 1 or -1 to their number. Any thread. */
void accept_count_late(struct accept *accept, int change);
size_t accept_n_early(const struct accept *accept);

/* Hands out the connections in the socket's queue: before draining begins, so that they are not late. */
void accept_take_queue(struct accept *accept);
/* Does the same, since they would be reset otherwise, and closes the socket. */
void accept_close(struct accept *accept);
void accept_free(struct accept *accept); /* call it after all connections have ended; NULL is accepted */

#endif
