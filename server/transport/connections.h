/* What the files of this folder offer each other, lowest file first. transport.h has what others call, heads.h what
 * works on plain strings. */
#ifndef SERVER_TRANSPORT_CONNECTIONS_H
#define SERVER_TRANSPORT_CONNECTIONS_H

#include "server/memory/memory.h"
#include "server/transport/heads.h"
#include "server/transport/transport.h"

#include <sys/queue.h>

/* ---- guard.c ----------------------------------------------------------------------------------------------------- */

/* A filter between a connection's socket and the daemon. Every byte that the daemon receives passes through it, so the
 * daemon only sees heads and chunks that are valid and complete.
 *
 * 0.9.75 has no hook for this: its only option for other transports is TLS. But it calls recv() as any program does,
 * and in a dynamically linked program the program's own recv() takes precedence (ELF, as for malloc()).
 * http_guard_works checks whether this is the case. With TLS the same holds for gnutls_record_recv(), which returns the
 * decrypted bytes.
 *
 * A head is held back until it is complete. If it is refused, the daemon gets another head instead, whose target no
 * client can send, and no bytes after it. So the refusal takes the normal path: it follows the answers to earlier
 * requests, has its JSON and its log line, and then the connection closes. If a chunk of a body is refused, the daemon
 * gets the end of the body instead, with a trailer that no client can send. */

#define HTTP_GUARD_TARGET "?"
#define HTTP_GUARD_TRAILER "?"

struct http_connection;

struct http_guard {
    void *tls; /* the connection's GnuTLS session, NULL without TLS */
    enum { GUARD_HEAD, GUARD_BODY, GUARD_CHUNKS, GUARD_REFUSED } state;
    bool had_empty_line;         /* one empty line is allowed before a head */
    struct head_scan head;       /* state of the head that is arriving */
    struct chunk_scan chunks;    /* state of its body, if that is chunked */
    uint64_t n_body;             /* bytes of its body still to arrive, if it is not chunked */
    struct http_refusal refusal; /* set by a refusal; closing: the bytes that the daemon still has to get */
    const char *closing;
    char *held; /* n_held bytes not yet passed on, of which the first n_sound may be; NULL if there are none */
    size_t n_held, n_sound;
    size_t n_swallowed; /* bytes dropped since the refusal */
};

bool http_guard_works(void);
bool http_guard_begin(struct http_connection *connection, void *tls_session); /* false: no memory */
void http_guard_end(struct http_connection *connection);
/* Whether it holds bytes for which the daemon had no room yet. */
bool http_guard_is_full(const struct http_guard *guard);

/* ---- tls.c ------------------------------------------------------------------------------------------------------- */

/* Reads both files ("" and "": none, plain HTTP). False: error[] of n_error bytes gives the reason. */
bool tls_read(struct tls *tls, const char *cert_path, const char *key_path, char *error, size_t n_error);

/* Reads the files again. If they have changed and are valid, new clients get them; otherwise nothing changes. Logs the
 * result. One call at a time, on any thread but the loops'. */
void tls_reread(struct tls *tls, const char *cert_path, const char *key_path);

void tls_drop(struct tls *tls); /* wipes the key */

/* Gives a connection's GnuTLS session the newest credentials, before its handshake. Any thread. */
void tls_dress(const struct tls *tls, void *session);

/* Call it before the first handshake: when memory is short, one connection then fails instead of the process. */
void tls_reserve_numbers(void);

/* ---- daemon.c ---------------------------------------------------------------------------------------------------- */

/* The interface to the HTTP library (libmicrohttpd 0.9.75): only daemon.c and response.c include its header. A daemon
 * has no threads: our loop watches its epoll descriptor and runs it. All functions are called, and call back, on the
 * loop's thread. */

struct MHD_Connection; /* a current request; belongs to the library */

/* ---- One daemon -------------------------------------------------------------------------------------- */

struct daemon;

struct daemon_settings {
    size_t memory; /* per connection */
    unsigned max_connections;
    unsigned timeout_s;     /* of silence, after which the connection is cut */
    const char *cert, *key; /* PEM; NULL: plain HTTP */
};

