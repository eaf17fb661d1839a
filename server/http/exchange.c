/* Owns one request from its first line to its log line: receives the head and the body. answer.c has it answered,
 * reply.c sends the answer.
 *
 * An exchange has several owners: the daemon until exchange_end, a worker that answers it, its stream while a piece is
 * at work. It is freed when the last lets go, which may be after its connection has been closed and used again. */
#include "server/http/exchange.h"

#include "server/memory/admission.h"
#include "server/clock.h"
#include "server/memory/disposal.h"
#include "server/metrics.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SPARE_EXCHANGES_MAX = 256,       /* half a megabyte */
    LARGE_REPLY_BYTES = 1024 * 1024, /* from here on somebody else frees a reply */
    DRAIN_BODY_MAX = 8 * 1024 * 1024 /* of a chunked body over the limit, read and dropped so that its 413 arrives */
};

bool exchange_is_suspended(const struct exchange *x) { return x->is_suspended; }

bool exchange_is_sending(const struct exchange *x) { return x->state == EXCHANGE_SENDING; }

uint64_t exchange_received(const struct exchange *x) { return x->body.n_bytes + x->n_dropped; }

/* ---- Lifetime -------------------------------------------------------------------------------------------------- */

/* An exchange is larger than what malloc keeps at hand for a thread, so the last few are kept here: made and freed with
 * every request, they were a tenth of the time that was ours. */
static struct exchange *exchange_new(struct http *http)
{
    struct exchange *x = http->spare_exchanges;
    if (!x)
        return calloc(1, sizeof *x);
    http->spare_exchanges = x->next_spare;
    http->n_spare_exchanges--;
    memset(x, 0, offsetof(struct exchange, room));
    return x;
}

static void exchange_free(struct http *http, struct exchange *x)
{
    if (http->n_spare_exchanges == SPARE_EXCHANGES_MAX) {
        free(x);
        return;
    }
    x->next_spare = http->spare_exchanges;
    http->spare_exchanges = x;
    http->n_spare_exchanges++;
}

void exchange_free_spare(struct http *http)
{
    for (struct exchange *x = http->spare_exchanges, *next; x; x = next) {
        next = x->next_spare;
        free(x);
    }
    http->spare_exchanges = NULL;
}

/* A copy in the exchange's own room as long as there is some, else on the heap. */
char *exchange_room(struct exchange *x, size_t n)
{
    if (n > sizeof x->room - x->n_room)
        return malloc(n);
    char *place = x->room + x->n_room;
    x->n_room += n;
    return place;
}

static void free_room(const struct exchange *x, char *place)
{
    if (place < x->room || place >= x->room + sizeof x->room)
        free(place);
}

/* Sixteen hexadecimal digits that no other request of this process has, nor likely one of another: a mixed counter. */
void exchange_make_id(struct http *http, char *id)
{
    uint64_t z = http->id_seed + 0x9e3779b97f4a7c15u * ++http->n_ids;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    for (int i = 15; i >= 0; i--, z >>= 4) /* printf takes half a microsecond for it */
        id[i] = "0123456789abcdef"[z & 15];
    id[16] = '\0';
}

void *exchange_begin(void *self, const char *uri, struct MHD_Connection *mhd)
{
    struct http *http = self;
    struct http_connection *connection =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
    size_t n_target = strlen(uri) + 1;
    struct exchange *x = connection ? exchange_new(http) : NULL;
    if (x)
        x->target = exchange_room(x, n_target);
    if (!x || !x->target) {
        metrics_add(METRICS_REJECTED_MEMORY, 1);
        free(x);
        return NULL; /* exchange_receive closes the connection */
    }
    memcpy(x->target, uri, n_target);
    x->http = http;
    x->connection = connection;
    x->mhd = mhd;
    x->n_owners = 1;
    x->begun_at = clock_now();
    exchange_make_id(http, x->id);
    connection->exchange = x;
    http_phase(http, connection, HTTP_PHASE_HEAD);
    metrics_add(METRICS_IN_FLIGHT, 1);
    return x;
}

