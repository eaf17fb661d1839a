/* Owns the worker threads and the order in which jobs get a turn.
 *
 * The problem: a request may compute for minutes beside others that need a millisecond, on two processors. A pool of
 * threads alone would be full of long jobs; splitting long jobs into steps would make every computation a state
 * machine.
 *
 * The idea: --workers sets the number of seats, i.e. of jobs that compute at a time. There are more threads than seats.
 * A job whose turn has ended lends its seat to the next job, and its thread sleeps, with its stack intact, until its
 * own next turn. So a computation can be preempted wherever it checks for cancellation, and none has to be written as a
 * state machine. Threads that were started for this are kept for later use; a sleeping one takes 10 KiB. libuv's pool
 * has no such place to pause, so its loops hand jobs to these threads.
 *
 * Order: clients take turns in a circle. Within a client, the job that has waited longest runs next, whether it has
 * been started or not, so the client's small requests do not wait for its large ones to end. But a client may have only
 * a limited number of started jobs (begun_max), because each of them occupies a thread; beyond that number, its started
 * jobs run first.
 *
 * Invariants: as many jobs compute as there are seats, or no job waits; a job runs on one thread from its start to its
 * end; a job that waits for a disk or a network keeps no seat (job_leave). All queues have one lock, which is held for
 * a few hundred nanoseconds. */
#define _GNU_SOURCE /* pthread_setname_np */
#include "server/loop/loop.h"

#include "server/process/process.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

enum {
    N_BUCKETS = 1024,
    /* Threads besides those that compute. A sleeping thread takes 10 KiB of memory, and as much again in the kernel. */
    PARKED_MAX = 128,
    /* Further threads, of jobs that are away: they wait for a disk or a network, and keep neither a seat nor a parked
     * job's place. A client may have one in AWAY_SHARE of the free ones: 25 if it is alone. */
    AWAY_MAX = 128,
    AWAY_SHARE = 4,
    /* A client may occupy one in SHARE of the free places: 14 if it is alone, 8 each beside seven others. So a place
     * remains for a new client until more than a hundred clients have long work at the same time. */
    SHARE = 8
};

enum { FRESH, PARKED };

struct worker {
    pthread_t thread;
    pthread_cond_t wake; /* the thread has got a seat, or all threads end */
    struct job *job;     /* running, or parked; NULL: idle */
    bool has_seat;
    bool is_away; /* the thread has left its seat of its own accord: workers_leave */
    struct worker *next, *next_idle;
};

static struct {
    pthread_mutex_t lock; /* protects all fields below */
    struct job *buckets[N_BUCKETS];
    struct job *first_turn, *last_turn;
    uint64_t n_tickets;
    struct worker *workers, *idle;
    size_t n_max, n_threads; /* seats; running threads */
    size_t n_away;
    bool is_ending;
    void (*run)(struct job *job);
    /* Also read without the lock: */
    atomic_size_t n_seated, n_queued;
    atomic_uint_fast64_t n_parked, n_yields;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .n_max = 1};

static _Thread_local struct worker *self;

static size_t seen(atomic_size_t *count) { return atomic_load_explicit(count, memory_order_relaxed); }

/* ---- The queue: one turn for each client that has jobs waiting ------------------------------------------------- */

static struct job **bucket_of(uint64_t client)
{
    return &pool.buckets[siphash_secret(&client, sizeof client) %
                         N_BUCKETS]; /* clients can choose addresses, so the hash has a secret key */
}

/* The client's job whose `turn` holds the client's place; NULL: the client has no waiting job. */
static struct job *host_of(uint64_t client)
{
    struct job *host = *bucket_of(client);
    while (host && host->client != client)
        host = host->turn.next_in_bucket;
    return host;
}

/* Puts the client of this host at the end of the circle. */
static void enter(struct job *host)
{
    struct job **bucket = bucket_of(host->client);
    host->turn.next_in_bucket = *bucket;
    *bucket = host;
    host->turn.next = NULL;
    if (pool.last_turn)
        pool.last_turn->turn.next = host;
    else
        pool.first_turn = host;
    pool.last_turn = host;
}

static void push(struct job *job, int kind)
{
    struct job *host = host_of(job->client);
    job->next = NULL;
    job->ticket = ++pool.n_tickets;
    if (!host) {
        host = job;
        host->turn = (struct job_turn){0};
        enter(host);
    }
    struct job_turn *turn = &host->turn;
    if (turn->first[kind])
        turn->last[kind]->next = job;
    else
        turn->first[kind] = job;
    turn->last[kind] = job;
    turn->n_first += kind == FRESH && job->is_first;
    turn->n_parked += kind == PARKED;
    atomic_fetch_add_explicit(&pool.n_queued, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&pool.n_parked, kind == PARKED, memory_order_relaxed);
}

