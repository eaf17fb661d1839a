/* Owns whose turn it is at the workers.
 *
 * libuv's threads serve in the order of arrival, whoever has come: a client that asks for a thousand things at once
 * would be served whole before the next. So what libuv gets are not jobs but calls of a worker (jobs.c), as many as
 * there are threads, and each takes job after job from here. */
#include "server/workers.h"

#include "server/siphash.h"

#include <pthread.h>

/* The oldest waiting job of a client stands for it: it leads the client's others (next … last), has a place among the
 * turns (next_turn), and is found by its bucket. */
enum { N_BUCKETS = 1024 };

static struct {
    pthread_mutex_t lock; /* of all that follows */
    struct job *buckets[N_BUCKETS];
    struct job *first_turn, *last_turn;
    size_t n_max, n_called; /* workers; those that have been called and have not ended */
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .n_max = 1};

/* ---- The queue ------------------------------------------------------------------------------------------------- */

static struct job **bucket_of(uint64_t client)
{
    return &pool.buckets[siphash_secret(&client, sizeof client) % N_BUCKETS]; /* addresses can be chosen to meet */
}

/* The client's oldest job, NULL if it has none. */
static struct job *leader_of(uint64_t client)
{
    struct job *leader = *bucket_of(client);
    while (leader && leader->client != client)
        leader = leader->next_in_bucket;
    return leader;
}

/* Gives the client of this leader a turn after all others. */
static void enter(struct job *leader)
{
    struct job **bucket = bucket_of(leader->client);
    leader->next_in_bucket = *bucket;
    *bucket = leader;
    leader->next_turn = NULL;
    if (pool.last_turn)
        pool.last_turn->next_turn = leader;
    else
        pool.first_turn = leader;
    pool.last_turn = leader;
}

static void push(struct job *job)
{
    struct job *leader = leader_of(job->client);
    job->next = NULL;
    if (leader) {
        leader->last->next = job;
        leader->last = job;
        leader->n_first += job->is_first;
        return;
    }
    job->last = job;
    job->n_first = job->is_first;
    enter(job);
}

/* The job whose turn it is. The client's next one, if any, waits until all others have had theirs. */
static struct job *pop(void)
{
    struct job *job = pool.first_turn, **at = bucket_of(job->client), *next = job->next;
    pool.first_turn = job->next_turn;
    if (!pool.first_turn)
        pool.last_turn = NULL;
    while (*at != job)
        at = &(*at)->next_in_bucket;
    *at = job->next_in_bucket;
    if (next) {
        next->last = job->last;
        next->n_first = job->n_first - job->is_first;
        enter(next);
    }
    return job;
}

size_t workers_n_waiting(uint64_t client)
{
    pthread_mutex_lock(&pool.lock);
    const struct job *leader = leader_of(client);
    size_t n = leader ? leader->n_first : 0;
    pthread_mutex_unlock(&pool.lock);
    return n;
}

/* ---- Workers --------------------------------------------------------------------------------------------------- */

void workers_set(size_t n) { pool.n_max = n; }

/* With the lock. */
static bool call_one(void)
{
    bool is_wanted = pool.first_turn && pool.n_called < pool.n_max;
    pool.n_called += is_wanted;
    return is_wanted;
}

bool workers_submit(struct job *job)
{
    pthread_mutex_lock(&pool.lock);
    push(job);
    bool is_wanted = call_one();
    pthread_mutex_unlock(&pool.lock);
    return is_wanted;
}

bool workers_wanted(void)
{
    pthread_mutex_lock(&pool.lock);
    bool is_wanted = call_one();
    pthread_mutex_unlock(&pool.lock);
    return is_wanted;
}

/* A worker ends with the lock: whoever submits the next job sees it gone and calls another. */
struct job *workers_take(void)
{
    pthread_mutex_lock(&pool.lock);
    struct job *job = pool.first_turn ? pop() : NULL;
    pool.n_called -= !job;
    pthread_mutex_unlock(&pool.lock);
    return job;
}

void workers_give_up(void)
{
    pthread_mutex_lock(&pool.lock);
    pool.n_called--;
    pthread_mutex_unlock(&pool.lock);
}
