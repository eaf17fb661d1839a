/* Owns the receiving of a request: its head, which is checked before the body may come, the body, and its end.
 *
 * Everything that can be refused from the head is refused there: form, route, token, quota, the length against its
 * limit, memory for the body. A client that waits for 100 Continue then sends no byte in vain. The body is received
 * into one buffer that grows with the bytes that have arrived, not with the length that was promised, so a promise
 * costs the server nothing.
 *
 * A refusal in the middle of a body is the hard case: 0.9.75 accepts no response then, and closing a socket with unread
 * bytes resets it, so that the client may never see the reason. The refusal is written past the daemon, and the rest of
 * the body is read and dropped for a while. */
#include "server/exchange/exchange.h"

#include "server/loop/loop.h"
#include "server/process/process.h"

#include <stdio.h>
#include <string.h>

/* Bytes of a refused body that are read and dropped so that the refusal reaches the client. */
enum { DRAIN_BODY_MAX = 8 * 1024 * 1024 };

static void take_header(void *head, const char *name, const char *value) { http_head_take(head, name, value); }

static void take_names(struct exchange *x)
{
    const struct http_head *head = &x->receiving.head;
    const char *id = head->first[HTTP_REQUEST_ID], *trace = head->first[HTTP_TRACEPARENT];
    if (id && http_id_is_valid(id))
        snprintf(x->id, sizeof x->id, "%s", id);
    if (trace && http_traceparent_is_valid(trace))
        snprintf(x->traceparent, sizeof x->traceparent, "%s", trace);
}

static bool take_timeout(struct exchange *x)
{
    const struct http_head *head = &x->receiving.head;
    const char *timeout = head->first[HTTP_REQUEST_TIMEOUT];
    return !timeout || (head->n[HTTP_REQUEST_TIMEOUT] == 1 && http_timeout_parse(timeout, &x->timing.timeout_us));
}

/* If a head is too long, the text states its cost up to the point where it was refused: the server does not wait for
 * its end. */
static bool send_head_refusal(struct exchange *x, const struct http_refusal *refusal)
{
    const struct http_guard *guard = &x->connection->guard;
    size_t cost = !x->receiving.must_close ? 0 : guard->head.cost ? guard->head.cost : guard->chunks.cost;
    api_speak(&x->call->api);
    if (cost)
        exchange_refuse(x, REFUSED_LONG_HEAD(refusal->status), pe_text(refusal->detail), cost);
    else
        exchange_refuse(x, REFUSED_HEAD(refusal->status), pe_text(refusal->detail));
    return exchange_send(x);
}

/* 0.9.75 closes the connection after a response that is queued in its first call for a request, because a body may
 * follow that nothing will read. If no body follows, the refusal waits for the next call, which arrives at once, and
 * the connection stays open. */
static bool send_early(struct exchange *x) { return !http_head_has_body(&x->receiving.head) || exchange_send(x); }

static struct http_refusal check_host(const struct exchange *x)
{
    const struct options *options = x->http->options;
    if (!x->http->door->checks_host || http_head_names_us(&x->receiving.head, options->host, options->allowed_host))
        return (struct http_refusal){0, NULL};
    return (struct http_refusal){421, "the request names another host; without --token-file, a server that only "
                                      "this machine reaches answers for localhost, 127.0.0.1, [::1], --host and "
                                      "--allowed-host"};
}

/* All checks that are possible before the body: the form of the head, then the checks of api/, then memory. */
static bool check_head(struct exchange *x)
{
    const struct http_head *head = &x->receiving.head;
    struct http_refusal refusal = x->receiving.refusal.status ? x->receiving.refusal : http_head_check(head);
    if (!refusal.status)
        refusal = check_host(x);
    if (refusal.status)
        return send_head_refusal(x, &refusal);
    if (!take_timeout(x)) {
        exchange_refuse(x, REFUSED_TIMEOUT_HEADER);
        return send_early(x);
    }
    uint64_t n_declared = http_head_length(head);
    x->reply = api_head(x->http->host, &x->call->api, n_declared);
    if (!x->reply && (x->connection->is_late || x->connection->place->is_spare) && !api_is_open(x->call->api.path)) {
        if (x->connection->is_late)
            exchange_refuse(x, REFUSED_DRAINING);
        else
            exchange_refuse(x, REFUSED_CONNECTION, x->http->options->max_connections);
        return true; /* the body, if there is one, is read and dropped */
    }
    if (x->reply || !exchange_admit(x))
        return send_early(x);
    if (n_declared != UINT64_MAX && n_declared > EXCHANGE_INLINE_BODY_MAX && exchange_queue_is_full(x)) {
        exchange_refuse(x, REFUSED_QUEUE, x->http->options->max_queue);
        return exchange_send(x);
    }
    struct body *body = &x->call->body;
    body->client = x->client;
    if (n_declared == UINT64_MAX || (body_may_come(body, n_declared) && body_reserve(body, (size_t)n_declared)))
        return true;
    exchange_refuse_memory(x, "the body", n_declared);
    return exchange_send(x);
}

