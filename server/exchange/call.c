/* Owns calls, and fills them from a request's head: copies of the headers that api/ reads. The daemon's own strings are
 * freed with its connection, when a worker may still use the call. */
#define _GNU_SOURCE /* stpcpy */
#include "server/exchange/exchange.h"

#include <stdlib.h>
#include <string.h>

enum { SPARE_CALLS_MAX = 256 }; /* a quarter of a megabyte in all */

/* ---- Lifetime -------------------------------------------------------------------------------------------------- */

struct call *call_new(struct calls *spare)
{
    struct call *call = spare->first;
    if (!call) {
        call = malloc(sizeof *call);
    } else {
        spare->first = call->next_spare;
        spare->n--;
    }
    if (!call)
        return NULL;
    memset(call, 0, offsetof(struct call, room));
    atomic_init(&call->n_holders, 1);
    return call;
}

char *call_room(struct call *call, size_t n)
{
    if (n > sizeof call->room - call->n_room)
        return malloc(n);
    char *place = call->room + call->n_room;
    call->n_room += n;
    return place;
}

static void free_room(const struct call *call, char *place)
{
    if (place < call->room || place >= call->room + sizeof call->room)
        free(place);
}

struct call *call_hold(struct call *call)
{
    atomic_fetch_add_explicit(&call->n_holders, 1, memory_order_relaxed);
    return call;
}

void call_drop(struct call *call, struct calls *spare)
{
    if (!call || atomic_fetch_sub_explicit(&call->n_holders, 1, memory_order_acq_rel) > 1)
        return;
    body_drop(&call->body);
    free_room(call, call->strings);
    free_room(call, call->target);
    if (!spare || spare->n == SPARE_CALLS_MAX) {
        free(call);
        return;
    }
    call->next_spare = spare->first;
    spare->first = call;
    spare->n++;
}

void calls_free(struct calls *spare)
{
    for (struct call *call = spare->first, *next; call; call = next) {
        next = call->next_spare;
        free(call);
    }
    *spare = (struct calls){0};
}

/* ---- Its headers ----------------------------------------------------------------------------------------------- */

bool exchange_copy_head(struct exchange *x, const char *method)
{
    size_t n = strlen(method) + 1 + transport_texts(x->connection, NULL, NULL);
    char *at = x->call->strings = call_room(x->call, n);
    if (!at)
        return false;
    x->call->api.method = at;
    at = stpcpy(at, method) + 1;
    transport_texts(x->connection, at, x->call->api.texts);
    return true;
}
