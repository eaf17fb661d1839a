/* Shared by http.c (the daemons), connections.c, newcomers.c and exchange.c (one request and its
 * answer), by nobody else. */
#ifndef SERVER_HTTP_INTERNAL_H
#define SERVER_HTTP_INTERNAL_H

#include "server/http/http.h"
#include "server/http/accept.h"
#include "server/cache/answers.h"
#include "server/http/guard.h"
#include "server/memory/pool.h"

#include <microhttpd.h>

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
    size_t memory; /* of a connection, where it counts; 0 for the small ones, whose number is limit enough */
    struct MHD_Daemon *mhd;
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
    struct exchange *first_turn, *last_turn; /* turns.c: streams that wait for the next turn of the loop */
    bool has_waiting;
    size_t n_served; /* streams, in this turn */
    struct exchange *spare_exchanges;
    size_t n_spare_exchanges;
    bool is_draining, is_stopping;
    uint64_t id_seed, n_ids; /* request ids */
};

/* ---- deadlines.c ------------------------------------------------------------------------------------------- */

enum { HTTP_SWEEP_MS = 500, HTTP_DETAIL_BYTES = 128 };

/* Moves the connection to a phase and gives it that phase's time. */
void http_phase(struct http *http, struct http_connection *connection, enum http_phase phase);
void http_received(struct http_connection *connection, size_t n_bytes); /* of a body */
void http_check_deadlines(struct http *http);
bool http_has_unsent(int fd); /* bytes that the peer has not confirmed */
/* Says so in detail[HTTP_DETAIL_BYTES], and returns it. */
const char *http_head_is_late(const struct options *options, char *detail);

/* ---- sent.c ------------------------------------------------------------------------------------------------ */

bool http_sent_works(void); /* whether it is this program's send() that the HTTP library calls */

/* ---- connections.c ----------------------------------------------------------------------------------------- */

uint64_t http_peer(int fd);                              /* who is at the other end (networks.h) */
void http_know_peer(struct http_connection *connection); /* looks that up, once: connection->peer, is_proxy */

/* Sets aside a connection whose answer needs time, and wakes it up. Only for the exchange. */
void http_suspend(struct http *http, struct MHD_Connection *mhd);
void http_resume(struct http_connection *connection, struct MHD_Connection *mhd);

/* Called by a daemon (struct http_daemon) and by the timers. */
void http_on_connection(void *daemon, struct MHD_Connection *mhd, void **context,
                        enum MHD_ConnectionNotificationCode code);
void http_watch(void *http);
void http_sweep(void *http);

/* ---- turns.c -------------------------------------------------------------------------------------------------------
 */

void turns_begin(struct http *http); /* a turn of the loop: the next so many streams may go on */
bool turns_are_wanted(const struct http *http);

/* ---- newcomers.c: connections that have not said anything yet ---------------------------------------------- */

void newcomers_sweep(struct http *http, uint64_t now); /* those that take too long */
void newcomers_drain(struct http *http);               /* those that have said nothing until now are closed */
void newcomers_stop(struct http *http);

/* Callbacks of the daemon, in the order of a request's life. */
void *exchange_begin(void *http, const char *uri, struct MHD_Connection *mhd);
enum MHD_Result exchange_receive(void *http, struct MHD_Connection *mhd, const char *url, const char *method,
                                 const char *version, const char *upload, size_t *n_upload, void **request);
void exchange_end(void *http, struct MHD_Connection *mhd, void **request, enum MHD_RequestTerminationCode code);

void exchange_free_spare(struct http *http); /* at the end */
void kept_free(struct http *http);           /* likewise, when no daemon runs any more */
bool exchange_is_suspended(const struct exchange *exchange);
/* Whether its answer is on its way, from the moment a worker has begun on it: a client that has closed its sending side
 * may then still be reading. */
bool exchange_is_sending(const struct exchange *exchange);
uint64_t exchange_received(const struct exchange *exchange); /* bytes of its body */
/* The client is gone, or has to go: no further work, the connection closes at the next turn. */
void exchange_leave(struct exchange *exchange);
void exchange_leave_slow(struct exchange *exchange); /* for it reads too slowly */
/* The request's own time is over: 503 if nothing has been sent, else as exchange_leave. */
bool exchange_is_late(const struct exchange *exchange, uint64_t now);
void exchange_expire(struct exchange *exchange);
/* Sends an interim response (100), which shows whether a client that has closed its sending side is there. False: this
 * one may not be sent any. */
bool exchange_probe(struct exchange *exchange);
bool exchange_is_probed(const struct exchange *exchange);
/* The client is too slow with its request: says so (408), past the daemon, if nothing has been answered yet. exchange
 * may be NULL: no request line has come. Or there is not even a connection of a daemon's yet. */
void exchange_refuse_slow(struct exchange *exchange, struct http_connection *connection, const char *detail);
void exchange_refuse_silent(struct http *http, int fd, const char *detail);

#endif
