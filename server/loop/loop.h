/* The event loop of one I/O thread (loop.c), the jobs that it hands to worker threads (jobs.c), and those threads,
 * which all loops share (workers.c). */
#ifndef SERVER_LOOP_H
#define SERVER_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* ---- The clock --------------------------------------------------------------------------------------------------- */

/* The server's clock: monotonic, in nanoseconds; it never jumps. */

#define CLOCK_SECOND 1000000000ULL
#define CLOCK_MS 1000000ULL

static inline uint64_t clock_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * CLOCK_SECOND + (uint64_t)t.tv_nsec;
}

/* The same clock as of the last tick, up to some milliseconds ago, at a fifth of the cost. This is accurate enough for
 * deadlines of seconds, of which every request sets several. */
static inline uint64_t clock_coarse(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return (uint64_t)t.tv_sec * CLOCK_SECOND + (uint64_t)t.tv_nsec;
}

/* Processor time that the calling thread has used, without the time in which it waited for a turn. */
static inline uint64_t clock_of_thread(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * CLOCK_SECOND + (uint64_t)t.tv_nsec;
}

/* Prints a duration as milliseconds with three decimals, "12.034"; returns the end (where a NUL is). Every request
 * prints half a dozen of these, and printf takes a microsecond for a double. */
enum { CLOCK_MS_BYTES = 24 };

static inline char *clock_print_ms(char *dst, uint64_t ns)
{
    uint64_t us = (ns + 500) / 1000, ms = us / 1000;
    unsigned rest = (unsigned)(us % 1000);
    char reversed[CLOCK_MS_BYTES];
    int n = 0;
    do
        reversed[n++] = (char)('0' + ms % 10);
    while (ms /= 10);
    while (n > 0)
        *dst++ = reversed[--n];
    *dst++ = '.';
    *dst++ = (char)('0' + rest / 100);
    *dst++ = (char)('0' + rest / 10 % 10);
    *dst++ = (char)('0' + rest % 10);
    *dst = '\0';
    return dst;
}

/* ---- loop.c ------------------------------------------------------------------------------------------------------ */

/* Call everything here from the loop's thread, where every callback also runs, except functions marked "worker" or "any
 * thread". One struct loop is one. Before and after loop_run, the loop's thread is the thread that holds the
 * struct. */

struct loop;
struct loop_timer;

/* Sets how many jobs compute at a time. Call before loop_new. */
void jobs_set_workers(size_t n);
void jobs_end_workers(void); /* call last, when every loop is freed; does nothing if no worker was started */

/* NULL: no memory, no thread or no file descriptor left. Descriptors below n_fds can always be watched, even if memory
 * runs out later. */
struct loop *loop_new(size_t n_fds);
void loop_run(struct loop *loop);  /* returns after loop_stop */
void loop_stop(struct loop *loop); /* any thread */
void loop_turn(struct loop *loop); /* runs the loop once without sleeping: for callers that drive the loop themselves,
                                      e.g. tests */
void loop_free(struct loop *loop); /* after loop_run has returned; waits for jobs still at work; NULL is accepted */

/* A call from one thread to another thread's loop. It is embedded in the object that it concerns. That object must live
 * until fire() is called; from then on it belongs to the loop. A call must not be posted again before fire() has been
 * called. Posted calls are executed in order; loop_free executes those that remain. */
struct loop_call {
    void (*fire)(struct loop_call *call);
    struct loop_call *next; /* private */
};
void loop_post(struct loop *loop, struct loop_call *call); /* any thread */

/* A client's place in the queue; used by workers.c. */
struct job_turn {
    struct job *next, *next_in_bucket, *first[2], *last[2];
    size_t n_first, n_parked;
};

/* A piece of work: work() runs on a worker, then done() on the loop. It is embedded in the object that owns it, which
 * must live until done() is called; done() may submit it again. */
struct job {
    void (*work)(struct job *job); /* worker */
    void (*done)(struct job *job);
    /* Charges ns of computing time: called while the job runs and at its end. Worker; NULL: not charged */
    void (*spend)(struct job *job, uint64_t ns);
    bool is_low;                /* job_submit_aside: its thread has a low priority */
    bool is_first;              /* the first job of a request: it counts as waiting while it is queued */
    uint64_t client;            /* the client that it works for: clients take turns; 0: the server itself */
    uint64_t queue_ns, work_ns; /* time in the queue and time computing; valid when done() is called */
    uint64_t waits_since;       /* when the wait began that it is in, or gave up, or goes on with; 0: none */
    /* private: */
    struct loop *loop;
    uint64_t submitted_at, seated_at, settled_at;
    struct loop_call finished;
    unsigned long thread; /* its own thread, if it has one */
    struct job *next;     /* of workers.c, as are the fields below */
    struct worker *worker;
    uint64_t ticket;
    struct job_turn turn;
};

void job_submit(struct loop *loop, struct job *job);
uint64_t job_age(const struct job *job); /* ns since it was submitted; call it in work() */

/* Runs the job on a separate thread, bypassing the queue, for work that must not wait for other jobs. No metric counts
 * it, and its times are not set. If no thread can be started, the job goes to the queue. */
void job_submit_aside(struct loop *loop, struct job *job);

/* Length of a job's turn. A client waits for one turn of each other client that has work. A switch of threads takes
 * some 10 us, plus the cache contents that are lost: a two-thousandth of a turn. */
enum { JOB_TURN_NS = 20 * 1000 * 1000 };
/* Call it in work() at short intervals. A job whose turn has ended lets waiting jobs run, and returns when its next
 * turn begins. Do not call it while holding a lock: other threads would wait as long. Outside of a job it does
 * nothing. */
