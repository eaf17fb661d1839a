/* Owns the order in which many streams of one loop are sent: so many in a turn of the loop, the others after them. Were
 * all served in each turn, 300 of them would take 27 ms of it, and whoever asks for /healthz would wait as long. */
#include "server/http/exchange.h"

enum {
    MANY = 32,   /* streams, beyond which they take turns */
    TURN_MAX = 8 /* served in one turn then */
};

bool turns_must_wait(struct exchange *x)
{
    struct http *http = x->http;
    bool has_turn = x->has_turn;
    x->has_turn = false;
    if (has_turn || http->n_streams <= MANY)
        return false;
    if (!http->has_waiting && http->n_served < TURN_MAX) {
        http->n_served++;
        return false;
    }
    exchange_suspend(x);
    x->is_waiting_turn = true;
    x->next_turn = NULL;
    x->prev_turn = http->last_turn;
    if (http->last_turn)
        http->last_turn->next_turn = x;
    else
        http->first_turn = x;
    http->last_turn = x;
    http->has_waiting = true;
    return true;
}

void turns_leave(struct exchange *x)
{
    struct http *http = x->http;
    if (!x->is_waiting_turn)
        return;
    x->is_waiting_turn = false;
    if (x->prev_turn)
        x->prev_turn->next_turn = x->next_turn;
    else
        http->first_turn = x->next_turn;
    if (x->next_turn)
        x->next_turn->prev_turn = x->prev_turn;
    else
        http->last_turn = x->prev_turn;
    http->has_waiting = http->first_turn != NULL;
}

void turns_begin(struct http *http)
{
    http->n_served = 0;
    for (; http->first_turn && http->n_served < TURN_MAX; http->n_served++) {
        struct exchange *x = http->first_turn;
        x->has_turn = true;
        exchange_resume(x); /* leaves the list */
    }
}

bool turns_are_wanted(const struct http *http) { return http->has_waiting; }
