/* Owns the HTTP daemon of one loop and its connections: start and end, deadlines, clients that leave.
 *
 * The daemon (libmicrohttpd 0.9.75) has no threads here: its epoll descriptor is watched by our loop, every callback
 * runs on the loop's thread. The comments that begin with "0.9.75" say where that version needs care. */
#define _GNU_SOURCE /* POLLRDHUP */
#include "server/http_internal.h"

#include "server/clock.h"
#include "server/metrics.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    /* 0.9.75 clears this memory for each request, so it costs time; but a body arrives in halves of it. */
    CONNECTION_MEMORY = 32 * 1024,
    SWEEP_MS = 1000,
    WATCH_MS = 100,
    TIMEOUT_MARGIN_S = 2 /* by which the daemon's own timeout, which only cuts, comes after ours, which says why */
};

/* ---- Connections ----------------------------------------------------------------------------------------------- */

static uint64_t phase_seconds(const struct options *options, enum http_phase phase)
{
    switch (phase) {
    case HTTP_PHASE_NEW:
    case HTTP_PHASE_HEAD: return options->header_timeout;
    case HTTP_PHASE_IDLE:
    case HTTP_PHASE_BODY:
    case HTTP_PHASE_ANSWER: break;
    }
    return options->connection_timeout;
}

void http_phase(struct http *http, struct http_connection *connection, enum http_phase phase)
{
    connection->phase = phase;
    connection->deadline = clock_now() + phase_seconds(http->options, phase) * CLOCK_SECOND;
    /* Half closed, so that a request already on its way is still read and answered. */
    if (phase == HTTP_PHASE_IDLE && http->is_draining)
        shutdown(connection->fd, SHUT_RD);
}

static void connection_opened(struct http *http, struct MHD_Connection *mhd, void **context)
{
    struct http_connection *connection = calloc(1, sizeof *connection);
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
    *context = connection; /* NULL: every request of the connection is refused by exchange_begin */
    if (!connection)
        return;
    connection->http = http;
    connection->fd = info->connect_fd;
    connection->next = http->connections;
    if (connection->next)
        connection->next->prev = connection;
    http->connections = connection;
    http->n_connections++;
    metrics_add(METRICS_CONNECTIONS, 1);
    http_phase(http, connection, HTTP_PHASE_NEW);
}

static void connection_closed(struct http *http, struct http_connection *connection)
{
    /* 0.9.75: at its limit of connections the daemon listens again only in the next run after one has closed. */
    http->driven.wants_run = true;
    if (!connection)
        return;
    if (connection->prev)
        connection->prev->next = connection->next;
    else
        http->connections = connection->next;
    if (connection->next)
        connection->next->prev = connection->prev;
    http->n_connections--;
    metrics_add(METRICS_CONNECTIONS, -1);
    free(connection);
}

static void on_connection(void *self, struct MHD_Connection *mhd, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
    if (code == MHD_CONNECTION_NOTIFY_STARTED)
        connection_opened(self, mhd, context);
    else
        connection_closed(self, *context);
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

static void watch(void *self)
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
    return connection->phase != HTTP_PHASE_ANSWER;
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
    if (connection->phase != HTTP_PHASE_IDLE)
        exchange_refuse_slow(connection->exchange, connection);
    shutdown(connection->fd, SHUT_RDWR); /* the daemon sees the end and closes */
}

/* 0.9.75 restarts its timeout at every byte, so that a client could send a head for ever; these deadlines do not move.
 */
static void sweep(void *self)
{
    struct http *http = self;
    uint64_t now = clock_now();
    poll_connections(http, is_receiving, close_if_drained);
    for (struct http_connection *c = http->connections; c; c = c->next)
        if (c->phase != HTTP_PHASE_ANSWER && now > c->deadline)
            give_up(c);
}

/* ---- Suspension ------------------------------------------------------------------------------------------------ */

void http_suspend(struct http *http, struct MHD_Connection *mhd)
{
    MHD_suspend_connection(mhd);
    if (http->n_suspended++ == 0)
        jobs_timer_start(http->watch, WATCH_MS, WATCH_MS);
}

/* 0.9.75: without threads of its own the daemon has nothing that would wake it. */
void http_resume(struct http *http, struct MHD_Connection *mhd)
{
    MHD_resume_connection(mhd);
    http->n_suspended--;
    http->driven.wants_run = true;
}

/* ---- The daemon ------------------------------------------------------------------------------------------------ */

static void run_daemon(void *self)
{
    struct http *http = self;
    if (!http->daemon)
        return;
    MHD_run(http->daemon);
    metrics_set(METRICS_POOL_BYTES, (int64_t)pool_bytes(http->pool));
}