/* Callbacks of the daemon; self is passed to them. */
struct daemon_events {
    /* A connection begins; the returned pointer is its context. session: GnuTLS's, NULL without TLS. */
    void *(*opened)(void *self, int fd, void *session);
    void (*closed)(void *self, void *context);
    /* A request's first line has arrived; the returned pointer identifies the request. NULL: the connection is
     * closed. */
    void *(*begin)(void *self, void *context, const char *uri, struct MHD_Connection *mhd);
    /* Called with the head, with each part of the body (the callee sets *n_body to 0 if it takes the part), at its end,
     * and after each resume. False: the connection is closed. */
    bool (*receive)(void *request, const char *method, const char *version, const char *body, size_t *n_body);
    void (*end)(void *request, bool is_complete); /* the answer has been sent, or the connection is closed */
};

/* Everything is borrowed until daemon_free. NULL: starting failed; the log gives the reason. */
struct daemon *daemon_new(const struct daemon_settings *settings, const struct daemon_events *events, void *self);
int daemon_fd(const struct daemon *daemon); /* when readable, the daemon must be run */
void daemon_run(struct daemon *daemon);
bool daemon_timeout(struct daemon *daemon,
                    uint64_t *ms); /* time until it must be run; false: only when fd is readable */
/* Passes it a connection; takes fd. False: it has closed the connection, usually without having called opened. */
bool daemon_add(struct daemon *daemon, int fd);
/* Closes all open connections. Every request must have been resumed. NULL is accepted. */
void daemon_free(struct daemon *daemon);

/* ---- The request at hand ---------------------------------------------------------------------------- */

typedef void daemon_header(void *self, const char *name, const char *value); /* value may be NULL */

void daemon_headers(struct MHD_Connection *mhd, daemon_header *take, void *self);
bool daemon_has_trailer(struct MHD_Connection *mhd, const char *name);
void daemon_suspend(struct MHD_Connection *mhd);
void daemon_resume(struct MHD_Connection *mhd); /* the daemon must be run then: nothing else wakes it */
const char *daemon_reason(int status);          /* e.g. "Not Found" */

/* ---- accept.c ---------------------------------------------------------------------------------------------------- */

/* The one place where connections are accepted: it counts them and hands them to the I/O loops in turn.
 *
 * The alternative, a listening socket per loop (SO_REUSEPORT), was measured: the kernel distributes by a hash of
 * addresses, and with four clients one loop did 70 to 95 % of the work. */

struct accept;
struct accept_client;

/* A connection's place, from accept() until accept_closed.
 *
 * While all places are taken, a client with fewer connections than another gets one of that one's: the connection which
 * has waited longest for its client is closed. A body that arrives at a good rate, or an answer, is work and is not,
 * but for one client's slow readers: while it holds more than half of all places, its answers that are read at little
 * more than the minimum rate are cut for others, if nothing else can be closed. The client with the most that has such
 * a connection gives it. A trusted proxy serves many clients, so its connections are not counted together, and are not
 * closed for others. If none can be closed, because every one of them is being answered, a few spare places remain,
 * where one request each is answered if its path is open (api_is_open: probes), and refused with 503 otherwise. The
 * client with the most connections gets the 503 at once, without its request being read. */
struct accept_place {
    struct accept *accept;
    struct accept_client *client;
    LIST_ENTRY(accept_place) link; /* of the same client */
    uint64_t number;               /* of the client at the other end */
    int fd;
    bool is_spare, is_closing;
    atomic_bool is_cut; /* its answer is to be cut; the connection's loop does it */
    /* When it began to wait for its client, in ns; 0: it is being answered, or is just being passed to a daemon. For a
     * body, until when its bytes are enough for a good rate, and ACCEPT_LATER; for an answer that is being sent, until
     * when those are that its client has read, and ACCEPT_LAST. */
    _Atomic uint64_t waits_since;
};

/* Added to times: such a connection is closed for another only if none without a request is there, or no such one. */
#define ACCEPT_LATER (UINT64_C(1) << 62)
#define ACCEPT_LAST (UINT64_C(1) << 63)
#define ACCEPT_SILENCE_NS UINT64_C(2000000000) /* in which bytes are missing before a good rate is in doubt */

