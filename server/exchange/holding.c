/* Owns the memory that an answer holds for as long as its client reads it: its plan, and the bytes of a finished
 * picture. A worker reserved both while it computed the answer. Workers are few, but a slow reader may hold the memory
 * for hours. */
#include "server/exchange/exchange.h"

#include "server/memory/admission.h"
#include "server/memory/shares.h"

static bool hold_picture(struct exchange *x)
{
    const struct api_reply *held = x->sending.held;
    uint64_t most = x->http->host->max_pictures, all = api_pictures_bytes(), n = held->n_finished;
    if (shares_take_object(SHARE_PICTURES, x->client, held, n, all < most ? most - all : 0))
        return true;
    exchange_refuse(x, REFUSED_PICTURE, n, shares_held(SHARE_PICTURES, x->client), most);
    return false;
}

bool exchange_hold(struct exchange *x)
{
    const struct api_reply *reply = x->reply;
    if (!admission_hold(x->client, reply, reply->memory)) {
        exchange_refuse_memory(x, "the answer, while it is read,", reply->memory);
        return false;
    }
    x->sending.held = reply;
    return hold_picture(x);
}

void exchange_let_go(struct exchange *x)
{
    struct exchange_sending *sending = &x->sending;
    if (!sending->held)
        return;
    admission_let_go(x->client, sending->held);
    shares_give_object(SHARE_PICTURES, x->client, sending->held);
    sending->held = NULL;
}
