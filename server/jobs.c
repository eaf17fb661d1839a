/* Owns the libuv loop: jobs on the worker threads, the driven objects (the HTTP daemons), watched descriptors, calls
 * from other threads, timers and signals. */
#include "server/jobs.h"

#include "server/clock.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

/* Handles are closed asynchronously, so each lives in a list until the loop has let go of it. */
struct jobs_timer {
    uv_timer_t handle;
    void (*fire)(void *self);
    void *self;
    struct jobs_timer *next;
};

struct jobs_signal {
    uv_signal_t handle;
    void (*fire)(void *self, int signum);
    void *self;
    struct jobs_signal *next;
};

struct jobs_watch {
    uv_poll_t handle;
    enum jobs_watch_kind kind;
    void (*fire)(void *self);
    void *self;
};

struct driven {
    uv_poll_t poll;
    struct jobs_driven *object;
};

struct jobs {
    uv_loop_t loop;
    uv_async_t stop; /* also keeps the loop alive */
    uv_async_t posted;
    pthread_mutex_t calls_lock;
    struct jobs_call *calls, **calls_end; /* posted, not yet made; first in, first out */
    struct driven driven[JOBS_DRIVEN_MAX];
    size_t n_driven;
    uv_timer_t alarm;
    uv_idle_t again;
    uv_prepare_t prepare;
    void (*before_sleep)(void *self);
    void *before_sleep_self;
    struct jobs_timer *timers;
    struct jobs_signal *signals;
};

/* Worker figures: written by workers and loops, read by whoever prints the metrics. Relaxed order: nothing depends on
 * two of them agreeing. */
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
        .n_busy = counted(&figures.n_busy),
        .n_done = counted(&figures.n_done),
        .busy_ns = counted(&figures.busy_ns),
    };
}

void jobs_set_workers(unsigned n_workers)
{
    char text[16];
    snprintf(text, sizeof text, "%u", n_workers);
    setenv("UV_THREADPOOL_SIZE", text, 1);
}

/* ---- Jobs ------------------------------------------------------------------------------------------------------ */

_Static_assert(sizeof(uv_work_t) <= JOBS_REQUEST_BYTES, "libuv's work request has grown: raise JOBS_REQUEST_BYTES");

static void job_work(uv_work_t *request)
{
    struct job *job = request->data;
    uint64_t begun_at = clock_now();
    count(&figures.n_queued, (uint64_t)-1);
    if (job->is_first)
        count(&figures.n_waiting, (uint64_t)-1);
    count(&figures.n_busy, 1);
    job->work(job);
    job->queue_ns = begun_at - job->submitted_at;
    job->work_ns = clock_now() - begun_at;
    count(&figures.busy_ns, job->work_ns);
    count(&figures.n_busy, (uint64_t)-1);
    count(&figures.n_done, 1);
}

static void job_done(uv_work_t *request, int status)
{
    assert(status == 0); /* nothing here calls uv_cancel: an unwanted job is told by its owner and returns at once */
    (void)status;
    struct job *job = request->data;
    job->done(job);
}

void jobs_submit(struct jobs *jobs, struct job *job)
{
    uv_work_t *request = (uv_work_t *)job->uv_request;
    request->data = job;
    job->jobs = jobs;
    job->submitted_at = clock_now();
    count(&figures.n_queued, 1);
    if (job->is_first)
        count(&figures.n_waiting, 1);
    int failed = uv_queue_work(&jobs->loop, request, job_work, job_done);
    assert(!failed); /* fails only without a work function */
    (void)failed;
}

/* ---- Driven objects -------------------------------------------------------------------------------------------- */

static void drive(struct jobs_driven *object)
{
    object->wants_run = false;
    object->run(object->self);
}

static void drive_all(struct jobs *jobs)
{
    for (size_t i = 0; i < jobs->n_driven; i++)
        drive(jobs->driven[i].object);
}

static void on_readable(uv_poll_t *handle, int status, int events)
{
    (void)status, (void)events;
    drive(handle->data);
}

static void on_alarm(uv_timer_t *handle) { drive_all(handle->data); }

static void on_again(uv_idle_t *handle) { drive_all(handle->data); }

/* An idle handle makes the loop poll without sleeping, and is called on every turn. */
static void keep_awake(struct jobs *jobs, bool awake)
{
    if (awake)
        uv_idle_start(&jobs->again, on_again);
    else
        uv_idle_stop(&jobs->again);
}

