/* Owns the sending of answers: their headers, light replies from memory, others as streams.
 *
 * The last decisions before the first byte are here, and so are the last refusals: a full queue, too many streams, a
 * client's share of memory. After the head is out nothing can be refused any more, only cut. An answer that is small or
 * complete goes out in one piece with its head; one in a few pieces that are ready is sent from their own buffers;
 * everything else is a stream (stream.c), whose head waits for its first piece so that Server-Timing is true. */
#define _GNU_SOURCE /* stpcpy */
#include "server/exchange/exchange.h"

#include "server/memory/memory.h"
#include "server/loop/loop.h"
#include "server/process/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CHUNK_BLOCK_BYTES = 64 * 1024 /* used if the length is unknown and chunks.c does not send the body */
};

static const char id_header[] = "X-Request-Id";

/* ---- Headers --------------------------------------------------------------------------------------------------- */

static char *print_timing(char *at, const char *name, uint64_t ns) { return clock_print_ms(stpcpy(at, name), ns); }

/* Reports the stages that end before the first byte. The head of a stream waits for its first piece, so that the time
 * in the queue is known; the head of an answer in few pieces waits for all of them. A piece is computed and written in
 * one pass: its time counts as the stage that dominates. */
static bool add_timing(struct exchange *x, struct MHD_Response *response)
{
    uint64_t queue = x->timing.queue_ns + (x->stream ? stream_queue_ns(x->stream) : 0);
    uint64_t pieces = x->timing.pieces_ns + (x->stream ? stream_work_ns(x->stream) : 0);
    char text[128], *at = print_timing(text, "queue;dur=", queue);
    if (!x->stream || stream_is_made(x->stream)) {
        at = print_timing(at, ", compute;dur=", x->timing.answer_ns + (x->reply->computes ? pieces : 0));
        print_timing(at, ", encode;dur=", x->reply->computes ? 0 : pieces);
    }
    return daemon_response_add(response, "Server-Timing", text);
}

static bool add_headers(struct exchange *x, struct MHD_Response *response)
{
    const struct api_reply *reply = x->reply;
    const char *media_type = api_reply_media_type(reply, x->call->api.path);
    bool done = !media_type || daemon_response_add(response, "Content-Type", media_type);
    for (size_t i = 0; i < reply->n_headers; i++)
        done = done && daemon_response_add(response, reply->headers[i].name, reply->headers[i].value);
    done = done && daemon_response_add(response, "X-Content-Type-Options", "nosniff");
    if (*x->traceparent)
        done = done && daemon_response_add(response, "traceparent", x->traceparent);
    if (x->receiving.must_close || http_is_last(x->connection))
        done = done && daemon_response_add(response, "Connection", "close");
    return done && daemon_response_add(response, id_header, x->id) && add_timing(x, response);
}

/* ---- Heads of cached answers, used again ------------------------------------------------------------------------- */

/* One loop's responses for cached answers: created once with all headers, queued many times.
 *
 * A response with its headers takes some twenty allocations, and the daemon checks every value for forbidden bytes: a
 * third of our own time for a small request. For a cached answer only the request's id changes; no time was spent
 * computing, so even Server-Timing stays the same. 0.9.75 prints the head right after the handler has returned, so the
 * id may change again when the next request arrives. The value of a header is the response's own copy, so an id of the
 * same length as the last one, as all of ours are, is written over it. */

/* An entry holds its reply, which may have been evicted from the cache of answers: so only short replies are stored, a
 * megabyte in all. */
enum { N_KEPT = 256, KEPT_BODY_MAX = 4096 };

struct http_kept {
    struct api_reply *reply;
    struct MHD_Response *response;
    char *id; /* the id that its header has now; belongs to the response */
};

static struct http_kept *kept_of(const struct exchange *x)
{
    uint64_t hash = (uint64_t)(uintptr_t)x->reply * 0x9e3779b97f4a7c15u;
    return &x->http->kept[hash >> 56];
}

_Static_assert(N_KEPT == 1 << (64 - 56), "eight bits of the hash choose the entry");

static void drop_kept(struct http_kept *entry)
{
    daemon_response_free(entry->response); /* connections that still send it hold their own references */
    api_reply_free(entry->reply);
    *entry = (struct http_kept){0};
}

