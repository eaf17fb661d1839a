/* Owns the time limits: for sending a head, for sending a body, for reading an answer, and for the whole answer if the
 * request sets a limit. Every clock here is monotonic: a jump of the wall clock has no effect.
 *
 * 0.9.75 restarts its only timeout at every byte, so a client could send or read one byte a second for ever (slowloris,
 * 2009). These deadlines do not move with each byte, and two of them require a minimum rate, measured over whole
 * windows: a pause of some seconds on a bad line is not slow.
 *
 * How much a client has read is the kernel's knowledge. TCP_INFO has the bytes that the peer acknowledged; for Unix
 * sockets guard.c counts what the socket accepted. Time in which no bytes wait for the client is the server's, and is
 * not counted. */
#include "server/transport/connections.h"

#include <inttypes.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

/* Rates are measured over whole windows: a client that pauses for a few seconds on a bad line is not slow. */
enum { WINDOW_S = 10 };

/* A reader is good at so many times --min-rate: no answer to it is cut for another client (accept.c). */
enum { GOOD_TIMES = 4 };

/* Space in a Unix socket's queue is freed only when everything that one send() added has been read, at most this much
 * (48 KiB with pages of 4 KiB). So a reader may have read up to this much more than can be seen. */
enum { UNIX_GRAIN = 64 * 1024 };

/* ---- Rates ----------------------------------------------------------------------------------------------------- */

/* Has a window ended with fewer bytes than --min-rate requires, even with the bytes that may have gone unseen? Starts
 * the next window when one has ended. */
static bool is_below_rate(const struct http *http, struct http_connection *connection, uint64_t now, uint64_t n_unseen,
                          uint64_t *n_bytes)
{
    if (now < connection->window_at + WINDOW_S * CLOCK_SECOND)
        return false;
    *n_bytes = connection->n_window;
    connection->n_window = 0;
    connection->window_at = now;
    return *n_bytes + n_unseen < http->options->min_rate * WINDOW_S;
}

/* Counts the bytes that the peer's machine has acknowledged on this connection. An old kernel does not count them, but
 * reports how much is unacknowledged. On a Unix socket, all the bytes that the socket has accepted are counted: the few
 * that are still queued are about the same number every time. Returns false for a Unix socket. */
static bool confirmed_bytes(const struct http_connection *connection, uint64_t *n_bytes)
{
    struct tcp_info info = {0};
    socklen_t n = sizeof info;
    int n_held = 0;
    bool is_tcp = getsockopt(connection->fd, IPPROTO_TCP, TCP_INFO, &info, &n) == 0;
    *n_bytes = connection->n_sent;
    if (is_tcp && n >= offsetof(struct tcp_info, tcpi_bytes_acked) + sizeof info.tcpi_bytes_acked)
        *n_bytes = info.tcpi_bytes_acked;
    else if (is_tcp && ioctl(connection->fd, SIOCOUTQ, &n_held) == 0)
        *n_bytes -= (uint64_t)n_held;
    return is_tcp;
}

/* Publishes until when what the client has read is enough for a good rate. Bytes pay for the time after them, at most a
 * window, so a reader that is quick on the whole may pause; so does a delay that is the server's. */
static void note_pace(const struct http *http, struct http_connection *connection, uint64_t now, uint64_t n_read,
                      bool is_ours)
{
    uint64_t rate = GOOD_TIMES * http->options->min_rate, n_max = rate * WINDOW_S;
    uint64_t since = atomic_load_explicit(&connection->place->waits_since, memory_order_relaxed);
    uint64_t end = since ? since - ACCEPT_LAST : 0, least = now + (since && !is_ours ? 0 : ACCEPT_SILENCE_NS);
    if (rate == 0)
        return;
    end = (end > least ? end : least) + (n_read < n_max ? n_read : n_max) * 1000 / rate * CLOCK_MS;
    uint64_t most = now + WINDOW_S * CLOCK_SECOND;
    accept_waits(connection->place, ACCEPT_LAST + (end < most ? end : most));
}

/* Has the reader been given all that a live answer has produced so far? Then few bytes are no sign of a slow reader,
 * although on a long line some of them are always on their way. */
static bool has_all(const struct http_request *request)
{
    return request->is_live && request->reader && request->reader->is_waiting(request->exchange);
}

/* Updates the number of bytes that the peer has read; returns how many more it may have read. If no bytes wait for the
 * client, the delay is the server's, and the client's time starts again. A suspended connection waits for the server,
 * unless chunks.c writes to its socket. */
