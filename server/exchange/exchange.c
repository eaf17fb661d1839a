/* Owns the life of one request, from its first line to its log line: receive.c reads it, answer.c computes the answer,
 * send.c sends it.
 *
 * The problem is ownership. An exchange has several owners: the daemon until exchange_end, a worker that answers it,
 * and its stream while a piece is being computed. Any of them may be last: a client disconnects while a worker
 * computes, or a worker ends while the socket is full. So owners are counted, and the last one frees it, possibly after
 * its connection has been closed and its descriptor belongs to another client. All counting happens on the loop's
 * thread; a worker's share is returned by a call to the loop.
 *
 * Exchanges and calls of small requests are kept and used again, since allocating them took a tenth of the time of such
 * a request. */
#include "server/exchange/exchange.h"

#include "server/memory/memory.h"
#include "server/loop/loop.h"
#include "server/process/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SPARE_EXCHANGES_MAX = 256,      /* half a megabyte in all */
    LARGE_REPLY_BYTES = 1024 * 1024 /* a reply from this size on is freed by the disposal thread */
};

/* ---- The requests of one loop ---------------------------------------------------------------------------------- */

struct exchanges *exchanges_new(const struct options *options, const struct api_host *host, struct loop *loop,
                                struct answers *answers)
{
    struct exchanges *all = calloc(1, sizeof *all);
    if (!all)
        return NULL;
    *all = (struct exchanges){.options = options, .host = host, .loop = loop, .answers = answers};
    TAILQ_INIT(&all->line);
    all->pool = pool_new(options->buffer_memory / options->io_threads);
    if (all->pool)
        return all;
    free(all);
    return NULL;
}

void exchanges_free(struct exchanges *all)
{
    if (!all)
        return;
    for (struct exchange *x = all->spare, *next; x; x = next) {
        next = x->next_spare;
        free(x);
    }
    calls_free(&all->spare_calls);
    pool_free(all->pool);
    free(all);
}

/* ---- Lifetime -------------------------------------------------------------------------------------------------- */

/* An exchange is larger than the blocks that malloc caches per thread, so the last few are kept here: allocating and
 * freeing one with every request took a tenth of our own time. */
static struct exchange *exchange_new(struct exchanges *all)
{
    struct exchange *x = all->spare;
    if (!x)
        return calloc(1, sizeof *x);
    all->spare = x->next_spare;
    all->n_spare--;
    memset(x, 0, sizeof *x);
    return x;
}

static void exchange_free(struct exchanges *all, struct exchange *x)
{
    if (all->n_spare == SPARE_EXCHANGES_MAX) {
        free(x);
        return;
    }
    x->next_spare = all->spare;
    all->spare = x;
    all->n_spare++;
}

void *exchange_begin(void *exchanges, struct http_connection *connection, const char *target, const char *id)
{
    struct exchanges *all = exchanges;
    size_t n_target = strlen(target) + 1;
    struct exchange *x = exchange_new(all);
    struct call *call = x ? call_new(&all->spare_calls) : NULL;
    if (call)
        call->target = call_room(call, n_target);
    if (!call || !call->target) {
        metrics_add(METRICS_REJECTED_MEMORY, 1);
        call_drop(call, NULL);
        free(x);
        return NULL; /* the daemon closes the connection */
    }
    memcpy(call->target, target, n_target);
    x->call = call;
    x->all = all;
    x->connection = connection;
    x->n_owners = 1;
    x->timing.begun_at = clock_now();
    memcpy(x->id, id, strlen(id) + 1);
    metrics_add(METRICS_IN_FLIGHT, 1);
    return x;
}

/* The objects to free after an exchange. The calls are dropped last, since replies borrow from them. */
struct remains {
    struct api_reply *replies[2];
    struct api_request *request;
    struct call *calls[2];
};

static void free_remains(struct remains *remains, struct calls *spare)
{
    for (size_t i = 0; i < 2; i++)
        api_reply_free(remains->replies[i]);
    api_request_free(remains->request);
    for (size_t i = 0; i < 2; i++)
        call_drop(remains->calls[i], spare);
}

static void free_on_disposal(void *object) /* its thread */
{
    free_remains(object, NULL);
    free(object);
}

static bool is_large(const struct api_reply *reply) { return reply && reply->memory > LARGE_REPLY_BYTES; }

void exchange_drop(struct exchange *x)
{
    if (--x->n_owners > 0)
        return;
    stream_free(x->stream);
    stream_free(x->answering.replaced_stream);
    if (x->sending.held) {
        admission_let_go(x->client, x->sending.held);
        shares_give_object(SHARE_PICTURES, x->client, x->sending.held);
    }
    const struct exchange_answering *answering = &x->answering;
    struct remains remains = {
        .replies = {x->reply, answering->replaced},
        .request = answering->request,
        .calls = {x->call, answering->part.call},
    };
    struct remains *later = NULL;
    if (is_large(x->reply) || is_large(answering->replaced) || body_is_large(&x->call->body))
        later = malloc(sizeof *later);
    if (later) {
        *later = remains;
        disposal_later(free_on_disposal, later);
    } else {
        free_remains(&remains, &x->all->spare_calls);
    }
    admission_give_for(x->client, x->sending.n_stream_taken);
    exchange_free(x->all, x);
}

/* ---- The end --------------------------------------------------------------------------------------------------- */

enum { STATUS_CLIENT_LEFT = 499 }; /* used in log and metrics only; other servers use the same number */

