/* Owns how many streams of a loop are served in one turn, in which order, and how much each may send: the more streams,
 * the less. If every stream were served in each turn, 300 of them would take 27 ms per turn, and a request for /healthz
 * would wait as long. */
#include "server/exchange/exchange.h"

enum {
    MANY = 32,    /* above this number, streams take turns */
    TURN_MAX = 8, /* the number then served in one turn */
    SHARE_MIN = 16 * 1024
};

/* One turn of the loop serves every stream whose socket accepts bytes. The more streams there are, the less each may
 * send, so that a new connection does not wait for seconds. */
size_t fairness_share(const struct exchange *x)
{
    size_t fair = EXCHANGE_BLOCK_MAX / (1 + x->http->n_streams / 8); /* above MANY, the streams take turns */
    return fair > SHARE_MIN ? fair : SHARE_MIN;
}

bool fairness_must_wait(struct exchange *x)
{
    struct http *http = x->http;
    bool has_turn = x->waiting.has_turn;
    x->waiting.has_turn = false;
    if (has_turn || http->n_streams <= MANY)
        return false;
    if (!http->has_waiting && http->n_served < TURN_MAX) {
        http->n_served++;
        return false;
    }
    exchange_suspend_in_line(x);
    return true;
}

void fairness_begin_turn(struct http *http)
{
    http->n_served = 0;
    for (; http->first_turn && http->n_served < TURN_MAX; http->n_served++) {
        struct exchange *x = http->first_turn;
        x->waiting.has_turn = true;
        exchange_resume(x); /* removes it from the queue */
    }
}

bool fairness_wants_turn(const struct http *http) { return http->has_waiting; }
