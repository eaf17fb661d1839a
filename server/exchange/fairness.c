/* Owns the turns of streams, and resuming a request that waits: for a worker, for a piece, for room in its socket, or
 * in the line of streams that have had their share (fairness_must_wait).
 *
 * One turn of the loop serves every stream whose socket takes bytes. With 300 of them a turn would last 27 ms, and
 * /healthz with it. So the more streams there are, the less each may send in a turn, and those that have had their
 * share wait in line behind the others. */
#include "server/exchange/exchange.h"

/* ---- The line of streams --------------------------------------------------------------------------------------- */

static void enter_line(struct exchange *x)
{
    struct exchange_waiting *waiting = &x->waiting;
    struct exchanges *all = x->all;
    waiting->is_in_line = true;
    waiting->next = NULL;
    waiting->prev = all->last_turn;
    if (all->last_turn)
        all->last_turn->waiting.next = x;
    else
        all->first_turn = x;
    all->last_turn = x;
    all->has_waiting = true;
}

static void leave_line(struct exchange *x)
{
    struct exchanges *all = x->all;
    struct exchange *prev = x->waiting.prev, *next = x->waiting.next;
    if (!x->waiting.is_in_line)
        return;
    x->waiting.is_in_line = false;
    if (prev)
        prev->waiting.next = next;
    else
        all->first_turn = next;
    if (next)
        next->waiting.prev = prev;
    else
        all->last_turn = prev;
    all->has_waiting = all->first_turn != NULL;
}

void exchange_resume(struct exchange *x)
{
    leave_line(x);
    if (x->connection)
        transport_resume(x->connection);
}

/* ---- Fairness ---------------------------------------------------------------------------------------------------- */

/* How many streams of a loop are served in one turn, in which order, and how much each may send: the more streams, the
 * less. If every stream were served in each turn, 300 of them would take 27 ms per turn, and a request for /healthz
 * would wait as long. */
enum {
    MANY = 32,    /* above this number, streams take turns */
    TURN_MAX = 8, /* the number then served in one turn */
    SHARE_MIN = 16 * 1024
};

/* One turn of the loop serves every stream whose socket accepts bytes. The more streams there are, the less each may
 * send, so that a new connection does not wait for seconds. */
size_t fairness_share(const struct exchange *x)
{
    size_t fair = EXCHANGE_BLOCK_MAX / (1 + x->all->n_streams / 8); /* above MANY, the streams take turns */
    return fair > SHARE_MIN ? fair : SHARE_MIN;
}

bool fairness_must_wait(struct exchange *x)
{
    struct exchanges *all = x->all;
    bool has_turn = x->waiting.has_turn;
    x->waiting.has_turn = false;
    if (has_turn || all->n_streams <= MANY)
        return false;
    if (!all->has_waiting && all->n_served < TURN_MAX) {
        all->n_served++;
        return false;
    }
    transport_suspend(x->connection);
    enter_line(x);
    return true;
}

void fairness_begin_turn(struct exchanges *all)
{
    all->n_served = 0;
    for (; all->first_turn && all->n_served < TURN_MAX; all->n_served++) {
        struct exchange *x = all->first_turn;
        x->waiting.has_turn = true;
        exchange_resume(x); /* removes it from the queue */
    }
}

bool fairness_wants_turn(const struct exchanges *all) { return all->has_waiting; }
