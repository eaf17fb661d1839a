/* What the files of this folder offer each other, lowest file first. transport.h has what others call. */
#ifndef SERVER_TRANSPORT_CONNECTIONS_H
#define SERVER_TRANSPORT_CONNECTIONS_H

#include "server/memory/memory.h"
#include "server/transport/transport.h"

/* ---- checks.c ---------------------------------------------------------------------------------------------------- */

/* The checks of a request's head that come before all others, on plain strings. If two programs read the same head
 * differently, an attacker can use the difference, so every ambiguous head is refused. */

/* Headers that the server or api/ uses, in the order of http_head.first. */
enum http_header {
    HTTP_HOST,
    HTTP_CONTENT_LENGTH,
    HTTP_TRANSFER_ENCODING,
    HTTP_CONTENT_TYPE,
    HTTP_CONTENT_ENCODING,
    HTTP_ACCEPT,
    HTTP_ACCEPT_LANGUAGE,
    HTTP_ACCEPT_ENCODING,
    HTTP_LAST_EVENT_ID,
    HTTP_IF_MATCH,
    HTTP_IF_NONE_MATCH,
    HTTP_IF_RANGE,
    HTTP_RANGE,
    HTTP_ORIGIN,
    HTTP_ACCESS_METHOD,
    HTTP_ACCESS_HEADERS,
    HTTP_INFERENCE_HEADER,
    HTTP_REQUEST_ID,
    HTTP_TRACEPARENT,
    HTTP_AUTHORIZATION,
    HTTP_REQUEST_TIMEOUT,
    HTTP_FETCH_SITE,
    HTTP_FETCH_PURPOSE,
    HTTP_PURPOSE,
    HTTP_N_HEADERS
};

struct http_head {
    const char *version;               /* "HTTP/1.1" */
    const char *method;                /* "GET"; NULL: not checked */
    const char *first[HTTP_N_HEADERS]; /* value of the first such header, NULL if there is none; borrowed */
    unsigned n[HTTP_N_HEADERS];        /* number of such headers */
};

/* Adds one header of the request; names that are not in the list are ignored. */
void http_head_take(struct http_head *head, const char *name, const char *value);

/* A refusal: status and sentence, or {0, NULL} if the head is valid. */
struct http_refusal {
    int status;
    const char *detail;
};
struct http_refusal http_head_check(const struct http_head *head);

/* Does the Host header name a host of this machine (localhost, a name under .localhost, 127.0.0.0/8, ::1), or one of
 * these: own, and names separated by spaces or commas? Any port. A request without Host (HTTP/1.0), or with an empty
 * one, comes from no browser: true. */
bool http_head_names_us(const struct http_head *head, const char *own, const char *names);
/* Is there an Origin that is not the host in the Host header? The scheme is ignored, since a proxy may end TLS. */
bool http_head_is_foreign(const struct http_head *head);
/* Does a browser send the request for a page of another site, or before its user wants it (Fetch Metadata)? */
bool http_head_is_unasked(const struct http_head *head);

/* The declared length of the body; UINT64_MAX if it is chunked or no length is declared. Call only after
 * http_head_check. */
uint64_t http_head_length(const struct http_head *head);
bool http_head_has_body(const struct http_head *head); /* at least one byte, or chunked; likewise */

/* Do these first bytes of a connection announce a body of more than 64 KiB, or one of unknown length? The result only
 * decides how fast the body is received, so a guess is enough: the head need not be complete or valid. */
bool http_begins_bulky(const char *bytes, size_t n);

/* Splits a request target, as received ("/encode?len=4", "http://host/encode"), in place: *host becomes the host and
 * port, or NULL, *path the decoded path, and *query the text after the ?, still encoded, or NULL. */
struct http_refusal http_target_split(char *target, const char **host, const char **path, const char **query);

