/* Owns one request from its first line to its log line: receives the body, has it answered here or by a worker, sends
 * the answer from memory or as a stream.
 *
 * An exchange has several owners: the daemon until exchange_end, a worker that answers it, its stream while a piece is
 * at work. It is freed when the last lets go, which may be after its connection has been closed and used again. */
#include "server/http_internal.h"

#include "server/body.h"
#include "server/clock.h"
#include "server/http_checks.h"
#include "server/metrics.h"
#include "server/stream.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum {
    INLINE_BODY_MAX = 64 * 1024, /* bodies up to this are read and planned on the loop: tens of microseconds */
    BLOCK_BYTES = 512 * 1024,    /* what the daemon sends at a time: below 256 KiB throughput falls */
    CHUNK_BLOCK_BYTES = 64 * 1024,
    DRAIN_BODY_MAX = 8 * 1024 * 1024 /* of a chunked body over the limit, read and dropped so that its 413 arrives */
};

enum state {
    STATE_HEAD,    /* waiting for the daemon's first call */
    STATE_BODY,    /* receiving; a refusal may already be decided */
    STATE_WORKING, /* a worker makes the reply */
    STATE_DECIDED, /* the reply is there, not yet handed to the daemon */
    STATE_SENDING
};

struct exchange {
    struct http *http;
    struct http_connection *connection; /* NULL after the end */
    struct MHD_Connection *mhd;
    unsigned n_owners;
    enum state state;
    bool is_suspended, is_counted_stream;
    atomic_bool is_gone; /* read by the worker before it begins */
    char *target;        /* as received, then split into path and query */
    char *strings;       /* copies of the headers the call borrows, which must outlive the connection */
    struct api_call call;
    struct http_head head;
    struct http_refusal target_refusal;
    struct body body;
    uint64_t n_dropped; /* bytes of a body over the limit */
    char id[129], traceparent[129];
    struct job job;
    struct api_reply *made; /* by the worker, which alone touches these two until it is done */
    uint64_t made_ns;
    struct api_reply *reply;
    struct stream *stream;
    int raw_status; /* of a refusal sent past the daemon */
    uint64_t n_sent;
    uint64_t begun_at, received_at, decided_at; /* ns */
    uint64_t queue_ns, answer_ns, pieces_ns;
};

bool exchange_is_suspended(const struct exchange *x) { return x->is_suspended; }

bool exchange_is_sending(const struct exchange *x) { return x->state == STATE_SENDING; }

/* ---- Lifetime -------------------------------------------------------------------------------------------------- */

/* Sixteen hexadecimal digits that no other request of this process has, nor likely one of another: a mixed counter. */
static void make_id(struct http *http, char *id)
{
    uint64_t z = http->id_seed + 0x9e3779b97f4a7c15u * ++http->n_ids;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    snprintf(id, 17, "%016llx", (unsigned long long)(z ^ (z >> 31)));
}

void *exchange_begin(void *self, const char *uri, struct MHD_Connection *mhd)
{
    struct http *http = self;
    struct http_connection *connection =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
    struct exchange *x = connection ? calloc(1, sizeof *x) : NULL;
    if (x)
        x->target = strdup(uri);
    if (!x || !x->target) {
        metrics_add(METRICS_REJECTED_MEMORY, 1);
        free(x);
        return NULL; /* exchange_receive closes the connection */
    }
    x->http = http;
    x->connection = connection;
    x->mhd = mhd;
    x->n_owners = 1;
    x->begun_at = clock_now();
    make_id(http, x->id);
    connection->exchange = x;
    http_phase(http, connection, HTTP_PHASE_HEAD);
    metrics_add(METRICS_IN_FLIGHT, 1);
    return x;
}

static void drop(struct exchange *x)
{
    if (--x->n_owners > 0)
        return;
    stream_free(x->stream);
    api_reply_free(x->reply);
    body_drop(&x->body);
    free(x->strings);
    free(x->target);
    free(x);
}

