/* Owns what a client may use: the quota that is left to its token, and the client number, which decides whose turn and
 * whose share of the common resources the request uses. */
#include "server/exchange/exchange.h"

uint64_t exchange_client(const struct exchange *x)
{
    if (x->client)
        return x->client;
    if (x->account)
        return account_client(x->account);
    return x->has_origin ? address_number(&x->origin) : 1;
}

static bool refuse_quota(struct exchange *x, const char *detail, uint64_t retry_s)
{
    metrics_add(METRICS_REJECTED_QUOTA, 1);
    exchange_refuse_with(x, api_refuse_quota(x->all->host, &x->call->api, detail, retry_s));
    return false;
}

bool exchange_admit(struct exchange *x)
{
    char detail[512];
    uint64_t retry_s = 1;
    if (!x->account || api_is_open(x->call->api.path))
        return true;
    return account_admit(x->account, detail, sizeof detail, &retry_s) || refuse_quota(x, detail, retry_s);
}

bool exchange_admit_stream(struct exchange *x)
{
    char detail[512];
    uint64_t retry_s = 1;
    if (!x->account)
        return true;
    x->sending.is_account_stream = account_begin_stream(x->account, detail, sizeof detail, &retry_s);
    return x->sending.is_account_stream || refuse_quota(x, detail, retry_s);
}

void exchange_end_stream(struct exchange *x)
{
    if (x->sending.is_account_stream)
        account_end_stream(x->account);
}
