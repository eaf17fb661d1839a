/* Owns the sending of answers: their headers, light replies from memory, others as streams.
 *
 * The last decisions before the first byte are here, and so are the last refusals: a full queue, a deadline, quotas of
 * the token, too many streams, the client's share of memory and of pictures. After the head is out nothing can be
 * refused any more, only cut (ending.c).
 *
 * The problem is that answers differ by nine orders of magnitude, from a hundred bytes to hundreds of gigabytes, while
 * a small one must not pay for what a large one needs. So there are three ways to the socket. An answer that is small
 * or complete goes out in one piece with its head, from memory that is cached where equal requests may use it. One of a
 * few pieces that are all ready is sent from the buffers in which they were computed. Everything else is a stream
 * (stream.c): a window of pieces that workers compute, which the connection reads, in shares (fairness.c), as its
 * socket takes bytes. Its head waits for the first piece so that Server-Timing is true. HEAD opens no stream: no piece
 * is computed.
 *
 * Memory that an answer holds is reserved for its client until the client has read it, which may take hours.
 *
 * Invariant: what was reserved or counted here is noted in x->sending, and given back from there exactly once, when the
 * exchange ends, on whatever way. */
#define _GNU_SOURCE /* stpcpy */
#include "server/exchange/exchange.h"

#include "server/memory/memory.h"
#include "server/loop/loop.h"
#include "server/process/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CHUNK_BLOCK_BYTES = 64 * 1024 /* used if the length is unknown and ../transport/chunks.c does not send the body */
};

/* ---- Bodies ---------------------------------------------------------------------------------------------------- */

/* Computes all pieces of a small answer one after the other. Each uses a pooled buffer, which is aligned and has room
 * for the longest piece, and is then copied: the answer itself is often a hundredth of that size. NULL: no memory. */
static char *make_all(struct exchange *x, const struct api_reply *reply, size_t *n_bytes)
{
    uint64_t begun_at = clock_now();
    char *all = NULL, *piece = pool_get(x->all->pool, reply->body->piece_max, true);
    *n_bytes = 0;
    for (uint64_t i = 0; piece && i < reply->body->n_pieces; i++) {
        size_t n = api_reply_piece(reply, i, piece);
        char *longer = realloc(all, *n_bytes + n);
        if (!longer) {
            free(all);
            all = NULL;
            break;
        }
        all = longer;
        memcpy(all + *n_bytes, piece, n);
        *n_bytes += n;
    }
    if (piece)
        pool_put(x->all->pool, piece, reply->body->piece_max);
    x->timing.pieces_ns = clock_now() - begun_at;
    exchange_spend(x, x->timing.pieces_ns);
    return all;
}

bool exchange_make_whole(struct exchange *x, struct api_reply *reply)
{
    if (reply->pace != API_PACE_READY || reply->body->n_pieces == 0 || reply->body->bytes)
        return true;
    size_t n;
    char *all = make_all(x, reply, &n);
    if (all)
        api_reply_finish(reply, all, n);
    return all;
}

static bool is_head(const struct exchange *x) { return strcmp(x->call->api.method, "HEAD") == 0; }

/* The reply keeps its body until the exchange ends, when the daemon no longer needs it. False: no memory. */
static bool add_whole(struct exchange *x, struct transport_answer *answer)
{
    if (!exchange_make_whole(x, x->reply))
        return false;
    if (x->call->api.must_not_block &&
        !x->answering.is_from_cache) /* computed by a worker: the body may have been changed in place */
        answers_keep(x->all->answers, &x->call->api, x->reply);
    const struct api_body *body = x->reply->body;
    size_t n = body->bytes ? (size_t)body->length : 0;
    answer->parts[0] = (struct iovec){(void *)(uintptr_t)body->bytes, n};
    answer->n_parts = n > 0;
    x->sending.n_sent = is_head(x) ? 0 : n;
    return true;
}

static ssize_t stream_share(void *self, bool may_wait)
{
    struct exchange *x = self;
    if (x->timing.deadline)
        exchange_expire(x, clock_coarse());
    if (exchange_is_gone(x)) /* closes before the announced length, or without the last chunk */
        return TRANSPORT_CUT;
    return may_wait && fairness_must_wait(x) ? 0 : (ssize_t)fairness_share(x);
}

