/* Owns the connections of one loop: their deadlines, their suspension, clients that leave. The comments that begin with
 * "0.9.75" say where that version of the HTTP library needs care. */
#define _GNU_SOURCE /* POLLRDHUP */
#include "server/http_internal.h"

#include "server/clock.h"
#include "server/metrics.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

enum { WATCH_MS = 100 };

/* ---- Connections ----------------------------------------------------------------------------------------------- */

static uint64_t phase_seconds(const struct options *options, enum http_phase phase)
{
    switch (phase) {
    case HTTP_PHASE_NEW:
    case HTTP_PHASE_HEAD: return options->header_timeout;
    case HTTP_PHASE_IDLE:
    case HTTP_PHASE_BODY:
    case HTTP_PHASE_ANSWER:
    case HTTP_PHASE_SEND: break;
    }
    return options->connection_timeout;
}

void http_phase(struct http *http, struct http_connection *connection, enum http_phase phase)
{
    connection->phase = phase;
    connection->deadline = clock_coarse() + phase_seconds(http->options, phase) * CLOCK_SECOND;
    /* Half closed, so that a request already on its way is still read and answered. */
    if (phase == HTTP_PHASE_IDLE && http->is_draining)
        shutdown(connection->fd, SHUT_RD);
}

static void connection_opened(struct http_daemon *daemon, struct MHD_Connection *mhd, void **context)
{
    struct http *http = daemon->http;
    struct http_connection *connection = calloc(1, sizeof *connection);
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
    *context = connection; /* NULL: every request of the connection is refused by exchange_begin */
    if (!connection)
        return;
    connection->daemon = daemon;
    connection->fd = info->connect_fd;
    connection->next = http->connections;
    if (connection->next)
        connection->next->prev = connection;
    http->connections = connection;
    http->n_connections++;
    http_phase(http, connection, HTTP_PHASE_NEW);
}

static void connection_closed(struct http *http, struct http_connection *connection)
{
    http->n_ended++;
    accept_closed(http->accept);
    if (!connection)
        return;
    if (connection->prev)
        connection->prev->next = connection->next;
    else
        http->connections = connection->next;
    if (connection->next)
        connection->next->prev = connection->prev;
    http->n_connections--;
    free(connection);
}

void http_on_connection(void *self, struct MHD_Connection *mhd, void **context,
                        enum MHD_ConnectionNotificationCode code)
{
    struct http_daemon *daemon = self;
    if (code == MHD_CONNECTION_NOTIFY_STARTED)
        connection_opened(daemon, mhd, context);
    else
        connection_closed(daemon->http, *context);
}

/* ---- Clients that leave ---------------------------------------------------------------------------------------- */

/* Calls gone() for every connection that pick() chooses and on which one of the events it asks for, an error or a reset
 * has been seen. One poll() over all of them costs less than a watcher for each, which would be set up and taken down
 * with every suspension, and those are often shorter than a millisecond. */
typedef bool pick_connection(const struct http_connection *connection, short *events);
typedef void gone_connection(struct http_connection *connection);

static void poll_connections(struct http *http, pick_connection *pick, gone_connection *gone)
{
    struct pollfd *fds = calloc(http->n_connections + 1, sizeof *fds);
    struct http_connection **owners = calloc(http->n_connections + 1, sizeof *owners);
    size_t n = 0;
    for (struct http_connection *c = http->connections; fds && owners && c; c = c->next)
        if (pick(c, &fds[n].events)) {
            fds[n].fd = c->fd;
            owners[n++] = c;
        }
    if (n > 0 && poll(fds, n, 0) > 0)
        for (size_t i = 0; i < n; i++)
            if (fds[i].revents)
                gone(owners[i]);
    free(fds);
    free(owners);
}

/* 0.9.75 does not look at a suspended connection at all. While its request waits to be computed, a client that has
 * closed its sending side counts as gone. Once the answer flows it may have closed only that side: then only a reset
 * counts, which our own bytes provoke if it is really gone. */
static bool is_suspended(const struct http_connection *connection, short *events)
{
    const struct exchange *exchange = connection->exchange;
    if (!exchange || !exchange_is_suspended(exchange))
        return false;
    *events = exchange_is_sending(exchange) ? 0 : POLLRDHUP;
    return true;
}

static void leave(struct http_connection *connection) { exchange_leave(connection->exchange); }

void http_watch(void *self)
{
    struct http *http = self;
    if (http->n_suspended == 0)
        jobs_timer_stop(http->watch);
    else
        poll_connections(http, is_suspended, leave);
}

/* 0.9.75 takes a short read for the end of what has arrived; if the client's end had arrived with it, that is never
 * seen. */
static bool is_receiving(const struct http_connection *connection, short *events)
{
    *events = POLLRDHUP;
    return connection->phase != HTTP_PHASE_ANSWER && connection->phase != HTTP_PHASE_SEND;
}

static void close_if_drained(struct http_connection *connection)
{
    int n_unread = 0;
    if (ioctl(connection->fd, FIONREAD, &n_unread) == 0 && n_unread > 0)
        return; /* the rest of a request may be among it */
    if (connection->exchange)
        exchange_leave(connection->exchange);
    shutdown(connection->fd, SHUT_RDWR);
}

/* ---- Deadlines ------------------------------------------------------------------------------------------------- */

static void give_up(struct http_connection *connection)
{
    /* A kept connection that has been silent is simply closed: its client may be about to send, and would take a 408
     * for the answer to that. */
    if (connection->phase == HTTP_PHASE_SEND)
        exchange_leave(connection->exchange);
    else if (connection->phase != HTTP_PHASE_IDLE)
        exchange_refuse_slow(connection->exchange, connection);
    shutdown(connection->fd, SHUT_RDWR); /* the daemon sees the end and closes */
}

/* 0.9.75 restarts its timeout at every byte, so that a client could send a head for ever; these deadlines do not move.
 */
void http_sweep(void *self)
{
    struct http *http = self;
    uint64_t now = clock_now();
    poll_connections(http, is_receiving, close_if_drained);
    for (struct http_connection *c = http->connections; c; c = c->next)
        if (c->phase != HTTP_PHASE_ANSWER && now > c->deadline)
            give_up(c);
    newcomers_sweep(http, now);
}

/* ---- Suspension ------------------------------------------------------------------------------------------------ */

void http_suspend(struct http *http, struct MHD_Connection *mhd)
{
    MHD_suspend_connection(mhd);
    if (http->n_suspended++ == 0)
        jobs_timer_start(http->watch, WATCH_MS, WATCH_MS);
}

/* 0.9.75: without threads of its own the daemon has nothing that would wake it. */
void http_resume(struct http_connection *connection, struct MHD_Connection *mhd)
{
    MHD_resume_connection(mhd);
    connection->daemon->http->n_suspended--;
    connection->daemon->driven.wants_run = true;
}