/* A head that the daemon could not read was answered by the daemon itself, nearly always with 400; it does not report
 * the status. */
static int final_status(const struct exchange *x)
{
    if (exchange_reason(x) == EXCHANGE_REFUSED)
        return x->receiving.raw_status;
    if (x->state == EXCHANGE_SENDING)
        return x->reply->status;
    return x->state == EXCHANGE_HEAD && exchange_reason(x) == EXCHANGE_SENT ? 400 : STATUS_CLIENT_LEFT;
}

/* The figure that counts its cancellation; METRICS_N_IDS: it was not cancelled. */
static enum metrics_id cancelled_id(const struct exchange *x)
{
    switch (exchange_reason(x)) {
    case EXCHANGE_LATE:
    case EXCHANGE_CUT: return METRICS_CANCELLED_LATE;
    case EXCHANGE_SLOW: return METRICS_CANCELLED_SLOW;
    case EXCHANGE_LEFT:
        return x->state == EXCHANGE_SENDING ? METRICS_CANCELLED_SENDING
               : x->state <= EXCHANGE_BODY  ? METRICS_CANCELLED_RECEIVING
                                            : METRICS_CANCELLED_WAITING;
    case EXCHANGE_GOES_ON:
    case EXCHANGE_REFUSED:
    case EXCHANGE_SENT: break;
    }
    return METRICS_N_IDS;
}

static void log_request(const struct exchange *x, int status, bool is_cancelled, const struct metrics_request *figures)
{
    if (!log_is_heard(LOG_INFO))
        return;
    const struct exchange_timing *timing = &x->timing;
    uint64_t now = timing->begun_at + figures->total_ns;
    uint64_t received_at = timing->received_at ? timing->received_at : now;
    char client[ADDRESS_TEXT_BYTES] = "", message[128] = "";
    const char *path = x->call->api.path ? x->call->api.path : x->call->target;
    if (x->reply && x->reply->method) {
        snprintf(message, sizeof message, "%s %s%s%s", path, x->reply->method, x->reply->tool ? " " : "",
                 x->reply->tool ? x->reply->tool : "");
        path = message;
    }
    if (x->has_origin)
        address_print(&x->origin, client);
    const struct log_field fields[] = {
        LOG_TEXT("id", x->id),
        LOG_TEXT("method", x->call->api.method ? x->call->api.method : "?"),
        LOG_TEXT("path", path),
        LOG_TEXT("scheme", figures->scheme),
        LOG_TEXT("client", client),
        LOG_TEXT("token", x->account ? account_name(x->account) : ""),
        LOG_COUNT("status", (uint64_t)status),
        LOG_COUNT("bytes", x->sending.n_sent),
        LOG_MS("receive_ms", received_at - timing->begun_at),
        LOG_MS("queue_ms", figures->queue_ns),
        LOG_MS("compute_ms", figures->work_ns),
        LOG_MS("send_ms", timing->decided_at ? now - timing->decided_at : 0),
        LOG_MS("total_ms", figures->total_ns),
        LOG_TEXT("traceparent", x->traceparent),
        LOG_FLAG("cancelled", is_cancelled),
    };
    log_line(LOG_INFO, "request", fields, sizeof fields / sizeof *fields);
}

static void report(struct exchange *x)
{
    const struct exchange_timing *timing = &x->timing;
    const struct exchange_sending *sending = &x->sending;
    enum metrics_id cancelled = cancelled_id(x);
    struct metrics_request figures = {
        .route = x->reply && x->reply->route ? x->reply->route : "",
        .scheme = x->reply && x->reply->scheme ? x->reply->scheme : "",
        .format = x->reply && x->reply->format ? x->reply->format : "",
        .status = final_status(x),
        .total_ns = clock_now() - timing->begun_at,
        .queue_ns = timing->queue_ns + (x->stream ? stream_queue_ns(x->stream) : 0),
        .work_ns = timing->answer_ns + timing->pieces_ns + (x->stream ? stream_work_ns(x->stream) : 0),
        .n_bytes = sending->n_sent,
    };
    log_request(x, figures.status, cancelled != METRICS_N_IDS, &figures);
    metrics_request(&figures);
    exchange_end_stream(x);
    metrics_add(METRICS_SENT_BYTES, (int64_t)sending->n_sent);
    if (cancelled != METRICS_N_IDS)
        metrics_add(cancelled, 1);
    metrics_add(METRICS_NOT_MODIFIED, figures.status == 304);
    metrics_add(METRICS_REJECTED_LIMIT, figures.status == 413);
    metrics_add(METRICS_REJECTED_TOKEN, figures.status == 401 || figures.status == 403);
    metrics_add(METRICS_STREAMS, sending->is_counted_stream ? -1 : 0);
    x->all->n_streams -= sending->is_counted_stream;
    if (sending->is_counted_stream)
        admission_end_stream(x->client);
    metrics_add(METRICS_IN_FLIGHT, -1);
}

void exchange_end(void *exchange, bool is_complete)
{
    struct exchange *x = exchange;
    bool has_rest = x->stream && !x->sending.n_whole && !stream_is_stale(x->stream) && !stream_at_end(x->stream);
    x->sending.n_sent += is_complete ? x->sending.n_whole : 0;
    x->connection = NULL;
    exchange_finish(x, is_complete && !has_rest ? EXCHANGE_SENT : EXCHANGE_LEFT);
    report(x);
    if (x->stream && !stream_cancel(x->stream))
        x->n_owners++; /* until stream_idle */
    exchange_drop(x);
}
