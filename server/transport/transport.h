/* Connections: all that repairs or surrounds libmicrohttpd, behind what ../exchange/ and the start of the server call.
 *
 * Everything is called, and calls back, on the thread of the connection's loop, unless stated otherwise. */
#ifndef SERVER_TRANSPORT_H
#define SERVER_TRANSPORT_H

#include "api/api.h"
#include "server/auth/auth.h"
#include "server/loop/loop.h"
#include "server/process/process.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

/* ---- Who answers requests ---------------------------------------------------------------------------------------- */

/* A connection, to its request. */
struct http_connection;

/* A refusal that the head or the frame of a request asks for; status 0: none. */
struct transport_refusal {
    int status;
    const char *detail;
    size_t cost; /* of what has arrived of a head, or of trailers, that are too long; 0 otherwise */
};

/* What ../exchange/ does with requests. self belongs to one loop; x is what begin has returned. False closes the
 * connection, unless something else is said. */
struct transport_events {
    /* A request's first line has arrived; its target is borrowed. NULL: no memory. */
    void *(*begin)(void *self, struct http_connection *connection, const char *target, const char *id);
    bool (*head)(void *x, const char *method, const char *version); /* its head: call transport_head now */
    bool (*body)(void *x, const char *bytes, size_t n);             /* a part of its body */
    bool (*whole)(void *x, const struct transport_refusal *frame);  /* its end; frame: of the chunks; NULL: none */
    bool (*go_on)(void *x);                                         /* it has been resumed */
    void (*end)(void *x, bool is_complete); /* the answer has been sent, or the connection is closed */

    /* Its client has disconnected, or is cut off (is_slow: because it reads too slowly). */
    void (*leave)(void *x, bool is_slow);
    /* Is its own time over? Then it is ended. */
    bool (*expire)(void *x, uint64_t now);
    /* Its head or body arrives too slowly: refused by a row of the refusals, if no refusal has been sent. */
    void (*time_out)(void *x, int status, enum metrics_id counted, const char *format, va_list values);

    /* Around each turn of a daemon; true: another turn is wanted. */
    void (*begin_turn)(void *self);
    bool (*end_turn)(void *self);
};

/* ---- The head of a request (request.c) --------------------------------------------------------------------------- */

/* The head, read and checked; borrowed until the event returns. */
struct transport_head {
    struct transport_refusal refusal; /* the first that the head asks for */
    const char *path, *query;         /* decoded path; the text after the ?, still encoded, or NULL: both in target */
    const char *id, *traceparent;     /* if it has valid ones; otherwise NULL */
    bool has_wrong_timeout;           /* X-Request-Timeout is not one number of seconds */
    uint64_t timeout_us;              /* 0: none */
    uint64_t n_declared;              /* bytes of its body; UINT64_MAX: chunked, or no length is declared */
    bool has_body;
    bool is_foreign;   /* it has an Origin that is not the host in its Host header */
    bool is_elsewhere; /* Host names neither this machine nor an --allowed-host */
    bool is_unasked;   /* a browser sends it for a page of another site, or before its user wants it */
    /* Its connection was opened while the server drains; is in a spare place: only open paths (api_is_open) are served.
     */
    bool is_late, is_spare;
    enum api_access access;
    struct account *account; /* of its token; NULL: none */
    bool has_origin;
    struct address origin; /* of the client, or of the proxy if it names none */
};

/* target: as received; it is split in place. Secrets in the daemon's memory are wiped. */
void transport_head(struct http_connection *connection, const char *method, const char *version, char *target,
                    struct transport_head *head);

/* The size, including a NUL for each, of copies of the headers that api/ reads. Unless `at` is NULL they are written
 * there, and copies[] (of API_N_TEXTS) points to those that the head has. Call it after transport_head, in the same
 * event. */
size_t transport_texts(const struct http_connection *connection, char *at, const char **copies);

/* ---- Waiting (request.c) ----------------------------------------------------------------------------------------- */

/* Sets a request aside while its answer needs time, until transport_resume: then go_on is called. */
void transport_suspend(struct http_connection *connection);
void transport_resume(struct http_connection *connection); /* nothing to do if it is not set aside */

/* ---- Its answer (response.c, chunks.c) --------------------------------------------------------------------------- */

enum { TRANSPORT_END = -1, TRANSPORT_CUT = -2 }; /* all has been read; or: the answer is cut off */
enum { TRANSPORT_PARTS = 3 };

