/* Owns a wall clock that jumps, and workers that stop for a while. */
#define _GNU_SOURCE /* RTLD_NEXT, dladdr */
#include "tests/faults/faults.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

/* ---- Workers ----------------------------------------------------------------------------------------------------- */

/* The threads of libuv's pool are those that libuv itself makes. */
static _Thread_local bool is_worker;

struct start {
    void *(*run)(void *self);
    void *self;
};

static void *run_worker(void *object)
{
    struct start start = *(struct start *)object;
    free(object);
    is_worker = true;
    return start.run(start.self);
}

static bool is_libuv(void *address)
{
    Dl_info info;
    return dladdr(address, &info) && info.dli_fname && strstr(info.dli_fname, "libuv");
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *self)
{
    static int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "pthread_create");
    struct start *start = is_libuv(__builtin_return_address(0)) ? malloc(sizeof *start) : NULL;
    if (!start)
        return next(thread, attributes, run, self);
    *start = (struct start){run, self};
    return next(thread, attributes, run_worker, start);
}

/* A worker looks at the clock before and after each job. */
static void dawdle(void)
{
    static atomic_long n_looks;
    long every = is_worker ? atomic_load_explicit(&faults->worker_every, memory_order_relaxed) : 0;
    if (every <= 0 || atomic_fetch_add(&n_looks, 1) % every != 0)
        return;
    atomic_fetch_add(&faults->worker_delays, 1);
    long ms = atomic_load(&faults->worker_delay_ms);
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

/* ---- Clocks ------------------------------------------------------------------------------------------------------ */

int clock_gettime(clockid_t clock, struct timespec *now)
{
    static int (*next)(clockid_t, struct timespec *);
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "clock_gettime");
    dawdle();
    int failed = next(clock, now);
    if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)
        now->tv_sec += atomic_load_explicit(&faults->wall_offset, memory_order_relaxed);
    return failed;
}

time_t time(time_t *place)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (place)
        *place = now.tv_sec;
    return now.tv_sec;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec precise;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &precise);
    *now = (struct timeval){precise.tv_sec, precise.tv_nsec / 1000};
    return 0;
}
