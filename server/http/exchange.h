/* One request and its answer: struct exchange, grouped by the stage that owns the fields, and the functions that the
 * files of this folder call of each other for it, lowest file first. */
#ifndef SERVER_HTTP_EXCHANGE_H
#define SERVER_HTTP_EXCHANGE_H

#include "server/memory/body.h"
#include "server/cache/flights.h"
#include "server/http/checks.h"
#include "server/http/internal.h"
#include "server/http/stream.h"

#include <stdatomic.h>

enum exchange_state {
    EXCHANGE_HEAD,    /* waiting for the daemon's first call */
    EXCHANGE_BODY,    /* receiving; a refusal may already be decided */
    EXCHANGE_HANDED,  /* received, and a worker shall make the reply */
    EXCHANGE_WORKING, /* a worker makes it */
    EXCHANGE_DECIDED, /* the reply is there, not yet handed to the daemon */
    EXCHANGE_OPENING, /* the first piece of its stream is not yet made, nothing is sent */
    EXCHANGE_SENDING
};

/* A chunked body sent past the daemon. */
struct http_chunks {
    struct jobs_watch *watch; /* of the socket, while it is ours; NULL otherwise */
    char line[24];            /* in front of the chunk being sent */
    size_t n_line, line_at;   /* its bytes, and those sent */
    size_t n_left;            /* bytes of the chunk, to be sent */
    uint64_t n_begun;         /* chunks */
    bool is_whole;            /* all has been sent */
};

/* Receiving: its head and body, as they come. */
struct exchange_receiving {
    char *target;  /* as received, then split into path and query; in room, or of the heap */
    char *strings; /* copies of the headers the call borrows, which must outlive the connection; likewise */
    struct http_head head;
    struct http_refusal refusal; /* of the target, or of what the guard has held back */
    bool must_close;             /* what follows on the connection is in doubt */
    struct body body;
    uint64_t n_dropped; /* bytes of a body over the limit */
    int raw_status;     /* of a refusal sent past the daemon */
};

/* Answering: by a worker, unless the reply is kept or computed on the loop. */
struct exchange_answering {
    struct job job;
    struct flight_seat seat; /* while a worker makes the reply, for this request or an equal one */
    struct api_reply *made;  /* by the worker, which alone touches it until it is done */
    bool is_aged;            /* waited too long for a worker; by the worker, like made */
    bool is_kept;            /* the reply is one of the kept answers */
    /* Replies that have lost their place. They are freed with the exchange: a stream may still use them. */
    struct api_reply *given_up;   /* a refusal has taken its place */
    struct api_reply *late_reply; /* what had been made, or begun, when the time was over */
    struct stream *late_stream;
};

/* Sending: what the answer takes while it is sent, and how far it is. */
struct exchange_sending {
    const struct api_reply *held;              /* counted for the client, as long as it reads */
    uint64_t n_stream_taken;                   /* bytes of --max-memory: the stream's first buffer, the daemon's */
    bool is_counted_stream, is_account_stream; /* among all streams; among those of its token */
    struct http_chunks chunks;
    uint64_t n_sent;
    uint64_t n_whole; /* sent too, once the daemon says that all has been */
};

/* Waiting: for a worker, for room in the socket, or in the line of streams (suspension.c). */
struct exchange_waiting {
    bool is_suspended;
    bool is_settled; /* exchange_settle has been called */
    bool has_turn;   /* it has been woken to go on: fairness.c does not stop it again in this turn */
    bool is_in_line; /* then next and prev are its neighbours */
    struct exchange *next, *prev;
};

/* Ending before the answer does (leaving.c). A worker asks for the first two before it begins, and now and then during
 * what takes long. */
struct exchange_ending {
    atomic_bool is_gone;     /* the client */
    atomic_bool is_late;     /* its own time is over */
    bool is_slow, is_probed; /* the client reads too slowly; it has been sent an interim response */
};

struct exchange_timing {
    uint64_t begun_at, received_at, decided_at; /* ns */
    uint64_t queue_ns, answer_ns, pieces_ns;
    uint64_t timeout_us; /* by X-Request-Timeout; 0: none */
    uint64_t deadline;   /* ns: by that, or by what the body says; 0: none */
};

