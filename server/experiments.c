/* Owns the places of running experiments, and the line of clients that wait for one. */
#include "server/server.h"

#include "server/process/process.h"

#include <pthread.h>
#include <string.h>

/* Clients that were refused, in the order of their first refusal. While the line is full, others are refused without a
 * place in it. */
enum { WAITING_MAX = 256 };

static struct {
    pthread_mutex_t lock;
    uint64_t n_free;
    struct waiting {
        uint64_t client, asked_ms; /* when it was refused last */
    } line[WAITING_MAX];
    size_t n_waiting;
} places = {.lock = PTHREAD_MUTEX_INITIALIZER};

void experiments_allow(uint64_t n) { places.n_free = n; }

static void leave_line(size_t i)
{
    places.n_waiting--;
    memmove(&places.line[i], &places.line[i + 1], (places.n_waiting - i) * sizeof places.line[0]);
}

static void forget_gone(uint64_t now_ms)
{
    for (size_t i = places.n_waiting; i-- > 0;)
        if (now_ms > places.line[i].asked_ms + EXPERIMENTS_WAIT_MS)
            leave_line(i);
}

/* The number of clients before this one: all of them if it is not in the line. */
static size_t place_in_line(uint64_t client)
{
    size_t i = 0;
    while (i < places.n_waiting && places.line[i].client != client)
        i++;
    return i;
}

static void wait_in_line(size_t place, uint64_t client, uint64_t now_ms)
{
    if (!client || place == WAITING_MAX)
        return;
    places.n_waiting += place == places.n_waiting;
    places.line[place] = (struct waiting){client, now_ms};
}

static bool take_turn(uint64_t client, uint64_t now_ms)
{
    forget_gone(now_ms);
    size_t place = place_in_line(client);
    if (place >= places.n_free) {
        wait_in_line(place, client, now_ms);
        return false;
    }
    places.n_free--;
    if (place < places.n_waiting)
        leave_line(place);
    return true;
}

bool experiments_begin(uint64_t client, uint64_t now_ms)
{
    pthread_mutex_lock(&places.lock);
    bool has_turn = take_turn(client, now_ms);
    pthread_mutex_unlock(&places.lock);
    metrics_add(METRICS_EXPERIMENTS, has_turn);
    return has_turn;
}

void experiments_end(bool is_done, uint64_t n_steps)
{
    pthread_mutex_lock(&places.lock);
    places.n_free++;
    pthread_mutex_unlock(&places.lock);
    metrics_add(METRICS_EXPERIMENTS, -1);
    metrics_add(is_done ? METRICS_EXPERIMENTS_DONE : METRICS_EXPERIMENTS_ENDED, 1);
    metrics_add(METRICS_EXPERIMENT_STEPS, (int64_t)n_steps);
}