void exchange_free_heads(struct http *http)
{
    for (size_t i = 0; http->kept && i < N_KEPT; i++)
        drop_kept(&http->kept[i]);
    free(http->kept);
    http->kept = NULL;
}

/* Whether only the id distinguishes this request's head from that of any other with the same answer. */
static bool is_usual(const struct exchange *x)
{
    return x->answering.is_kept && x->reply->body->length <= KEPT_BODY_MAX && !*x->traceparent &&
           !http_is_last(x->connection);
}

static char *id_of(struct MHD_Response *response) { return daemon_response_header(response, id_header); }

static bool set_id(struct http_kept *entry, const char *id)
{
    size_t n = strlen(id);
    if (strlen(entry->id) == n) {
        memcpy(entry->id, id, n);
        return true;
    }
    if (!daemon_response_remove(entry->response, id_header, entry->id) ||
        !daemon_response_add(entry->response, id_header, id))
        return false;
    entry->id = id_of(entry->response);
    return true;
}

static struct MHD_Response *kept_find(struct exchange *x)
{
    struct http_kept *entry = is_usual(x) && x->http->kept ? kept_of(x) : NULL;
    if (!entry || entry->reply != x->reply)
        return NULL;
    if (set_id(entry, x->id))
        return entry->response;
    drop_kept(entry); /* no memory */
    return NULL;
}

static bool kept_add(struct exchange *x, struct MHD_Response *response)
{
    if (!is_usual(x))
        return false;
    if (!x->http->kept)
        x->http->kept = calloc(N_KEPT, sizeof *x->http->kept);
    if (!x->http->kept)
        return false;
    struct http_kept *entry = kept_of(x);
    drop_kept(entry);
    entry->reply = api_reply_hold(x->reply);
    entry->response = response;
    entry->id = id_of(response);
    return true;
}

/* ---- Bodies ---------------------------------------------------------------------------------------------------- */

/* Computes all pieces of a small answer one after the other. Each uses a pooled buffer, which is aligned and has room
 * for the longest piece, and is then copied: the answer itself is often a hundredth of that size. NULL: no memory. */
static char *make_all(struct exchange *x, size_t *n_bytes)
{
    const struct api_reply *reply = x->reply;
    uint64_t begun_at = clock_now();
    char *all = NULL, *piece = pool_get(x->http->pool, reply->body->piece_max, true);
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
        pool_put(x->http->pool, piece, reply->body->piece_max);
    x->timing.pieces_ns = clock_now() - begun_at;
    exchange_spend(x, x->timing.pieces_ns);
    return all;
}

bool exchange_make_whole(struct exchange *x)
{
    if (x->reply->pace != API_PACE_READY || x->reply->body->n_pieces == 0 || x->reply->body->bytes)
        return true;
    size_t n;
    char *all = make_all(x, &n);
    if (all)
        api_reply_finish(x->reply, all, n);
    return all;
}

static bool is_head(const struct exchange *x) { return strcmp(x->call->api.method, "HEAD") == 0; }

/* The reply keeps its body until the exchange ends, when the daemon no longer needs it. */
static struct MHD_Response *light_response(struct exchange *x)
{
    if (!exchange_make_whole(x))
        return NULL;
    size_t n = (size_t)x->reply->body->length;
    if (x->call->api.must_not_block &&
        !x->answering.is_kept) /* computed by a worker: the body may have been changed in place */
        answers_keep(x->http->answers, &x->call->api, x->reply);
    n = x->reply->body->bytes ? n : 0;
    x->sending.n_sent = is_head(x) ? 0 : n;
    return daemon_response_of_bytes(x->reply->body->bytes, n);
}

/* 0.9.75: a reader that returns 0 without suspending the connection is called again at once, for ever. */
static ssize_t read_stream(void *self, uint64_t pos, char *dst, size_t room)
{
    struct exchange *x = self;
    (void)pos;
    if (x->timing.deadline && exchange_is_late(x, clock_coarse()))
        exchange_expire(x);
    if (exchange_is_gone(x)) /* closes before the announced length, or without the last chunk */
        return DAEMON_CUT;
    if (fairness_must_wait(x))
        return 0;
    size_t fair = fairness_share(x);
    size_t n = stream_read(x->stream, dst, room < fair ? room : fair);
    x->sending.n_sent += n;
    if (n > 0)
        return (ssize_t)n;
    if (stream_at_end(x->stream))
        return DAEMON_END;
    if (stream_failed(x->stream))
        return DAEMON_CUT;
    exchange_suspend(x);
    return 0;
}

