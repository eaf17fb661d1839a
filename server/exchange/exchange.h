/* One request and its answer: struct exchange, grouped by the stage that owns the fields, and the functions by which
 * the files of this folder work on it, lowest file first. */
#ifndef SERVER_EXCHANGE_H
#define SERVER_EXCHANGE_H

#include "api/api.h"
#include "server/loop/loop.h"
#include "server/memory/memory.h"
#include "server/transport/transport.h"

#include <stdatomic.h>
#include <sys/queue.h>
#include <sys/uio.h>

/* ---- call.c ------------------------------------------------------------------------------------------------------ */

/* A call in one counted block: the request as api/ reads it, with all that it points to.
 *
 * A reply borrows from its call until it is freed. So each request that shares a reply holds the call of the one that
 * was answered, and nothing is copied. A block that the last holder drops on a loop's thread goes to that loop's list
 * of spare ones: it is larger than the blocks that malloc caches for each thread. */

struct call {
    struct api_call api;
    char *target;     /* as received, then split into path and query; in room, as is the next */
    char *strings;    /* copies of the headers that api borrows, which must outlive the connection */
    struct body body; /* as it arrives; whole, it is api.body */
    atomic_size_t n_holders;
    struct call *next_spare; /* while it is not in use */
    size_t n_room;           /* bytes used */
    char room[512];          /* longer texts are on the heap; last, because it is not cleared */
};

/* Blocks that calls of one loop are built in again. */
struct calls {
    struct call *first;
    size_t n;
};

struct call *call_new(struct calls *spare);             /* one holder; NULL: no memory */
char *call_room(struct call *call, size_t n);           /* n bytes that live as long as the call; NULL: no memory */
struct call *call_hold(struct call *call);              /* any thread that holds it */
void call_drop(struct call *call, struct calls *spare); /* NULL: it is not kept for reuse (any thread) */
void calls_free(struct calls *spare);

/* ---- The key of a call (answers.c): every part of it that api/ reads, byte for byte ------------------------------ */

/* A longer request has no key: comparing it would cost as much as planning it. */
enum { CALL_KEY_MAX = 4096 };

/* Every text with its terminator, absent ones as a distinct byte, then the body. */
struct call_key {
    size_t n;
    char bytes[CALL_KEY_MAX];
};

bool call_key_make(const struct api_call *call, struct call_key *key); /* false: too long */

/* Uses this process's secret key, so that a client cannot choose requests that collide. */
uint64_t call_key_hash(const struct call_key *key);

/* ---- stream.c ---------------------------------------------------------------------------------------------------- */

/* A long answer while it is sent: a window of pieces that workers compute ahead of the reader, in the order in which
 * they are needed.
 *
 * Call everything on the loop's thread. At most STREAM_WINDOW pieces exist at a time, whatever the length of the
 * answer. */

/* Two pieces being computed and one ready keep two cores busy. More would only take memory, since pieces are sent in
 * order. */
enum { STREAM_WINDOW = 3 };

struct stream;

/* Callbacks to the stream's owner, on the loop; spend also on workers, as the computing is done. */
struct stream_events {
    void *self;
    void (*spend)(void *self, uint64_t ns);
    void (*ready)(void *self); /* the piece the reader waits for is ready, or never will be (stream_failed) */
    void (*idle)(void *self);  /* cancelled, and no worker uses it any more: the stream may be freed */
};

/* Starts computing pieces 0, 1, … of reply (borrowed until stream_free), in turns with other clients. The caller has
 * reserved its first buffer of --max-memory; the stream reserves any further one itself. If the first piece waits for a
 * worker longer than wait_max ns, nothing is computed: stream_is_stale. NULL: no memory. */
struct stream *stream_new(struct loop *loop, uint64_t client, struct pool *pool, const struct api_reply *reply,
                          struct stream_events events, uint64_t wait_max);

/* Before the first read: is the first piece ready, and if all pieces fit into the window, are all ready? If not,
 * events.ready will be called. */
bool stream_await(struct stream *stream);
bool stream_is_stale(const struct stream *stream);   /* after stream_await: it will deliver nothing */
bool stream_is_made(const struct stream *stream);    /* every piece is computed: its times are final */
bool stream_is_whole(const struct stream *stream);   /* … and they are all in the window */
bool stream_is_waiting(const struct stream *stream); /* its reader has all that is computed, and waits for more */