static bool daemon_timeout(void *self, uint64_t *ms)
{
    struct http *http = self;
    MHD_UNSIGNED_LONG_LONG timeout = 0;
    if (!http->daemon || MHD_get_timeout(http->daemon, &timeout) != MHD_YES)
        return false;
    *ms = timeout;
    return true;
}

/* What the daemon says while it starts explains a failure. Later it only tells of broken clients, as our request lines
 * do. */
static void on_daemon_message(void *self, const char *format, va_list arguments) __attribute__((format(printf, 2, 0)));

static void on_daemon_message(void *self, const char *format, va_list arguments)
{
    const struct http *http = self;
    if (http->daemon)
        return;
    char text[256];
    vsnprintf(text, sizeof text, format, arguments);
    text[strcspn(text, "\n")] = '\0';
    log_error("HTTP daemon: %s", text);
}

/* The daemon calls this when its own state is broken and then expects the process to end. */
static void on_panic(void *self, const char *file, unsigned line, const char *reason)
{
    (void)self;
    log_error("HTTP daemon: panic in %s:%u: %s", file, line, reason ? reason : "no reason given");
    log_flush_all(1000);
    abort();
}

static struct MHD_Daemon *start_daemon(struct http *http, int listen_fd)
{
    const struct options *options = http->options;
    MHD_set_panic_func(on_panic, NULL);
    unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;
    return MHD_start_daemon(flags, 0, NULL, NULL, exchange_receive, http, MHD_OPTION_EXTERNAL_LOGGER, on_daemon_message,
                            http, /* 0.9.75: must come first */
                            MHD_OPTION_LISTEN_SOCKET, listen_fd, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                            (size_t)CONNECTION_MEMORY, MHD_OPTION_CONNECTION_LIMIT, (unsigned)options->max_connections,
                            MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)options->connection_timeout + TIMEOUT_MARGIN_S,
                            MHD_OPTION_STRICT_FOR_CLIENT,
                            -1, /* 0.9.75: the only value that refuses "Name :", which hides a header */
                            MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_URI_LOG_CALLBACK, exchange_begin, http,
                            MHD_OPTION_NOTIFY_COMPLETED, exchange_end, http, MHD_OPTION_NOTIFY_CONNECTION,
                            on_connection, http, MHD_OPTION_END);
}

static bool start(struct http *http, int listen_fd)
{
    http->pool = pool_new(http->options->buffer_memory);
    http->answers = answers_new(http->options->answer_cache, http->id_seed);
    http->sweep = jobs_timer_new(http->jobs, sweep, http);
    http->watch = jobs_timer_new(http->jobs, watch, http);
    if (!http->pool || !http->answers || !http->sweep || !http->watch)
        return false;
    http->daemon = start_daemon(http, listen_fd);
    if (!http->daemon)
        return false;
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    http->driven =
        (struct jobs_driven){.fd = info->epoll_fd, .self = http, .run = run_daemon, .timeout = daemon_timeout};
    jobs_timer_start(http->sweep, SWEEP_MS, SWEEP_MS);
    return jobs_drive(http->jobs, &http->driven);
}

struct http *http_new(const struct options *options, const struct api_host *host, struct jobs *jobs, int listen_fd)
{
    struct http *http = calloc(1, sizeof *http);
    if (http) {
        http->options = options;
        http->host = host;
        http->jobs = jobs;
        if (getrandom(&http->id_seed, sizeof http->id_seed, 0) != sizeof http->id_seed)
            http->id_seed = clock_now();
        if (start(http, listen_fd))
            return http;
    }
    if (!http || !http->daemon)
        close(listen_fd);
    log_error("the HTTP daemon could not start");
    http_stop(http);
    http_free(http);
    return NULL;
}

size_t http_n_connections(const struct http *http) { return http->n_connections; }

void http_drain(struct http *http)
{
    http->is_draining = true;
    MHD_run(http->daemon); /* takes the connections that wait in the socket's queue, which closing it would reset */
    int listen_fd = MHD_quiesce_daemon(http->daemon);
    if (listen_fd != MHD_INVALID_SOCKET)
        close(listen_fd);
    for (struct http_connection *c = http->connections; c; c = c->next)
        if (c->phase == HTTP_PHASE_IDLE || c->phase == HTTP_PHASE_NEW)
            shutdown(c->fd, SHUT_RD);
    http->driven.wants_run = true;
}

void http_stop(struct http *http)
{
    if (!http || !http->daemon)
        return;
    http->is_stopping = true;
    for (struct http_connection *c = http->connections; c; c = c->next)
        if (c->exchange)
            exchange_leave(c->exchange);
    /* 0.9.75 aborts the process if a connection is still suspended when the daemon is stopped; resuming takes a run. */
    MHD_run(http->daemon);
    MHD_stop_daemon(http->daemon);
    http->daemon = NULL;
}

void http_free(struct http *http)
{
    if (!http)
        return;
    answers_free(http->answers);
    pool_free(http->pool);
    free(http);
}