/* What an exchange leaves behind. Body and copy of the call go last, since replies borrow from them. */
struct remains {
    struct api_reply *replies[3];
    struct call_copy *copy;
    struct body body;
};

static void bury(struct remains *remains)
{
    for (size_t i = 0; i < 3; i++)
        api_reply_free(remains->replies[i]);
    call_copy_drop(remains->copy);
    body_drop(&remains->body);
}

static void bury_later(void *object)
{
    bury(object);
    free(object);
}

static bool is_large(const struct api_reply *reply) { return reply && reply->memory > LARGE_REPLY_BYTES; }

static void drop_remains(struct exchange *x)
{
    struct remains remains = {{x->reply, x->given_up, x->late_reply}, x->seat.copy, x->body}, *later = NULL;
    if (is_large(x->reply) || is_large(x->given_up) || is_large(x->late_reply) || body_is_large(&x->body))
        later = malloc(sizeof *later);
    if (later) {
        *later = remains;
        disposal_later(bury_later, later);
    } else {
        bury(&remains);
    }
}

void exchange_drop(struct exchange *x)
{
    if (--x->n_owners > 0)
        return;
    stream_free(x->stream);
    stream_free(x->late_stream);
    drop_remains(x);
    admission_give(x->n_stream_taken);
    free_room(x, x->strings);
    free_room(x, x->target);
    exchange_free(x->http, x);
}

void exchange_suspend(struct exchange *x)
{
    assert(!x->is_suspended);
    x->is_suspended = true;
    http_suspend(x->http, x->mhd);
}

/* 0.9.75: a connection that is suspended in the turn in which its request was read is read from again when it is
 * resumed, and closed if its client has closed its sending side. Left to wait for a turn it is known to read nothing.
 */
bool exchange_settle(struct exchange *x)
{
    bool was_settled = x->is_settled;
    x->is_settled = true;
    return was_settled;
}

void exchange_resume(struct exchange *x)
{
    if (!x->is_suspended)
        return;
    x->is_suspended = false;
    chunks_stop(x);
    turns_leave(x);
    http_resume(x->connection, x->mhd);
}

bool exchange_is_gone(const struct exchange *x) { return atomic_load_explicit(&x->is_gone, memory_order_relaxed); }

/* ---- Receiving ------------------------------------------------------------------------------------------------- */

static enum MHD_Result take_header(void *self, enum MHD_ValueKind kind, const char *name, const char *value)
{
    (void)kind;
    http_head_take(self, name, value);
    return MHD_YES;
}

static void take_names(struct exchange *x)
{
    const char *id = x->head.first[HTTP_REQUEST_ID], *trace = x->head.first[HTTP_TRACEPARENT];
    if (id && http_id_is_valid(id))
        snprintf(x->id, sizeof x->id, "%s", id);
    if (trace && http_traceparent_is_valid(trace))
        snprintf(x->traceparent, sizeof x->traceparent, "%s", trace);
}

static bool take_timeout(struct exchange *x)
{
    const char *timeout = x->head.first[HTTP_REQUEST_TIMEOUT];
    return !timeout || (x->head.n[HTTP_REQUEST_TIMEOUT] == 1 && http_timeout_parse(timeout, &x->timeout_us));
}

/* Of a head that is too long, what was sent: its cost up to where it was refused, as nobody waits for its end. */
static enum MHD_Result send_head_refusal(struct exchange *x, const struct http_refusal *refusal)
{
    char detail[512];
    const struct http_guard *guard = &x->connection->guard;
    size_t cost = !x->must_close ? 0 : guard->head.cost ? guard->head.cost : guard->chunks.cost;
    metrics_add(METRICS_REJECTED_HEAD, 1);
    if (!cost)
        return exchange_send_refusal(x, refusal->status, refusal->detail);
    snprintf(detail, sizeof detail, "%s; what has come of this one costs %zu", refusal->detail, cost);
    return exchange_send_refusal(x, refusal->status, detail);
}

