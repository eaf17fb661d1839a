/* Owns what the server's start and end have to do with connections: whom it serves (the door), where it listens, and
 * all loops' daemons together. */
#include "server/transport/connections.h"

#include <stdlib.h>
#include <sys/random.h>
#include <sys/socket.h>

/* ---- Whom it serves ---------------------------------------------------------------------------------------------- */

bool door_open(struct http_door *door, const struct options *options, char error[TOKENS_ERROR_BYTES])
{
    if (!networks_parse(options->trusted_proxy, &door->proxies, error, TOKENS_ERROR_BYTES) ||
        !tls_read(&door->tls, options->tls_cert, options->tls_key, error, TOKENS_ERROR_BYTES))
        return false;
    if (*options->token_file)
        door->tokens = tokens_new(options->token_file, error);
    return !*options->token_file || door->tokens;
}

void door_reread(struct http_door *door, const struct options *options)
{
    if (door->tokens)
        tokens_reread(door->tokens);
    if (door->tls.cert)
        tls_reread(&door->tls, options->tls_cert, options->tls_key);
}

void door_close(struct http_door *door)
{
    tokens_free(door->tokens);
    tls_drop(&door->tls);
}

/* ---- Where it listens -------------------------------------------------------------------------------------------- */

int transport_listen(const struct options *options, struct http_door *door, char *url, char *error, size_t n_error)
{
    if (*options->socket)
        return http_listen_unix(options->socket, url, error, n_error);
    int fd = http_listen(options->host, (unsigned)options->port, door->tls.cert, options->tcp_cc, url, error, n_error);
    bool is_beyond = fd >= 0 && http_is_beyond_loopback(fd);
    door->checks_host = !door->tokens && !is_beyond;
    if (!door->tokens && is_beyond)
        log_warn("listening beyond this machine without --token-file: anyone who reaches %s may use it", url);
    return fd;
}

/* ---- All loops together ------------------------------------------------------------------------------------------ */

bool transport_begin(struct transport *transport, const struct options *options, const struct api_host *host,
                     const struct http_door *door, int listen_fd)
{
    transport->accept = accept_new(transport->loops[0].loop, listen_fd, options->max_connections);
    if (!transport->accept)
        return false;
    for (size_t i = 0; i < transport->n; i++) {
        struct transport_loop *of = &transport->loops[i];
        of->http = http_new(options, host, door, of->loop, transport->accept, transport->events, of->self);
        if (!of->http)
            return false;
    }
    if (accept_begin(transport->accept, transport->loops, transport->n))
        return true;
    log_error("no memory to accept connections");
    return false;
}

size_t transport_n_open(const struct transport *transport, bool with_late)
{
    return with_late ? accept_n_open(transport->accept) : accept_n_early(transport->accept);
}

/* Connections that are handed out here reach the loops before the call to drain does. */
void transport_drain(struct transport *transport)
{
    accept_take_queue(transport->accept);
    for (size_t i = 0; i < transport->n; i++)
        http_drain(transport->loops[i].http);
}

void transport_close(struct transport *transport)
{
    accept_close(transport->accept);
    for (size_t i = 0; i < transport->n; i++)
        http_close(transport->loops[i].http);
}

void transport_stop(struct transport *transport)
{
    if (transport->accept)
        accept_close(transport->accept);
    for (size_t i = 0; i < transport->n; i++)
        http_stop(transport->loops[i].http);
}

void transport_free(struct transport *transport)
{
    for (size_t i = 0; i < transport->n; i++)
        http_free(transport->loops[i].http);
    accept_free(transport->accept);
}

/* ---- One loop's two daemons -------------------------------------------------------------------------------------- */

/* 0.9.75 clears a connection's memory for each request. A head must fit into it together with some bookkeeping, while a
 * body arrives in halves of it. So most connections get little memory, and those that begin with a large body get much.
 * Answers of unknown length do not need it (chunks.c).
 *
 *     memory in KiB                                               8     10     16
 *     processor time of a small request outside the kernel, µs  4.9    5.2    5.8
 *
 * One daemon for both would be simpler, but uploads would cost more. Processor time, kernel included, of one daemon
 * relative to two (medians of nine pairs):
 *
 *     memory of the one daemon in KiB       10     16     64   1024
 *     small GET                           0.97   0.99   1.09    4.7
 *     small POST                          1.00   1.00   1.08    4.4
 *     body of 32 MiB                      1.61   1.41   1.17   0.94 */
static const size_t memories[HTTP_N_DAEMONS] = {[HTTP_SMALL] = 10 * 1024, [HTTP_BULK] = 1024 * 1024};

enum {
    CONNECTIONS_BESIDE =
        128,             /* more than accept.c has beyond --max-connections: spare ones, and ones that are closing */
    TIMEOUT_MARGIN_S = 2 /* The daemon's own timeout, which only cuts the connection, is longer than ours by this much,
                            since ours sends a reason. */
};