/* Parses a number of seconds, above 0 and up to a million, e.g. "2.5", into microseconds. */
bool http_timeout_parse(const char *text, uint64_t *us);
bool http_id_is_valid(const char *id);            /* [A-Za-z0-9._-]{1,128} */
bool http_traceparent_is_valid(const char *text); /* W3C trace context, any version but ff */

/* ---- head.c ------------------------------------------------------------------------------------------------------ */

/* The grammar of a request's head (RFC 9112), applied to the raw bytes before any library sees them. It is strict: a
 * head that two programs could read in two ways is refused, because one of them may be a proxy in front of this server.
 * Uses no sockets. */

/* The part that a head may use of its connection's 10 KiB (http.c). The HTTP library needs the rest for its bookkeeping
 * and for the answer's head, whatever arrives together with the request. It receives into at least half of that memory,
 * all of which may be filled by the bytes after the head, or into as much as the head needs. In addition it stores an
 * entry for every field, query parameter and cookie, and copies cookies. The refusals quote these figures. */
enum { HEAD_COST_MIN = 5 * 1024, HEAD_COST_MAX = 9 * 1024, HEAD_ENTRY_COST = 64 };

/* The state of one head while it arrives; all zero before its first byte. */
struct head_scan {
    size_t n_judged;   /* bytes of complete, valid lines; at the end, the length of the head */
    size_t n_searched; /* no line ends between n_judged and this offset */
    size_t n_extra;    /* cost in addition to the bytes */
    size_t cost;       /* of the bytes received; set when it exceeds the limit */
    unsigned n_hosts, n_lengths, n_codings;
    bool has_request_line, is_http_1_0, is_head, has_expect;
    bool is_chunked; /* these two are valid when the head is complete */
    uint64_t length; /* of the body; 0 if it is chunked or there is none */
    struct http_refusal refusal;
};

/* Checks the lines that have arrived, given all bytes of the head so far. True when there is a result: scan->refusal
 * has a status, or the head is complete, n_judged bytes long. Blanks after a field's value are moved before it, in
 * place: the HTTP library would count them as part of it. */
bool head_scan(struct head_scan *scan, char *head, size_t n);

/* ---- The body's frame ------------------------------------------------------------------------------------------- */

/* The position within a chunked body; all fields but n_room start at zero. */
struct chunk_scan {
    enum { CHUNK_SIZE, CHUNK_DATA, CHUNK_DATA_END, CHUNK_TRAILER, CHUNK_DONE } at;
    uint64_t n_data; /* bytes of the chunk still to arrive */
    size_t n_room;   /* for trailers: the part of HEAD_COST_MAX that the head has left */
    size_t cost;     /* of head and trailers; set when it exceeds the limit */
    struct http_refusal refusal;
};

/* The number of these bytes that are valid and complete: data, or whole lines. Stops at the end of the body (at is
 * CHUNK_DONE) and at a refused line. The other bytes must be passed again together with those that follow. */
size_t chunk_scan(struct chunk_scan *scan, const char *bytes, size_t n);

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
    char *kept; /* n_kept bytes not yet passed on, of which the first n_sound may be; NULL if there are none */
    size_t n_kept, n_sound;
    size_t n_swallowed; /* bytes dropped since the refusal */
};

bool http_guard_works(void);
struct http_connection *http_guard_connection(int fd); /* the guarded connection on this descriptor; NULL: none */
bool http_guard_begin(struct http_connection *connection, void *tls_session); /* false: no memory */
void http_guard_end(struct http_connection *connection);
/* Whether it holds bytes for which the daemon had no room yet. */
bool http_guard_is_full(const struct http_guard *guard);

/* ---- forwarded.c ------------------------------------------------------------------------------------------------- */

/* Finds the client behind proxies from the X-Forwarded-For header. Plain strings, no sockets. */

/* The state after the lines read so far; all fields but proxies start at zero. */
struct forwarded {
    const struct networks *proxies; /* trusted proxies */
    enum { FORWARDED_NOBODY, FORWARDED_PROXIES, FORWARDED_CLIENT, FORWARDED_JUNK } kind;
    struct address client;
};

