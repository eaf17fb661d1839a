/* Owns the libuv loop of one I/O thread: the driven objects (the HTTP daemons), watched descriptors, calls from other
 * threads, timers and signals.
 *
 * The problem: libmicrohttpd has its own epoll set and wants to be run; libuv has its own and wants to sleep. The
 * daemon's set is watched as one descriptor. But its sockets are edge-triggered, so an event that the daemon did not
 * use up does not come again: after each run its timeout must be obeyed, a timeout of zero at once, and after every
 * resumed or closed connection it must be run again (systemd issue 7130 describes the same trap). Each turn therefore
 * makes a few rounds over its driven objects before it polls.
 *
 * The only thread-safe entry is a call from another thread: a list behind a lock, and one write that wakes the loop.
 * All else belongs to the loop's own thread and needs no lock.
 *
 * Invariant: nothing here may block. A turn that takes 20 ms delays every connection of the loop by that. */
#include "server/loop/loop.h"

#include "server/process/process.h"

#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>
#include <uv.h>

/* libuv closes handles asynchronously, so each handle stays in a list until the loop has released it. */
struct loop_timer {
    uv_timer_t handle;
    void (*fire)(void *self);
    void *self;
    struct loop_timer *next;
};

struct loop_signal {
    uv_signal_t handle;
    void (*fire)(void *self, int signum);
    void *self;
    struct loop_signal *next;
};

struct loop_watch {
    uv_poll_t handle;
    enum loop_watch_kind kind;
    void (*fire)(void *self);
    void *self;
};

struct driven {
    uv_poll_t poll;
    struct loop_driven *object;
};

