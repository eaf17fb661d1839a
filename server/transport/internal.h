/* One I/O loop with its daemons and connections, and the functions by which the files of this folder work on them,
 * lowest file first. exchange.h adds the requests. */
#ifndef SERVER_TRANSPORT_INTERNAL_H
#define SERVER_TRANSPORT_INTERNAL_H

#include "server/transport/http.h"
#include "server/transport/accept.h"
#include "server/exchange/answers.h"
#include "server/exchange/call.h"
#include "server/transport/daemon.h"
#include "server/transport/guard.h"
#include "server/transport/refusals.h"
#include "server/memory/pool.h"

struct exchange;
struct http_kept;
struct newcomer;

/* The phase of a connection; it determines the deadline. */
enum http_phase {
    HTTP_PHASE_NEW,    /* nothing received yet */
    HTTP_PHASE_IDLE,   /* kept open after an answer */
    HTTP_PHASE_HEAD,   /* request line received */
    HTTP_PHASE_BODY,   /* head received, body arriving */
    HTTP_PHASE_ANSWER, /* the server computes it, and the client reads it */
};

enum http_daemon_kind { HTTP_SMALL, HTTP_BULK, HTTP_N_DAEMONS };

struct http_daemon {
    struct http *http;
    size_t
        memory; /* memory per connection if it is counted; 0 for small connections, which are limited by their number */
    struct daemon *library; /* NULL before its start and after its end */
    struct loop_driven driven;
};

struct http_connection {
    struct http_daemon *daemon;
    struct accept_place *place;
    struct http_connection *prev, *next;
    int fd;
    enum http_phase phase;
    struct http_guard guard; /* filters the bytes between the socket and the daemon */
    bool is_late;            /* opened while the server drains: it gets refusals */
    bool is_known, is_proxy; /* whether its peer has been looked up, and whether the peer is a trusted proxy */
    bool has_address;        /* and whether it has an address: not if it has left */
    uint64_t peer;           /* client number of the peer; behind a proxy each request has its own */
    struct address address;  /* of the peer */
    uint64_t bulk_client;    /* the client for which memory has been reserved, if any */
    uint64_t deadline;       /* ns, of the phases before the answer */
    /* For a body that arrives or an answer that is sent: */
    uint64_t progress_at; /* ns; when bytes last moved */
    uint64_t window_at;   /* ns; start of the time in which the bytes of n_window moved */
    uint64_t n_window;
    uint64_t n_sent;           /* bytes that the socket has accepted (sent.c) */
    uint64_t confirmed;        /* of these, the bytes that the peer is known to have received */
    struct exchange *exchange; /* the current request; NULL between requests */
};

struct http {
    const struct options *options;
    const struct api_host *host;
    const struct http_door *door;
    struct loop *loop;
    struct accept *accept;
    struct answers *answers; /* shared by all loops */
    struct http_kept *kept;  /* NULL: none yet */
    struct pool *pool;
    uint64_t counted_pool_bytes;
    struct http_daemon daemons[HTTP_N_DAEMONS];
    struct newcomer *newcomers;
    struct http_connection *connections;
    size_t n_connections, n_suspended, n_streams;
    uint64_t n_ended;                            /* connections ended */
    uint64_t swept_at;                           /* ns */
    uint64_t newcomer_deadline, newcomer_client; /* of the connection that is just being passed to a daemon */
    struct accept_place *newcomer_place;         /* likewise */
    struct loop_timer *sweep, *watch;
    struct loop_call drain, close;
    struct exchange *first_turn, *last_turn; /* suspension.c: streams that wait for the next turn of the loop */
    bool has_waiting;
    size_t n_served; /* streams served in this turn */
    struct exchange *spare_exchanges;
    size_t n_spare_exchanges;
    struct calls spare_calls;
    bool is_draining, is_stopping;
    uint64_t id_seed, n_ids; /* for request ids */
};

/* From the first signal on, each answer is the last of its connection. Otherwise, a proxy that keeps connections would
 * send a request on one that closes at that moment. */
static inline bool http_is_ending(const struct http *http)
{
    return http->is_draining || !http->host->is_ready(http->host->self);
}

/* A spare place is for one request. */
static inline bool http_is_last(const struct http_connection *connection)
{
    return connection->place->is_spare || http_is_ending(connection->daemon->http);
}

/* ---- phases.c ---------------------------------------------------------------------------------------------- */

/* Moves the connection to a phase and sets the deadline of that phase. */
void http_phase(struct http *http, struct http_connection *connection, enum http_phase phase);
void http_received(struct http_connection *connection, size_t n_bytes); /* for bytes of a body */
bool http_has_unsent(int fd);                                           /* bytes that the peer has not acknowledged */

uint64_t http_peer(int fd);                              /* client number of the peer (networks.h) */
void http_know_peer(struct http_connection *connection); /* looks it up once: sets connection->peer and is_proxy */

/* ---- sent.c ------------------------------------------------------------------------------------------------ */

bool http_sent_works(void); /* whether the HTTP library calls this program's send() */

/* ---- refusals.c -------------------------------------------------------------------------------------------- */

void http_make_id(struct http *http, char *id); /* 17 bytes: the id of a request that has none */
/* Writes a refusal directly to the socket; the caller closes the connection. Does nothing under TLS. */
void http_send_raw(const struct http *http, int fd, const char *id, const struct api_reply *reply);
/* The same for a row of refusals.h and its values. id: of the request; NULL: there is none. Returns the status. */
int http_refuse(struct http *http, int fd, const char *id, int status, enum metrics_id counted, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

/* ---- suspension.c ------------------------------------------------------------------------------------------- */

void fairness_begin_turn(struct http *http); /* call it at each turn: resumes a few waiting streams */
bool fairness_wants_turn(const struct http *http);

/* ---- newcomers.c: connections that have not sent anything yet ---------------------------------------------- */

void newcomers_sweep(struct http *http, uint64_t now); /* closes those whose deadline is over */
void newcomers_drain(struct http *http);               /* closes those that have sent nothing so far */
void newcomers_stop(struct http *http);

/* ---- deadlines.c ------------------------------------------------------------------------------------------- */

enum { HTTP_SWEEP_MS = 500 };

void http_check_deadlines(struct http *http);

/* ---- connections.c ----------------------------------------------------------------------------------------- */

/* Called by a daemon (struct http_daemon), which stores the returned pointer as the connection's context, and by the
 * timers. */
void *http_opened(void *daemon, int fd, void *session);
void http_closed(void *daemon, void *connection);
void http_watch(void *http);
void http_sweep(void *http);

#endif