/* Reads one line of the header; call it in the order of the lines. Each proxy appends the address of its own client, so
 * the last address that is not a trusted proxy is the client. A client can forge everything before it. */
void forwarded_take(struct forwarded *forwarded, const char *line);

/* The client, if the lines name one. If all addresses are trusted proxies, the first of them is the client. */
bool forwarded_client(const struct forwarded *forwarded, struct address *client);

/* ---- tls.c, tls_numbers.c ---------------------------------------------------------------------------------------- */

/* Gives a connection's GnuTLS session the newest credentials, before its handshake. Any thread. */
void tls_dress(const struct tls *tls, void *session);

/* Call it before the first handshake: when memory is short, one connection then fails instead of the process. */
void tls_reserve_numbers(void);

/* ---- daemon.c ---------------------------------------------------------------------------------------------------- */

/* The interface to the HTTP library (libmicrohttpd 0.9.75): only daemon.c includes its header. A daemon has no
 * threads: our loop watches its epoll descriptor and runs it. All functions are called, and call back, on the loop's
 * thread. */

struct MHD_Connection; /* a current request; belongs to the library */
struct MHD_Response;   /* belongs to the library; has a reference count */

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
bool daemon_send(struct MHD_Connection *mhd, int status, struct MHD_Response *response); /* false: no memory */

/* ---- What it is answered with; NULL and false: no memory ------------------------------------------- */

/* Writes up to `room` bytes to dst and returns their number; 0 only if the connection has been suspended, or one of the
 * values below. */
typedef ssize_t daemon_reader(void *self, uint64_t pos, char *dst, size_t room);

enum { DAEMON_END = -1, DAEMON_CUT = -2 }; /* all has been read; or: the answer is cut off and the connection closed */

#define DAEMON_LENGTH_UNKNOWN UINT64_MAX

/* The bytes are borrowed until the response is freed; the list of parts is not. block: size of the buffer that the
 * reader fills. */
struct MHD_Response *daemon_response_of_bytes(const char *bytes, size_t n);
struct MHD_Response *daemon_response_of_parts(const struct iovec *parts, unsigned n);
struct MHD_Response *daemon_response_of_reader(uint64_t length, size_t block, daemon_reader *read, void *self);
void daemon_response_without_chunks(struct MHD_Response *response); /* its body ends when the connection closes */
void daemon_response_free(struct MHD_Response *response);           /* drops a reference; NULL is accepted */

bool daemon_response_add(struct MHD_Response *response, const char *name, const char *value);
bool daemon_response_remove(struct MHD_Response *response, const char *name, const char *value);
/* The response's own copy of a header's value, which may be overwritten by one of the same length; NULL: no such
 * header. */
char *daemon_response_header(struct MHD_Response *response, const char *name);

const char *daemon_reason(int status); /* e.g. "Not Found" */

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
    struct accept_place *prev, *next; /* of the same client */
    uint64_t number;                  /* of the client at the other end */
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

/* Reports that a connection has ended, before its descriptor is closed; frees its place. Any thread. */
void accept_closed(struct accept_place *place);

/* Late connections are those that a loop takes after draining has begun. Adds 1 or -1 to their number. Any thread. */
void accept_count_late(struct accept *accept, int change);

/* ---- One loop ---------------------------------------------------------------------------------------------------- */

/* One I/O loop with its daemons and connections, and the functions by which the files of this folder work on them,
 * lowest file first. */

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
    void *self;             /* of the events */
    struct http_kept *kept; /* response.c; NULL: none yet */
    struct http_daemon daemons[HTTP_N_DAEMONS];
    struct newcomer *newcomers;
    struct http_connection *connections;
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

/* ---- phases.c ---------------------------------------------------------------------------------------------- */

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
                        va_list values);

/* ---- chunks.c ---------------------------------------------------------------------------------------------- */

/* The response for a body of unknown length that is sent past the daemon. */
struct MHD_Response *chunks_response(struct http_connection *connection);

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

#endif
