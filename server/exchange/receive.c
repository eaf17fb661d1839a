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

/* Bytes of a refused body that are read and dropped so that the refusal reaches the client. */
enum { DRAIN_BODY_MAX = 8 * 1024 * 1024 };

/* If a head is too long, the text states its cost up to the point where it was refused: the server does not wait for
 * its end. */
static bool send_refusal(struct exchange *x, const struct transport_refusal *refusal)
{
    if (refusal->cost)
        exchange_refuse(x, REFUSED_LONG_HEAD(refusal->status), pe_text(refusal->detail), refusal->cost);
    else
        exchange_refuse(x, REFUSED_HEAD(refusal->status), pe_text(refusal->detail));
    return exchange_send(x);
}

/* 0.9.75 closes the connection after a response that is queued in its first call for a request, because a body may
 * follow that nothing will read. If no body follows, the refusal waits for the next call, which arrives at once, and
 * the connection stays open. */
static bool send_early(struct exchange *x, const struct transport_head *head)
{
    return !head->has_body || exchange_send(x);
}

/* All checks that are possible before the body: the form of the head, then the checks of api/, then memory. */
static bool check_head(struct exchange *x, const struct transport_head *head)
{
    uint64_t n_declared = head->n_declared;
    if (head->refusal.status)
        return send_refusal(x, &head->refusal);
    if (head->has_wrong_timeout) {
        exchange_refuse(x, REFUSED_TIMEOUT_HEADER);
        return send_early(x, head);
    }
    x->reply = api_head(x->all->host, &x->call->api, n_declared);
    if (!x->reply && (head->is_late || head->is_spare) && !api_is_open(x->call->api.path)) {
        if (head->is_late)
            exchange_refuse(x, REFUSED_DRAINING);
        else
            exchange_refuse(x, REFUSED_CONNECTION, x->all->options->max_connections);
        return true; /* the body, if there is one, is read and dropped */
    }
    if (x->reply || !exchange_admit(x))
        return send_early(x, head);
    if (n_declared != UINT64_MAX && n_declared > EXCHANGE_INLINE_BODY_MAX && exchange_queue_is_full(x)) {
        exchange_refuse(x, REFUSED_QUEUE, x->all->options->max_queue);
        return exchange_send(x);
    }
    struct body *body = &x->call->body;
    body->client = x->client;
    if (n_declared == UINT64_MAX || (body_may_come(body, n_declared) && body_reserve(body, (size_t)n_declared)))
        return true;
    exchange_refuse_memory(x, "the body", n_declared);
    return exchange_send(x);
}

static bool receive_head(void *self, const char *method, const char *version)
{
    struct exchange *x = self;
    struct transport_head head;
    transport_head(x->connection, method, version, x->call->target, &head);
    if (!exchange_copy_head(x, method))
        return false;
    struct api_call *call = &x->call->api;
    if (head.id)
        snprintf(x->id, sizeof x->id, "%s", head.id);
    if (head.traceparent)
        snprintf(x->traceparent, sizeof x->traceparent, "%s", head.traceparent);
    x->timing.timeout_us = head.timeout_us;
    x->origin = head.origin;
    x->has_origin = head.has_origin;
    x->account = head.account;
    x->client = call->turn = exchange_client(x);
    call->access = head.access;
    call->client = x->account ? account_name(x->account) : NULL;
    call->path = head.path;
    call->query = head.query;
    call->is_foreign = head.is_foreign;
    call->is_elsewhere = head.is_elsewhere;
    call->is_unasked = head.is_unasked;
    x->state = EXCHANGE_BODY;
    api_speak(&x->call->api);
    bool goes_on = check_head(x, &head);
    api_speak(NULL);
    return goes_on;
}

