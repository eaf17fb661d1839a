/* Owns a wall clock that jumps, and workers that pause for a while. */
#define _GNU_SOURCE /* RTLD_NEXT, pthread_setname_np */
#include "tests/faults/faults.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

/* ---- Workers ----------------------------------------------------------------------------------------------------- */

/* The server's workers are recognised by their thread name. */
static _Thread_local bool is_worker;

int pthread_setname_np(pthread_t thread, const char *name)
{
    NEXT(pthread_setname_np)
    if (pthread_equal(thread, pthread_self()))
        is_worker = strcmp(name, "worker") == 0;
    return next(thread, name);
}

/* A worker reads the clock before and after each job. */
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
    NEXT(clock_gettime)
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
