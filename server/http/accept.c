/* Owns the listening socket while it is served: accepting, the limit of connections, the refusal of those over it, and
 * their distribution among the loops. */
#define _GNU_SOURCE /* accept4 */
#include "server/http/accept.h"

#include "server/metrics.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    TURN_MAX = 64,   /* connections accepted in one turn of the loop, which also has other clients to serve */
    RETRY_MS = 100,  /* delay before accept is tried again after the process ran out of descriptors or memory */
    LINGER_MS = 250, /* minimum time for which a refused connection stays open */
    LINGER_MAX = 32, /* refused connections open at a time */
    LAST_MAX = 4096  /* maximum number of connections taken from the queue at the end: a full backlog, even if new
                        clients keep connecting */
};

struct accept {
    struct jobs *jobs;
    int fd; /* -1: closed */
    uint64_t max;
    struct http *const *https;
    size_t n_https, next;
    struct jobs_watch *watch;
    struct jobs_timer *retry;
    atomic_size_t n_open, n_late;
    /* Refused connections, oldest first. If they were closed at once, with unread bytes, they would be reset, and the
     * client might never see the reason. */
    int lingering[LINGER_MAX];
    size_t n_lingering, n_settled; /* n_settled: those that were here at the last tick of the timer */
    struct jobs_timer *linger;
};

struct accept *accept_new(struct jobs *jobs, int listen_fd, uint64_t max)
{
    struct accept *accept = calloc(1, sizeof *accept);
    if (!accept) {
        close(listen_fd);
        return NULL;
    }
    accept->jobs = jobs;
    accept->fd = listen_fd;
    accept->max = max;
    return accept;
}

size_t accept_n_open(const struct accept *accept) { return atomic_load(&accept->n_open); }

void accept_count_late(struct accept *accept, int change) { atomic_fetch_add(&accept->n_late, (size_t)change); }

size_t accept_n_early(const struct accept *accept)
{
    size_t n_late = atomic_load(&accept->n_late), n_open = atomic_load(&accept->n_open);
    return n_open > n_late ? n_open - n_late : 0;
}

/* ---- Over the limit -------------------------------------------------------------------------------------------- */

static void close_lingering(struct accept *accept, size_t n)
{
    for (size_t i = 0; i < n; i++)
        close(accept->lingering[i]);
    accept->n_lingering -= n;
    memmove(accept->lingering, accept->lingering + n, accept->n_lingering * sizeof *accept->lingering);
}

static void linger_on(void *self)
{
    struct accept *accept = self;
    close_lingering(accept, accept->n_settled);
    accept->n_settled = accept->n_lingering;
    if (accept->n_lingering == 0)
        jobs_timer_stop(accept->linger);
}

/* The client's request is not read: it may be anything, and it will not be answered. */
static void turn_away(struct accept *accept, int fd)
{
    http_refuse_connection(accept->https[0], fd);
    shutdown(fd, SHUT_WR);
    if (accept->n_lingering == LINGER_MAX) {
        close_lingering(accept, 1);
        accept->n_settled -= accept->n_settled > 0;
    }
    accept->lingering[accept->n_lingering++] = fd;
    if (accept->n_lingering == 1)
        jobs_timer_start(accept->linger, LINGER_MS, LINGER_MS);
}

/* ---- Within it ------------------------------------------------------------------------------------------------- */

static void hand_out(struct accept *accept, int fd)
{
    atomic_fetch_add(&accept->n_open, 1);
    metrics_add(METRICS_CONNECTIONS, 1);
    http_take(accept->https[accept->next], fd, accept->next == 0);
    accept->next = (accept->next + 1) % accept->n_https;
}

/* False: no connection waits, or none can be accepted now (the watch is paused, and resumes by itself). */
static bool take_one(struct accept *accept)
{
    int fd = accept4(accept->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
        if (atomic_load(&accept->n_open) < accept->max)
            hand_out(accept, fd);
        else
            turn_away(accept, fd);
        return true;
    }
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        jobs_watch_pause(accept->watch, true);
        jobs_timer_start(accept->retry, RETRY_MS, 0);
    }
    return errno == EINTR || errno == ECONNABORTED; /* that client left while it was in the queue */
}

static void take_turn(void *self)
{
    struct accept *accept = self;
    for (int i = 0; i < TURN_MAX && take_one(accept); i++) {
    }
}

static void go_on(void *self)
{
    struct accept *accept = self;
    if (accept->watch)
        jobs_watch_pause(accept->watch, false);
}

bool accept_begin(struct accept *accept, struct http *const *https, size_t n)
{
    accept->https = https;
    accept->n_https = n;
    accept->retry = jobs_timer_new(accept->jobs, go_on, accept);
    accept->linger = jobs_timer_new(accept->jobs, linger_on, accept);
    bool has_timers = accept->retry && accept->linger;
    accept->watch = has_timers ? jobs_watch_new(accept->jobs, accept->fd, JOBS_READABLE, take_turn, accept) : NULL;
    return accept->watch;
}

void accept_closed(struct accept *accept)
{
    metrics_add(METRICS_CONNECTIONS, -1);
    atomic_fetch_sub(&accept->n_open, 1);
}

void accept_take_queue(struct accept *accept)
{
    for (int i = 0; accept->watch && i < LAST_MAX && take_one(accept); i++) {
    }
}

void accept_close(struct accept *accept)
{
    accept_take_queue(accept);
    jobs_watch_free(accept->watch);
    accept->watch = NULL;
    close_lingering(accept, accept->n_lingering);
    accept->n_settled = 0;
    if (accept->fd >= 0)
        close(accept->fd);
    accept->fd = -1;
}

void accept_free(struct accept *accept) { free(accept); }