static bool receive_body(void *self, const char *bytes, size_t n)
{
    struct exchange *x = self;
    struct body *body = &x->call->body;
    uint64_t n_max = x->all->host->max_body;
    if (exchange_is_gone(x))
        return false;
    metrics_add(METRICS_RECEIVED_BYTES, (int64_t)n);
    api_speak(&x->call->api);
    if (!x->reply && (n > n_max || body->n_bytes > n_max - n)) {
        x->reply = api_head(x->all->host, &x->call->api, body->n_bytes + n);
        if (!x->reply)
            exchange_refuse(x, REFUSED_LENGTH);
    } else if (!x->reply && !body_add(body, bytes, n, n_max)) {
        exchange_refuse_memory(x, "the body", body->n_bytes + n);
    }
    api_speak(NULL);
    if (!x->reply)
        return true;
    /* 0.9.75 accepts no response while a body arrives. So a body that finds no memory or exceeds the limit is refused
     * at once, without the daemon. The bytes on their way are still read and dropped for a while, since unread bytes
     * would make the close a reset. Under TLS, where only the daemon can write, the refusal is sent at the end of the
     * body, if that arrives soon. */
    struct exchange_receiving *receiving = &x->receiving;
    body_drop(&x->call->body);
    receiving->n_dropped += n;
    if (exchange_reason(x) != EXCHANGE_REFUSED && transport_refuse(x->connection, x->id, x->reply)) {
        receiving->raw_status = x->reply->status;
        exchange_finish(x, EXCHANGE_REFUSED);
    }
    return receiving->n_dropped <= DRAIN_BODY_MAX;
}

/* The last byte has arrived, or frame refuses what has. */
static bool answer(struct exchange *x, const struct transport_refusal *frame)
{
    const struct body *body = &x->call->body;
    struct exchange_timing *timing = &x->timing;
    timing->received_at = clock_now();
    timing->deadline = timing->timeout_us ? timing->received_at + timing->timeout_us * 1000 : 0;
    if (x->reply)
        return exchange_send(x);
    if (frame)
        return send_refusal(x, frame);
    x->call->api.body = body->n_bytes ? body->bytes : NULL;
    x->call->api.body_bytes = body->n_bytes;
    x->call->api.body_is_ours = true;
    return exchange_answer(x);
}

static bool receive_end(void *self, const struct transport_refusal *frame)
{
    struct exchange *x = self;
    if (exchange_reason(x) >= EXCHANGE_REFUSED)
        return false;
    api_speak(&x->call->api);
    bool goes_on = answer(x, frame);
    api_speak(NULL);
    return goes_on;
}

/* Its reply exists, or the first piece of its stream, unless it has only been cut off. */
static bool go_on(void *self)
{
    struct exchange *x = self;
    if (x->state != EXCHANGE_DECIDED && x->state != EXCHANGE_OPENING)
        return !exchange_is_gone(x);
    api_speak(&x->call->api);
    bool goes_on = exchange_send(x);
    api_speak(NULL);
    return goes_on;
}

/* ---- What ../transport/ calls ------------------------------------------------------------------------------------ */

static void leave(void *x, bool is_slow) { exchange_finish(x, is_slow ? EXCHANGE_SLOW : EXCHANGE_LEFT); }

static bool expire(void *self, uint64_t now)
{
    struct exchange *x = self;
    api_speak(&x->call->api);
    bool is_over = exchange_expire(x, now);
    api_speak(NULL);
    return is_over;
}

static void time_out(void *self, int status, enum metrics_id counted, const char *format, va_list values)
    __attribute__((format(printf, 4, 0)));

static void time_out(void *self, int status, enum metrics_id counted, const char *format, va_list values)
{
    struct exchange *x = self;
    api_speak(&x->call->api);
    exchange_time_out(x, status, counted, format, values);
    api_speak(NULL);
}

/* One metric covers the pools of all loops, so each loop adds the change of its own pool. */
static bool end_turn(void *self)
{
    struct exchanges *all = self;
    uint64_t n_bytes = pool_bytes(all->pool);
    if (n_bytes != all->counted_pool_bytes)
        metrics_add(METRICS_POOL_BYTES, (int64_t)(n_bytes - all->counted_pool_bytes));
    all->counted_pool_bytes = n_bytes;
    return fairness_wants_turn(all);
}

const struct transport_events exchange_events = {
    .begin = exchange_begin,
    .head = receive_head,
    .body = receive_body,
    .whole = receive_end,
    .go_on = go_on,
    .end = exchange_end,
    .leave = leave,
    .expire = expire,
    .time_out = time_out,
    .begin_turn = fairness_begin_turn,
    .end_turn = end_turn,
};