/* The one way to read: the parts that are ready, from the first byte that has not been skipped, and their number; 0:
 * none are, and events.ready will be called. They stay valid until stream_skip has passed them, or stream_cancel. own:
 * the reader's memory, aligned to 8, of `room` bytes. If a whole piece fits that is quick to compute, it is computed
 * there, and is the only part, to be skipped as a whole. */
unsigned stream_look(struct stream *stream, char *own, size_t room, struct iovec parts[STREAM_WINDOW]);
void stream_skip(struct stream *stream, size_t n);
bool stream_at_end(const struct stream *stream);
bool stream_failed(const struct stream *stream); /* there was not enough memory for even one buffer */

/* Time that its workers have spent; time that its first piece has waited for a worker. */
uint64_t stream_work_ns(const struct stream *stream);
uint64_t stream_queue_ns(const struct stream *stream);

/* No further piece is begun; those in progress are finished. True: none is in progress, free the stream now; false:
 * events.idle will be called. */
bool stream_cancel(struct stream *stream);
void stream_free(struct stream *stream); /* call it when no piece is in progress; NULL is accepted */

/* ---- answers.c --------------------------------------------------------------------------------------------------- */

/* Answers that equal calls share: one entry {key, followers, answer} for each.
 *
 * While a worker computes an answer, equal calls that arrive follow the first, so a picture is drawn once even if a
 * thousand clients ask for it at the same time. A small answer computed on a loop is cached, so that later calls need
 * no computing; the least recently used is evicted first.
 *
 * All loops share the entries behind a lock that is held briefly. With one cache for each of n loops, each answer would
 * be computed and stored n times. */

struct answers;
struct answers_entry;

/* bytes_max limits keys, cached answers and bookkeeping together; 0: nothing is cached. NULL: no memory. */
struct answers *answers_new(size_t bytes_max);
void answers_free(struct answers *answers); /* NULL is accepted */

/* ---- Cached answers. Any thread. --------------------------------------------------------------------------------- */

/* The answer of an equal call, with one more reference (api_reply_free), or NULL. All parts of the call that api/ reads
 * are compared, byte for byte. */
struct api_reply *answers_find(struct answers *answers, const struct api_call *call);

/* Caches a reply that is repeatable and has its body, with a reference of its own. Does nothing for any other reply, or
 * if memory runs out. */
void answers_keep(struct answers *answers, const struct api_call *call, struct api_reply *reply);

/* ---- Answers that are being computed. Any thread. ---------------------------------------------------------------- */

/* One request's part in an answer that is being computed; embedded in the object that owns the request. */
struct answers_part {
    struct loop_call completed; /* posted to loop; set its fire, loop and is_unwanted before answers_join */
    struct loop *loop;
    bool (*is_unwanted)(const struct answers_part *part); /* any thread: its client does not wait any more */
    struct api_reply *reply; /* the answer with one more reference, or NULL: answer the request yourself */
    struct call *call;       /* the leader's, which the reply borrows from: held; drop it after the reply */
    bool may_join;           /* if there is no reply: others may still share one (the leader has given up) */
    uint64_t waits_since;    /* when the leader's wait began, as of struct job, or this one's part in it; 0: none.
                              * Set it before answers_complete; it is given to followers that get no reply */
    uint64_t joined_at;      /* private, as are the fields below: ns */
    struct answers_entry *entry;
    struct answers_part *next;
};

enum answers_role {
    ANSWERS_ALONE,  /* the key is too long, or no memory */
    ANSWERS_LEADS,  /* compute it, then call answers_complete */
    ANSWERS_FOLLOWS /* completed will be called, once */
};

enum answers_role answers_join(struct answers *answers, const struct api_call *call, struct answers_part *part);

/* Does nothing unless the part leads. reply: NULL if the leader has given up. It is shared only if it is repeatable, or
 * a 503, for which each follower would wait in vain in its turn; other replies (e.g. of stored weights, which may have
 * changed between the requests) are for the leader alone. A ready reply must have its body by now. call: the one that
 * it was made from. */
void answers_complete(struct answers *answers, struct answers_part *leader, struct api_reply *reply, struct call *call);