/* ---- The daemons ----------------------------------------------------------------------------------------------- */

static void run_daemon(void *self)
{
    struct http_daemon *daemon = self;
    if (!daemon->library)
        return;
    const struct http *http = daemon->http;
    http->events->begin_turn(http->self);
    daemon_run(daemon->library);
    bool wants_turn = http->events->end_turn(http->self);
    daemon->driven.wants_run = daemon->driven.wants_run || wants_turn;
}

static bool timeout(void *self, uint64_t *ms)
{
    const struct http_daemon *daemon = self;
    return daemon->library && daemon_timeout(daemon->library, ms);
}

static const struct daemon_events daemon_events = {
    .opened = http_opened,
    .closed = http_closed,
    .begin = http_begin,
    .receive = http_receive,
    .end = http_end,
};

static bool start_driven(struct http *http, enum http_daemon_kind kind)
{
    struct http_daemon *daemon = &http->daemons[kind];
    daemon->http = http;
    daemon->memory = kind == HTTP_BULK ? memories[kind] : 0;
    const struct options *options = daemon->http->options;
    const struct tls *tls = &daemon->http->door->tls;
    uint64_t silence = options->connection_timeout;
    silence = silence > options->send_timeout ? silence : options->send_timeout;
    const struct daemon_settings settings = {
        .memory = memories[kind],
        .max_connections =
            (unsigned)options->max_connections + CONNECTIONS_BESIDE, /* accept.c already enforces this limit */
        .timeout_s = (unsigned)silence + TIMEOUT_MARGIN_S,
        .cert = tls->cert,
        .key = tls->key,
    };
    daemon->library = daemon_new(&settings, &daemon_events, daemon);
    if (!daemon->library)
        return false;
    daemon->driven =
        (struct loop_driven){.fd = daemon_fd(daemon->library), .self = daemon, .run = run_daemon, .timeout = timeout};
    return loop_drive(http->loop, &daemon->driven);
}

static bool start(struct http *http)
{
    if (!http_guard_works()) {
        log_error("recv() of this program is not the one the HTTP library calls; heads would not be checked");
        return false;
    }
    if (!http_sent_works()) {
        log_error("send() of this program is not the one the HTTP library calls; readers' rates would not be measured");
        return false;
    }
    http->sweep = loop_timer_new(http->loop, http_sweep, http);
    http->watch = loop_timer_new(http->loop, http_watch, http);
    if (!http->sweep || !http->watch || !start_driven(http, HTTP_SMALL) || !start_driven(http, HTTP_BULK))
        return false;
    loop_timer_start(http->sweep, HTTP_SWEEP_MS, HTTP_SWEEP_MS);
    return true;
}

/* Every loop has its own random seed of 64 bits, so no two of them will produce the same request id. */
struct http *http_new(const struct options *options, const struct api_host *host, const struct http_door *door,
                      struct loop *loop, struct accept *accept, const struct transport_events *events, void *self)
{
    struct http *http = calloc(1, sizeof *http);
    if (http) {
        http->options = options;
        http->host = host;
        http->door = door;
        http->loop = loop;
        http->accept = accept;
        http->events = events;
        http->self = self;
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

static void close_idle(struct http *http)
{
    newcomers_drain(http);
    for (struct http_connection *c = LIST_FIRST(&http->connections); c; c = LIST_NEXT(c, link))
        if (c->phase == HTTP_PHASE_IDLE || c->phase == HTTP_PHASE_NEW)
            shutdown(c->fd, SHUT_RD);
    for (size_t i = 0; i < HTTP_N_DAEMONS; i++)
        http->daemons[i].driven.wants_run = true;
}

/* Connections that have sent something by now are not late. */
static void drain(struct loop_call *call)
{
    struct http *http = (struct http *)(void *)((char *)call - offsetof(struct http, drain));
    close_idle(http);
    http->is_draining = true;
}

static void close_rest(struct loop_call *call)
{
    close_idle((struct http *)(void *)((char *)call - offsetof(struct http, close)));
}

void http_drain(struct http *http)
{
    http->drain.fire = drain;
    loop_post(http->loop, &http->drain);
}

void http_close(struct http *http)
{
    http->close.fire = close_rest;
    loop_post(http->loop, &http->close);
}

void http_stop(struct http *http)
{
    if (!http)
        return;
    http->is_stopping = true;
    newcomers_stop(http);
    for (struct http_connection *c = LIST_FIRST(&http->connections); c; c = LIST_NEXT(c, link))
        if (c->request.exchange)
            http->events->leave(c->request.exchange, false);
    for (size_t i = 0; i < HTTP_N_DAEMONS; i++) {
        daemon_free(http->daemons[i].library);
        http->daemons[i].library = NULL;
    }
}

void http_free(struct http *http)
{
    if (!http)
        return;
    http_free_heads(http);
    free(http);
}