static uint64_t note_reading(const struct http *http, struct http_connection *connection, uint64_t now)
{
    uint64_t confirmed;
    bool is_exact = confirmed_bytes(connection, &confirmed);
    uint64_t n = confirmed - connection->confirmed;
    bool is_waiting = connection->request.is_suspended && !connection->request.chunks.watch;
    bool is_ours = is_waiting || !http_has_unsent(connection->fd);
    note_pace(http, connection, now, n, is_ours || has_all(&connection->request));
    connection->confirmed = confirmed;
    connection->n_window += n;
    if (is_ours || n > 0)
        connection->progress_at = now;
    if (is_ours) {
        connection->window_at = now;
        connection->n_window = 0;
    }
    return is_exact ? 0 : UNIX_GRAIN;
}

/* ---- Clients that take too long -------------------------------------------------------------------------------- */

/* The unsent bytes that the kernel holds for a client that does not read are dropped with the connection. */
static void close_without_rest(int fd)
{
    struct linger none = {.l_onoff = 1, .l_linger = 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
}

/* The client sends its request too slowly: it gets a 408, a row of transport.h, if no answer has begun. */
static void refuse(struct http_connection *connection, int status, enum metrics_id counted, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static void refuse(struct http_connection *connection, int status, enum metrics_id counted, const char *format, ...)
{
    struct http *http = connection->daemon->http;
    void *exchange = connection->request.exchange; /* NULL: no request line has arrived */
    va_list values;
    va_start(values, format);
    if (exchange)
        http->events->time_out(exchange, status, counted, format, values);
    else
        http_refuse_values(http, connection->fd, status, counted, format, values);
    va_end(values);
    shutdown(connection->fd, SHUT_RDWR); /* the daemon sees the end and closes the connection */
}

static void check_head(const struct http *http, struct http_connection *connection, uint64_t now)
{
    if (now > connection->deadline)
        refuse(connection, REFUSED_SLOW_HEAD, http->options->header_timeout);
}

/* An idle keep-alive connection is closed without an answer: its client may be about to send a request, and would take
 * a 408 for the answer to it. */
static void check_idle(struct http_connection *connection, uint64_t now)
{
    if (now <= connection->deadline)
        return;
    if (http_has_unsent(connection->fd))
        close_without_rest(connection->fd);
    shutdown(connection->fd, SHUT_RDWR);
}

static void check_body(const struct http *http, struct http_connection *connection, uint64_t now)
{
    const struct options *options = http->options;
    uint64_t n_has = connection->request.n_received, n = 0;
    if (now > connection->deadline)
        refuse(connection, REFUSED_LONG_BODY, options->body_timeout, n_has);
    else if (now > connection->progress_at + options->connection_timeout * CLOCK_SECOND)
        refuse(connection, REFUSED_STALLED_BODY, options->connection_timeout, n_has);
    else if (is_below_rate(http, connection, now, 0, &n))
        refuse(connection, REFUSED_SLOW_BODY, n, (int)WINDOW_S, options->min_rate);
}

/* The answer is cut off. Closing the connection early is the only way to report that. */
static void check_answer(const struct http *http, struct http_connection *connection, uint64_t now)
{
    const struct http_request *request = &connection->request;
    uint64_t n = 0;
    if (!request->is_sending)
        return;
    uint64_t n_unseen = note_reading(http, connection, now);
    if (http->events->expire(request->exchange, now)) {
        shutdown(connection->fd, SHUT_RDWR);
    } else if (atomic_load(&connection->place->is_cut) ||
               now > connection->progress_at + http->options->send_timeout * CLOCK_SECOND ||
               (is_below_rate(http, connection, now, n_unseen, &n) && !has_all(request))) {
        http->events->leave(request->exchange, true);
        close_without_rest(connection->fd);
        shutdown(connection->fd, SHUT_RDWR);
    }
}

/* ---- The sweep ------------------------------------------------------------------------------------------------- */

/* The process has been stopped, or the machine was asleep. Bytes that clients have sent meanwhile are unread, so the
 * deadlines are moved by that time. */
static void forgive(struct http *http, uint64_t ns)
{
    for (struct http_connection *c = LIST_FIRST(&http->connections); c; c = LIST_NEXT(c, link)) {
        c->deadline += ns;
        c->progress_at += ns;
        c->window_at += ns;
    }
}

void http_check_deadlines(struct http *http)
{
    uint64_t now = clock_now(), expected = http->swept_at + HTTP_SWEEP_MS * CLOCK_MS;
    if (http->swept_at && now > expected + CLOCK_SECOND)
        forgive(http, now - expected);
    http->swept_at = now;
    for (struct http_connection *c = LIST_FIRST(&http->connections); c; c = LIST_NEXT(c, link)) {
        switch (c->phase) {
        case HTTP_PHASE_NEW:
        case HTTP_PHASE_HEAD: check_head(http, c, now); break;
        case HTTP_PHASE_BODY: check_body(http, c, now); break;
        case HTTP_PHASE_IDLE: check_idle(c, now); break;
        case HTTP_PHASE_ANSWER: check_answer(http, c, now); break;
        }
    }
    newcomers_sweep(http, now);
}
