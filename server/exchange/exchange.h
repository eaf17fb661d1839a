/* One request and its answer: struct exchange, grouped by the stage that owns the fields, and the functions by which
 * the files of this folder work on it, lowest file first. */
#ifndef SERVER_EXCHANGE_EXCHANGE_H
#define SERVER_EXCHANGE_EXCHANGE_H

#include "server/exchange/call.h"
#include "server/exchange/answers.h"
#include "server/transport/checks.h"
#include "server/transport/internal.h"
#include "server/exchange/stream.h"

#include <stdatomic.h>

enum exchange_state {
    EXCHANGE_HEAD,    /* waiting for the daemon's first call */
    EXCHANGE_BODY,    /* receiving; a refusal may already be decided */
    EXCHANGE_HANDED,  /* received; a worker is to make the reply */
    EXCHANGE_WORKING, /* a worker makes the reply */
    EXCHANGE_DECIDED, /* the reply exists, but has not been passed to the daemon */
    EXCHANGE_OPENING, /* the first piece of its stream does not exist yet; nothing has been sent */
    EXCHANGE_SENDING
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

/* Receiving: the head and body as they arrive. */
struct exchange_receiving {
    struct http_head head;
    struct http_refusal refusal; /* of the target, or of bytes that the guard has held back */
    bool must_close;             /* the following bytes on the connection cannot be trusted */
    uint64_t n_dropped;          /* bytes dropped of a body over the limit */
    int raw_status;              /* status of a refusal sent without the daemon */
};

/* Answering: by a worker, unless the reply is cached or computed on the loop. */
struct exchange_answering {
    struct job job;
    struct answers_part part;    /* while a worker makes the reply, for this request or an equal one */
    struct api_request *request; /* read on the loop; a worker builds its answer. NULL: none, or the worker has it */
    struct api_reply *made;      /* set by the worker, and used only by it until the job is done */
    bool is_aged;                /* waited too long for a worker; set by the worker, like made */
    bool is_kept;                /* the reply comes from the cache */
    /* No longer used, since a refusal has replaced it, or the time limit was reached. Freed with the exchange: a worker
     * may still compute pieces of the stream. */
    struct api_reply *replaced;
    struct stream *replaced_stream;
};

/* Sending: the resources of the answer, and its progress. */
struct exchange_sending {
    const struct api_reply *held; /* counted for the client until the client has read it */
    uint64_t n_stream_taken; /* bytes reserved of --max-memory for the stream's first buffer and the daemon's block */
    bool is_counted_stream, is_account_stream; /* counted among all streams; counted among those of its token */
    struct http_chunks chunks;
    uint64_t n_sent;
    uint64_t n_whole; /* set when the daemon reports that the whole answer has been sent */
};

/* Waiting: for a worker, for room in the socket, or in the queue of streams (suspension.c). */
struct exchange_waiting {
    bool is_suspended;
    bool is_settled; /* exchange_settle has been called */
    bool has_turn;   /* it has just been resumed: fairness_must_wait does not stop it again in this turn */
    bool is_in_line; /* if so, next and prev are its neighbours */
    struct exchange *next, *prev;
};

/* Ending before the answer is complete (ending.c). A worker checks the first two before it begins, and regularly
 * during long work. */
struct exchange_ending {
    atomic_bool is_gone;     /* the client has disconnected */
    atomic_bool is_late;     /* the request's own time limit was reached */
    bool is_slow, is_probed; /* the client reads too slowly; it has been sent an interim response */
};

struct exchange_timing {
    uint64_t begun_at, received_at, decided_at; /* ns */
    uint64_t queue_ns, answer_ns, pieces_ns;
    uint64_t timeout_us; /* from X-Request-Timeout; 0: none */
    uint64_t deadline;   /* ns; from that header or from the body; 0: none */
};

struct exchange {
    struct http *http;
    struct http_connection *connection; /* NULL after the connection has ended */
    struct MHD_Connection *mhd;
    enum exchange_state state;
    unsigned n_owners;
    struct exchange *next_spare; /* while it is not in use */
    char id[129], traceparent[129];
    struct account *account; /* the account of its token; NULL: none */
    struct address origin;   /* of the client, or of the proxy if it names none */
    bool has_origin;
    uint64_t client; /* the client whose turn and whose share of the common resources it uses */

    /* The values passed between stages: receiving fills the call, answering makes the reply, and sending opens its
     * stream. */
    struct call *call;
    struct api_reply *reply;
    struct stream *stream;

