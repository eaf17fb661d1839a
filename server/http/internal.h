/* One I/O loop: its daemons and its connections, and what the files of this folder call of each other for those, lowest
 * first. exchange.h adds the requests. */
#ifndef SERVER_HTTP_INTERNAL_H
#define SERVER_HTTP_INTERNAL_H

#include "server/http/http.h"
#include "server/http/accept.h"
#include "server/cache/answers.h"
#include "server/http/daemon/daemon.h"
#include "server/http/guard.h"
#include "server/memory/pool.h"

struct exchange;
struct http_kept;
struct newcomer;

/* Where a connection stands; decides which deadline it has. */
enum http_phase {
    HTTP_PHASE_NEW,    /* nothing received yet */
    HTTP_PHASE_IDLE,   /* kept open after an answer */
    HTTP_PHASE_HEAD,   /* request line received */
    HTTP_PHASE_BODY,   /* head received, body arriving */
    HTTP_PHASE_ANSWER, /* ours to do, and the client's to read */
};

enum http_daemon_kind { HTTP_SMALL, HTTP_BULK, HTTP_N_DAEMONS };

struct http_daemon {
    struct http *http;
    size_t memory;          /* of a connection, where it counts; 0 for the small ones, whose number is limit enough */
    struct daemon *library; /* NULL before its start and after its end */
    struct jobs_driven driven;
};

struct http_connection {
    struct http_daemon *daemon;
    struct http_connection *prev, *next;
    int fd;
    enum http_phase phase;
    struct http_guard guard; /* between the socket and the daemon */
    bool is_known, is_proxy; /* its peer has been looked up; and its word counts for who asks */
    uint64_t peer;           /* as a client; behind a proxy each request has its own */
    uint64_t bulk_client;    /* for whom its memory is taken, if it takes any */
    uint64_t deadline;       /* ns, of the phases before the answer */
    /* Of a body that comes, of an answer that goes: */
    uint64_t progress_at; /* ns: when bytes have moved last */
    uint64_t window_at;   /* ns: since when those of n_window have */
    uint64_t n_window;
    uint64_t n_sent;           /* bytes that the socket has taken (sent.c) */
    uint64_t confirmed;        /* of these, as far as is known, what the peer has received */
    struct exchange *exchange; /* the request at hand, NULL between requests */
};

struct http {
    const struct options *options;
    const struct api_host *host;
    const struct http_door *door;
    struct jobs *jobs;
    struct accept *accept;
    struct answers *answers; /* of all loops */
    struct flights *flights; /* likewise */
    struct http_kept *kept;  /* NULL: none yet */
    struct pool *pool;
    uint64_t counted_pool_bytes;
    struct http_daemon daemons[HTTP_N_DAEMONS];
    struct newcomer *newcomers;
    struct http_connection *connections;
    size_t n_connections, n_suspended, n_streams;
    uint64_t n_ended;                            /* connections */
    uint64_t swept_at;                           /* ns */
    uint64_t newcomer_deadline, newcomer_client; /* of the connection that a daemon is just being given */
    struct jobs_timer *sweep, *watch;
    struct jobs_call drain;
    struct exchange *first_turn, *last_turn; /* fairness.c: streams that wait for the next turn of the loop */
    bool has_waiting;
    size_t n_served; /* streams, in this turn */
    struct exchange *spare_exchanges;
    size_t n_spare_exchanges;
    bool is_draining, is_stopping;
    uint64_t id_seed, n_ids; /* request ids */
};

/* ---- phases.c ---------------------------------------------------------------------------------------------- */

enum { HTTP_DETAIL_BYTES = 128 };

/* Moves the connection to a phase and gives it that phase's time. */
void http_phase(struct http *http, struct http_connection *connection, enum http_phase phase);
void http_received(struct http_connection *connection, size_t n_bytes); /* of a body */
bool http_has_unsent(int fd);                                           /* bytes that the peer has not confirmed */
/* Says so in detail[HTTP_DETAIL_BYTES], and returns it. */
const char *http_head_is_late(const struct options *options, char *detail);

/* ---- clients.c --------------------------------------------------------------------------------------------- */

uint64_t http_peer(int fd);                              /* who is at the other end (networks.h) */
void http_know_peer(struct http_connection *connection); /* looks that up, once: connection->peer, is_proxy */

/* ---- sent.c ------------------------------------------------------------------------------------------------ */

bool http_sent_works(void); /* whether it is this program's send() that the HTTP library calls */

/* ---- fairness.c -------------------------------------------------------------------------------------------- */

void fairness_begin_turn(struct http *http); /* a turn of the loop: the next so many streams may go on */
bool fairness_wants_turn(const struct http *http);

/* ---- newcomers.c: connections that have not said anything yet ---------------------------------------------- */

void newcomers_sweep(struct http *http, uint64_t now); /* those that take too long */
void newcomers_drain(struct http *http);               /* those that have said nothing until now are closed */
void newcomers_stop(struct http *http);

/* ---- deadlines.c ------------------------------------------------------------------------------------------- */

enum { HTTP_SWEEP_MS = 500 };

void http_check_deadlines(struct http *http);

/* ---- connections.c ----------------------------------------------------------------------------------------- */

/* Called by a daemon (struct http_daemon), whose context of a connection is ours, and by the timers. */
void *http_opened(void *daemon, int fd, void *session);
void http_closed(void *daemon, void *connection);
void http_watch(void *http);
void http_sweep(void *http);

#endif