void job_yield(void);
bool jobs_have_room(void); /* would a job be started at once? Any thread */
/* Call it in work() when the job must wait for another job: it gives up its turn, or sleeps briefly. Any thread. */
void job_wait(void);
/* From job_leave to job_return a job waits for a disk or a network: it has no turn, so it delays no other job, and
 * its time is not charged. False: as many jobs as may do so wait already; then job_return does nothing. */
bool job_leave(void);
void job_return(void);
/* Likewise in a short wait for a network: computing time up to job_wait_begin is charged, and from there to the last
 * job_wait_on it is not. */
void job_wait_begin(void);
void job_wait_on(void);
uint64_t *job_waits_since(void); /* of the calling job; NULL if no job calls */

/* Figures of all workers of the process. Any thread. */
struct jobs_figures {
    uint64_t n_queued;  /* submitted, not started */
    uint64_t n_waiting; /* of these, first jobs: requests that no worker has started yet */
    uint64_t n_parked;  /* started, and waiting for their next turn */
    uint64_t n_yields;  /* turns given up before the job was done, since the start */
    uint64_t n_busy;    /* workers that run a job */
    uint64_t n_done;    /* jobs finished since the start */
    uint64_t busy_ns;   /* time spent in work() since the start, without the waits for a turn */
};
struct jobs_figures jobs_figures(void);

/* An object with a pollable descriptor that is run inside the loop. run() is called when fd is readable, when its
 * timeout is over, and once more before the loop sleeps if wants_run was set (by run itself, or by any part of the
 * object). */
struct loop_driven {
    int fd;
    void *self;
    void (*run)(void *self);
    bool (*timeout)(void *self, uint64_t *ms); /* true: call run() again within *ms */
    bool wants_run;
};
enum { LOOP_DRIVEN_MAX = 2 };                                   /* per loop */
bool loop_drive(struct loop *loop, struct loop_driven *driven); /* borrowed until loop_free */

/* Calls fire() while a descriptor is readable, or writable. loop_watch_free ends the watch; call it before the
 * descriptor is closed or watched elsewhere. NULL: no memory. */
struct loop_watch;
enum loop_watch_kind { LOOP_READABLE, LOOP_WRITABLE };
struct loop_watch *loop_watch_new(struct loop *loop, int fd, enum loop_watch_kind kind, void (*fire)(void *self),
                                  void *self);
void loop_watch_pause(struct loop_watch *watch, bool is_paused);
void loop_watch_free(struct loop_watch *watch); /* NULL is accepted */

/* Registers a hook that is called before the loop sleeps, when all ready events have been handled. */
void loop_before_sleep(struct loop *loop, void (*hook)(void *self), void *self);

/* A timer, not yet started; lives until loop_free. NULL: no memory. */
struct loop_timer *loop_timer_new(struct loop *loop, void (*fire)(void *self), void *self);
void loop_timer_start(struct loop_timer *timer, uint64_t first_ms, uint64_t repeat_ms); /* repeat_ms = 0: once */
void loop_timer_stop(struct loop_timer *timer);

/* Calls fire() on the loop each time the process receives the signal. False: no memory. */
bool loop_on_signal(struct loop *loop, int signum, void (*fire)(void *self, int signum), void *self);

/* ---- For jobs.c ------------------------------------------------------------------------------------------------ */

/* From now on, the process logs a reason and exits if libuv cannot enlarge a table. Call it before the first loop_new.
 */
void loop_guard_memory(void);

/* Counts the jobs of a loop, on its thread: loop_free waits until each that has begun has ended. A job ends before its
 * done() is called, which may submit it again. */
void loop_job_begins(struct loop *loop);
void loop_job_ends(struct loop *loop);

/* ---- workers.c --------------------------------------------------------------------------------------------------- */

/* The worker threads and their queue, which decides which job runs next and for how long.
 *
 * Jobs wait in one queue per client (struct job's `client`), and clients take turns: a thousand requests of one client
 * delay the only request of another by a single turn. A job whose turn has ended before it is done (workers_yield)
 * waits in the queue like any other, while its thread sleeps. Nothing here allocates memory for a job; a waiting job is
 * itself the queue entry. */

/* Sets how many jobs compute at a time, and the function that runs a job. Call before workers_start. */
void workers_set(size_t n, void (*run)(struct job *job));
bool workers_start(void); /* starts the threads unless they run. False: the system provides no thread or memory */
void workers_end(void);   /* ends the threads; no job may be queued or running */

void workers_submit(struct job *job); /* any thread */
bool workers_have_room(void);         /* would a job submitted now be started at once? Any thread */

/* ---- For a job at work, on its thread ---- */

struct job *workers_job(void);         /* the job of the calling thread; NULL: the thread is not a worker, or is away */
struct job *workers_job_or_away(void); /* also after workers_leave */
bool workers_are_wanted(void);         /* does any job wait? Costs almost nothing */
/* Lets the next job run in the caller's place, and returns when the caller's job has its next turn. Returns false at
 * once if no waiting job can get a thread. */
bool workers_yield(void);
/* Gives up the seat until workers_return, for a wait for a disk or a network. False: too many jobs are away, of all
 * clients or of this one; the job keeps its seat. */
bool workers_leave(void);
struct job *workers_return(void); /* waits for the next turn; NULL: the thread was not away */

/* ---- Figures, any thread ---- */

size_t workers_n_waiting(uint64_t client); /* waiting first jobs of this client (requests that no worker has started) */
uint64_t workers_n_parked(void);           /* started jobs that wait for their next turn */
uint64_t workers_n_yields(void);           /* turns that ended before their job was done, since the start */

#endif
