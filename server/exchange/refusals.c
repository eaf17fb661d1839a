/* Owns the refusals of the server itself and their texts: in place of a reply, or written to the socket if the daemon
 * can no longer send them. */
#include "server/exchange/exchange.h"

#include "server/memory/admission.h"
#include "server/process/metrics.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>

enum { DETAIL_BYTES = 256 };

bool exchange_is_passing(int status) { return status == 503 || status == 429; }

void exchange_refuse_with(struct exchange *x, struct api_reply *refusal)
{
    if (x->answering.given_up)
        api_reply_free(x->reply); /* a refusal too */
    else
        x->answering.given_up = x->reply;
    x->reply = refusal;
    x->answering.is_kept = false;
}

void exchange_refuse(struct exchange *x, int status, const char *detail)
{
    exchange_refuse_with(x, api_refuse(x->http->host, &x->call, status, detail));
}

/* Counts it, and states why the same request may be served later. */
static void refuse_now(struct exchange *x, enum metrics_id id, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void refuse_now(struct exchange *x, enum metrics_id id, const char *format, ...)
{
    char detail[DETAIL_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(detail, sizeof detail, format, arguments);
    va_end(arguments);
    metrics_add(id, 1);
    exchange_refuse(x, 503, detail);
}

void exchange_refuse_queue(struct exchange *x)
{
    refuse_now(x, METRICS_REJECTED_QUEUE,
               "too many requests are waiting to be computed: %llu (the limit --max-queue of this server); try again "
               "later",
               (unsigned long long)x->http->options->max_queue);
}

void exchange_refuse_end(struct exchange *x)
{
    refuse_now(x, METRICS_REJECTED_DRAINING,
               "this server is shutting down and finishes only the answers it has begun; send the request to another "
               "server, or try again later");
}

#define FULL                                                                                                           \
    "%llu connections are open, as many as this server has at a time (the limit --max-connections); try again later"

void exchange_refuse_full(struct exchange *x)
{
    refuse_now(x, METRICS_REJECTED_CONNECTIONS, FULL, (unsigned long long)x->http->options->max_connections);
}

void exchange_refuse_age(struct exchange *x)
{
    refuse_now(x, METRICS_REJECTED_AGE,
               "the request has waited for a worker more than %llu s (the limit --max-queue-age of this server), and "
               "was not computed; try again later",
               (unsigned long long)x->http->options->max_queue_age);
}

static void refuse_admission(struct exchange *x, enum metrics_id id, const struct admission_refusal *refusal)
{
    metrics_add(id, refusal->status != 413); /* a 413 is counted as a limit, wherever it is refused */
    exchange_refuse(x, refusal->status, refusal->detail);
}

void exchange_refuse_memory(struct exchange *x, const char *what, uint64_t n_bytes)
{
    struct admission_refusal refusal = admission_refuse_memory(x->client, what, n_bytes);
    refuse_admission(x, METRICS_REJECTED_MEMORY, &refusal);
}

void exchange_refuse_stream(struct exchange *x)
{
    struct admission_refusal refusal = admission_refuse_stream(x->client);
    refuse_admission(x, METRICS_REJECTED_STREAMS, &refusal);
}

/* The time starts at the last byte of the request: the server is not responsible for how long a client takes to send
 * it. */
void exchange_refuse_late(struct exchange *x)
{
    uint64_t us = (x->timing.deadline - x->timing.received_at) / 1000;
    atomic_store_explicit(&x->ending.is_late, true, memory_order_relaxed);
    refuse_now(x, METRICS_REJECTED_LATE,
               "the answer was not ready within the %llu.%06llu s that the request gives it (header X-Request-Timeout "
               "in seconds, or parameter timeout in microseconds)",
               (unsigned long long)(us / 1000000), (unsigned long long)(us % 1000000));
    x->timing.deadline = 0; /* the refusal itself has the time that any answer has */
}

/* ---- Refusals past the daemon ---------------------------------------------------------------------------------- */

enum { RAW_HEAD_MAX = 4096, RAW_BODY_MAX = 4096 };

/* The daemon accepts no response before a request is complete, and closes a slow connection without an answer. As
 * nothing has been sent on the connection since its last answer ended, a refusal can be written to its socket; then the
 * connection is closed. */
void exchange_send_raw(const struct http *http, int fd, const char *id, const struct api_reply *reply)
{
    if (http->door->tls.cert)
        return;
    _Alignas(64) char body[RAW_BODY_MAX];
    char head[RAW_HEAD_MAX];
    size_t n_body = 0;
    if (reply->body->n_pieces == 1 && reply->body->piece_max <= sizeof body)
        n_body = api_reply_piece(reply, 0, body);
    int n_head = snprintf(head, sizeof head,
                          "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
                          "X-Content-Type-Options: nosniff\r\nX-Request-Id: %s\r\n",
                          reply->status, daemon_reason(reply->status), reply->content_type, n_body, id);
    for (size_t i = 0; i < reply->n_headers; i++)
        n_head += snprintf(head + n_head, sizeof head - (size_t)n_head, "%s: %s\r\n", reply->headers[i].name,
                           reply->headers[i].value); /* of a refusal: a few, each shorter than SAID_AGAIN_MAX */
    n_head += snprintf(head + n_head, sizeof head - (size_t)n_head, "Connection: close\r\n\r\n");
    send(fd, head, (size_t)n_head, MSG_DONTWAIT | MSG_NOSIGNAL | MSG_MORE);
    send(fd, body, n_body, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Counts it first: a client that has received it may ask another loop for the metric. Returns the status. */
static int refuse_raw(const struct http *http, int fd, const char *id, int status, enum metrics_id counted,
                      const char *detail)
{
    struct api_reply *reply = api_refuse(http->host, &(struct api_call){.path = NULL}, status, detail);
    status = reply->status;
    metrics_add(counted, 1);
    exchange_send_raw(http, fd, id, reply);
    api_reply_free(reply);
    return status;
}

void exchange_refuse_silent(struct http *http, int fd, const char *detail)
{
    char id[17];
    exchange_make_id(http, id);
    refuse_raw(http, fd, id, 408, METRICS_REJECTED_TIMEOUT, detail);
}

void http_refuse_connection(struct http *http, int fd)
{
    char detail[DETAIL_BYTES], id[17];
    snprintf(detail, sizeof detail, FULL, (unsigned long long)http->options->max_connections);
    exchange_make_id(http, id);
    refuse_raw(http, fd, id, 503, METRICS_REJECTED_CONNECTIONS, detail);
}

void exchange_refuse_slow(struct exchange *x, struct http_connection *connection, const char *detail)
{
    if (!x)
        exchange_refuse_silent(connection->daemon->http, connection->fd, detail);
    else if (x->state <= EXCHANGE_BODY && !x->receiving.raw_status)
        x->receiving.raw_status = refuse_raw(x->http, connection->fd, x->id, 408, METRICS_REJECTED_TIMEOUT, detail);
}
