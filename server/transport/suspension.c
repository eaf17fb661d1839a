/* Owns suspending a request while its answer needs time, and resuming it. It waits for a worker, for room in its socket
 * (chunks.c), or in the queue of streams that have had their share (fairness.c). */
#include "server/exchange/exchange.h"

#include <assert.h>

/* How soon a client that leaves is detected; checking a hundred connections takes 20 us. */
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