/* Whether a request that follows still waits for the answer. Any thread, from answers_join of the leader to its
 * answers_complete; false for a part that does not lead. */
bool answers_are_awaited(struct answers *answers, const struct answers_part *leader);

/* For shutdown, when no loop runs: calls completed of every follower, without a reply. */
void answers_abandon(struct answers *answers);

/* ---- The requests of one I/O loop (exchange.c) ------------------------------------------------------------------- */

struct exchange;

struct exchanges {
    const struct options *options;
    const struct api_host *host;
    struct loop *loop;
    struct answers *answers; /* shared by all loops */
    struct pool *pool;
    uint64_t counted_pool_bytes;
    size_t n_streams;
    TAILQ_HEAD(, exchange) line; /* fairness.c: streams that wait for the next turn of the loop */
    size_t n_served;             /* streams served in this turn */
    struct exchange *spare;
    size_t n_spare;
    struct calls spare_calls;
};

/* Everything is borrowed until exchanges_free, which is called when no daemon runs any more; it accepts NULL. NULL: no
 * memory. */
struct exchanges *exchanges_new(const struct options *options, const struct api_host *host, struct loop *loop,
                                struct answers *answers);
void exchanges_free(struct exchanges *exchanges);

extern const struct transport_events exchange_events; /* receive.c; self: a struct exchanges */

/* ---- One exchange ------------------------------------------------------------------------------------------------ */

enum exchange_state {
    EXCHANGE_HEAD,    /* waiting for the daemon's first call */
    EXCHANGE_BODY,    /* receiving; a refusal may already be decided */
    EXCHANGE_WORKING, /* a worker makes the reply */
    EXCHANGE_DECIDED, /* the reply exists, but has not been passed to the daemon */
    EXCHANGE_OPENING, /* the first piece of its stream does not exist yet; nothing has been sent */
    EXCHANGE_SENDING
};

/* Receiving: the body as it arrives. */
struct exchange_receiving {
    uint64_t n_dropped; /* bytes dropped of a body over the limit */
    int raw_status;     /* status of a refusal sent without the daemon (EXCHANGE_REFUSED) */
};

/* Answering: by a worker, unless the reply is cached or computed on the loop. */
struct exchange_answering {
    struct job job;
    struct answers_part part;    /* while a worker makes the reply, for this request or an equal one */
    struct api_request *request; /* read on the loop; a worker builds its answer. NULL: none, or the worker has it */
    struct api_reply *made;      /* set by the worker, and used only by it until the job is done */
    bool is_aged;                /* waited too long for a worker; set by the worker, like made */
    bool is_from_cache;          /* so is the reply */
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
    uint64_t n_sent;
    uint64_t n_whole; /* set when the daemon reports that the whole answer has been sent */
};

/* Waiting in the queue of streams (fairness.c). */
struct exchange_waiting {
    bool has_turn; /* it has just been resumed: fairness_must_wait does not stop it again in this turn */
    bool is_in_line;
    TAILQ_ENTRY(exchange) link; /* if so */
};

/* Why it ends (ending.c). A worker looks at it before it begins, and regularly during long work. */
enum exchange_reason {
    EXCHANGE_GOES_ON,
    EXCHANGE_LATE,    /* its own time is over before its answer has begun: it is refused */
    EXCHANGE_REFUSED, /* past the daemon, while its head or body arrives; what still arrives is dropped */
    /* From here on nothing more is sent to its client. */
    EXCHANGE_CUT,  /* its own time is over, and its answer, or the refusal for that, is cut off */
    EXCHANGE_SLOW, /* its client reads too slowly, and is cut off */
    EXCHANGE_LEFT, /* its client has disconnected, or its connection has failed */
    EXCHANGE_SENT  /* its answer has been sent */
};

struct exchange_timing {
    uint64_t begun_at, received_at, decided_at; /* ns */
    uint64_t queue_ns, answer_ns, pieces_ns;
    uint64_t timeout_us; /* from X-Request-Timeout; 0: none */
    uint64_t deadline;   /* ns; from that header or from the body; 0: none */
};

struct exchange {
    struct exchanges *all;              /* of its loop */
    struct http_connection *connection; /* NULL after the connection has ended */
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
    _Atomic enum exchange_reason reason;
    struct exchange_timing timing;
};

