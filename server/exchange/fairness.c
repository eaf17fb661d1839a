/* Owns suspending a request while its answer needs time, and resuming it. It waits for a worker, for room in its socket
 * (chunks.c), or in the queue of streams that have had their share (fairness_must_wait).
 *
 * A suspended connection is out of the daemon's epoll set: its reader is not called, and its end is not noticed. So the
 * loop polls for disconnects itself (connections.c), twenty times a second, which is how work for a client that has
 * gone ends within 100 ms.
 *
 * Fairness: one turn of the loop serves every stream whose socket takes bytes. With 300 of them a turn would last 27
 * ms, and /healthz with it. So the more streams there are, the less each may send in a turn, and those that have had
 * their share wait in line behind the others. */
#include "server/exchange/exchange.h"

#include <assert.h>

/* How soon a client that disconnects is detected; checking a hundred connections takes 20 us. */
enum { WATCH_MS = 50 };

/* ---- The line of streams --------------------------------------------------------------------------------------- */

static void enter_line(struct exchange *x)
{
    struct exchange_waiting *waiting = &x->waiting;
    struct http *http = x->http;
    waiting->is_in_line = true;
    waiting->next = NULL;
    waiting->prev = http->last_turn;
    if (http->last_turn)
        http->last_turn->waiting.next = x;
    else
        http->first_turn = x;
    http->last_turn = x;
    http->has_waiting = true;
}

static void leave_line(struct exchange *x)
{
    struct http *http = x->http;
    struct exchange *prev = x->waiting.prev, *next = x->waiting.next;
    if (!x->waiting.is_in_line)
        return;
    x->waiting.is_in_line = false;
    if (prev)
        prev->waiting.next = next;
    else
        http->first_turn = next;
    if (next)
        next->waiting.prev = prev;
    else
        http->last_turn = prev;
    http->has_waiting = http->first_turn != NULL;
}

/* ---- Suspension ------------------------------------------------------------------------------------------------ */

bool exchange_is_suspended(const struct exchange *x) { return x->waiting.is_suspended; }

void exchange_suspend(struct exchange *x)
{
    assert(!x->waiting.is_suspended);
    x->waiting.is_suspended = true;
    daemon_suspend(x->mhd);
    if (x->http->n_suspended++ == 0)
        loop_timer_start(x->http->watch, WATCH_MS, WATCH_MS);
}

void exchange_suspend_in_line(struct exchange *x)
{
    exchange_suspend(x);
    enter_line(x);
}

/* 0.9.75: a connection that is suspended in the turn in which its request was read is read again when it is resumed,
 * and closed if its client has closed its sending side. If it waits for one turn first, the daemon knows that there is
 * nothing to read. */
bool exchange_settle(struct exchange *x)
{
    bool was_settled = x->waiting.is_settled;
    x->waiting.is_settled = true;
    return was_settled;
}

/* 0.9.75: a daemon without its own threads has nothing that would wake it. */
static void wake(struct http_connection *connection, struct MHD_Connection *mhd)
{
    daemon_resume(mhd);
    connection->daemon->http->n_suspended--;
    connection->daemon->driven.wants_run = true;
}

/* Returns the socket to the daemon, if chunks.c has used it. */
static void stop_watch(struct http_chunks *chunks)
{
    loop_watch_free(chunks->watch);
    chunks->watch = NULL;
}

void exchange_resume(struct exchange *x)
{
    if (!x->waiting.is_suspended)
        return;
    x->waiting.is_suspended = false;
    stop_watch(&x->sending.chunks);
    leave_line(x);
    wake(x->connection, x->mhd);
}

/* ---- Fairness ---------------------------------------------------------------------------------------------------- */

/* How many streams of a loop are served in one turn, in which order, and how much each may send: the more streams, the
 * less. If every stream were served in each turn, 300 of them would take 27 ms per turn, and a request for /healthz
 * would wait as long. */
enum {
    MANY = 32,    /* above this number, streams take turns */
    TURN_MAX = 8, /* the number then served in one turn */
    SHARE_MIN = 16 * 1024
};

/* One turn of the loop serves every stream whose socket accepts bytes. The more streams there are, the less each may
 * send, so that a new connection does not wait for seconds. */
size_t fairness_share(const struct exchange *x)
{
    size_t fair = EXCHANGE_BLOCK_MAX / (1 + x->http->n_streams / 8); /* above MANY, the streams take turns */
    return fair > SHARE_MIN ? fair : SHARE_MIN;
}

bool fairness_must_wait(struct exchange *x)
{
    struct http *http = x->http;
    bool has_turn = x->waiting.has_turn;
    x->waiting.has_turn = false;
    if (has_turn || http->n_streams <= MANY)
        return false;
    if (!http->has_waiting && http->n_served < TURN_MAX) {
        http->n_served++;
        return false;
    }
    exchange_suspend_in_line(x);
    return true;
}

void fairness_begin_turn(struct http *http)
{
    http->n_served = 0;
    for (; http->first_turn && http->n_served < TURN_MAX; http->n_served++) {
        struct exchange *x = http->first_turn;
        x->waiting.has_turn = true;
        exchange_resume(x); /* removes it from the queue */
    }
}

bool fairness_wants_turn(const struct http *http) { return http->has_waiting; }