struct loop {
    uv_loop_t uv;
    uv_async_t stop; /* also keeps the loop alive */
    uv_async_t posted;
    pthread_mutex_t calls_lock;
    struct loop_call *calls, **calls_end; /* posted, not yet executed; first in, first out */
    size_t n_jobs;                        /* submitted, done() not yet called */
    struct driven driven[LOOP_DRIVEN_MAX];
    size_t n_driven;
    uv_timer_t alarm;
    uv_idle_t again;
    uv_prepare_t prepare;
    uv_poll_t highest; /* closed at once, see make_room */
    void (*before_sleep)(void *self);
    void *before_sleep_self;
    struct loop_timer *timers;
    struct loop_signal *signals;
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

void loop_guard_memory(void) { uv_replace_allocator(malloc, grow, calloc, free); }

void loop_job_begins(struct loop *loop) { loop->n_jobs++; }

void loop_job_ends(struct loop *loop) { loop->n_jobs--; }

/* ---- Driven objects -------------------------------------------------------------------------------------------- */

static void drive(struct loop_driven *object)
{
    object->wants_run = false;
    object->run(object->self);
}

static void drive_all(struct loop *loop)
{
    for (size_t i = 0; i < loop->n_driven; i++)
        drive(loop->driven[i].object);
}

static void on_readable(uv_poll_t *handle, int status, int events)
{
    (void)status, (void)events;
    drive(handle->data);
}

static void on_alarm(uv_timer_t *handle) { drive_all(handle->data); }

static void on_again(uv_idle_t *handle) { drive_all(handle->data); }

/* The daemon's sockets are edge-triggered: data that it has not read yet causes no second event, so its own timeout (0:
 * run again at once) must be obeyed; a connection that was resumed or closed causes no event at all (wants_run). One
 * run may make others necessary, so a few rounds are made here; the rest wait until the loop has polled its other
 * descriptors. Returns whether the object has a timeout, and stores it in *ms if it is earlier. */
static bool settle(struct loop_driven *object, uint64_t *ms)
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

static void on_prepare(uv_prepare_t *handle)
{
    struct loop *loop = handle->data;
    uint64_t ms = UINT64_MAX;
    bool has_timeout = false;
    for (size_t i = 0; i < loop->n_driven; i++)
        has_timeout |= settle(loop->driven[i].object, &ms);
    /* An active idle handle makes the loop poll without sleeping, and is called on every turn. */
    if (has_timeout && ms == 0)
        uv_idle_start(&loop->again, on_again);
    else
        uv_idle_stop(&loop->again);
    if (has_timeout && ms > 0)
        uv_timer_start(&loop->alarm, on_alarm, ms, 0);
    else
        uv_timer_stop(&loop->alarm);
    if (loop->before_sleep)
        loop->before_sleep(loop->before_sleep_self);
}

bool loop_drive(struct loop *loop, struct loop_driven *object)
{
    assert(loop->n_driven < LOOP_DRIVEN_MAX);
    struct driven *driven = &loop->driven[loop->n_driven];
    if (uv_poll_init(&loop->uv, &driven->poll, object->fd) != 0)
        return false;
    driven->poll.data = driven->object = object;
    loop->n_driven++;
    return uv_poll_start(&driven->poll, UV_READABLE, on_readable) == 0;
}

/* ---- Watched descriptors --------------------------------------------------------------------------------------- */

static void on_watch(uv_poll_t *handle, int status, int events)
{
    (void)status, (void)events; /* the reader of the descriptor finds the error */
    struct loop_watch *watch = handle->data;
    watch->fire(watch->self);
}

struct loop_watch *loop_watch_new(struct loop *loop, int fd, enum loop_watch_kind kind, void (*fire)(void *self),
                                  void *self)
{
    struct loop_watch *watch = calloc(1, sizeof *watch);
    if (!watch || uv_poll_init(&loop->uv, &watch->handle, fd) != 0) {
        free(watch);
        return NULL;
    }
    watch->handle.data = watch;
    watch->kind = kind;
    watch->fire = fire;
    watch->self = self;
    loop_watch_pause(watch, false);
    return watch;
}

void loop_watch_pause(struct loop_watch *watch, bool is_paused)
{
    if (is_paused)
        uv_poll_stop(&watch->handle);
    else
        uv_poll_start(&watch->handle, watch->kind == LOOP_WRITABLE ? UV_WRITABLE : UV_READABLE, on_watch);
}

static void free_watch(uv_handle_t *handle) { free(handle->data); }

void loop_watch_free(struct loop_watch *watch)
{
    if (watch)
        uv_close((uv_handle_t *)&watch->handle, free_watch); /* the descriptor is released at once, the memory later */
}

/* ---- Calls from other threads ---------------------------------------------------------------------------------- */

/* The loop is woken before the lock is released: after that it may execute the call and, if this was the last one,
 * end. */
void loop_post(struct loop *loop, struct loop_call *call)
{
    call->next = NULL;
    pthread_mutex_lock(&loop->calls_lock);
    bool is_awake = loop->calls; /* the loop has already been woken for these */
    *loop->calls_end = call;
    loop->calls_end = &call->next;
    if (!is_awake)
        uv_async_send(&loop->posted);
    pthread_mutex_unlock(&loop->calls_lock);
}

static void make_calls(struct loop *loop)
{
    pthread_mutex_lock(&loop->calls_lock);
    struct loop_call *call = loop->calls;
    loop->calls = NULL;
    loop->calls_end = &loop->calls;
    pthread_mutex_unlock(&loop->calls_lock);
    for (struct loop_call *next; call; call = next) {
        next = call->next; /* the call may free itself */
        call->fire(call);
    }
}

static void on_posted(uv_async_t *handle) { make_calls(handle->data); }

void loop_before_sleep(struct loop *loop, void (*hook)(void *self), void *self)
{
    loop->before_sleep = hook;
    loop->before_sleep_self = self;
}

/* ---- Timers and signals ---------------------------------------------------------------------------------------- */

static void on_timer(uv_timer_t *handle)
{
    struct loop_timer *timer = handle->data;
    timer->fire(timer->self);
}

struct loop_timer *loop_timer_new(struct loop *loop, void (*fire)(void *self), void *self)
{
    struct loop_timer *timer = calloc(1, sizeof *timer);
    if (!timer)
        return NULL;
    uv_timer_init(&loop->uv, &timer->handle);
    timer->handle.data = timer;
    timer->fire = fire;
    timer->self = self;
    timer->next = loop->timers;
    loop->timers = timer;
    return timer;
}

void loop_timer_start(struct loop_timer *timer, uint64_t first_ms, uint64_t repeat_ms)
{
    uv_update_time(timer->handle.loop); /* libuv counts from its cached time, which a long callback makes old */
    uv_timer_start(&timer->handle, on_timer, first_ms, repeat_ms);
}

void loop_timer_stop(struct loop_timer *timer) { uv_timer_stop(&timer->handle); }

static void on_signal(uv_signal_t *handle, int signum)
{
    struct loop_signal *watch = handle->data;
    watch->fire(watch->self, signum);
}

bool loop_on_signal(struct loop *loop, int signum, void (*fire)(void *self, int signum), void *self)
{
    struct loop_signal *watch = calloc(1, sizeof *watch);
    if (!watch)
        return false;
    uv_signal_init(&loop->uv, &watch->handle);
    watch->handle.data = watch;
    watch->fire = fire;
    watch->self = self;
    watch->next = loop->signals;
    loop->signals = watch;
    return uv_signal_start(&watch->handle, on_signal, signum) == 0;
}

/* ---- The loop -------------------------------------------------------------------------------------------------- */

/* libuv keeps the watched descriptors in a table indexed by descriptor, and aborts the process if the table cannot
 * grow. So it is grown once, here, by watching the highest possible descriptor. */
static bool make_room(struct loop *loop, size_t n_fds)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && n_fds > limit.rlim_cur)
        n_fds = limit.rlim_cur;
    int fd = eventfd(0, EFD_CLOEXEC), highest = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, (int)n_fds - 1);
    bool done = highest >= 0 && uv_poll_init(&loop->uv, &loop->highest, highest) == 0;
    if (done) {
        done = uv_poll_start(&loop->highest, UV_READABLE, NULL) == 0;
        uv_close((uv_handle_t *)&loop->highest, NULL);
    }
    if (highest >= 0)
        close(highest);
    if (fd >= 0)
        close(fd);
    return done;
}