/* Removes the host's oldest job of this kind. The client's next job, if any, waits until all other clients have had
 * their turn. */
static struct job *pop(struct job *host, struct job *before, int kind)
{
    struct job **at = bucket_of(host->client);
    while (*at != host)
        at = &(*at)->turn.next_in_bucket;
    *at = host->turn.next_in_bucket;
    *(before ? &before->turn.next : &pool.first_turn) = host->turn.next;
    if (pool.last_turn == host)
        pool.last_turn = before;
    struct job_turn *turn = &host->turn;
    struct job *job = turn->first[kind];
    turn->first[kind] = job->next;
    turn->n_first -= kind == FRESH && job->is_first;
    turn->n_parked -= kind == PARKED;
    struct job *rest = turn->first[FRESH] ? turn->first[FRESH] : turn->first[PARKED];
    if (rest) {
        rest->turn = *turn;
        enter(rest);
    }
    atomic_fetch_sub_explicit(&pool.n_queued, 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(&pool.n_parked, kind == PARKED, memory_order_relaxed);
    return job;
}

static size_t begun_max(void)
{
    uint64_t n = atomic_load_explicit(&pool.n_parked, memory_order_relaxed);
    size_t share = n < PARKED_MAX ? (size_t)(PARKED_MAX - n) / SHARE : 0;
    return share ? share : 1;
}

static int kind_of_next(const struct job_turn *turn)
{
    const struct job *fresh = turn->first[FRESH], *parked = turn->first[PARKED];
    if (!fresh || !parked)
        return fresh ? FRESH : PARKED;
    return turn->n_parked >= begun_max() || parked->ticket < fresh->ticket ? PARKED : FRESH;
}

/* Removes the first job in the circle that already has a thread. */
static struct job *pop_parked(void)
{
    struct job *host = pool.first_turn, *before = NULL;
    for (; host && !host->turn.first[PARKED]; host = host->turn.next)
        before = host;
    return host ? pop(host, before, PARKED) : NULL;
}

size_t workers_n_waiting(uint64_t client)
{
    pthread_mutex_lock(&pool.lock);
    const struct job *host = host_of(client);
    size_t n = host ? host->turn.n_first : 0;
    pthread_mutex_unlock(&pool.lock);
    return n;
}

/* ---- Seats; all with the lock ---------------------------------------------------------------------------------- */

static void *work(void *worker);

/* Signals are the first I/O thread's. */
static bool start_thread(void)
{
    struct worker *worker = calloc(1, sizeof *worker);
    sigset_t all, before;
    if (!worker)
        return false;
    pthread_cond_init(&worker->wake, NULL);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool runs = pthread_create(&worker->thread, NULL, work, worker) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!runs) {
        pthread_cond_destroy(&worker->wake);
        free(worker);
        return false;
    }
    worker->next = pool.workers;
    pool.workers = worker;
    worker->next_idle = pool.idle;
    pool.idle = worker;
    pool.n_threads++;
    return true;
}

static bool has_idle(void)
{
    return pool.idle || (pool.n_threads < pool.n_max + PARKED_MAX + pool.n_away && start_thread());
}

/* The job whose turn it is and that has, or can be given, a thread. */
static struct job *pop_next(bool has_thread)
{
    struct job *host = pool.first_turn;
    if (!host)
        return NULL;
    int kind = kind_of_next(&host->turn);
    return kind == PARKED || has_thread || has_idle() ? pop(host, NULL, kind) : pop_parked();
}

/* The seat is counted by the caller. */
static void seat(struct job *job)
{
    struct worker *worker = job->worker;
    if (!worker) {
        worker = pool.idle;
        pool.idle = worker->next_idle;
        worker->job = job;
        job->worker = worker;
    }
    worker->has_seat = true;
    pthread_cond_signal(&worker->wake);
}

static void fill_seats(void)
{
    struct job *job;
    while (seen(&pool.n_seated) < pool.n_max && (job = pop_next(false))) {
        atomic_fetch_add_explicit(&pool.n_seated, 1, memory_order_relaxed);
        seat(job);
    }
}

