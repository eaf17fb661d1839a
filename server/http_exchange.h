/* One request and its answer, as http_exchange.c (receiving, answering, the end) and http_reply.c (sending) share it.
 */
#ifndef SERVER_HTTP_EXCHANGE_H
#define SERVER_HTTP_EXCHANGE_H

#include "server/body.h"
#include "server/flights.h"
#include "server/http_checks.h"
#include "server/http_internal.h"
#include "server/stream.h"

#include <stdatomic.h>

enum exchange_state {
    EXCHANGE_HEAD,    /* waiting for the daemon's first call */
    EXCHANGE_BODY,    /* receiving; a refusal may already be decided */
    EXCHANGE_WORKING, /* a worker makes the reply */
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

struct exchange {
    struct http *http;
    struct http_connection *connection; /* NULL after the end */
    struct MHD_Connection *mhd;
    unsigned n_owners;
    enum exchange_state state;
    bool is_suspended, is_counted_stream;
    bool is_kept;        /* the reply is one of the kept answers */
    atomic_bool is_gone; /* read by the worker before it begins, and now and then by what takes long */
    char *target;        /* as received, then split into path and query; in room, or of the heap */
    char *strings;       /* copies of the headers the call borrows, which must outlive the connection; likewise */
    struct api_call call;
    struct http_head head;
    struct http_refusal target_refusal;
    struct body body;
    uint64_t n_dropped; /* bytes of a body over the limit */
    char id[129], traceparent[129];
    struct exchange *next_spare; /* while it is not in use */
    size_t n_room;
    struct job job;
    struct flight_seat seat; /* while a worker makes the reply, for this request or an equal one */
    struct api_reply *made;  /* by the worker, which alone touches these two until it is done */
    uint64_t made_ns;
    struct api_reply *reply;
    struct stream *stream;
    struct http_chunks chunks;
    int raw_status; /* of a refusal sent past the daemon */
    uint64_t n_sent;
    uint64_t begun_at, received_at, decided_at; /* ns */
    uint64_t queue_ns, answer_ns, pieces_ns;
    char room[512]; /* for target and strings, as far as they fit; last, for it is not cleared */
};

/* ---- http_exchange.c ------------------------------------------------------------------------------------------- */

void exchange_make_id(struct http *http, char *id); /* 17 bytes */
char *exchange_room(struct exchange *x, size_t n);  /* NULL: no memory */
void exchange_drop(struct exchange *x);             /* one owner less; the last one frees it */
void exchange_suspend(struct exchange *x);
void exchange_resume(struct exchange *x); /* nothing to do if it is not suspended */
bool exchange_is_gone(const struct exchange *x);

/* ---- http_answer.c --------------------------------------------------------------------------------------------- */

enum { EXCHANGE_INLINE_BODY_MAX = 16 * 1024 }; /* read on the loop, and planned there if that is quick */

/* Answers a request whose body is there; x->state says how far that has come. */
enum MHD_Result exchange_answer(struct exchange *x);

/* ---- http_call.c ----------------------------------------------------------------------------------------------- */

/* Copies what the call needs of method and headers (x->head, x->mhd) into x->strings. False: no memory. */
bool exchange_keep_call(struct exchange *x, const char *method);

/* ---- http_chunks.c --------------------------------------------------------------------------------------------- */

/* Whether x's body, which has a stream, is sent that way; the response for it. */
bool chunks_are_ours(const struct exchange *x);
struct MHD_Response *chunks_response(struct exchange *x);
void chunks_go_on(struct exchange *x); /* a piece is ready, x is suspended */
void chunks_stop(struct exchange *x);  /* the socket is the daemon's again; nothing to do if it is */

/* ---- http_kept.c ----------------------------------------------------------------------------------------------- */

#define HTTP_ID_HEADER "X-Request-Id"

/* The response of x's reply with this request's headers, borrowed; NULL: there is none. */
struct MHD_Response *kept_find(struct exchange *x);
/* Takes response, which has x's headers, for the next that are answered alike. False: it has not. */
bool kept_add(struct exchange *x, struct MHD_Response *response);

/* ---- http_reply.c ---------------------------------------------------------------------------------------------- */

/* Makes the body of a light reply, on the loop: the others have pieces. False: no memory. */
bool exchange_make_whole(struct exchange *x);

/* How much a stream may send in one turn of the loop. */
size_t exchange_fair_bytes(const struct exchange *x);

/* Hands x->reply to the daemon. MHD_NO closes the connection: without memory there is nothing better. */
enum MHD_Result exchange_send(struct exchange *x);

/* Puts a refusal of the machine in the place of the reply, if any. */
void exchange_refuse(struct exchange *x, int status, const char *detail);
void exchange_refuse_queue(struct exchange *x);
enum MHD_Result exchange_send_refusal(struct exchange *x, int status, const char *detail);
bool exchange_queue_is_full(const struct exchange *x);

/* Writes a refusal to the socket itself; the caller closes the connection. */
void exchange_send_raw(int fd, const char *id, const struct api_reply *reply);

#endif