/* A body as it is sent. */
struct transport_reader {
    /* Begins a turn: how many bytes it may send, or TRANSPORT_CUT. 0, only if it may wait: its turn is later; the
     * connection has been suspended until then. */
    ssize_t (*share)(void *x, bool may_wait);
    /* The parts that are ready, TRANSPORT_PARTS at most, and their number, or one of the values above; they stay valid
     * until skip has passed them. 0: none are; transport_write or transport_resume will be called. own: memory of the
     * caller, of `room` bytes, in which the only part may be then, to be skipped as a whole; NULL, 0: none. */
    ssize_t (*look)(void *x, char *own, size_t room, struct iovec *parts);
    void (*skip)(void *x, size_t n);
    bool (*is_waiting)(const void *x); /* has its reader all that there is so far? */
};

struct transport_answer {
    struct api_reply *reply; /* its status and headers; it lasts as long as the request */
    bool is_cached;          /* the same reply may be sent again */
    const char *path, *id, *traceparent;
    /* Of Server-Timing; the last two are known if it is computed. */
    uint64_t queue_ns;
    bool is_computed;
    uint64_t compute_ns, encode_ns;
    /* The body: parts that last as long as the request, or a reader. length may be API_LENGTH_UNKNOWN; block: size of
     * the buffer that read fills. Of an answer to HEAD nothing is read. */
    struct iovec parts[TRANSPORT_PARTS];
    unsigned n_parts;
    const struct transport_reader *reader;
    uint64_t length;
    size_t block;
};

/* False closes the connection: without memory nothing better is possible. */
bool transport_send(struct http_connection *connection, const struct transport_answer *answer);

/* Goes on with an answer that has been waiting for its reader, if it is being sent without copying. False: it is not;
 * resume it. */
bool transport_write(struct http_connection *connection);

/* Writes a refusal directly to the socket, while the daemon accepts none; the caller closes the connection. False: TLS,
 * where only the daemon can write. */
bool transport_refuse(struct http_connection *connection, const char *id, const struct api_reply *reply);

/* ---- Refusals ---------------------------------------------------------------------------------------------------- */

/* What the machine refuses: one row a reason, with the status, the figure of /metrics that counts it, and the sentence,
 * whose values follow the row:
 *
 *     exchange_refuse(x, REFUSED_QUEUE, options->max_queue);
 *
 * So the compiler checks the values against the sentence. Each 503 and 429 states that the client may try again after a
 * second (api_refusal). Rows whose sentence depends on more are given the sentence itself. */

#define REFUSED_UNCOUNTED METRICS_N_IDS /* by its status, at the end of the request */

/* ---- The state of the server ---- */

#define REFUSED_QUEUE /* --max-queue */                                                                                \
    503, METRICS_REJECTED_QUEUE,                                                                                       \
        "too many requests are waiting to be computed: %" PRIu64 " (the limit --max-queue of this server); try again " \
        "later"
#define REFUSED_AGE /* --max-queue-age */                                                                              \
    503, METRICS_REJECTED_AGE,                                                                                         \
        "the request has waited for a worker more than %" PRIu64 " s (the limit --max-queue-age of this server), and " \
        "was not computed; try again later"
#define REFUSED_DRAINING                                                                                               \
    503, METRICS_REJECTED_DRAINING,                                                                                    \
        "this server is shutting down and finishes only the answers it has begun; send the request to another server," \
        " or try again later"
#define REFUSED_CONNECTION /* --max-connections */                                                                     \
    503, METRICS_REJECTED_CONNECTIONS,                                                                                 \
        "%" PRIu64 " connections are open, as many as this server has at a time (the limit --max-connections); try "   \
        "again later"

/* ---- Memory and streams: a 413 is counted as a limit, wherever it is refused ---- */

#define REFUSED_MEMORY(status) status, (status) == 413 ? REFUSED_UNCOUNTED : METRICS_REJECTED_MEMORY, "%s"
#define REFUSED_STREAM(status) status, METRICS_REJECTED_STREAMS, "%s"
#define REFUSED_BUFFERS 503, METRICS_REJECTED_MEMORY, "no memory for an answer of this size now; try again later"
#define REFUSED_PICTURE /* its bytes, the client's unread ones, --buffer-memory */                                     \
    503, METRICS_REJECTED_MEMORY,                                                                                      \
        "this picture has %" PRIu64 " bytes, and this client has not read %" PRIu64 " of others yet: of the %" PRIu64  \
        " for them (--buffer-memory) one client gets at most four times what it leaves free; try again later"

/* ---- The request ---- */

#define REFUSED_HEAD(status) status, METRICS_REJECTED_HEAD, "%s"
#define REFUSED_LONG_HEAD(status) status, METRICS_REJECTED_HEAD, "%s; what has come of this one costs %zu"
#define REFUSED_TIMEOUT_HEADER                                                                                         \
    400, METRICS_REJECTED_HEAD,                                                                                        \
        "X-Request-Timeout is not one number of seconds; allowed: above 0 and up to 1000000, as 2.5"
#define REFUSED_LENGTH 413, REFUSED_UNCOUNTED, "the body is larger than --max-body"