static void wait_for_seat(struct worker *worker)
{
    while (!worker->has_seat && !pool.is_ending)
        pthread_cond_wait(&worker->wake, &pool.lock);
}

/* The job is done: the seat is the next one's, whose thread this may be. */
static void pass_on(struct worker *worker)
{
    struct job *next = pop_next(true);
    worker->job = NULL;
    if (next && !next->worker) {
        worker->job = next;
        next->worker = worker;
        return;
    }
    worker->has_seat = false;
    worker->next_idle = pool.idle;
    pool.idle = worker;
    if (next)
        seat(next);
    else
        atomic_fetch_sub_explicit(&pool.n_seated, 1, memory_order_relaxed);
}

/* A job that is done may be gone at once: its thread does not look at it again. */
static void *work(void *worker)
{
    self = worker;
    pthread_setname_np(pthread_self(), "worker");
    pthread_mutex_lock(&pool.lock);
    for (;;) {
        wait_for_seat(self);
        if (!self->has_seat)
            break;
        pthread_mutex_unlock(&pool.lock);
        pool.run(self->job);
        pthread_mutex_lock(&pool.lock);
        pass_on(self);
    }
    pthread_mutex_unlock(&pool.lock);
    return NULL;
}

/* ---- For others ------------------------------------------------------------------------------------------------ */

void workers_set(size_t n, void (*run)(struct job *job))
{
    pool.n_max = n;
    pool.run = run;
}

bool workers_start(void)
{
    pthread_mutex_lock(&pool.lock);
    pool.is_ending = false;
    bool runs = true;
    while (runs && pool.n_threads < pool.n_max)
        runs = start_thread();
    pthread_mutex_unlock(&pool.lock);
    return runs;
}

void workers_end(void)
{
    pthread_mutex_lock(&pool.lock);
    struct worker *worker = pool.workers;
    assert(!pool.first_turn);
    pool.is_ending = true;
    pool.workers = pool.idle = NULL;
    pool.n_threads = 0;
    for (struct worker *w = worker; w; w = w->next)
        pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&pool.lock);
    for (struct worker *next; worker; worker = next) {
        next = worker->next;
        pthread_join(worker->thread, NULL);
        pthread_cond_destroy(&worker->wake);
        free(worker);
    }
}

void workers_submit(struct job *job)
{
    pthread_mutex_lock(&pool.lock);
    job->worker = NULL;
    push(job, FRESH);
    fill_seats();
    pthread_mutex_unlock(&pool.lock);
}

bool workers_have_room(void) { return seen(&pool.n_seated) < pool.n_max; }

struct job *workers_job(void) { return self && !self->is_away ? self->job : NULL; }

struct job *workers_job_or_away(void) { return self ? self->job : NULL; }

bool workers_are_wanted(void) { return seen(&pool.n_queued) > 0; }

bool workers_yield(void)
{
    pthread_mutex_lock(&pool.lock);
    struct job *next = pop_next(false);
    if (next) {
        self->has_seat = false;
        push(self->job, PARKED);
        seat(next);
        atomic_fetch_add_explicit(&pool.n_yields, 1, memory_order_relaxed);
        wait_for_seat(self);
    }
    pthread_mutex_unlock(&pool.lock);
    return next;
}

bool workers_leave(void)
{
    pthread_mutex_lock(&pool.lock);
    /* With the lock. */
    size_t n = 0, share = (AWAY_MAX - pool.n_away) / AWAY_SHARE;
    for (const struct worker *w = pool.workers; w; w = w->next)
        n += w->is_away && w->job->client == self->job->client;
    bool leaves = pool.n_away < AWAY_MAX && n < (share ? share : 1);
    if (leaves) {
        self->is_away = true;
        self->has_seat = false;
        pool.n_away++;
        struct job *next = pop_next(false);
        if (next)
            seat(next);
        else
            atomic_fetch_sub_explicit(&pool.n_seated, 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&pool.lock);
    return leaves;
}

struct job *workers_return(void)
{
    if (!self || !self->is_away)
        return NULL;
    pthread_mutex_lock(&pool.lock);
    self->is_away = false;
    pool.n_away--;
    push(self->job, PARKED);
    fill_seats();
    wait_for_seat(self);
    pthread_mutex_unlock(&pool.lock);
    return self->job;
}

uint64_t workers_n_parked(void) { return atomic_load_explicit(&pool.n_parked, memory_order_relaxed); }

uint64_t workers_n_yields(void) { return atomic_load_explicit(&pool.n_yields, memory_order_relaxed); }