struct exchange {
    struct http *http;
    struct http_connection *connection; /* NULL after the end */
    struct MHD_Connection *mhd;
    enum exchange_state state;
    unsigned n_owners;
    struct exchange *next_spare; /* while it is not in use */
    char id[129], traceparent[129];
    struct account *account; /* of its token; NULL: it has none */
    uint64_t client;         /* whose turn its work takes, and whose share it holds of what all share */

    /* What one stage hands to the next: receiving the call, answering the reply, and sending opens its stream. */
    struct api_call call;
    struct api_reply *reply;
    struct stream *stream;

    struct exchange_receiving receiving;
    struct exchange_answering answering;
    struct exchange_sending sending;
    struct exchange_waiting waiting;
    struct exchange_ending ending;
    struct exchange_timing timing;

    size_t n_room;  /* bytes used */
    char room[512]; /* for target and strings, as far as they fit; last, for it is not cleared */
};

/* ---- request_id.c ------------------------------------------------------------------------------------------ */

void exchange_make_id(struct http *http, char *id); /* 17 bytes */

/* ---- suspension.c ------------------------------------------------------------------------------------------ */

/* Sets aside a request whose answer needs time, and wakes it up. */
void exchange_suspend(struct exchange *x);
void exchange_suspend_in_line(struct exchange *x); /* until fairness.c says that it is its turn */
void exchange_resume(struct exchange *x);          /* nothing to do if it is not suspended */
bool exchange_is_suspended(const struct exchange *x);
/* Before a first suspension: false once, and the daemon calls exchange_receive again at once. */
bool exchange_settle(struct exchange *x);

/* ---- fairness.c -------------------------------------------------------------------------------------------- */

enum { EXCHANGE_BLOCK_MAX = 1024 * 1024 }; /* what is sent at a time: a whole piece, and never more than this */

size_t fairness_share(const struct exchange *x); /* how much a stream may send in one turn of the loop */
/* Whether its stream has been served in this turn of the loop: it is suspended then. */
bool fairness_must_wait(struct exchange *x);

/* ---- refusals.c -------------------------------------------------------------------------------------------- */

bool exchange_is_passing(int status); /* whether the same request may be served later */

/* Puts a refusal (taken), or one of the machine, in the place of the reply, if any. */
void exchange_refuse_with(struct exchange *x, struct api_reply *refusal);
void exchange_refuse(struct exchange *x, int status, const char *detail);
void exchange_refuse_queue(struct exchange *x);
void exchange_refuse_stream(struct exchange *x);
void exchange_refuse_late(struct exchange *x);
void exchange_refuse_age(struct exchange *x);
void exchange_refuse_memory(struct exchange *x, const char *what, uint64_t n_bytes);

/* Writes a refusal to the socket itself; the caller closes the connection. Nothing where
 * the socket's bytes are TLS's. */
void exchange_send_raw(const struct http *http, int fd, const char *id, const struct api_reply *reply);

/* The client is too slow with its request: says so (408), past the daemon, if nothing has been answered yet. x may be
 * NULL: no request line has come. Or there is not even a connection of a daemon's yet. */
void exchange_refuse_slow(struct exchange *x, struct http_connection *connection, const char *detail);
void exchange_refuse_silent(struct http *http, int fd, const char *detail);

/* ---- access.c ---------------------------------------------------------------------------------------------- */

void exchange_authenticate(struct exchange *x);     /* x->call.access and x->account from x->receiving.head */
uint64_t exchange_client(const struct exchange *x); /* x->client, looked up by the first call */
bool exchange_admit(struct exchange *x);            /* within its quotas? False: x->reply says which is used up */
bool exchange_admit_stream(struct exchange *x);     /* likewise, of an answer about to be streamed */
/* Notes what has been computed for it, as it is computed, wherever that is: nothing is free because its client has
 * left, or its time was over. Any thread. */