/* The daemon's sockets are edge-triggered: data it has not read yet makes no second event, so its own timeout (0: call
 * me again) must be obeyed, and a connection that was resumed or closed makes no event at all (wants_run). A few rounds
 * are enough for what one round sets off; the rest may wait until the loop has looked at its other descriptors.
 * Returns whether the object has a time, and takes it into *ms if that is earlier. */
static bool settle(struct jobs_driven *object, uint64_t *ms)
{
    enum { ROUNDS_MAX = 4 };
    for (int i = 0; i < ROUNDS_MAX && object->wants_run; i++)
        drive(object);
    uint64_t own = UINT64_MAX;
    bool has_timeout = object->timeout(object->self, &own);
    if (object->wants_run)
        own = 0;
    *ms = own < *ms ? own : *ms;
    return has_timeout || object->wants_run;
}

static void settle_all(struct jobs *jobs)
{
    uint64_t ms = UINT64_MAX;
    bool has_timeout = false;
    for (size_t i = 0; i < jobs->n_driven; i++)
        has_timeout |= settle(jobs->driven[i].object, &ms);
    keep_awake(jobs, has_timeout && ms == 0);
    if (has_timeout && ms > 0)
        uv_timer_start(&jobs->alarm, on_alarm, ms, 0);
    else
        uv_timer_stop(&jobs->alarm);
}

static void on_prepare(uv_prepare_t *handle)
{
    struct jobs *jobs = handle->data;
    settle_all(jobs);
    if (jobs->before_sleep)
        jobs->before_sleep(jobs->before_sleep_self);
}

bool jobs_drive(struct jobs *jobs, struct jobs_driven *object)
{
    assert(jobs->n_driven < JOBS_DRIVEN_MAX);
    struct driven *driven = &jobs->driven[jobs->n_driven];
    if (uv_poll_init(&jobs->loop, &driven->poll, object->fd) != 0)
        return false;
    driven->poll.data = driven->object = object;
    jobs->n_driven++;
    return uv_poll_start(&driven->poll, UV_READABLE, on_readable) == 0;
}

/* ---- Watched descriptors --------------------------------------------------------------------------------------- */

static void on_watch(uv_poll_t *handle, int status, int events)
{
    (void)status, (void)events; /* an error is found by whoever reads */
    struct jobs_watch *watch = handle->data;
    watch->fire(watch->self);
}

struct jobs_watch *jobs_watch_new(struct jobs *jobs, int fd, enum jobs_watch_kind kind, void (*fire)(void *self),
                                  void *self)
{
    struct jobs_watch *watch = calloc(1, sizeof *watch);
    if (!watch || uv_poll_init(&jobs->loop, &watch->handle, fd) != 0) {
        free(watch);
        return NULL;
    }
    watch->handle.data = watch;
    watch->kind = kind;
    watch->fire = fire;
    watch->self = self;
    jobs_watch_pause(watch, false);
    return watch;
}

void jobs_watch_pause(struct jobs_watch *watch, bool is_paused)
{
    if (is_paused)
        uv_poll_stop(&watch->handle);
    else
        uv_poll_start(&watch->handle, watch->kind == JOBS_WRITABLE ? UV_WRITABLE : UV_READABLE, on_watch);
}

static void free_watch(uv_handle_t *handle) { free(handle->data); }

void jobs_watch_free(struct jobs_watch *watch)
{
    if (watch)
        uv_close((uv_handle_t *)&watch->handle, free_watch); /* the descriptor is let go of at once, the memory later */
}

/* ---- Calls from other threads ---------------------------------------------------------------------------------- */

void jobs_post(struct jobs *jobs, struct jobs_call *call)
{
    call->next = NULL;
    pthread_mutex_lock(&jobs->calls_lock);
    *jobs->calls_end = call;
    jobs->calls_end = &call->next;
    pthread_mutex_unlock(&jobs->calls_lock);
    uv_async_send(&jobs->posted); /* several before the loop wakes are one event */
}

static void make_calls(struct jobs *jobs)
{
    pthread_mutex_lock(&jobs->calls_lock);
    struct jobs_call *call = jobs->calls;
    jobs->calls = NULL;
    jobs->calls_end = &jobs->calls;
    pthread_mutex_unlock(&jobs->calls_lock);
    for (struct jobs_call *next; call; call = next) {
        next = call->next; /* the call may free itself */
        call->fire(call);
    }
}