/* ---- fairness.c ------------------------------------------------------------------------------------------ */

void exchange_resume(struct exchange *x); /* nothing to do if it is not suspended */

enum { EXCHANGE_BLOCK_MAX = 1024 * 1024 }; /* bytes sent at a time: a whole piece, but never more than this */

size_t fairness_share(const struct exchange *x); /* how much a stream may send in one turn of the loop */
/* Whether its stream has already been served in this turn of the loop; it is then suspended. */
bool fairness_must_wait(struct exchange *x);
void fairness_begin_turn(void *exchanges); /* at each turn: resumes a few waiting streams */
bool fairness_wants_turn(const struct exchanges *all);

/* ---- ending.c ----------------------------------------------------------------------------------------------- */

/* The one door through which a request ends; the first reason stays, but that a late request may still be cut. If
 * nothing more is sent from here on, it does no further work, and its connection closes in the next turn. */
void exchange_finish(struct exchange *x, enum exchange_reason reason);

/* Takes a reply that is no longer used, and frees it with the exchange. */
void exchange_set_aside(struct exchange *x, struct api_reply *reply);
/* Replaces the reply, if any, with a refusal (taken), or with one of the server. */
void exchange_refuse_with(struct exchange *x, struct api_reply *refusal);
void exchange_refuse(struct exchange *x, int status, enum metrics_id counted, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void exchange_refuse_memory(struct exchange *x, const char *what, uint64_t n_bytes);

/* Has the request's own time limit been reached? Then it gets a 503 if nothing has been sent, and otherwise is cut. */
bool exchange_expire(struct exchange *x, uint64_t now);
bool exchange_is_late(const struct exchange *x, uint64_t now);
void exchange_refuse_late(struct exchange *x);
/* Refuses it past the daemon, because its head or body arrives too slowly. */
void exchange_time_out(struct exchange *x, int status, enum metrics_id counted, const char *format, va_list values)
    __attribute__((format(printf, 4, 0)));

/* ---- access.c ---------------------------------------------------------------------------------------------- */

uint64_t exchange_client(const struct exchange *x); /* x->client, computed by the first call */
bool exchange_admit(struct exchange *x);        /* within its quotas? False: x->reply names the quota that is used up */
bool exchange_admit_stream(struct exchange *x); /* the same for an answer about to be streamed */
/* Charges computing time to the account as it is spent, even if the client has disconnected or the time limit was
 * reached. Any thread. */
static inline void exchange_spend(const struct exchange *x, uint64_t work_ns)
{
    if (x->account && work_ns)
        account_charge(x->account, work_ns);
}
void exchange_end_stream(struct exchange *x); /* at the end; nothing to do if there was none */

/* ---- exchange.c -------------------------------------------------------------------------------------------- */

void exchange_drop(struct exchange *x); /* drops one owner; the last one frees it */
static inline enum exchange_reason exchange_reason(const struct exchange *x)
{
    return atomic_load_explicit(&x->reason, memory_order_relaxed);
}
static inline bool exchange_is_gone(const struct exchange *x) { return exchange_reason(x) >= EXCHANGE_CUT; }
/* At a request's first line, whose target is copied, and at its end. NULL: no memory. */
void *exchange_begin(void *exchanges, struct http_connection *connection, const char *target, const char *id);
void exchange_end(void *exchange, bool is_complete);

/* ---- call.c ------------------------------------------------------------------------------------------------ */

/* Copies the method and headers that x->call needs. False: no memory. */
bool exchange_copy_head(struct exchange *x, const char *method);

/* ---- send.c ------------------------------------------------------------------------------------------------ */

/* Creates the body of a ready reply (enum api_pace) to x, on the loop; other replies have pieces. False: no memory. */
bool exchange_make_whole(struct exchange *x, struct api_reply *reply);

/* Passes x->reply to ../transport/. False closes the connection: without memory nothing better is possible. */
bool exchange_send(struct exchange *x);
bool exchange_queue_is_full(const struct exchange *x);

/* ---- answer.c ---------------------------------------------------------------------------------------------- */

enum {
    EXCHANGE_INLINE_BODY_MAX = 16 * 1024
}; /* bodies up to this size are read on the loop, and planned there if that is fast */

/* Answers a request whose body has arrived. */
bool exchange_answer(struct exchange *x);

#endif
