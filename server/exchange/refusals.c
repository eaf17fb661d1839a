/* Owns the refusals of the server itself that take the place of a reply. */
#include "server/exchange/exchange.h"

#include "server/memory/admission.h"

#include <stdarg.h>
#include <stdio.h>

void exchange_refuse_with(struct exchange *x, struct api_reply *refusal)
{
    if (x->answering.given_up)
        api_reply_free(x->reply); /* a refusal too */
    else
        x->answering.given_up = x->reply;
    x->reply = refusal;
    x->answering.is_kept = false;
}

void exchange_refuse(struct exchange *x, int status, enum metrics_id counted, const char *format, ...)
{
    char detail[REFUSED_DETAIL_BYTES];
    va_list values;
    va_start(values, format);
    vsnprintf(detail, sizeof detail, format, values);
    va_end(values);
    if (counted != REFUSED_UNCOUNTED)
        metrics_add(counted, 1);
    exchange_refuse_with(x, api_refuse(x->http->host, &x->call->api, status, detail));
}

void exchange_refuse_memory(struct exchange *x, const char *what, uint64_t n_bytes)
{
    struct admission_refusal refusal = admission_refuse_memory(x->client, what, n_bytes);
    exchange_refuse(x, REFUSED_MEMORY(refusal.status), refusal.detail);
}
