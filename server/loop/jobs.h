/* The event loop of one I/O thread; the worker threads behind all of them are workers.h. The only file that knows libuv
 * is jobs.c.
 *
 * Call everything here from the loop's thread, where every callback runs too, except functions marked "worker" or "any
 * thread". One struct jobs is one loop; all loops of the process share the workers. Before and after jobs_run the
 * loop's thread is the thread that holds the struct. */
#ifndef SERVER_JOBS_H
#define SERVER_JOBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct jobs;
struct jobs_timer;

/* Says how many jobs compute at a time; before jobs_new. */
void jobs_set_workers(size_t n);
void jobs_end_workers(void); /* the last thing, when every loop is free; nothing to do if there was none */

/* NULL: no memory, no thread or no file descriptor left. Descriptors below n_fds can be watched however short memory is
 * later. */
struct jobs *jobs_new(size_t n_fds);
void jobs_run(struct jobs *jobs);  /* returns after jobs_stop */
void jobs_stop(struct jobs *jobs); /* any thread */
void jobs_turn(struct jobs *jobs); /* runs the loop once without sleeping: for callers that drive the loop themselves,
                                      e.g. tests */
void jobs_free(struct jobs *jobs); /* after jobs_run has returned; waits for jobs still at work; NULL is accepted */

/* A call from one thread to another's loop. Embedded in the object it is about, which lives until fire() is called and
 * belongs to the loop from then on; before that it may not be posted again. Posted calls are made in their order, the
 * last ones by jobs_free. */
struct jobs_call {
    void (*fire)(struct jobs_call *call);
    struct jobs_call *next; /* private */
};
void jobs_post(struct jobs *jobs, struct jobs_call *call); /* any thread */

/* Of workers.c: a client's place among the turns. */
struct job_turn {
    struct job *next, *next_in_bucket, *first[2], *last[2];
    size_t n_first, n_parked;
};

/* A piece of work: work() on a worker, then done() on the loop. Embedded in the object that owns it, which must live
 * until done() is called; it may be submitted again from there. */
struct job {
    void (*work)(struct job *job); /* worker */
    void (*done)(struct job *job);
    /* Counts ns of computing: called while the job works and at its end. Worker; NULL: not counted */
    void (*spend)(struct job *job, uint64_t ns);
    bool is_first;              /* the first job of a request: it counts as waiting while it is queued */
    uint64_t client;            /* whose it is: clients take turns. 0: the server's own */
    uint64_t queue_ns, work_ns; /* how long it waited to begin, and computed; set when done() is called */
    /* private: */
    struct jobs *jobs;
    uint64_t submitted_at, seated_at, settled_at;
    struct jobs_call finished;
    unsigned long thread; /* its own, if it has one */
    struct job *next;     /* of workers.c, as the rest */
    struct worker *worker;
    uint64_t ticket;
    struct job_turn turn;
};

void jobs_submit(struct jobs *jobs, struct job *job);
uint64_t job_age(const struct job *job); /* ns since it was submitted; called in work() */

/* The same on a separate thread, past the queue, for work that must not wait for other jobs. No metric counts it, and
 * it sets no times. If no thread can be started, the job waits in the queue. */
void jobs_submit_aside(struct jobs *jobs, struct job *job);

/* A job's turn. A client waits for one turn of each other that has work; a change of threads takes some 10 us, and what
 * the cache has of the one is lost to the other: a two-thousandth of a turn. */
enum { JOBS_TURN_NS = 20 * 1000 * 1000 };
/* In work(), now and then: a job that has had its turn lets others that wait have theirs, and returns when the
 * next is its own. Called while a lock is held it would keep others out for as long. Elsewhere it does nothing. */
void jobs_breathe(void);
bool jobs_have_room(void); /* would a job be begun at once? Any thread */
/* In work(), where the job cannot go on before another has: gives up its turn, or sleeps a moment. Any thread. */
void jobs_wait(void);

/* Figures of the workers, of the whole process. Any thread. */
struct jobs_figures {
    uint64_t n_queued;  /* submitted, not begun */
    uint64_t n_waiting; /* of these, first jobs: requests nobody works on yet */
    uint64_t n_parked;  /* begun, and waiting for their next turn */
    uint64_t n_yields;  /* turns given up before the job was done, since the start */
    uint64_t n_busy;    /* workers at work */
    uint64_t n_done;    /* jobs finished since the start */
    uint64_t busy_ns;   /* time spent in work() since the start, and not waiting for a turn */
};
struct jobs_figures jobs_figures(void);

/* Something with a pollable descriptor that wants to run inside the loop. run() is called when fd is readable, when its
 * time is up, and once more before the loop sleeps if wants_run was set (by run itself, or by anything it owns). */
struct jobs_driven {
    int fd;
    void *self;
    void (*run)(void *self);
    bool (*timeout)(void *self, uint64_t *ms); /* true: call run() again within *ms */
    bool wants_run;
};
enum { JOBS_DRIVEN_MAX = 2 };                                   /* of one loop */
bool jobs_drive(struct jobs *jobs, struct jobs_driven *driven); /* borrowed until jobs_free */

/* Calls fire() while a descriptor can be read, or written. Ends with jobs_watch_free, before the descriptor is closed
 * or watched by somebody else. NULL: no memory. */
struct jobs_watch;
enum jobs_watch_kind { JOBS_READABLE, JOBS_WRITABLE };
struct jobs_watch *jobs_watch_new(struct jobs *jobs, int fd, enum jobs_watch_kind kind, void (*fire)(void *self),
                                  void *self);
void jobs_watch_pause(struct jobs_watch *watch, bool is_paused);
void jobs_watch_free(struct jobs_watch *watch); /* NULL is accepted */

/* Called before the loop sleeps, when all that was ready has been served. */
void jobs_before_sleep(struct jobs *jobs, void (*hook)(void *self), void *self);

/* A timer, stopped at first; lives until jobs_free. NULL: no memory. */
struct jobs_timer *jobs_timer_new(struct jobs *jobs, void (*fire)(void *self), void *self);
void jobs_timer_start(struct jobs_timer *timer, uint64_t first_ms, uint64_t repeat_ms); /* repeat_ms = 0: once */
void jobs_timer_stop(struct jobs_timer *timer);

/* Calls fire() on the loop each time the process receives the signal. False: no memory. */
bool jobs_on_signal(struct jobs *jobs, int signum, void (*fire)(void *self, int signum), void *self);

#endif