static ssize_t look_at_stream(void *self, char *own, size_t room, struct iovec *parts)
{
    struct exchange *x = self;
    unsigned n = stream_look(x->stream, own, room, parts);
    if (n == 0 && stream_at_end(x->stream))
        return TRANSPORT_END;
    return n == 0 && stream_failed(x->stream) ? TRANSPORT_CUT : (ssize_t)n;
}

static void skip_in_stream(void *self, size_t n)
{
    struct exchange *x = self;
    x->sending.n_sent += n;
    stream_skip(x->stream, n);
}

static bool stream_waits(const void *self)
{
    const struct exchange *x = self;
    return x->stream && stream_is_waiting(x->stream);
}

_Static_assert((int)TRANSPORT_PARTS == (int)STREAM_WINDOW, "a look may show all that is in the window");

static const struct transport_reader stream_reader = {
    .share = stream_share,
    .look = look_at_stream,
    .skip = skip_in_stream,
    .is_waiting = stream_waits,
};

static void stream_ready(void *self)
{
    struct exchange *x = self;
    if (!x->connection || !transport_write(x->connection))
        exchange_resume(x);
}

static void stream_idle(void *self) { exchange_drop(self); }

static void stream_spend(void *self, uint64_t ns) { exchange_spend(self, ns); }

/* HEAD has no stream: no piece is computed, and the reader is never called. */
static bool open_stream(struct exchange *x)
{
    struct stream_events events = {.self = x, .ready = stream_ready, .idle = stream_idle, .spend = stream_spend};
    x->stream = stream_new(x->all->loop, exchange_client(x), x->all->pool, x->reply, events,
                           x->all->options->max_queue_age * CLOCK_SECOND);
    return x->stream != NULL;
}

/* The block is the daemon's, so a short answer uses a short one. */
static size_t block_bytes(const struct api_reply *reply)
{
    bool is_known = reply->body->length != API_LENGTH_UNKNOWN;
    size_t block = is_known ? EXCHANGE_BLOCK_MAX : CHUNK_BLOCK_BYTES;
    if (is_known && reply->body->piece_max < block)
        block = reply->body->piece_max;
    return reply->body->length < block ? (size_t)reply->body->length : block;
}

/* A few pieces that are all ready are sent from their own buffers, unless other streams wait for their share of the
 * loop: the daemon's block would have to be cleared first, and the pieces copied to it. */
static void add_stream(struct exchange *x, struct transport_answer *answer)
{
    bool is_whole = x->stream && x->reply->body->length != API_LENGTH_UNKNOWN &&
                    fairness_share(x) >= EXCHANGE_BLOCK_MAX && stream_is_whole(x->stream);
    if (is_whole) {
        answer->n_parts = stream_look(x->stream, NULL, 0, answer->parts);
        x->sending.n_whole = x->reply->body->length;
        return;
    }
    answer->reader = &stream_reader;
    answer->length = x->reply->body->length;
    answer->block = block_bytes(x->reply);
}

/* A client with no waiting request always has a place, so another client's requests cannot keep it out. The queue may
 * therefore exceed --max-queue by one for each client. */
bool exchange_queue_is_full(const struct exchange *x)
{
    return jobs_figures().n_waiting >= x->all->options->max_queue && workers_n_waiting(exchange_client(x)) > 0;
}

/* Counts the memory that the reply holds for as long as its client reads it: its plan, and the bytes of a finished
 * picture. A worker reserved both while it computed the answer. False: the client's share would be exceeded, and
 * x->reply is now a refusal. */
static bool hold(struct exchange *x)
{
    const struct api_reply *reply = x->reply;
    if (!admission_hold(x->client, reply, reply->memory)) {
        exchange_refuse_memory(x, "the answer, while it is read,", reply->memory);
        return false;
    }
    x->sending.held = reply;
    uint64_t most = x->all->host->max_pictures, all = api_pictures_bytes(), n = reply->n_finished;
    if (shares_take_object(SHARE_PICTURES, x->client, reply, n, all < most ? most - all : 0))
        return true;
    exchange_refuse(x, REFUSED_PICTURE, n, shares_held(SHARE_PICTURES, x->client), most);
    return false;
}