static void stream_ready(void *self)
{
    struct exchange *x = self;
    if (x->sending.chunks.watch)
        chunks_go_on(x);
    else
        exchange_resume(x);
}

static void stream_idle(void *self) { exchange_drop(self); }

static void stream_spend(void *self, uint64_t ns) { exchange_spend(self, ns); }

/* HEAD has no stream: no piece is computed, and the reader is never called. */
static bool open_stream(struct exchange *x)
{
    struct stream_events events = {.self = x, .ready = stream_ready, .idle = stream_idle, .spend = stream_spend};
    x->stream = stream_new(x->http->loop, exchange_client(x), x->http->pool, x->reply, events,
                           x->http->options->max_queue_age * CLOCK_SECOND);
    return x->stream != NULL;
}

/* The block is the daemon's, so a short answer uses a short one.
 *
 * 0.9.75 ends the head of a chunked answer to HEAD with the empty chunk that would end a body. A client that keeps the
 * connection would read it before its next answer. So such an answer has no chunks, and the connection closes. */
static size_t block_bytes(const struct api_reply *reply)
{
    bool is_known = reply->body->length != API_LENGTH_UNKNOWN;
    size_t block = is_known ? EXCHANGE_BLOCK_MAX : CHUNK_BLOCK_BYTES;
    if (is_known && reply->body->piece_max < block)
        block = reply->body->piece_max;
    return reply->body->length < block ? (size_t)reply->body->length : block;
}

/* A few pieces that are ready are sent from their own buffers: the daemon's block would have to be cleared first, and
 * the pieces copied to it. Returns their number; 0: they are not ready, or other streams wait for their share of the
 * loop. */
static unsigned parts_of(struct exchange *x, struct iovec parts[STREAM_WINDOW])
{
    if (!x->stream || x->reply->body->length == API_LENGTH_UNKNOWN || fairness_share(x) < EXCHANGE_BLOCK_MAX)
        return 0;
    return stream_parts(x->stream, parts);
}

static struct MHD_Response *stream_response(struct exchange *x)
{
    const struct api_reply *reply = x->reply;
    bool is_known = reply->body->length != API_LENGTH_UNKNOWN;
    if (chunks_are_ours(x))
        return chunks_response(x);
    struct iovec parts[STREAM_WINDOW];
    unsigned n = parts_of(x, parts);
    if (n) {
        x->sending.n_whole = reply->body->length;
        return daemon_response_of_parts(parts, n);
    }
    size_t block = block_bytes(reply);
    struct MHD_Response *response =
        daemon_response_of_reader(is_known ? reply->body->length : DAEMON_LENGTH_UNKNOWN, block, read_stream, x);
    if (response && !is_known && !x->stream)
        daemon_response_without_chunks(response);
    return response;
}

/* A client with no waiting request always has a place, so another client's requests cannot keep it out. The queue may
 * therefore exceed --max-queue by one for each client. */
bool exchange_queue_is_full(const struct exchange *x)
{
    return jobs_figures().n_waiting >= x->http->options->max_queue && workers_n_waiting(exchange_client(x)) > 0;
}

static bool hold_picture(struct exchange *x)
{
    const struct api_reply *held = x->sending.held;
    uint64_t most = x->http->host->max_pictures, all = api_pictures_bytes(), n = held->n_finished;
    if (shares_take_object(SHARE_PICTURES, x->client, held, n, all < most ? most - all : 0))
        return true;
    exchange_refuse(x, REFUSED_PICTURE, n, shares_held(SHARE_PICTURES, x->client), most);
    return false;
}

/* Counts the memory that the reply holds for as long as its client reads it: its plan, and the bytes of a finished
 * picture. A worker reserved both while it computed the answer. Workers are few, but a slow reader may hold the memory
 * for hours. False: the client's share would be exceeded, and x->reply is now a refusal. */
static bool hold(struct exchange *x)
{
    const struct api_reply *reply = x->reply;
    if (!admission_hold(x->client, reply, reply->memory)) {
        exchange_refuse_memory(x, "the answer, while it is read,", reply->memory);
        return false;
    }
    x->sending.held = reply;
    return hold_picture(x);
}