/* Everything that can be refused before the body is: form of the head, then what the language says, then room. */
static enum MHD_Result check_head(struct exchange *x)
{
    struct http_refusal refusal = x->target_refusal.status ? x->target_refusal : http_head_check(&x->head);
    if (!refusal.status && !take_timeout(x))
        refusal = (struct http_refusal){
            400, "X-Request-Timeout is not one number of seconds; allowed: above 0 and up to 1000000, as 2.5"};
    if (refusal.status)
        return send_head_refusal(x, &refusal);
    uint64_t n_declared = http_head_length(&x->head);
    x->reply = api_refuse_early(x->http->host, &x->call, n_declared);
    if (x->reply || !exchange_admit(x))
        return exchange_send(x);
    if (n_declared != UINT64_MAX && n_declared > EXCHANGE_INLINE_BODY_MAX && exchange_queue_is_full(x)) {
        exchange_refuse_queue(x);
        return exchange_send(x);
    }
    if (n_declared == UINT64_MAX || body_reserve(&x->body, (size_t)n_declared))
        return MHD_YES;
    exchange_refuse_memory(x, "the body", n_declared);
    return exchange_send(x);
}

/* The guard has refused what the client sent, in a head or a body; see guard.h. */
static void refuse_frame(struct exchange *x)
{
    x->target_refusal = x->connection->guard.refusal;
    x->must_close = true;
}

static enum MHD_Result receive_head(struct exchange *x, const char *method, const char *version)
{
    if (x->http->is_stopping)
        return MHD_NO;
    x->head.version = version;
    MHD_get_connection_values(x->mhd, MHD_HEADER_KIND, take_header, &x->head);
    if (!exchange_keep_call(x, method))
        return MHD_NO;
    take_names(x);
    bool is_refused = strcmp(x->target, HTTP_GUARD_TARGET) == 0;
    exchange_authenticate(x);
    x->target_refusal = http_target_split(x->target, &x->call.path, &x->call.query);
    if (is_refused) {
        x->call.path = HTTP_GUARD_TARGET; /* for the log */
        refuse_frame(x);
    }
    x->state = EXCHANGE_BODY;
    http_phase(x->http, x->connection, HTTP_PHASE_BODY);
    return check_head(x);
}

/* 0.9.75 takes no response while a body arrives. So a chunked body that passes the limit is read on and dropped for a
 * while, and refused at its end; one that does not end even then is refused past the daemon. Short of memory it is the
 * same. */
static enum MHD_Result receive_body(struct exchange *x, const char *bytes, size_t n)
{
    uint64_t n_max = x->http->host->max_body;
    http_received(x->connection, n);
    metrics_add(METRICS_RECEIVED_BYTES, (int64_t)n);
    if (!x->reply && (n > n_max || x->body.n_bytes > n_max - n)) {
        x->reply = api_refuse_early(x->http->host, &x->call, x->body.n_bytes + n);
        if (!x->reply)
            exchange_refuse(x, 413, "the body is larger than --max-body");
    } else if (!x->reply && !body_add(&x->body, bytes, n, n_max)) {
        exchange_refuse_memory(x, "the body", x->body.n_bytes + n);
    }
    if (!x->reply)
        return MHD_YES;
    body_drop(&x->body);
    x->n_dropped += n;
    if (x->n_dropped <= DRAIN_BODY_MAX)
        return MHD_YES;
    exchange_send_raw(x->http, x->connection->fd, x->id, x->reply);
    x->raw_status = x->reply->status;
    return MHD_NO;
}

static enum MHD_Result receive_end(struct exchange *x)
{
    x->received_at = clock_now();
    x->deadline = x->timeout_us ? x->received_at + x->timeout_us * 1000 : 0;
    http_phase(x->http, x->connection, HTTP_PHASE_ANSWER);
    if (x->connection->guard.refusal.status && MHD_lookup_connection_value(x->mhd, MHD_FOOTER_KIND, HTTP_GUARD_TRAILER))
        refuse_frame(x);
    if (x->reply)
        return exchange_send(x);
    if (x->must_close)
        return check_head(x);
    x->call.body = x->body.n_bytes ? x->body.bytes : NULL;
    x->call.body_bytes = x->body.n_bytes;
    x->call.body_is_ours = true;
    return exchange_answer(x);
}