/* The guard has refused bytes of a head or a body; see transport.h. */
static void refuse_frame(struct exchange *x)
{
    x->receiving.refusal = x->connection->guard.refusal;
    x->receiving.must_close = true;
}

static bool receive_head(struct exchange *x, const char *method, const char *version)
{
    struct http_head *head = &x->receiving.head;
    if (x->http->is_stopping)
        return false;
    head->version = version;
    head->method = method;
    daemon_headers(x->mhd, take_header, head);
    if (!exchange_keep_call(x, method))
        return false;
    take_names(x);
    bool is_refused = strcmp(x->call->target, HTTP_GUARD_TARGET) == 0;
    exchange_find_origin(x);
    exchange_authenticate(x);
    x->client = x->call->api.turn = exchange_client(x);
    const char *host = NULL;
    x->receiving.refusal = http_target_split(x->call->target, &host, &x->call->api.path, &x->call->api.query);
    if (host)
        head->first[HTTP_HOST] = host; /* the target's wins (RFC 9112, 3.2.2) */
    x->call->api.is_foreign = http_head_is_foreign(head);
    x->call->api.is_unasked = http_head_is_unasked(head);
    if (is_refused) {
        x->call->api.path = HTTP_GUARD_TARGET; /* for the log */
        refuse_frame(x);
    }
    x->state = EXCHANGE_BODY;
    http_phase(x->http, x->connection, HTTP_PHASE_BODY);
    return check_head(x);
}

/* 0.9.75 accepts no response while a body arrives. So a body that finds no memory or exceeds the limit is refused at
 * once, without the daemon. The bytes on their way are still read and dropped for a while, since unread bytes would
 * make the close a reset. Under TLS, where only the daemon can write, the refusal is sent at the end of the body, if
 * that arrives soon. */
static bool drop_body(struct exchange *x, size_t n)
{
    struct exchange_receiving *receiving = &x->receiving;
    body_drop(&x->call->body);
    receiving->n_dropped += n;
    if (!receiving->raw_status && !x->http->door->tls.cert) {
        http_send_raw(x->http, x->connection->fd, x->id, x->reply);
        receiving->raw_status = x->reply->status;
    }
    return receiving->n_dropped <= DRAIN_BODY_MAX;
}

static bool receive_body(struct exchange *x, const char *bytes, size_t n)
{
    struct body *body = &x->call->body;
    uint64_t n_max = x->http->host->max_body;
    http_received(x->connection, n);
    metrics_add(METRICS_RECEIVED_BYTES, (int64_t)n);
    if (!x->reply && (n > n_max || body->n_bytes > n_max - n)) {
        x->reply = api_head(x->http->host, &x->call->api, body->n_bytes + n);
        if (!x->reply)
            exchange_refuse(x, REFUSED_LENGTH);
    } else if (!x->reply && !body_add(body, bytes, n, n_max)) {
        exchange_refuse_memory(x, "the body", body->n_bytes + n);
    }
    return !x->reply || drop_body(x, n);
}

static bool receive_end(struct exchange *x)
{
    struct body *body = &x->call->body;
    struct exchange_timing *timing = &x->timing;
    if (x->receiving.raw_status)
        return false;
    timing->received_at = clock_now();
    timing->deadline = timing->timeout_us ? timing->received_at + timing->timeout_us * 1000 : 0;
    http_phase(x->http, x->connection, HTTP_PHASE_ANSWER);
    if (x->connection->guard.refusal.status && daemon_has_trailer(x->mhd, HTTP_GUARD_TRAILER))
        refuse_frame(x);
    if (x->reply)
        return exchange_send(x);
    if (x->receiving.must_close)
        return check_head(x);
    x->call->api.body = body->n_bytes ? body->bytes : NULL;
    x->call->api.body_bytes = body->n_bytes;
    x->call->api.body_is_ours = true;
    return exchange_answer(x);
}

/* The daemon calls this once with the head, then for each part of the body, then with no data at its end, and again
 * after a resume. */
bool exchange_receive(void *request, const char *method, const char *version, const char *upload, size_t *n_upload)
{
    struct exchange *x = request;
    if (exchange_is_gone(x))
        return false;
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
    return true;
}