/* Call it when the connection begins to wait for its client, for a request or the rest of one; since 0: no more. */
static inline void accept_waits(struct accept_place *place, uint64_t since)
{
    atomic_store_explicit(&place->waits_since, since, memory_order_relaxed);
}

/* Takes listen_fd. max: the number of connections open at a time, beside the spare ones. NULL: no memory, and listen_fd
 * is closed. */
struct accept *accept_new(struct loop *loop, int listen_fd, uint64_t max);

/* Starts accepting, on this loop, for these loops (borrowed until accept_close), of which it is the first. False: no
 * memory. */
bool accept_begin(struct accept *accept, const struct transport_loop *loops, size_t n);

size_t accept_n_open(const struct accept *accept); /* connections handed out and not ended; any thread */

/* Without the late ones, which a loop takes after draining has begun. They only get refusals, so the end of the process
 * does not wait for them. Any thread. */
size_t accept_n_early(const struct accept *accept);

/* Hands out the connections in the socket's queue: before draining begins, so that they are not late. */
void accept_take_queue(struct accept *accept);
/* Does the same, since they would be reset otherwise, and closes the socket. */
void accept_close(struct accept *accept);
void accept_free(struct accept *accept); /* call it after all connections have ended; NULL is accepted */

/* Reports that a connection has ended, before its descriptor is closed; frees its place. Any thread. */
void accept_closed(struct accept_place *place);

/* Late connections are those that a loop takes after draining has begun. Adds 1 or -1 to their number. Any thread. */
void accept_count_late(struct accept *accept, int change);

/* ---- One loop ---------------------------------------------------------------------------------------------------- */

/* One I/O loop with its daemons and connections, and the functions by which the files of this folder work on them,
 * lowest file first. */

struct cached_head;
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

/* A chunked body that is sent without the daemon. */
struct http_chunks {
    struct loop_watch *watch; /* watches the socket while chunks.c writes to it; NULL otherwise */
    char line[24];            /* the size line of the current chunk */
    size_t n_line, line_at;   /* length of the line, and how much of it has been sent */
    size_t n_left;            /* bytes of the chunk still to send */
    uint64_t n_begun;         /* chunks begun */
    bool is_whole;            /* all has been sent */
};

/* The request at hand; all zero before its first line. */
struct http_request {
    struct MHD_Connection *mhd;
    void *exchange;                        /* what answers it; NULL between requests */
    const struct transport_reader *reader; /* of an answer that is a stream */
    bool is_http_1_0, is_head;
    bool is_sending, is_live; /* its answer is being sent; its bytes may be seconds apart */
    bool is_refused;          /* by the guard: the following bytes on the connection cannot be trusted */
    bool is_settling;         /* its end was read in this turn: a suspension is put off to the daemon's next call */
    bool is_suspended;        /* while its answer needs time */
    bool is_probed;           /* its client has been sent an interim response */
    uint64_t n_received;      /* bytes of its body */
    struct http_chunks chunks;
};

struct http_connection {
    struct http_daemon *daemon;
    struct accept_place *place;
    LIST_ENTRY(http_connection) link;
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
    uint64_t n_sent;    /* bytes that the socket has accepted (guard.c) */
    uint64_t confirmed; /* of these, the bytes that the peer is known to have received */
    struct http_request request;
};

struct http {
    const struct options *options;
    const struct api_host *host;
    const struct http_door *door;
    struct loop *loop;
    struct accept *accept;
    const struct transport_events *events;
    void *self;                       /* of the events */
    struct cached_head *cached_heads; /* response.c; NULL: none yet */
    struct http_daemon daemons[HTTP_N_DAEMONS];
    LIST_HEAD(, newcomer) newcomers;
    LIST_HEAD(, http_connection) connections;
    size_t n_connections, n_suspended;
    uint64_t n_ended;                            /* connections ended */
    uint64_t swept_at;                           /* ns */
    uint64_t newcomer_deadline, newcomer_client; /* of the connection that is just being passed to a daemon */
    struct accept_place *newcomer_place;         /* likewise */
    struct loop_timer *sweep, *watch;
    struct loop_call drain, close;
    bool is_draining, is_stopping;
    uint64_t id_seed, n_ids; /* for request ids */
    struct http_head head;   /* of the request whose head is being read */
};