    struct exchange_receiving receiving;
    struct exchange_answering answering;
    struct exchange_sending sending;
    struct exchange_waiting waiting;
    struct exchange_ending ending;
    struct exchange_timing timing;
};

/* ---- suspension.c ------------------------------------------------------------------------------------------ */

/* Suspends a request whose answer needs time, and resumes it. */
void exchange_suspend(struct exchange *x);
void exchange_suspend_in_line(struct exchange *x); /* until fairness_begin_turn resumes it */
void exchange_resume(struct exchange *x);          /* nothing to do if it is not suspended */
bool exchange_is_suspended(const struct exchange *x);
/* Call it before a first suspension. It returns false once, and the daemon then calls exchange_receive again at
 * once. */
bool exchange_settle(struct exchange *x);

enum { EXCHANGE_BLOCK_MAX = 1024 * 1024 }; /* bytes sent at a time: a whole piece, but never more than this */

size_t fairness_share(const struct exchange *x); /* how much a stream may send in one turn of the loop */
/* Whether its stream has already been served in this turn of the loop; it is then suspended. */
bool fairness_must_wait(struct exchange *x);

/* ---- ending.c ----------------------------------------------------------------------------------------------- */

/* Takes a reply that is no longer used, and frees it with the exchange. */
void exchange_set_aside(struct exchange *x, struct api_reply *reply);
/* Replaces the reply, if any, with a refusal (taken), or with one of the server. */
void exchange_refuse_with(struct exchange *x, struct api_reply *refusal);
void exchange_refuse(struct exchange *x, int status, enum metrics_id counted, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void exchange_refuse_memory(struct exchange *x, const char *what, uint64_t n_bytes);

/* The client has disconnected, or is cut off: no further work, and the connection closes in the next turn. */
void exchange_leave(struct exchange *x);
void exchange_leave_slow(struct exchange *x); /* because the client reads too slowly */
/* Whether the request's own time limit has been reached. exchange_expire then answers 503 if nothing has been sent, and
 * otherwise does the same as exchange_leave. */
bool exchange_is_late(const struct exchange *x, uint64_t now);
void exchange_expire(struct exchange *x);
void exchange_refuse_late(struct exchange *x);
/* Sends an interim response (100), which shows whether a client that has closed its sending side is still there. False:
 * an interim response is not allowed for this client. */
bool exchange_probe(struct exchange *x);
bool exchange_is_probed(const struct exchange *x);

/* ---- access.c ---------------------------------------------------------------------------------------------- */

void exchange_find_origin(struct exchange *x);      /* sets x->origin; behind a trusted proxy, what that one names */
void exchange_authenticate(struct exchange *x);     /* sets x->call->api.access and x->account from x->receiving.head */
uint64_t exchange_client(const struct exchange *x); /* x->client, computed by the first call */
bool exchange_admit(struct exchange *x);        /* within its quotas? False: x->reply names the quota that is used up */
bool exchange_admit_stream(struct exchange *x); /* the same for an answer about to be streamed */
/* Charges computing time to the account as it is spent, even if the client has disconnected or the time limit was
 * reached. Any thread. */
void exchange_spend(const struct exchange *x, uint64_t work_ns);
void exchange_end_stream(struct exchange *x); /* at the end; nothing to do if there was none */

/* ---- exchange.c -------------------------------------------------------------------------------------------- */

void exchange_drop(struct exchange *x); /* drops one owner; the last one frees it */
bool exchange_is_gone(const struct exchange *x);
/* Whether its answer is being sent or computed by a worker: a client that has closed its sending side may still be
 * reading. */
bool exchange_is_sending(const struct exchange *x);
bool exchange_sends_live(const struct exchange *x);   /* bytes may be seconds apart */
uint64_t exchange_received(const struct exchange *x); /* bytes of its body */

/* Called by a daemon (struct http_daemon) at a request's first line and at its end. */
void *exchange_begin(void *daemon, void *connection, const char *uri, struct MHD_Connection *mhd);
void exchange_end(void *request, bool is_complete);
void exchange_free_spare(struct http *http); /* call it when no daemon runs any more */

/* ---- call.c ------------------------------------------------------------------------------------------------ */

/* Copies the method and headers that x->call needs. False: no memory. */
bool exchange_keep_call(struct exchange *x, const char *method);

/* ---- chunks.c ---------------------------------------------------------------------------------------------- */

/* Whether x's body, which has a stream, is sent by chunks.c; and the response for it. */
bool chunks_are_ours(const struct exchange *x);
struct MHD_Response *chunks_response(struct exchange *x);
void chunks_go_on(struct exchange *x); /* call it when a piece is ready; x is suspended */

/* ---- response_cache.c -------------------------------------------------------------------------------------- */

#define HTTP_ID_HEADER "X-Request-Id"

/* The response of x's reply with this request's headers, borrowed; NULL: not in the cache. */
struct MHD_Response *response_cache_find(struct exchange *x);
/* Takes response, which has x's headers, for later requests with the same reply. False: it was not taken. */
bool response_cache_add(struct exchange *x, struct MHD_Response *response);
void response_cache_free(struct http *http); /* call it when no daemon runs any more */

/* ---- send.c ------------------------------------------------------------------------------------------------ */

/* Creates the body of a ready reply (enum api_pace), on the loop; other replies have pieces. False: no memory. */
bool exchange_make_whole(struct exchange *x);

/* Passes x->reply to the daemon. False closes the connection: without memory nothing better is possible. */
bool exchange_send(struct exchange *x);
bool exchange_queue_is_full(const struct exchange *x);

/* ---- answer.c ---------------------------------------------------------------------------------------------- */

enum {
    EXCHANGE_INLINE_BODY_MAX = 16 * 1024
}; /* bodies up to this size are read on the loop, and planned there if that is fast */

/* Answers a request whose body has arrived; x->state is the progress so far. */
bool exchange_answer(struct exchange *x);
bool exchange_answer_by_worker(struct exchange *x);

/* ---- receive.c --------------------------------------------------------------------------------------------- */

/* The daemon calls this with the head, with each part of the body, at its end, and after each resume. */
bool exchange_receive(void *request, const char *method, const char *version, const char *upload, size_t *n_upload);

#endif
