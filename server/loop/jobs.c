/* Owns the jobs that the loops hand to the workers: their way there and back, their turns, their figures, and the jobs
 * that have a thread of their own.
 *
 * A job's life: a loop submits it, a worker runs it, and a call to the loop reports that it is done (loop.c), where its
 * callback takes it over. While it runs it calls job_yield every few microseconds, by way of the core's check for
 * cancellation; there its computing time is charged, and after 20 ms with others waiting its turn ends. So fairness
 * costs one comparison of clocks in a loop that computes.
 *
 * Jobs with a thread of their own, like experiments, run beside the seats with a tenth of a competing thread's share:
 * they must go on, and must not be noticed. */
#define _GNU_SOURCE /* pthread_setname_np */
#include "server/loop/loop.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/resource.h>
#include <time.h>

enum { WAIT_NS = 50 * 1000 };

/* Worker figures: written by workers and loops, read by the thread that prints the metrics. Relaxed order is enough,
 * because no reader depends on two figures being consistent. */
static struct {
    atomic_uint_fast64_t n_queued, n_waiting, n_busy, n_done, busy_ns;
} figures;

static void count(atomic_uint_fast64_t *counter, uint64_t change)
{
    atomic_fetch_add_explicit(counter, change, memory_order_relaxed);
}

static uint64_t counted(atomic_uint_fast64_t *counter) { return atomic_load_explicit(counter, memory_order_relaxed); }

struct jobs_figures jobs_figures(void)
{
    return (struct jobs_figures){
        .n_queued = counted(&figures.n_queued),
        .n_waiting = counted(&figures.n_waiting),
        .n_parked = workers_n_parked(),
        .n_yields = workers_n_yields(),
        .n_busy = counted(&figures.n_busy),
        .n_done = counted(&figures.n_done),
        .busy_ns = counted(&figures.busy_ns),
    };
}

/* ---- Jobs ------------------------------------------------------------------------------------------------------ */

static void job_done(struct loop_call *call)
{
    struct job *job = (struct job *)(void *)((char *)call - offsetof(struct job, finished));
    loop_job_ends(job->loop);
    job->done(job);
}

/* Charges the computing time since the last call. */
static void note_work(struct job *job, uint64_t now)
{
    uint64_t ns = now - job->settled_at;
    job->settled_at = now;
    job->work_ns += ns;
    count(&figures.busy_ns, ns);
    if (job->spend)
        job->spend(job, ns);
}

static void work(struct job *job) /* worker */
{
    job->seated_at = job->settled_at = clock_now();
    job->queue_ns = job->seated_at - job->submitted_at;
    job->work_ns = 0;
    count(&figures.n_queued, (uint64_t)-1);
    if (job->is_first)
        count(&figures.n_waiting, (uint64_t)-1);
    count(&figures.n_busy, 1);
    job->work(job);
    note_work(job, clock_now());
    count(&figures.n_busy, (uint64_t)-1);
    count(&figures.n_done, 1);
    loop_post(job->loop, &job->finished);
}

void jobs_set_workers(size_t n)
{
    loop_guard_memory();
    workers_set(n, work);
}

void jobs_end_workers(void) { workers_end(); }

static void prepare(struct loop *loop, struct job *job)
{
    loop_job_begins(loop);
    job->loop = loop;
    job->finished.fire = job_done;
    job->submitted_at = clock_now();
}

static void queue(struct job *job)
{
    count(&figures.n_queued, 1);
    if (job->is_first)
        count(&figures.n_waiting, 1);
    workers_submit(job);
}

void job_submit(struct loop *loop, struct job *job)
{
    prepare(loop, job);
    queue(job);
}

uint64_t job_age(const struct job *job) { return clock_now() - job->submitted_at; }

bool jobs_have_room(void) { return workers_have_room(); }

/* ---- Turns ----------------------------------------------------------------------------------------------------- */

static bool give_turn(struct job *job, uint64_t now)
{
    note_work(job, now);
    count(&figures.n_busy, (uint64_t)-1);
    bool is_given = workers_yield();
    count(&figures.n_busy, 1);
    job->seated_at = clock_now();
    job->settled_at = is_given ? job->seated_at : now;
    return is_given;
}

/* Called every few microseconds. It charges the computing time even when no other job waits, so that a used-up quota is
 * seen before a long job ends. */
void job_yield(void)
{
    struct job *job = workers_job();
    uint64_t now = job ? clock_now() : 0;
    if (!job)
        return;
    if (now - job->settled_at >= JOB_TURN_NS)
        note_work(job, now);
    if (now - job->seated_at >= JOB_TURN_NS && workers_are_wanted())
        give_turn(job, now);
}

void job_wait(void)
{
    struct job *job = workers_job();
    if (job && workers_are_wanted() && give_turn(job, clock_now()))
        return;
    nanosleep(&(struct timespec){.tv_nsec = WAIT_NS}, NULL);
}

void job_wait_begin(void)
{
    struct job *job = workers_job();
    if (job)
        note_work(job, clock_now());
}

void job_wait_on(void)
{
    struct job *job = workers_job();
    if (job)
        job->settled_at = clock_now();
    job_wait();
    if (job)
        job->settled_at = clock_now();
}

uint64_t *job_waits_since(void)
{
    struct job *job = workers_job_or_away();
    return job ? &job->waits_since : NULL;
}

bool job_leave(void)
{
    struct job *job = workers_job();
    if (!job)
        return true;
    note_work(job, clock_now());
    count(&figures.n_busy, (uint64_t)-1);
    bool leaves = workers_leave();
    if (!leaves)
        count(&figures.n_busy, 1);
    return leaves;
}

void job_return(void)
{
    struct job *job = workers_return();
    if (!job)
        return;
    count(&figures.n_busy, 1);
    job->seated_at = job->settled_at = clock_now();
}

/* ---- Jobs with a thread of their own --------------------------------------------------------------------------- */

/* A tenth of the share of a thread that competes with it: little, yet enough to notice soon that it is to end. */
enum { LOW_PRIORITY = 10 };

static void aside_done(struct loop_call *call)
{
    struct job *job = (struct job *)(void *)((char *)call - offsetof(struct job, finished));
    pthread_join((pthread_t)job->thread, NULL);
    job_done(call);
}

static void *work_aside(void *self)
{
    struct job *job = self;
    if (job->is_low)
        setpriority(PRIO_PROCESS, 0, LOW_PRIORITY); /* of this thread: Linux counts threads here */
    job->work(job);
    loop_post(job->loop, &job->finished);
    return NULL;
}

/* Only the first I/O thread receives signals. The thread does not read its own name, which may not be written yet. */
void job_submit_aside(struct loop *loop, struct job *job)
{
    pthread_t thread;
    sigset_t all, before;
    prepare(loop, job);
    job->finished.fire = aside_done;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool runs = pthread_create(&thread, NULL, work_aside, job) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (runs) {
        pthread_setname_np(thread, "aside");
        job->thread = (unsigned long)thread;
        return;
    }
    job->finished.fire = job_done;
    queue(job);
}
