/* Owns how long a client may take: to send a head, to send a body, to read its answer; and how long an answer may take
 * where the request says so. Every clock here is monotonic: a jump of the wall clock moves nothing.
 *
 * 0.9.75 restarts its one timeout at every byte, so that a client could send or read one byte a second for ever. These
 * deadlines do not move with bytes, and two of them ask for a rate. */
#include "server/http/exchange.h"

#include "server/loop/clock.h"

#include <inttypes.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

/* Rates are of whole windows: a client that pauses for a few seconds on a bad line is not slow. */
enum { WINDOW_S = 10, DETAIL_BYTES = 256 };

/* What leaves a Unix socket's queue does so when all of one send's part has been read, at most this much (48 KiB where
 * pages have 4): a reader may have read so much more than is seen. */
enum { UNIX_GRAIN = 64 * 1024 };

/* ---- Rates ----------------------------------------------------------------------------------------------------- */

/* Has a window ended with fewer bytes than --min-rate asks for, even with those that may have gone unseen? Begins the
 * next one where it has ended. */
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

/* Bytes that the peer's machine has confirmed on this connection. An old kernel does not count them, but knows what it
 * still holds. Of a Unix socket all that it has taken is the peer's, but for what it holds, which is little and always
 * about the same; false then. */
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

/* What the peer has read since the last look; returns how much more it may have. Where nothing waits for it, it is we
 * who are slow, and its time begins anew. Suspended, the daemon's connection waits for us, unless it is for the socket
 * that we write past it. */
static uint64_t note_reading(struct http_connection *connection, uint64_t now)
{
    uint64_t confirmed;
    bool is_exact = confirmed_bytes(connection, &confirmed);
    uint64_t n = confirmed - connection->confirmed;
    bool is_waiting = exchange_is_suspended(connection->exchange) && !connection->exchange->sending.chunks.watch;
    bool is_ours = is_waiting || !http_has_unsent(connection->fd);
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

/* What the system still holds for a client that does not read is dropped with the connection. */
static void close_without_rest(int fd)
{
    struct linger none = {.l_onoff = 1, .l_linger = 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
}

static void refuse(struct http_connection *connection, const char *detail)
{
    exchange_refuse_slow(connection->exchange, connection, detail);
    shutdown(connection->fd, SHUT_RDWR); /* the daemon sees the end and closes */
}

static void check_head(const struct http *http, struct http_connection *connection, uint64_t now)
{
    if (now > connection->deadline)
        refuse(connection, http_head_is_late(http->options, (char[HTTP_DETAIL_BYTES]){0}));
}

/* A kept connection that has been silent is simply closed: its client may be about to send, and would take a 408 for
 * the answer to that. */
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
    uint64_t n_has = exchange_received(connection->exchange), n = 0;
    char detail[DETAIL_BYTES];
    if (now > connection->deadline)
        snprintf(detail, sizeof detail,
                 "the body took longer than %" PRIu64 " s (--body-timeout); %" PRIu64 " bytes of it have come",
                 options->body_timeout, n_has);
    else if (now > connection->progress_at + options->connection_timeout * CLOCK_SECOND)
        snprintf(detail, sizeof detail,
                 "nothing more of the body came for %" PRIu64 " s (--connection-timeout); %" PRIu64
                 " bytes of it have come",
                 options->connection_timeout, n_has);
    else if (is_below_rate(http, connection, now, 0, &n))
        snprintf(detail, sizeof detail,
                 "the body came too slowly: %" PRIu64 " bytes in %d s; needed: %" PRIu64 " a second (--min-rate)", n,
                 (int)WINDOW_S, options->min_rate);
    else
        return;
    refuse(connection, detail);
}

/* The answer is cut: there is no way to say why but to close before its end. */
static void check_answer(const struct http *http, struct http_connection *connection, uint64_t now)
{
    struct exchange *x = connection->exchange;
    uint64_t n = 0;
    if (!x || !exchange_is_sending(x))
        return;
    uint64_t n_unseen = note_reading(connection, now);
    if (exchange_is_late(x, now)) {
        exchange_expire(x);
        shutdown(connection->fd, SHUT_RDWR);
    } else if (now > connection->progress_at + http->options->send_timeout * CLOCK_SECOND ||
               is_below_rate(http, connection, now, n_unseen, &n)) {
        exchange_leave_slow(x);
        close_without_rest(connection->fd);
        shutdown(connection->fd, SHUT_RDWR);
    }
}

static void check(const struct http *http, struct http_connection *connection, uint64_t now)
{
    switch (connection->phase) {
    case HTTP_PHASE_NEW:
    case HTTP_PHASE_HEAD: check_head(http, connection, now); break;
    case HTTP_PHASE_BODY: check_body(http, connection, now); break;
    case HTTP_PHASE_IDLE: check_idle(connection, now); break;
    case HTTP_PHASE_ANSWER: check_answer(http, connection, now); break;
    }
}

/* ---- The sweep ------------------------------------------------------------------------------------------------- */

/* The process has stood still (stopped, a machine asleep): what its clients have sent meanwhile is not read yet, and
 * no fault of theirs. */
static void forgive(struct http *http, uint64_t ns)
{
    for (struct http_connection *c = http->connections; c; c = c->next) {
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
    for (struct http_connection *c = http->connections; c; c = c->next)
        check(http, c, now);
    newcomers_sweep(http, now);
}
