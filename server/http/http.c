/* Owns the HTTP daemons of one loop: start, running them, and the end.
 *
 * A daemon (libmicrohttpd 0.9.75) has no threads here: its epoll descriptor is watched by our loop, every callback runs
 * on the loop's thread. The comments that begin with "0.9.75" say where that version needs care. */
#include "server/http/exchange.h"

#include "server/loop/clock.h"
#include "server/metrics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

/* 0.9.75 clears a connection's memory for each request, and a head must fit into it with some bookkeeping, while a body
 * arrives in halves of it: little for the many, much for connections that begin with a large body. Answers of unknown
 * length do not need it (chunks.c).
 *
 *   memory in KiB                                               8     10     16
 *   processor time of a small request outside the kernel, µs  4.9    5.2    5.8
 */
static const size_t memories[HTTP_N_DAEMONS] = {[HTTP_SMALL] = 10 * 1024, [HTTP_BULK] = 1024 * 1024};

enum {
    TIMEOUT_MARGIN_S = 2 /* by which the daemon's own timeout, which only cuts, comes after ours, which says why */
};

/* ---- The daemons ----------------------------------------------------------------------------------------------- */

/* The pools of all loops are one figure, so each adds what its own has changed. */
static void count_pool(struct http *http)
{
    uint64_t now = pool_bytes(http->pool);
    if (now == http->counted_pool_bytes)
        return;
    metrics_add(METRICS_POOL_BYTES, (int64_t)(now - http->counted_pool_bytes));
    http->counted_pool_bytes = now;
}

static void run_daemon(void *self)
{
    struct http_daemon *daemon = self;
    if (!daemon->mhd)
        return;
    fairness_begin_turn(daemon->http);
    MHD_run(daemon->mhd);
    daemon->driven.wants_run = daemon->driven.wants_run || fairness_wants_turn(daemon->http);
    count_pool(daemon->http);
}

static bool daemon_timeout(void *self, uint64_t *ms)
{
    struct http_daemon *daemon = self;
    MHD_UNSIGNED_LONG_LONG timeout = 0;
    if (!daemon->mhd || MHD_get_timeout(daemon->mhd, &timeout) != MHD_YES)
        return false;
    *ms = timeout;
    return true;
}

/* What the daemon says while it starts explains a failure. Later it only tells of broken clients, as our request lines
 * do. */
static void on_daemon_message(void *self, const char *format, va_list arguments) __attribute__((format(printf, 2, 0)));

static void on_daemon_message(void *self, const char *format, va_list arguments)
{
    const struct http_daemon *daemon = self;
    if (daemon->mhd)
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

/* In GnuTLS's words. Older versions of the protocol are broken. */
static char tls_versions[] = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2";

static struct MHD_Daemon *start_daemon(struct http_daemon *daemon, size_t memory)
{
    struct http *http = daemon->http;
    const struct options *options = http->options;
    uint64_t silence = options->connection_timeout;
    silence = silence > options->send_timeout ? silence : options->send_timeout;
    const struct tls *tls = &http->door->tls;
    struct MHD_OptionItem items[] = {{MHD_OPTION_HTTPS_MEM_CERT, 0, tls->cert},
                                     {MHD_OPTION_HTTPS_MEM_KEY, 0, tls->key},
                                     {MHD_OPTION_HTTPS_PRIORITIES, 0, tls_versions},
                                     {MHD_OPTION_END, 0, NULL}};
    unsigned flags = (tls->cert ? MHD_USE_TLS : 0) | MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME |
                     MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ERROR_LOG;
    return MHD_start_daemon(
        flags, 0, NULL, NULL, exchange_receive, http, MHD_OPTION_EXTERNAL_LOGGER, on_daemon_message,
        daemon, /* 0.9.75: must come first */
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, memory, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)options->max_connections, /* which accept.c keeps to already */
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)silence + TIMEOUT_MARGIN_S, MHD_OPTION_STRICT_FOR_CLIENT,
        -1, /* 0.9.75: the only value that refuses "Name :", which hides a header */
        MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_URI_LOG_CALLBACK, exchange_begin, http,
        MHD_OPTION_NOTIFY_COMPLETED, exchange_end, http, MHD_OPTION_NOTIFY_CONNECTION, http_on_connection, daemon,
        MHD_OPTION_ARRAY, tls->cert ? items : items + 3, MHD_OPTION_END);
}