/* The daemon calls this once with the head, then for each part of the body, then with none; and again after a resume.
 */
enum MHD_Result exchange_receive(void *self, struct MHD_Connection *mhd, const char *url, const char *method,
                                 const char *version, const char *upload, size_t *n_upload, void **request)
{
    struct exchange *x = *request;
    (void)self, (void)mhd, (void)url;
    if (!x || exchange_is_gone(x))
        return MHD_NO;
    size_t n = *n_upload;
    switch (x->state) {
    case EXCHANGE_HEAD: return receive_head(x, method, version);
    case EXCHANGE_BODY: *n_upload = 0; return n ? receive_body(x, upload, n) : receive_end(x);
    case EXCHANGE_HANDED: return exchange_answer_by_worker(x);
    case EXCHANGE_DECIDED:
    case EXCHANGE_OPENING: return exchange_send(x);
    case EXCHANGE_WORKING:
    case EXCHANGE_SENDING: break;
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
    if (x->state == EXCHANGE_SENDING)
        return x->reply->status;
    return x->state == EXCHANGE_HEAD && is_complete ? 400 : STATUS_CLIENT_LEFT;
}

static void log_request(const struct exchange *x, int status, bool is_cancelled, const struct metrics_request *figures)
{
    uint64_t now = x->begun_at + figures->total_ns, received_at = x->received_at ? x->received_at : now;
    const struct log_field fields[] = {
        LOG_TEXT("id", x->id),
        LOG_TEXT("method", x->call.method ? x->call.method : "?"),
        LOG_TEXT("path", x->call.path ? x->call.path : x->target),
        LOG_TEXT("scheme", figures->scheme),
        LOG_TEXT("token", x->account ? account_name(x->account) : ""),
        LOG_COUNT("status", (uint64_t)status),
        LOG_COUNT("bytes", x->n_sent),
        LOG_MS("receive_ms", received_at - x->begun_at),
        LOG_MS("queue_ms", figures->queue_ns),
        LOG_MS("compute_ms", figures->work_ns),
        LOG_MS("send_ms", x->decided_at ? now - x->decided_at : 0),
        LOG_MS("total_ms", figures->total_ns),
        LOG_TEXT("traceparent", x->traceparent),
        LOG_FLAG("cancelled", is_cancelled),
    };
    log_line(LOG_INFO, "request", fields, sizeof fields / sizeof *fields);
}

static enum metrics_id cancelled_id(const struct exchange *x)
{
    if (atomic_load_explicit(&x->is_late, memory_order_relaxed))
        return METRICS_CANCELLED_LATE;
    if (x->is_slow)
        return METRICS_CANCELLED_SLOW;
    if (x->state == EXCHANGE_SENDING)
        return METRICS_CANCELLED_SENDING;
    return x->state <= EXCHANGE_BODY ? METRICS_CANCELLED_RECEIVING : METRICS_CANCELLED_WAITING;
}

static void report(struct exchange *x, bool is_complete)
{
    bool is_unfinished = x->stream && !stream_is_stale(x->stream) && !stream_at_end(x->stream);
    bool is_cancelled = !x->raw_status && (exchange_is_gone(x) || is_unfinished || !is_complete ||
                                           atomic_load_explicit(&x->is_late, memory_order_relaxed));
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
    exchange_charge(x, figures.work_ns);
    metrics_add(METRICS_SENT_BYTES, (int64_t)x->n_sent);
    if (is_cancelled)
        metrics_add(cancelled_id(x), 1);
    metrics_add(METRICS_NOT_MODIFIED, figures.status == 304);
    metrics_add(METRICS_REJECTED_LIMIT, figures.status == 413);
    metrics_add(METRICS_REJECTED_TOKEN, figures.status == 401 || figures.status == 403);
    metrics_add(METRICS_STREAMS, x->is_counted_stream ? -1 : 0);
    x->http->n_streams -= x->is_counted_stream;
    if (x->is_counted_stream)
        admission_end_stream();
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
    exchange_drop(x);
}