static void on_posted(uv_async_t *handle) { make_calls(handle->data); }

void jobs_before_sleep(struct jobs *jobs, void (*hook)(void *self), void *self)
{
    jobs->before_sleep = hook;
    jobs->before_sleep_self = self;
}

/* ---- Timers and signals ---------------------------------------------------------------------------------------- */

static void on_timer(uv_timer_t *handle)
{
    struct jobs_timer *timer = handle->data;
    timer->fire(timer->self);
}

struct jobs_timer *jobs_timer_new(struct jobs *jobs, void (*fire)(void *self), void *self)
{
    struct jobs_timer *timer = calloc(1, sizeof *timer);
    if (!timer)
        return NULL;
    uv_timer_init(&jobs->loop, &timer->handle);
    timer->handle.data = timer;
    timer->fire = fire;
    timer->self = self;
    timer->next = jobs->timers;
    jobs->timers = timer;
    return timer;
}

void jobs_timer_start(struct jobs_timer *timer, uint64_t first_ms, uint64_t repeat_ms)
{
    uv_update_time(timer->handle.loop); /* libuv counts from its cached time, which a long callback leaves behind */
    uv_timer_start(&timer->handle, on_timer, first_ms, repeat_ms);
}

void jobs_timer_stop(struct jobs_timer *timer) { uv_timer_stop(&timer->handle); }

static void on_signal(uv_signal_t *handle, int signum)
{
    struct jobs_signal *watch = handle->data;
    watch->fire(watch->self, signum);
}

bool jobs_on_signal(struct jobs *jobs, int signum, void (*fire)(void *self, int signum), void *self)
{
    struct jobs_signal *watch = calloc(1, sizeof *watch);
    if (!watch)
        return false;
    uv_signal_init(&jobs->loop, &watch->handle);
    watch->handle.data = watch;
    watch->fire = fire;
    watch->self = self;
    watch->next = jobs->signals;
    jobs->signals = watch;
    return uv_signal_start(&watch->handle, on_signal, signum) == 0;
}

/* ---- The loop -------------------------------------------------------------------------------------------------- */

static void on_stop(uv_async_t *handle) { uv_stop(handle->loop); }

struct jobs *jobs_new(void)
{
    struct jobs *jobs = calloc(1, sizeof *jobs);
    if (!jobs)
        return NULL;
    if (uv_loop_init(&jobs->loop) != 0) {
        free(jobs);
        return NULL;
    }
    pthread_mutex_init(&jobs->calls_lock, NULL);
    jobs->calls_end = &jobs->calls;
    uv_async_init(&jobs->loop, &jobs->stop, on_stop);
    uv_async_init(&jobs->loop, &jobs->posted, on_posted);
    uv_timer_init(&jobs->loop, &jobs->alarm);
    uv_idle_init(&jobs->loop, &jobs->again);
    uv_prepare_init(&jobs->loop, &jobs->prepare);
    jobs->alarm.data = jobs->again.data = jobs->prepare.data = jobs->posted.data = jobs;
    uv_prepare_start(&jobs->prepare, on_prepare);
    return jobs;
}

void jobs_run(struct jobs *jobs) { uv_run(&jobs->loop, UV_RUN_DEFAULT); }

void jobs_stop(struct jobs *jobs) { uv_async_send(&jobs->stop); }

static void close_handle(uv_handle_t *handle, void *unused)
{
    (void)unused;
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

void jobs_free(struct jobs *jobs)
{
    if (!jobs)
        return;
    make_calls(jobs);
    jobs->n_driven = 0;
    uv_walk(&jobs->loop, close_handle, NULL);
    uv_run(&jobs->loop, UV_RUN_DEFAULT); /* ends when the last job is done and the last handle closed */
    int busy = uv_loop_close(&jobs->loop);
    assert(!busy);
    (void)busy;
    for (struct jobs_timer *timer = jobs->timers, *next; timer; timer = next) {
        next = timer->next;
        free(timer);
    }
    for (struct jobs_signal *watch = jobs->signals, *next; watch; watch = next) {
        next = watch->next;
        free(watch);
    }
    pthread_mutex_destroy(&jobs->calls_lock);
    free(jobs);
}