/* ---- Its time ---- */

#define REFUSED_LATE /* seconds, microseconds */                                                                       \
    503, METRICS_REJECTED_LATE,                                                                                        \
        "the answer was not ready within the %" PRIu64 ".%06" PRIu64 " s that the request gives it (header "           \
        "X-Request-Timeout in seconds, or parameter timeout in microseconds)"
#define REFUSED_SLOW_HEAD /* --header-timeout */                                                                       \
    408, METRICS_REJECTED_TIMEOUT, "the request's head took longer than %" PRIu64 " s (--header-timeout)"
#define REFUSED_LONG_BODY /* --body-timeout, bytes */                                                                  \
    408, METRICS_REJECTED_TIMEOUT,                                                                                     \
        "the body took longer than %" PRIu64 " s (--body-timeout); %" PRIu64 " bytes of it have come"
#define REFUSED_STALLED_BODY /* --connection-timeout, bytes */                                                         \
    408, METRICS_REJECTED_TIMEOUT,                                                                                     \
        "nothing more of the body came for %" PRIu64 " s (--connection-timeout); %" PRIu64 " bytes of it have come"
#define REFUSED_SLOW_BODY /* bytes, seconds, --min-rate */                                                             \
    408, METRICS_REJECTED_TIMEOUT,                                                                                     \
        "the body came too slowly: %" PRIu64 " bytes in %d s; needed: %" PRIu64 " a second (--min-rate)"

enum { REFUSED_DETAIL_BYTES = 512 };

/* ---- Whom it serves ------------------------------------------------------------------------------------------------
 */

/* The certificate and its key, as the files contain them. */
struct tls_renewed;

struct tls {
    char *cert, *key;                    /* PEM texts read at the start; NULL: none */
    struct tls_renewed *_Atomic renewed; /* credentials read since then, newest first; NULL: none */
};

/* The rules for admitting clients. */
struct http_door {
    struct tokens *tokens;   /* NULL: no token is needed */
    struct tls tls;          /* without a certificate: plain HTTP */
    struct networks proxies; /* proxies whose X-Forwarded-For header is trusted */
    /* Only this machine reaches the server and no token is needed. A page whose name has been bound anew to a loopback
     * address would be this server's own page to a browser (DNS rebinding), so requests for other hosts are refused. */
    bool checks_host;
};

/* Reads what the options name. False: error[] gives the reason. */
bool door_open(struct http_door *door, const struct options *options, char error[TOKENS_ERROR_BYTES]);
/* Reads tokens and certificate again, if they are in use. Logs the result. One call at a time, on any thread but the
 * loops'. */
void door_reread(struct http_door *door, const struct options *options);
void door_close(struct http_door *door); /* wipes the key */

/* ---- Serving ----------------------------------------------------------------------------------------------------- */

/* Opens the listening socket that the options name. Writes its URL, with the actual port, to url, and to the door
 * whether hosts are checked. -1: error[] of n_error bytes gives the reason. */
enum { HTTP_URL_BYTES = 300 };
int transport_listen(const struct options *options, struct http_door *door, char *url, char *error, size_t n_error);
/* Removes the Unix socket at that path, unless another one has taken its place, or this process has none. */
void transport_unlisten(const char *path);

struct accept;
struct http;

/* The connections of all loops; zero but for loop, self, n and events before transport_begin. */
struct transport {
    struct accept *accept;
    struct transport_loop {
        struct loop *loop;
        void *self; /* passed to the events */
        struct http *http;
    } * loops; /* [n]; the first of them accepts connections for all */
    size_t n;
    const struct transport_events *events;
};

/* Serves on listen_fd (takes it) as soon as the loops run. Everything is borrowed until transport_free. False: starting
 * failed; the log gives the reason, but for a lack of memory. */
bool transport_begin(struct transport *transport, const struct options *options, const struct api_host *host,
                     const struct http_door *door, int listen_fd);

/* Connections handed out and not ended; with_late: also those that a loop takes after draining has begun, which only
 * get refusals, so that the end of the process does not wait for them. Any thread. */
size_t transport_n_open(const struct transport *transport, bool with_late);

/* Shutdown. As soon as host->is_ending is true, answers have "Connection: close". Drain: idle connections are closed;
 * running requests continue; requests on later connections are refused with 503, but for the open paths (api_is_open).
 * Close: the listening socket is closed, and idle connections among the later ones, too. Both on the first loop. Stop,
 * when no loop runs: all running requests are cut off. Then loop_free, which waits for workers, and last
 * transport_free. The last two may be called whatever transport_begin has returned. */
void transport_drain(struct transport *transport);
void transport_close(struct transport *transport);
void transport_stop(struct transport *transport);
void transport_free(struct transport *transport);

#endif
