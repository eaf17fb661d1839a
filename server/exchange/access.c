/* Owns the identity of the client: the rights that a request's token grants, the quota that is left, and the client
 * number, which decides whose turn and whose share of the common resources the request uses. */
#define _DEFAULT_SOURCE /* explicit_bzero */
#include "server/exchange/exchange.h"

#include "server/transport/transport.h"
#include "server/process/process.h"

#include <string.h>
#include <strings.h>

static void wipe(void *self, const char *name, const char *value)
{
    (void)self;
    if (value && strcasecmp(name, "Authorization") == 0)
        explicit_bzero((char *)(uintptr_t)value, strlen(value));
}

/* The header is in the daemon's memory, which the daemon reuses without clearing it. So the secret is wiped as soon as
 * it has been checked, and is not found in a core dump of an idle server. If several such headers are sent, the request
 * is refused, but each of them is still wiped. */
void exchange_authenticate(struct exchange *x)
{
    struct tokens *tokens = x->http->door->tokens;
    const char *value = x->receiving.head.first[HTTP_AUTHORIZATION];
    if (!tokens)
        return;
    x->call->api.access = tokens_find(tokens, value, &x->account);
    x->call->api.client = x->account ? account_name(x->account) : NULL;
    if (value)
        daemon_headers(x->mhd, wipe, NULL);
}

static void take_forwarded(void *self, const char *name, const char *value)
{
    if (value && strcasecmp(name, "X-Forwarded-For") == 0)
        forwarded_take(self, value);
}

/* The client that a trusted proxy names; the proxy itself, if it names none that can be parsed. */
void exchange_find_origin(struct exchange *x)
{
    struct forwarded forwarded = {.proxies = &x->http->door->proxies};
    http_know_peer(x->connection);
    if (x->connection->is_proxy)
        daemon_headers(x->mhd, take_forwarded, &forwarded);
    x->origin = x->connection->address;
    x->has_origin = forwarded_client(&forwarded, &x->origin) || x->connection->has_address;
}

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
    exchange_refuse_with(x, api_refuse_quota(x->http->host, &x->call->api, detail, retry_s));
    return false;
}

bool exchange_admit(struct exchange *x)
{
    char detail[512];
    uint64_t retry_s = 1;
    if (!x->account || api_is_open(x->call->api.path))
        return true;
    api_speak(&x->call->api);
    bool is_admitted = account_admit(x->account, detail, sizeof detail, &retry_s);
    api_speak(NULL);
    return is_admitted || refuse_quota(x, detail, retry_s);
}

bool exchange_admit_stream(struct exchange *x)
{
    char detail[512];
    uint64_t retry_s = 1;
    if (!x->account)
        return true;
    api_speak(&x->call->api);
    x->sending.is_account_stream = account_begin_stream(x->account, detail, sizeof detail, &retry_s);
    api_speak(NULL);
    return x->sending.is_account_stream || refuse_quota(x, detail, retry_s);
}

void exchange_end_stream(struct exchange *x)
{
    if (x->sending.is_account_stream)
        account_end_stream(x->account);
}