static bool start_driven(struct http *http, enum http_daemon_kind kind)
{
    struct http_daemon *daemon = &http->daemons[kind];
    daemon->http = http;
    daemon->memory = kind == HTTP_BULK ? memories[kind] : 0;
    daemon->mhd = start_daemon(daemon, memories[kind]);
    if (!daemon->mhd)
        return false;
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(daemon->mhd, MHD_DAEMON_INFO_EPOLL_FD);
    daemon->driven =
        (struct jobs_driven){.fd = info->epoll_fd, .self = daemon, .run = run_daemon, .timeout = daemon_timeout};
    return jobs_drive(http->jobs, &daemon->driven);
}

static bool start(struct http *http)
{
    const struct options *options = http->options;
    MHD_set_panic_func(on_panic, NULL);
    if (!http_guard_works()) {
        log_error("recv() of this program is not the one the HTTP library calls; heads would go unchecked");
        return false;
    }
    if (!http_sent_works()) {
        log_error("send() of this program is not the one the HTTP library calls; readers' rates would go unknown");
        return false;
    }
    http->pool = pool_new(options->buffer_memory / options->io_threads);
    http->sweep = jobs_timer_new(http->jobs, http_sweep, http);
    http->watch = jobs_timer_new(http->jobs, http_watch, http);
    if (!http->pool || !http->sweep || !http->watch || !start_driven(http, HTTP_SMALL) ||
        !start_driven(http, HTTP_BULK))
        return false;
    jobs_timer_start(http->sweep, HTTP_SWEEP_MS, HTTP_SWEEP_MS);
    return true;
}

/* Every loop has a seed of its own: with 64 random bits two of them will not name requests alike. */
struct http *http_new(const struct options *options, const struct api_host *host, const struct http_door *door,
                      struct jobs *jobs, struct accept *accept, struct answers *answers, struct flights *flights)
{
    struct http *http = calloc(1, sizeof *http);
    if (http) {
        http->options = options;
        http->host = host;
        http->door = door;
        http->jobs = jobs;
        http->accept = accept;
        http->answers = answers;
        http->flights = flights;
        if (getrandom(&http->id_seed, sizeof http->id_seed, 0) != sizeof http->id_seed)
            http->id_seed = clock_now() ^ (uint64_t)(uintptr_t)http;
        if (start(http))
            return http;
    }
    log_error(door->tls.cert ? "the HTTP daemon could not start; --tls-cert and --tls-key may not belong together"
                             : "the HTTP daemon could not start");
    http_stop(http);
    http_free(http);
    return NULL;
}

/* ---- The end --------------------------------------------------------------------------------------------------- */

static void drain(struct jobs_call *call)
{
    struct http *http = (struct http *)(void *)((char *)call - offsetof(struct http, drain));
    http->is_draining = true;
    newcomers_drain(http);
    for (struct http_connection *c = http->connections; c; c = c->next)
        if (c->phase == HTTP_PHASE_IDLE || c->phase == HTTP_PHASE_NEW)
            shutdown(c->fd, SHUT_RD);
    for (size_t i = 0; i < HTTP_N_DAEMONS; i++)
        http->daemons[i].driven.wants_run = true;
}

void http_drain(struct http *http)
{
    http->drain.fire = drain;
    jobs_post(http->jobs, &http->drain);
}

static void stop_daemon(struct http_daemon *daemon)
{
    if (!daemon->mhd)
        return;
    /* 0.9.75 aborts the process if a connection is still suspended when the daemon is stopped; resuming takes a run. */
    MHD_run(daemon->mhd);
    MHD_stop_daemon(daemon->mhd);
    daemon->mhd = NULL;
}

void http_stop(struct http *http)
{
    if (!http)
        return;
    http->is_stopping = true;
    newcomers_stop(http);
    for (struct http_connection *c = http->connections; c; c = c->next)
        if (c->exchange)
            exchange_leave(c->exchange);
    for (size_t i = 0; i < HTTP_N_DAEMONS; i++)
        stop_daemon(&http->daemons[i]);
}

void http_free(struct http *http)
{
    if (!http)
        return;
    exchange_free_spare(http);
    response_cache_free(http);
    pool_free(http->pool);
    free(http);
}