static void suspend(struct exchange *x)
{
    assert(!x->is_suspended);
    x->is_suspended = true;
    http_suspend(x->http, x->mhd);
}

static void resume(struct exchange *x)
{
    if (!x->is_suspended)
        return;
    x->is_suspended = false;
    http_resume(x->http, x->mhd);
}

static bool is_gone(const struct exchange *x) { return atomic_load_explicit(&x->is_gone, memory_order_relaxed); }

void exchange_leave(struct exchange *x)
{
    atomic_store_explicit(&x->is_gone, true, memory_order_relaxed);
    resume(x);
}

/* ---- Sending --------------------------------------------------------------------------------------------------- */

static bool add_header(struct MHD_Response *response, const char *name, const char *value)
{
    return MHD_add_response_header(response, name, value) == MHD_YES;
}

/* What is known before the first byte. A stream's pieces are still to come, so it can only say how long it waited. */
static bool add_timing(struct exchange *x, struct MHD_Response *response)
{
    char text[96];
    int n = snprintf(text, sizeof text, "queue;dur=%.3f", clock_to_ms(x->queue_ns));
    if (!x->stream)
        snprintf(text + n, sizeof text - (size_t)n, ", compute;dur=%.3f, encode;dur=%.3f", clock_to_ms(x->answer_ns),
                 clock_to_ms(x->pieces_ns));
    return add_header(response, "Server-Timing", text);
}

static bool add_headers(struct exchange *x, struct MHD_Response *response)
{
    const struct api_reply *reply = x->reply;
    bool done = !reply->content_type || add_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, reply->content_type);
    for (size_t i = 0; i < reply->n_headers; i++)
        done = done && add_header(response, reply->headers[i].name, reply->headers[i].value);
    if (*x->traceparent)
        done = done && add_header(response, "traceparent", x->traceparent);
    if (x->http->is_draining)
        done = done && add_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    return done && add_header(response, "X-Request-Id", x->id) && add_timing(x, response);
}

/* Makes all pieces of a small answer one after the other. Each is made in a pooled buffer, which is aligned and large
 * enough for the longest, and copied: the answer itself is often a hundredth of that. NULL: no memory. */