void exchange_spend(const struct exchange *x, uint64_t work_ns);
void exchange_end_stream(struct exchange *x); /* at the end; nothing to do if there was none */

/* ---- holding.c --------------------------------------------------------------------------------------------- */

/* Counts what x->reply holds while it is read, plan and picture, for x's client. False: more than its share, and a
 * refusal is in its place. */
bool exchange_hold(struct exchange *x);
void exchange_let_go(struct exchange *x); /* nothing to do if it holds nothing */

/* ---- leaving.c --------------------------------------------------------------------------------------------- */

/* The client is gone, or has to go: no further work, the connection closes at the next turn. */
void exchange_leave(struct exchange *x);
void exchange_leave_slow(struct exchange *x); /* for it reads too slowly */
/* The request's own time is over: 503 if nothing has been sent, else as exchange_leave. */
bool exchange_is_late(const struct exchange *x, uint64_t now);
void exchange_expire(struct exchange *x);
/* Sends an interim response (100), which shows whether a client that has closed its sending side is there. False: this
 * one may not be sent any. */
bool exchange_probe(struct exchange *x);
bool exchange_is_probed(const struct exchange *x);

/* ---- exchange.c -------------------------------------------------------------------------------------------- */

char *exchange_room(struct exchange *x, size_t n); /* NULL: no memory */
void exchange_drop(struct exchange *x);            /* one owner less; the last one frees it */
bool exchange_is_gone(const struct exchange *x);
/* Whether its answer is on its way, from the moment a worker has begun on it: a client that has closed its sending side
 * may then still be reading. */
bool exchange_is_sending(const struct exchange *x);
uint64_t exchange_received(const struct exchange *x); /* bytes of its body */

/* Called by a daemon (struct http_daemon) at a request's first line and at its end. */
void *exchange_begin(void *daemon, void *connection, const char *uri, struct MHD_Connection *mhd);
void exchange_end(void *request, bool is_complete);
void exchange_free_spare(struct http *http); /* when no daemon runs any more */

/* ---- call.c ------------------------------------------------------------------------------------------------ */

/* Copies what x->call needs of method and headers. False: no memory. */
bool exchange_keep_call(struct exchange *x, const char *method);

/* ---- chunks.c ---------------------------------------------------------------------------------------------- */

/* Whether x's body, which has a stream, is sent that way; the response for it. */
bool chunks_are_ours(const struct exchange *x);
struct MHD_Response *chunks_response(struct exchange *x);
void chunks_go_on(struct exchange *x); /* a piece is ready, x is suspended */

/* ---- response_cache.c -------------------------------------------------------------------------------------- */

#define HTTP_ID_HEADER "X-Request-Id"

/* The response of x's reply with this request's headers, borrowed; NULL: there is none. */
struct MHD_Response *response_cache_find(struct exchange *x);
/* Takes response, which has x's headers, for the next that are answered alike. False: it has not. */
bool response_cache_add(struct exchange *x, struct MHD_Response *response);
void response_cache_free(struct http *http); /* when no daemon runs any more */

/* ---- reply.c ----------------------------------------------------------------------------------------------- */

/* Makes the body of a light reply, on the loop: the others have pieces. False: no memory. */
bool exchange_make_whole(struct exchange *x);

/* Hands x->reply to the daemon. False closes the connection: without memory there is nothing better. */
bool exchange_send(struct exchange *x);
bool exchange_send_refusal(struct exchange *x, int status, const char *detail);
bool exchange_queue_is_full(const struct exchange *x);

/* ---- answer.c ---------------------------------------------------------------------------------------------- */

enum { EXCHANGE_INLINE_BODY_MAX = 16 * 1024 }; /* read on the loop, and planned there if that is quick */

/* Answers a request whose body is there; x->state says how far that has come. */
bool exchange_answer(struct exchange *x);
bool exchange_answer_by_worker(struct exchange *x);

/* ---- receiving.c ------------------------------------------------------------------------------------------- */

/* The daemon calls this with the head, with each part of the body, at its end, and after each resume. */
bool exchange_receive(void *request, const char *method, const char *version, const char *upload, size_t *n_upload);

#endif