/* Counts the stream, and reserves its first buffer and the daemon's block, however loaded the server is. Both are
 * released when the exchange ends. */
static bool admit_stream(struct exchange *x)
{
    uint64_t n = x->reply->body->piece_max + block_bytes(x->reply);
    if (!admission_begin_stream(x->client)) {
        api_speak(&x->call->api);
        struct admission_refusal refusal = admission_refuse_stream(x->client);
        exchange_refuse(x, REFUSED_STREAM(refusal.status), refusal.detail);
        return false;
    }
    x->sending.is_counted_stream = true;
    x->http->n_streams++;
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

/* The deadline that the body sets, which may be any number; 0: none, or one beyond the range of the clock. */
static uint64_t stated_deadline(const struct exchange *x)
{
    uint64_t received_at = x->timing.received_at;
    uint64_t us = x->reply->timeout_us;
    return us && us < (UINT64_MAX - received_at) / 1000 ? received_at + us * 1000 : 0;
}

static bool is_late(struct exchange *x)
{
    struct exchange_timing *timing = &x->timing;
    uint64_t stated = stated_deadline(x);
    if (stated && timing->received_at && (!timing->deadline || stated < timing->deadline))
        timing->deadline = stated;
    return timing->deadline && !atomic_load_explicit(&x->ending.is_late, memory_order_relaxed) &&
           exchange_is_late(x, clock_now());
}

/* A 503 states when to try again; api/ cannot know that, so the server estimates it. */
static bool add_retry(struct exchange *x, struct MHD_Response *response)
{
    if (x->reply->status != 503 && x->reply->status != 429)
        return true;
    for (size_t i = 0; i < x->reply->n_headers; i++)
        if (strcmp(x->reply->headers[i].name, "Retry-After") == 0)
            return true;
    return daemon_response_add(response, "Retry-After", "1");
}

/* The last refusals: after this function nothing can fail. */
static void decide(struct exchange *x)
{
    struct exchange_timing *timing = &x->timing;
    if (is_streamed(x) && exchange_queue_is_full(x))
        exchange_refuse(x, REFUSED_QUEUE, x->http->options->max_queue);
    if (is_late(x))
        exchange_refuse_late(x);
    timing->decided_at = clock_now();
    if (!timing->received_at) /* refused before the whole request arrived */
        timing->received_at = timing->decided_at;
    http_phase(x->http, x->connection, HTTP_PHASE_ANSWER);
    if (is_streamed(x) && !is_head(x) && exchange_admit_stream(x) && admit_stream(x) && !open_stream(x))
        exchange_refuse(x, REFUSED_BUFFERS);
}

/* Sends a cached answer whose response is in the response cache. */
static bool send_kept(struct exchange *x, bool *sent)
{
    struct MHD_Response *response = kept_find(x);
    if (!response)
        return false;
    x->sending.n_sent = x->reply->body->bytes && !is_head(x) ? (size_t)x->reply->body->length : 0;
    *sent = daemon_send(x->mhd, x->reply->status, response);
    return true;
}

static bool send_response(struct exchange *x)
{
    x->state = EXCHANGE_SENDING;
    bool sent = false;
    if (send_kept(x, &sent))
        return sent;
    struct MHD_Response *response = is_streamed(x) ? stream_response(x) : light_response(x);
    if (response && add_headers(x, response) && add_retry(x, response))
        sent = daemon_send(x->mhd, x->reply->status, response);
    else
        metrics_add(METRICS_REJECTED_MEMORY, 1);
    if (!(sent && kept_add(x, response)))
        daemon_response_free(response);
    return sent;
}

bool exchange_send(struct exchange *x)
{
    if (x->http->is_stopping || exchange_is_gone(x))
        return false;
    if (x->state != EXCHANGE_OPENING)
        decide(x);
    if (!x->stream || stream_await(x->stream)) {
        if (x->stream &&
            stream_is_stale(x->stream)) /* nothing has been sent; it is freed when its workers have finished with it */
            exchange_refuse(x, REFUSED_AGE, x->http->options->max_queue_age);
        return send_response(x);
    }
    x->state = EXCHANGE_OPENING;
    if (exchange_settle(x))
        exchange_suspend(x);
    return true;
}