static char *make_all(struct exchange *x, size_t *n_bytes)
{
    const struct api_reply *reply = x->reply;
    uint64_t begun_at = clock_now();
    char *all = NULL, *piece = pool_get(x->http->pool, reply->piece_max, true);
    *n_bytes = 0;
    for (uint64_t i = 0; piece && i < reply->n_pieces; i++) {
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
        pool_put(x->http->pool, piece, reply->piece_max);
    x->pieces_ns = clock_now() - begun_at;
    return all;
}

static struct MHD_Response *light_response(struct exchange *x)
{
    size_t n = 0;
    char *all = x->reply->n_pieces ? make_all(x, &n) : NULL;
    if (x->reply->n_pieces && !all)
        return NULL;
    bool is_head = strcmp(x->call.method, "HEAD") == 0;
    x->n_sent = is_head ? 0 : n;
    struct MHD_Response *response = MHD_create_response_from_buffer(n, all, MHD_RESPMEM_MUST_FREE);
    if (!response)
        free(all);
    return response;
}

/* 0.9.75: a reader that returns 0 without suspending is called again at once, for ever. */
static ssize_t read_stream(void *self, uint64_t pos, char *dst, size_t room)
{
    struct exchange *x = self;
    (void)pos;
    if (is_gone(x))
        return MHD_CONTENT_READER_END_WITH_ERROR;
    size_t n = stream_read(x->stream, dst, room);
    x->n_sent += n;
    if (n > 0)
        return (ssize_t)n;
    if (stream_at_end(x->stream))
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (stream_failed(x->stream))
        return MHD_CONTENT_READER_END_WITH_ERROR;
    suspend(x);
    return 0;
}

static void stream_ready(void *self) { resume(self); }

static void stream_idle(void *self) { drop(self); }

/* The block is the daemon's, so a short answer takes a short one. For HEAD the reader is never called, and no piece
 * made. */
static struct MHD_Response *stream_response(struct exchange *x)
{
    const struct api_reply *reply = x->reply;
    if (strcmp(x->call.method, "HEAD") != 0) {
        struct stream_events events = {.self = x, .ready = stream_ready, .idle = stream_idle};
        x->stream = stream_new(x->http->jobs, x->http->pool, reply, events);
        if (!x->stream)
            return NULL;
        x->is_counted_stream = true;
        metrics_add(METRICS_STREAMS, 1);
    }
    bool is_known = reply->length != API_LENGTH_UNKNOWN;
    size_t block = is_known ? BLOCK_BYTES : CHUNK_BLOCK_BYTES;
    if (reply->length < block)
        block = (size_t)reply->length;
    return MHD_create_response_from_callback(is_known ? reply->length : MHD_SIZE_UNKNOWN, block, read_stream, x, NULL);
}

static bool queue_is_full(const struct exchange *x) { return jobs_figures().n_waiting >= x->http->options->max_queue; }

static void refuse(struct exchange *x, int status, const char *detail)
{
    api_reply_free(x->reply);
    x->reply = api_refusal(status, detail);
}

static void refuse_queue(struct exchange *x)
{
    metrics_add(METRICS_REJECTED_QUEUE, 1);
    refuse(x, 503, "too many requests are waiting to be computed (--max-queue); try again later");
}

static bool is_streamed(const struct exchange *x) { return x->reply->n_pieces > 0 && !x->reply->is_light; }

/* A 503 says when to come back; the language cannot know, the machine guesses. */
static bool add_retry(struct exchange *x, struct MHD_Response *response)
{
    if (x->reply->status != 503 && x->reply->status != 429)
        return true;
    for (size_t i = 0; i < x->reply->n_headers; i++)
        if (strcmp(x->reply->headers[i].name, "Retry-After") == 0)
            return true;
    return add_header(response, MHD_HTTP_HEADER_RETRY_AFTER, "1");
}

/* Hands the reply to the daemon. MHD_NO closes the connection: without memory there is nothing better. */
static enum MHD_Result send_reply(struct exchange *x)
{
    if (x->http->is_stopping || is_gone(x))
        return MHD_NO;
    if (is_streamed(x) && queue_is_full(x))
        refuse_queue(x);
    x->decided_at = clock_now();
    x->received_at = x->received_at ? x->received_at : x->decided_at; /* refused before all of it came */
    x->state = STATE_SENDING;
    http_phase(x->http, x->connection, HTTP_PHASE_ANSWER);
    struct MHD_Response *response = is_streamed(x) ? stream_response(x) : light_response(x);
    enum MHD_Result sent = MHD_NO;
    if (response && add_headers(x, response) && add_retry(x, response))
        sent = MHD_queue_response(x->mhd, (unsigned)x->reply->status, response);
    else
        metrics_add(METRICS_REJECTED_MEMORY, 1);
    if (response)
        MHD_destroy_response(response);
    return sent;
}

static enum MHD_Result send_refusal(struct exchange *x, int status, const char *detail)
{
    refuse(x, status, detail);
    return send_reply(x);
}

/* ---- Answering ------------------------------------------------------------------------------------------------- */

static struct api_reply *answer(const struct exchange *x, uint64_t *ns)
{
    uint64_t begun_at = clock_now();
    struct api_reply *reply = api_answer(x->http->host, &x->call);
    *ns = clock_now() - begun_at;
    return reply;
}

static struct exchange *exchange_of(struct job *job)
{
    return (struct exchange *)(void *)((char *)job - offsetof(struct exchange, job));
}

static void answer_work(struct job *job) /* worker */
{
    struct exchange *x = exchange_of(job);
    if (!is_gone(x))
        x->made = answer(x, &x->made_ns);
}

static void answer_done(struct job *job)
{
    struct exchange *x = exchange_of(job);
    x->reply = x->made;
    x->answer_ns = x->made_ns;
    x->queue_ns = job->queue_ns;
    x->state = STATE_DECIDED;
    resume(x); /* exchange_receive is called again; it does nothing if the client has left meanwhile */
    drop(x);
}

static enum MHD_Result answer_by_worker(struct exchange *x)
{
    if (x->http->is_stopping)
        return MHD_NO;
    if (queue_is_full(x)) {
        refuse_queue(x);
        return send_reply(x);
    }
    x->state = STATE_WORKING;
    x->n_owners++;
    x->job = (struct job){.work = answer_work, .done = answer_done, .is_first = true};
    suspend(x);
    jobs_submit(x->http->jobs, &x->job);
    return MHD_YES;
}

/* ---- Refusals past the daemon ---------------------------------------------------------------------------------- */

enum { RAW_BODY_MAX = 4096 };

/* The daemon takes no response before a request is complete, and closes a slow connection without a word. As nothing
 * has been sent on the connection since its last answer ended, a refusal can be written to its socket; it is then
 * closed. */
static void send_raw(int fd, const char *id, const struct api_reply *reply)
{
    _Alignas(64) char body[RAW_BODY_MAX];
    char head[512];
    size_t n_body = 0;
    if (reply->n_pieces == 1 && reply->piece_max <= sizeof body)
        n_body = api_reply_piece(reply, 0, body);
    int n_head =
        snprintf(head, sizeof head,
                 "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
                 "X-Request-Id: %s\r\nConnection: close\r\n\r\n",
                 reply->status, MHD_get_reason_phrase_for((unsigned)reply->status), reply->content_type, n_body, id);
    send(fd, head, (size_t)n_head, MSG_DONTWAIT | MSG_NOSIGNAL | MSG_MORE);
    send(fd, body, n_body, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void exchange_refuse_slow(struct exchange *x, struct http_connection *connection)
{
    if (x && (x->state > STATE_BODY || x->raw_status))
        return;
    char id[17];
    make_id(connection->http, id);
    struct api_reply *reply =
        api_refusal(408, "the request took too long to arrive (--header-timeout, --connection-timeout)");
    send_raw(connection->fd, x ? x->id : id, reply);
    if (x)
        x->raw_status = reply->status;
    api_reply_free(reply);
    metrics_add(METRICS_REJECTED_TIMEOUT, 1);
}

/* ---- Receiving ------------------------------------------------------------------------------------------------- */

static enum MHD_Result take_header(void *self, enum MHD_ValueKind kind, const char *name, const char *value)
{
    (void)kind;
    http_head_take(self, name, value);
    return MHD_YES;
}

static const char *copy(char **at, const char *text)
{
    if (!text)
        return NULL;
    size_t n = strlen(text) + 1;
    char *kept = memcpy(*at, text, n);
    *at += n;
    return kept;
}

/* The daemon's strings die with its connection; a worker may still hold the call then. */
static bool keep_call(struct exchange *x, const char *method)
{
    const char *kept[] = {method, x->head.first[HTTP_CONTENT_TYPE], x->head.first[HTTP_CONTENT_ENCODING],
                          x->head.first[HTTP_ACCEPT]};
    size_t n = 0;
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        n += kept[i] ? strlen(kept[i]) + 1 : 0;
    char *at = x->strings = malloc(n);
    if (!at)
        return false;
    x->call.method = copy(&at, kept[0]);
    x->call.content_type = copy(&at, kept[1]);
    x->call.content_encoding = copy(&at, kept[2]);
    x->call.accept = copy(&at, kept[3]);
    return true;
}

static void take_names(struct exchange *x)
{
    const char *id = x->head.first[HTTP_REQUEST_ID], *trace = x->head.first[HTTP_TRACEPARENT];
    if (id && http_id_is_valid(id))
        snprintf(x->id, sizeof x->id, "%s", id);
    if (trace && http_traceparent_is_valid(trace))
        snprintf(x->traceparent, sizeof x->traceparent, "%s", trace);
}

/* Everything that can be refused before the body is: form of the head, then what the language says, then room. */
static enum MHD_Result check_head(struct exchange *x)
{
    struct http_refusal refusal = x->target_refusal.status ? x->target_refusal : http_head_check(&x->head);
    if (refusal.status) {
        metrics_add(METRICS_REJECTED_HEAD, 1);
        return send_refusal(x, refusal.status, refusal.detail);
    }
    uint64_t n_declared = http_head_length(&x->head);
    x->reply = api_refuse_early(x->http->host, &x->call, n_declared);
    if (x->reply)
        return send_reply(x);
    if (n_declared != UINT64_MAX && n_declared > INLINE_BODY_MAX && queue_is_full(x)) {
        refuse_queue(x);
        return send_reply(x);
    }
    if (n_declared != UINT64_MAX && !body_reserve(&x->body, (size_t)n_declared)) {
        metrics_add(METRICS_REJECTED_MEMORY, 1);
        return send_refusal(x, 503, "no memory for a body of this size now; try again later");
    }
    return MHD_YES;
}

static enum MHD_Result receive_head(struct exchange *x, const char *method, const char *version)
{
    if (x->http->is_stopping)
        return MHD_NO;
    x->head.version = version;
    MHD_get_connection_values(x->mhd, MHD_HEADER_KIND, take_header, &x->head);
    if (!keep_call(x, method))
        return MHD_NO;
    take_names(x);
    x->target_refusal = http_target_split(x->target, &x->call.path, &x->call.query);
    x->state = STATE_BODY;
    http_phase(x->http, x->connection, HTTP_PHASE_BODY);
    return check_head(x);
}

/* 0.9.75 takes no response while a body arrives. So a chunked body that passes the limit is read on and dropped for a
 * while, and refused at its end; one that does not end even then is refused past the daemon. Short of memory it is the
 * same. */
static enum MHD_Result receive_body(struct exchange *x, const char *bytes, size_t n)
{
    uint64_t n_max = x->http->host->max_body;
    http_phase(x->http, x->connection, HTTP_PHASE_BODY);
    metrics_add(METRICS_RECEIVED_BYTES, (int64_t)n);
    if (!x->reply && (n > n_max || x->body.n_bytes > n_max - n)) {
        x->reply = api_refuse_early(x->http->host, &x->call, x->body.n_bytes + n);
        if (!x->reply)
            refuse(x, 413, "the body is larger than --max-body");
    } else if (!x->reply && !body_add(&x->body, bytes, n, n_max)) {
        metrics_add(METRICS_REJECTED_MEMORY, 1);
        refuse(x, 503, "no memory for a body of this size now; try again later");
    }
    if (!x->reply)
        return MHD_YES;
    body_drop(&x->body);
    x->n_dropped += n;
    if (x->n_dropped <= DRAIN_BODY_MAX)
        return MHD_YES;
    send_raw(x->connection->fd, x->id, x->reply);
    x->raw_status = x->reply->status;
    return MHD_NO;
}

static enum MHD_Result receive_end(struct exchange *x)
{
    x->received_at = clock_now();
    http_phase(x->http, x->connection, HTTP_PHASE_ANSWER);
    if (x->reply)
        return send_reply(x);
    x->call.body = x->body.n_bytes ? x->body.bytes : NULL;
    x->call.body_bytes = x->body.n_bytes;
    if (x->body.n_bytes > INLINE_BODY_MAX)
        return answer_by_worker(x);
    x->reply = answer(x, &x->answer_ns);
    return send_reply(x);
}

/* The daemon calls this once with the head, then for each part of the body, then with none; and again after a resume.
 */
enum MHD_Result exchange_receive(void *self, struct MHD_Connection *mhd, const char *url, const char *method,
                                 const char *version, const char *upload, size_t *n_upload, void **request)
{
    struct exchange *x = *request;
    (void)self, (void)mhd, (void)url;
    if (!x || is_gone(x))
        return MHD_NO;
    size_t n = *n_upload;
    switch (x->state) {
    case STATE_HEAD: return receive_head(x, method, version);
    case STATE_BODY: *n_upload = 0; return n ? receive_body(x, upload, n) : receive_end(x);
    case STATE_DECIDED: return send_reply(x);
    case STATE_WORKING:
    case STATE_SENDING: break;
    }
    return MHD_YES;
}

/* ---- The end --------------------------------------------------------------------------------------------------- */

enum { STATUS_CLIENT_LEFT = 499 }; /* in log and metrics only; the number other servers use for it */

/* A head the daemon could not read was answered by itself, nearly always with 400; it does not tell. */
static int final_status(const struct exchange *x, bool is_complete)
{
    if (x->raw_status)
        return x->raw_status;
    if (x->state == STATE_SENDING)
        return x->reply->status;
    return x->state == STATE_HEAD && is_complete ? 400 : STATUS_CLIENT_LEFT;
}

static void log_request(const struct exchange *x, int status, bool is_cancelled, const struct metrics_request *figures)
{
    uint64_t now = clock_now(), received_at = x->received_at ? x->received_at : now;
    const struct log_field fields[] = {
        LOG_TEXT("id", x->id),
        LOG_TEXT("method", x->call.method ? x->call.method : "?"),
        LOG_TEXT("path", x->call.path ? x->call.path : x->target),
        LOG_TEXT("scheme", figures->scheme),
        LOG_COUNT("status", (uint64_t)status),
        LOG_COUNT("bytes", x->n_sent),
        LOG_MS("receive_ms", clock_to_ms(received_at - x->begun_at)),
        LOG_MS("queue_ms", clock_to_ms(figures->queue_ns)),
        LOG_MS("compute_ms", clock_to_ms(figures->work_ns)),
        LOG_MS("send_ms", x->decided_at ? clock_to_ms(now - x->decided_at) : 0),
        LOG_MS("total_ms", clock_to_ms(figures->total_ns)),
        LOG_TEXT("traceparent", x->traceparent),
        LOG_FLAG("cancelled", is_cancelled),
    };
    log_line(LOG_INFO, "request", fields, sizeof fields / sizeof *fields);
}

static void report(struct exchange *x, bool is_complete)
{
    bool is_unfinished = x->stream && !stream_at_end(x->stream);
    bool is_cancelled = !x->raw_status && (is_gone(x) || is_unfinished || !is_complete);
    struct metrics_request figures = {
        .route = x->reply && x->reply->route ? x->reply->route : "",
        .scheme = x->reply && x->reply->scheme ? x->reply->scheme : "",
        .format = x->reply && x->reply->format ? x->reply->format : "",
        .status = final_status(x, is_complete),
        .total_ns = clock_now() - x->begun_at,
        .queue_ns = x->queue_ns + (x->stream ? stream_queue_ns(x->stream) : 0),
        .work_ns = x->answer_ns + x->pieces_ns + (x->stream ? stream_work_ns(x->stream) : 0),
        .n_bytes = x->n_sent,
    };
    log_request(x, figures.status, is_cancelled, &figures);
    metrics_request(&figures);
    metrics_add(METRICS_SENT_BYTES, (int64_t)x->n_sent);
    metrics_add(METRICS_CANCELLED, is_cancelled);
    metrics_add(METRICS_STREAMS, x->is_counted_stream ? -1 : 0);
    metrics_add(METRICS_IN_FLIGHT, -1);
}

void exchange_end(void *self, struct MHD_Connection *mhd, void **request, enum MHD_RequestTerminationCode code)
{
    struct http *http = self;
    struct exchange *x = *request;
    (void)mhd;
    *request = NULL;
    if (!x)
        return;
    report(x, code == MHD_REQUEST_TERMINATED_COMPLETED_OK);
    atomic_store_explicit(&x->is_gone, true, memory_order_relaxed);
    assert(!x->is_suspended);
    x->connection->exchange = NULL;
    http_phase(http, x->connection, HTTP_PHASE_IDLE);
    x->connection = NULL;
    if (x->stream && !stream_cancel(x->stream))
        x->n_owners++; /* until stream_idle */
    drop(x);
}
