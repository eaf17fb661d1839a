/* Owns the turns of streams, and resuming a request that waits: for a worker, for a piece, for room in its socket, or
 * in the line of streams that have had their share (fairness_must_wait).
 *
 * The problem: one turn of the loop serves every stream whose socket takes bytes, each with up to a megabyte. With 300
 * of them a turn would last 27 ms, and a request for /healthz, or a new connection, would wait as long.
 *
 * The idea is that of round-robin queues in routers (deficit round robin, Shreedhar and Varghese 1995), without its
 * deficits: the more streams there are, the less each may send in one turn, down to SHARE_MIN; and above MANY streams
 * only TURN_MAX are served in a turn, while the others are suspended in a line. Each turn resumes the first of the
 * line, and a stream that wants more than its turn enters at the end.
 *
 * Invariants: a stream in the line is suspended, and leaves the line whenever it is resumed, for whatever reason, so
 * that an ending never waits for a turn. Without a line, or with few streams, nothing here costs more than a
 * comparison. No stream starves: nothing overtakes in the line. */
#include "server/exchange/exchange.h"

void exchange_resume(struct exchange *x)
{
    if (x->waiting.is_in_line)
        TAILQ_REMOVE(&x->all->line, x, waiting.link);
    x->waiting.is_in_line = false;
    if (x->connection)
        transport_resume(x->connection);
}

/* ---- Fairness ---------------------------------------------------------------------------------------------------- */

enum {
    MANY = 32,    /* above this number, streams take turns */
    TURN_MAX = 8, /* the number then served in one turn */
    SHARE_MIN = 16 * 1024
};

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
    if (TAILQ_EMPTY(&all->line) && all->n_served < TURN_MAX) {
        all->n_served++;
        return false;
    }
    transport_suspend(x->connection);
    x->waiting.is_in_line = true;
    TAILQ_INSERT_TAIL(&all->line, x, waiting.link);
    return true;
}

void fairness_begin_turn(void *exchanges)
{
    struct exchanges *all = exchanges;
    all->n_served = 0;
    for (; !TAILQ_EMPTY(&all->line) && all->n_served < TURN_MAX; all->n_served++) {
        struct exchange *x = TAILQ_FIRST(&all->line);
        x->waiting.has_turn = true;
        exchange_resume(x); /* removes it from the queue */
    }
}

bool fairness_wants_turn(const struct exchanges *all) { return !TAILQ_EMPTY(&all->line); }
