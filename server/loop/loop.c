/* Owns the libuv loop of one I/O thread: the driven objects (the HTTP daemons), watched descriptors, calls from other
 * threads, timers and signals. */
#include "server/loop/loop.h"

#include "server/log.h"
#include "server/loop/workers.h"

#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>
#include <uv.h>

/* libuv closes handles asynchronously, so each handle stays in a list until the loop has released it. */
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
    struct jobs_call *calls, **calls_end; /* posted, not yet executed; first in, first out */
    size_t n_jobs;                        /* submitted, done() not yet called */
    struct driven driven[JOBS_DRIVEN_MAX];
    size_t n_driven;
    uv_timer_t alarm;
    uv_idle_t again;
    uv_prepare_t prepare;
    uv_poll_t highest; /* closed at once, see make_room */
    void (*before_sleep)(void *self);
    void *before_sleep_self;
    struct jobs_timer *timers;
    struct jobs_signal *signals;
};

/* Allocator for libuv while the loop is created: logs a failure and exits, because libuv would abort without a message
 * when its table of watched descriptors cannot grow. */
static void *grow(void *block, size_t n)
{
    void *grown = realloc(block, n);
    if (grown || n == 0)
        return grown;
    log_error("no memory for the event loop: %zu bytes", n);
    log_flush_all(LOG_GRACE_MS);
    _exit(EXIT_FAILURE);
}

/* ---- Jobs at work ---------------------------------------------------------------------------------------------- */

void loop_watch_memory(void) { uv_replace_allocator(malloc, grow, calloc, free); }

void loop_job_begins(struct jobs *jobs) { jobs->n_jobs++; }

void loop_job_ends(struct jobs *jobs) { jobs->n_jobs--; }

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

/* An active idle handle makes the loop poll without sleeping, and is called on every turn. */
static void keep_awake(struct jobs *jobs, bool awake)
{
    if (awake)
        uv_idle_start(&jobs->again, on_again);
    else
        uv_idle_stop(&jobs->again);
}

/* The daemon's sockets are edge-triggered: data that it has not read yet causes no second event, so its own timeout (0:
 * run again at once) must be obeyed; a connection that was resumed or closed causes no event at all (wants_run). One
 * run may make others necessary, so a few rounds are made here; the rest wait until the loop has polled its other
 * descriptors. Returns whether the object has a timeout, and stores it in *ms if it is earlier. */
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
    (void)status, (void)events; /* the reader of the descriptor finds the error */
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
        uv_close((uv_handle_t *)&watch->handle, free_watch); /* the descriptor is released at once, the memory later */
}

/* ---- Calls from other threads ---------------------------------------------------------------------------------- */

/* The loop is woken before the lock is released: after that it may execute the call and, if this was the last one,
 * end. */
void jobs_post(struct jobs *jobs, struct jobs_call *call)
{
    call->next = NULL;
    pthread_mutex_lock(&jobs->calls_lock);
    bool is_awake = jobs->calls; /* the loop has already been woken for these */
    *jobs->calls_end = call;
    jobs->calls_end = &call->next;
    if (!is_awake)
        uv_async_send(&jobs->posted);
    pthread_mutex_unlock(&jobs->calls_lock);
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
    uv_update_time(timer->handle.loop); /* libuv counts from its cached time, which a long callback makes old */
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

/* libuv keeps the watched descriptors in a table indexed by descriptor, and aborts the process if the table cannot
 * grow. So it is grown once, here, by watching the highest possible descriptor. */
static bool make_room(struct jobs *jobs, size_t n_fds)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && n_fds > limit.rlim_cur)
        n_fds = limit.rlim_cur;
    int fd = eventfd(0, EFD_CLOEXEC), highest = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, (int)n_fds - 1);
    bool done = highest >= 0 && uv_poll_init(&jobs->loop, &jobs->highest, highest) == 0;
    if (done) {
        done = uv_poll_start(&jobs->highest, UV_READABLE, NULL) == 0;
        uv_close((uv_handle_t *)&jobs->highest, NULL);
    }
    if (highest >= 0)
        close(highest);
    if (fd >= 0)
        close(fd);
    return done;
}

static void on_stop(uv_async_t *handle) { uv_stop(handle->loop); }

struct jobs *jobs_new(size_t n_fds)
{
    struct jobs *jobs = calloc(1, sizeof *jobs);
    if (!jobs)
        return NULL;
    if (!workers_start() || uv_loop_init(&jobs->loop) != 0) {
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
    if (make_room(jobs, n_fds))
        return jobs;
    jobs_free(jobs);
    return NULL;
}

void jobs_run(struct jobs *jobs) { uv_run(&jobs->loop, UV_RUN_DEFAULT); }

void jobs_turn(struct jobs *jobs) { uv_run(&jobs->loop, UV_RUN_NOWAIT); }

void jobs_stop(struct jobs *jobs) { uv_async_send(&jobs->stop); }

static void close_handle(uv_handle_t *handle, void *kept)
{
    if (handle != kept && !uv_is_closing(handle))
        uv_close(handle, NULL);
}

void jobs_free(struct jobs *jobs)
{
    if (!jobs)
        return;
    make_calls(jobs);
    jobs->n_driven = 0;
    uv_walk(&jobs->loop, close_handle, &jobs->posted);
    while (jobs->n_jobs > 0)
        uv_run(&jobs->loop, UV_RUN_ONCE);
    make_calls(jobs); /* the last jobs may have posted calls */
    uv_close((uv_handle_t *)&jobs->posted, NULL);
    uv_run(&jobs->loop, UV_RUN_DEFAULT); /* ends when the last handle is closed */
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