/* Counts the stream, and reserves its first buffer and the daemon's block, however loaded the server is. Both are
 * released when the exchange ends. */
static bool admit_stream(struct exchange *x)
{
    uint64_t n = x->reply->body->piece_max + block_bytes(x->reply);
    if (!admission_begin_stream(x->client)) {
        struct admission_refusal refusal = admission_refuse_stream(x->client);
        exchange_refuse(x, REFUSED_STREAM(refusal.status), refusal.detail);
        return false;
    }
    x->sending.is_counted_stream = true;
    x->all->n_streams++;
    metrics_add(METRICS_STREAMS, 1);
    if (!admission_take_for(x->client, n)) {
        exchange_refuse_memory(x, "the answer's stream", n);
        return false;
    }
    x->sending.n_stream_taken = n;
    return hold(x);
}

static bool is_streamed(const struct exchange *x)
{
    return x->reply->body->n_pieces > 0 && x->reply->pace != API_PACE_READY;
}

/* The body may set a deadline, too: any number, of which one beyond the range of the clock is none. */
static bool is_late(struct exchange *x)
{
    struct exchange_timing *timing = &x->timing;
    uint64_t us = x->reply->timeout_us, left = (UINT64_MAX - timing->received_at) / 1000;
    uint64_t stated = us && us < left ? timing->received_at + us * 1000 : 0;
    if (stated && timing->received_at && (!timing->deadline || stated < timing->deadline))
        timing->deadline = stated;
    return timing->deadline && exchange_reason(x) != EXCHANGE_LATE && exchange_is_late(x, clock_now());
}

/* The last refusals, of which the first takes the place of the answer; after this function nothing can fail. */
static void decide(struct exchange *x)
{
    struct exchange_timing *timing = &x->timing;
    timing->decided_at = clock_now();
    if (!timing->received_at) /* refused before the whole request arrived */
        timing->received_at = timing->decided_at;
    if (is_streamed(x) && exchange_queue_is_full(x))
        exchange_refuse(x, REFUSED_QUEUE, x->all->options->max_queue);
    else if (is_late(x))
        exchange_refuse_late(x);
    else if (is_streamed(x) && !is_head(x) && exchange_admit_stream(x) && admit_stream(x) && !open_stream(x))
        exchange_refuse(x, REFUSED_BUFFERS);
}

bool exchange_send(struct exchange *x)
{
    if (exchange_is_gone(x))
        return false;
    if (x->state != EXCHANGE_OPENING)
        decide(x);
    if (!x->stream || stream_await(x->stream)) {
        if (x->stream &&
            stream_is_stale(x->stream)) /* nothing has been sent; it is freed when its workers have finished with it */
            exchange_refuse(x, REFUSED_AGE, x->all->options->max_queue_age);
        x->state = EXCHANGE_SENDING;
        struct transport_answer answer = {.reply = x->reply,
                                          .is_cached = x->answering.is_from_cache,
                                          .path = x->call->api.path,
                                          .id = x->id,
                                          .traceparent = x->traceparent};
        if (is_streamed(x)) {
            add_stream(x, &answer);
        } else if (!add_whole(x, &answer)) {
            metrics_add(METRICS_REJECTED_MEMORY, 1);
            return false;
        }
        /* Reports the stages that end before the first byte. The head of a stream waits for its first piece, so that
         * the time in the queue is known; the head of an answer in few pieces waits for all of them. A piece is
         * computed and written in one pass: its time counts as the stage that dominates. */
        uint64_t pieces = x->timing.pieces_ns + (x->stream ? stream_work_ns(x->stream) : 0);
        answer.queue_ns = x->timing.queue_ns + (x->stream ? stream_queue_ns(x->stream) : 0);
        answer.is_computed = !x->stream || stream_is_made(x->stream);
        answer.compute_ns = x->timing.answer_ns + (x->reply->computes ? pieces : 0);
        answer.encode_ns = x->reply->computes ? 0 : pieces;
        return transport_send(x->connection, &answer);
    }
    x->state = EXCHANGE_OPENING;
    transport_suspend(x->connection);
    return true;
}