/* From the first signal on, each answer is the last of its connection. Otherwise, a proxy that keeps connections would
 * send a request on one that closes at that moment. */
static inline bool http_is_ending(const struct http *http)
{
    return http->is_draining || api_host_is_ending(http->host);
}

/* A spare place is for one request. */
static inline bool http_is_last(const struct http_connection *connection)
{
    return connection->place->is_spare || http_is_ending(connection->daemon->http);
}

/* ---- guard.c: phases and peers ----------------------------------------------------------------------------- */

/* Moves the connection to a phase and sets the deadline of that phase. */
void http_phase(struct http *http, struct http_connection *connection, enum http_phase phase);
void http_received(struct http_connection *connection, size_t n_bytes); /* for bytes of a body */
bool http_has_unsent(int fd);                                           /* bytes that the peer has not acknowledged */

uint64_t http_peer(int fd);                              /* client number of the peer */
void http_know_peer(struct http_connection *connection); /* looks it up once: sets connection->peer and is_proxy */

/* ---- guard.c: sending -------------------------------------------------------------------------------------- */

bool http_sent_works(void); /* whether the HTTP library calls this program's send() */

/* ---- refusals.c -------------------------------------------------------------------------------------------- */

void http_make_id(struct http *http, char *id); /* 17 bytes: the id of a request that has none */
/* Writes a row of the refusals and its values directly to the socket of a connection that has no request; the caller
 * closes it. Does nothing under TLS. */
void http_refuse(struct http *http, int fd, int status, enum metrics_id counted, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
void http_refuse_values(struct http *http, int fd, int status, enum metrics_id counted, const char *format,
                        va_list values) __attribute__((format(printf, 5, 0)));

/* ---- chunks.c ---------------------------------------------------------------------------------------------- */

/* The library's reader of a body of unknown length that is sent past the daemon. */
ssize_t chunks_read(void *connection, uint64_t pos, char *dst, size_t room);

/* ---- response.c -------------------------------------------------------------------------------------------- */

void http_free_heads(struct http *http); /* of cached answers; call it when no daemon runs any more */

/* ---- request.c --------------------------------------------------------------------------------------------- */

/* Called by a daemon (struct http_daemon). */
void *http_begin(void *daemon, void *connection, const char *uri, struct MHD_Connection *mhd);
bool http_receive(void *connection, const char *method, const char *version, const char *bytes, size_t *n_bytes);
void http_end(void *connection, bool is_complete);

/* ---- newcomers.c: connections that have not sent anything yet ---------------------------------------------- */

/* Serves a connection just accepted (takes place and its descriptor). Any thread; is_here: the caller is on this loop's
 * thread. */
void http_take(struct http *http, struct accept_place *place, bool is_here);
/* Sends the refusal to a connection over --max-connections; fd stays the caller's. On the loop's thread. */
void http_turn_away(struct http *http, int fd);

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

/* ---- transport.c -------------------------------------------------------------------------------------------- */

/* Serves, within the loop, the connections that accept hands over; self is passed to the events. Everything is borrowed
 * until http_free. NULL: starting failed; the log gives the reason. */
struct http *http_new(const struct options *options, const struct api_host *host, const struct http_door *door,
                      struct loop *loop, struct accept *accept, const struct transport_events *events, void *self);

/* Shutdown, as in transport.h; drain and close on any thread. The last two accept NULL. */
void http_drain(struct http *http);
void http_close(struct http *http);
void http_stop(struct http *http);
void http_free(struct http *http);

/* ---- listen.c ----------------------------------------------------------------------------------------------- */

/* Opens a listening socket on host and port (0: a free one). Its connections use this congestion control ("": the
 * system's default, but on loopback one without pacing). Writes its URL, with the actual port, to url. -1: error[] of
 * n_error bytes gives the reason. */
int http_listen(const char *host, unsigned port, bool is_tls, const char *congestion, char *url, char *error,
                size_t n_error);
bool http_is_beyond_loopback(int listen_fd); /* can other machines reach it? */

/* The same on a Unix socket, accessible to its owner and group. A stale socket at that path is replaced, any other file
 * is left alone. */
int http_listen_unix(const char *path, char *url, char *error, size_t n_error);

#endif