static void on_stop(uv_async_t *handle) { uv_stop(handle->loop); }

struct loop *loop_new(size_t n_fds)
{
    struct loop *loop = calloc(1, sizeof *loop);
    if (!loop)
        return NULL;
    if (!workers_start() || uv_loop_init(&loop->uv) != 0) {
        free(loop);
        return NULL;
    }
    pthread_mutex_init(&loop->calls_lock, NULL);
    loop->calls_end = &loop->calls;
    uv_async_init(&loop->uv, &loop->stop, on_stop);
    uv_async_init(&loop->uv, &loop->posted, on_posted);
    uv_timer_init(&loop->uv, &loop->alarm);
    uv_idle_init(&loop->uv, &loop->again);
    uv_prepare_init(&loop->uv, &loop->prepare);
    loop->alarm.data = loop->again.data = loop->prepare.data = loop->posted.data = loop;
    uv_prepare_start(&loop->prepare, on_prepare);
    if (make_room(loop, n_fds))
        return loop;
    loop_free(loop);
    return NULL;
}

void loop_run(struct loop *loop) { uv_run(&loop->uv, UV_RUN_DEFAULT); }

void loop_turn(struct loop *loop) { uv_run(&loop->uv, UV_RUN_NOWAIT); }

void loop_stop(struct loop *loop) { uv_async_send(&loop->stop); }

static void close_handle(uv_handle_t *handle, void *kept)
{
    if (handle != kept && !uv_is_closing(handle))
        uv_close(handle, NULL);
}

void loop_free(struct loop *loop)
{
    if (!loop)
        return;
    make_calls(loop);
    loop->n_driven = 0;
    uv_walk(&loop->uv, close_handle, &loop->posted);
    while (loop->n_jobs > 0)
        uv_run(&loop->uv, UV_RUN_ONCE);
    make_calls(loop); /* the last jobs may have posted calls */
    uv_close((uv_handle_t *)&loop->posted, NULL);
    uv_run(&loop->uv, UV_RUN_DEFAULT); /* ends when the last handle is closed */
    int busy = uv_loop_close(&loop->uv);
    assert(!busy);
    (void)busy;
    for (struct loop_timer *timer = loop->timers, *next; timer; timer = next) {
        next = timer->next;
        free(timer);
    }
    for (struct loop_signal *watch = loop->signals, *next; watch; watch = next) {
        next = watch->next;
        free(watch);
    }
    pthread_mutex_destroy(&loop->calls_lock);
    free(loop);
}
