/* Owns the connections of one loop: opening, closing, and detecting clients that disconnect. Comments that begin with
 * "0.9.75" describe where that version of the HTTP library needs care.
 *
 * Work for a client that has gone must end within 100 ms, but libmicrohttpd does not look at a suspended connection.
 * One poll() over the suspended connections every 50 ms costs less than a watch for each, which would be set and
 * removed with every suspension. A closed sending side is not an end: `printf … | nc -N` still reads. Only a reset
 * shows that, and a reset comes only after bytes were sent, so an interim response (RFC 9110, 15.2) is sent to ask. */
#define _GNU_SOURCE /* POLLRDHUP */
#include "server/transport/connections.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

/* ---- Connections ----------------------------------------------------------------------------------------------- */

/* NULL: every request of the connection is refused by http_begin. */
void *http_opened(void *self, int fd, void *session)
{
    struct http_daemon *daemon = self;
    struct http *http = daemon->http;
    struct http_connection *connection = calloc(1, sizeof *connection);
    if (!connection) { /* its memory and its place must be given back here: the call at its end will not know them */
        shares_give(SHARE_MEMORY, http->newcomer_client, daemon->memory);
        accept_closed(http->newcomer_place);
        return NULL;
    }
    connection->place = http->newcomer_place;
    connection->daemon = daemon;
    connection->fd = fd;
    connection->bulk_client = http->newcomer_client;
    connection->is_late = http->is_draining;
    if (connection->is_late)
        accept_count_late(http->accept, 1);
    LIST_INSERT_HEAD(&http->connections, connection, link);
    http->n_connections++;
    http_phase(http, connection, HTTP_PHASE_NEW);
    tls_dress(&http->door->tls, session);
    if (!http_guard_begin(connection, session)) {
        metrics_add(METRICS_REJECTED_MEMORY, 1);
        shutdown(connection->fd, SHUT_RDWR);
    }
    if (http->newcomer_deadline) /* its deadline was set when it was accepted */
        connection->deadline = http->newcomer_deadline;
    return connection;
}

void http_closed(void *self, void *context)
{
    struct http_daemon *daemon = self;
    struct http_connection *connection = context;
    struct http *http = daemon->http;
    http->n_ended++;
    admission_give_for(connection ? connection->bulk_client : 0, daemon->memory);
    if (!connection)
        return;
    accept_closed(connection->place);
    if (connection->is_late)
        accept_count_late(http->accept, -1);
    http_guard_end(connection);
    LIST_REMOVE(connection, link);
    http->n_connections--;
    free(connection);
}

/* ---- Clients that disconnect ----------------------------------------------------------------------------------- */

/* Calls gone() for every connection that pick() chooses and on which one of the requested events, an error or a reset
 * has occurred. One poll() over all connections costs less than a watch for each: watches would be set up and removed
 * with every suspension, and suspensions often last less than a millisecond. */
typedef bool pick_connection(const struct http_connection *connection, short *events);
typedef void gone_connection(struct http_connection *connection, short events);

static void poll_connections(struct http *http, pick_connection *pick, gone_connection *gone)
{
    struct pollfd *fds = calloc(http->n_connections + 1, sizeof *fds);
    struct http_connection **owners = calloc(http->n_connections + 1, sizeof *owners);
    size_t n = 0;
    for (struct http_connection *c = LIST_FIRST(&http->connections); fds && owners && c; c = LIST_NEXT(c, link))
        if (pick(c, &fds[n].events)) {
            fds[n].fd = c->fd;
            owners[n++] = c;
        }
    if (n > 0 && poll(fds, n, 0) > 0)
        for (size_t i = 0; i < n; i++)
            if (fds[i].revents)
                gone(owners[i], fds[i].revents);
    free(fds);
    free(owners);
}

/* 0.9.75 does not look at a suspended connection at all. A client that has closed its sending side may have left, or
 * may wait for its answer (`printf … | nc -N`). The two look the same until bytes are sent to the client: a client that
 * has disconnected answers with a reset. Once the answer is being sent, its bytes do this; before that, an interim
 * response does. A live answer may send nothing for seconds, so such a client counts as having left. */
static bool is_suspended(const struct http_connection *connection, short *events)
{
    const struct http_request *request = &connection->request;
    if (!request->is_suspended)
        return false;
    bool waits_for_reset = request->is_probed || request->is_sending;
    *events = waits_for_reset && !request->is_live ? 0 : POLLRDHUP;
    return true;
}

enum { GONE = POLLERR | POLLHUP | POLLNVAL };

/* On the same machine the reset arrives at once; otherwise the next sweep sees it. */
static bool is_reset(int fd)
{
    struct pollfd now = {.fd = fd};
    return poll(&now, 1, 0) > 0 && now.revents & GONE;
}

/* Sends an interim response (100), which shows whether a client that has closed its sending side is still there. False:
 * an interim response is not allowed for this client.
 *
 * Nothing has been sent on the connection since its last answer, so it may be written without the daemon. A client of
 * HTTP/1.1 skips it (RFC 9110, 15.2); a client of HTTP/1.0 would not. If part of the last answer is still unsent, that
 * part shows as well whether the client is there. */
static bool probe(struct http_connection *connection)
{
    static const char interim[] = "HTTP/1.1 100 Continue\r\n\r\n";
    connection->request.is_probed = true;
    if (http_has_unsent(connection->fd))
        return true;
    return !connection->daemon->http->door->tls.cert && !connection->request.is_http_1_0 &&
           send(connection->fd, interim, sizeof interim - 1, MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof interim - 1;
}

static void leave(struct http_connection *connection, short events)
{
    if (events & GONE || connection->request.is_live || !probe(connection) || is_reset(connection->fd))
        connection->daemon->http->events->leave(connection->request.exchange, false);
}

void http_watch(void *self)
{
    struct http *http = self;
    if (http->n_suspended == 0) {
        loop_timer_stop(http->watch);
        return;
    }
    uint64_t now = clock_now();
    poll_connections(http, is_suspended, leave);
    for (struct http_connection *c = LIST_FIRST(&http->connections); c; c = LIST_NEXT(c, link))
        if (c->request.is_suspended)
            http->events->expire(c->request.exchange, now);
}

/* 0.9.75 takes a short read as a sign that the socket is empty. If the client's end of stream arrived with those bytes,
 * the daemon never sees it. */
static bool is_receiving(const struct http_connection *connection, short *events)
{
    *events = POLLRDHUP;
    return connection->phase != HTTP_PHASE_ANSWER;
}

static void close_if_drained(struct http_connection *connection, short events)
{
    (void)events;
    int n_unread = 0;
    if (http_guard_is_full(&connection->guard) || (ioctl(connection->fd, FIONREAD, &n_unread) == 0 && n_unread > 0))
        return; /* it may contain the rest of a request */
    if (connection->request.exchange)
        connection->daemon->http->events->leave(connection->request.exchange, false);
    shutdown(connection->fd, SHUT_RDWR);
    /* A socket that was reset before causes no event by this, and a daemon that is not called otherwise does not look.
     */
    connection->daemon->driven.wants_run = true;
}

void http_sweep(void *self)
{
    struct http *http = self;
    poll_connections(http, is_receiving, close_if_drained);
    http_check_deadlines(http);
}
