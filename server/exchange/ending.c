/* Owns the ends of a request (enum exchange_reason), which all pass through exchange_finish, and the refusals of the
 * server itself, which take the place of a reply.
 *
 * The problem: at that moment the request may be anywhere. A worker may be computing its reply, or pieces of a stream;
 * its call may be the leader that others follow; its head may be out. None of these can be stopped at once, and what
 * they use must not be freed.
 *
 * The idea: an ending states its reason and replaces, it frees nothing. A worker that computes a reply looks at the
 * reason before it begins and meanwhile, and goes on only if others wait for the same answer (answer.c); a stream
 * begins no further piece. A reply or stream whose place a refusal takes is set aside and freed with the exchange, when
 * its last owner has dropped it. A reply that arrives after its request was refused is set aside, too.
 *
 * What a client sees depends on how far the answer is. Before the first byte there is a status for each reason; a head
 * or body that arrives too slowly is refused past the daemon, which accepts no answer in a body. After the first byte
 * the only honest sign is to cut: the connection closes before the announced length or the last chunk, so that no
 * client takes a part for the whole (RFC 9112, 8).
 *
 * Invariant: at most one reply with a stream is ever set aside, because only the first reply of an exchange may have
 * one; what follows it are refusals, whose bodies are complete. */
#include "server/exchange/exchange.h"

#include "server/memory/memory.h"

#include <stdarg.h>
#include <stdio.h>

/* ---- The end ----------------------------------------------------------------------------------------------------- */

void exchange_finish(struct exchange *x, enum exchange_reason reason)
{
    enum exchange_reason before = exchange_reason(x);
    if (before == EXCHANGE_LATE && reason != EXCHANGE_SENT)
        reason = EXCHANGE_CUT;
    else if (before != EXCHANGE_GOES_ON)
        return;
    atomic_store_explicit(&x->reason, reason, memory_order_relaxed);
    if (reason >= EXCHANGE_CUT)
        exchange_resume(x);
}

/* ---- Refusals ---------------------------------------------------------------------------------------------------- */

void exchange_set_aside(struct exchange *x, struct api_reply *reply)
{
    if (x->answering.replaced)
        api_reply_free(reply); /* a refusal: only the first may have a stream */
    else
        x->answering.replaced = reply;
}

void exchange_refuse_with(struct exchange *x, struct api_reply *refusal)
{
    exchange_set_aside(x, x->reply);
    x->reply = refusal;
    x->answering.is_from_cache = false;
}

void exchange_refuse(struct exchange *x, int status, enum metrics_id counted, const char *format, ...)
{
    char detail[REFUSED_DETAIL_BYTES];
    va_list values;
    va_start(values, format);
    vsnprintf(detail, sizeof detail, pe_text(format), values);
    va_end(values);
    if (counted != REFUSED_UNCOUNTED)
        metrics_add(counted, 1);
    exchange_refuse_with(x, api_refuse(x->all->host, &x->call->api, status, detail));
}

void exchange_refuse_memory(struct exchange *x, const char *what, uint64_t n_bytes)
{
    struct admission_refusal refusal = admission_refuse_memory(x->client, what, n_bytes);
    exchange_refuse(x, REFUSED_MEMORY(refusal.status), refusal.detail);
}

void exchange_time_out(struct exchange *x, int status, enum metrics_id counted, const char *format, va_list values)
{
    char detail[REFUSED_DETAIL_BYTES];
    if (x->state > EXCHANGE_BODY || exchange_reason(x) == EXCHANGE_REFUSED)
        return;
    vsnprintf(detail, sizeof detail, pe_text(format), values);
    struct api_reply *refusal = api_refuse(x->all->host, &(struct api_call){.query = NULL}, status, detail);
    x->receiving.raw_status = refusal->status;
    exchange_finish(x, EXCHANGE_REFUSED);
    metrics_add(counted, 1); /* before it is sent: a client that has received it may ask another loop for the metric */
    transport_refuse(x->connection, x->id, refusal);
    api_reply_free(refusal);
}

/* ---- The request's own time ------------------------------------------------------------------------------------ */

bool exchange_is_late(const struct exchange *x, uint64_t now)
{
    return x->timing.deadline && now >= x->timing.deadline;
}

/* The time starts at the last byte of the request: the server is not responsible for how long a client takes to send
 * it. */
void exchange_refuse_late(struct exchange *x)
{
    uint64_t us = (x->timing.deadline - x->timing.received_at) / 1000;
    exchange_finish(x, EXCHANGE_LATE);
    exchange_refuse(x, REFUSED_LATE, us / 1000000, us % 1000000);
    x->timing.deadline = 0; /* the refusal itself has the time that any answer has */
}

bool exchange_expire(struct exchange *x, uint64_t now)
{
    if (!exchange_is_late(x, now))
        return false;
    if (x->state == EXCHANGE_SENDING) {
        exchange_finish(x, EXCHANGE_CUT);
        return true;
    }
    if (x->state == EXCHANGE_OPENING) {
        /* The pieces are no longer needed; the stream and its reply live until the last worker has finished with them.
         */
        x->answering.replaced_stream = x->stream;
        x->stream = NULL;
        if (!stream_cancel(x->answering.replaced_stream))
            x->n_owners++; /* until stream_idle */
    }
    exchange_refuse_late(x);
    x->state = EXCHANGE_DECIDED;
    exchange_resume(x);
    return true;
}
