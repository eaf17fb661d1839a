/* Owns the listening socket while it is served: accepting, the limit of connections, their turn among the loops. */
#define _GNU_SOURCE /* accept4 */
#include "server/accept.h"

#include "server/metrics.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    TURN_MAX = 64, /* connections accepted in one turn of the loop, which has others to serve */
    RETRY_MS = 100 /* until accept is tried again after the process had no descriptor or memory left */
};

struct accept {
    struct jobs *jobs;
    int fd; /* -1: closed */
    uint64_t max;
    struct http *const *https;
    size_t n_https, next;
    struct jobs_watch *watch;
    struct jobs_timer *retry;
    struct jobs_call reopen;
    atomic_size_t n_open;
    atomic_bool is_full; /* paused until one ends */
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

/* Order matters: is_full is set, then n_open looked at again; a connection that ends counts first and looks at is_full
 * then. So one of the two always sees the other, and the one that clears is_full goes on. */
static bool is_at_limit(struct accept *accept)
{
    if (atomic_load(&accept->n_open) < accept->max)
        return false;
    atomic_store(&accept->is_full, true);
    return atomic_load(&accept->n_open) >= accept->max || !atomic_exchange(&accept->is_full, false);
}

static void hand_out(struct accept *accept, int fd)
{
    atomic_fetch_add(&accept->n_open, 1);
    metrics_add(METRICS_CONNECTIONS, 1);
    http_take(accept->https[accept->next], fd, accept->next == 0);
    accept->next = (accept->next + 1) % accept->n_https;
}

/* False: nothing waits, or nothing can be taken now (watch is paused, and goes on by itself). */
static bool take_one(struct accept *accept)
{
    if (is_at_limit(accept)) {
        jobs_watch_pause(accept->watch, true);
        return false;
    }
    int fd = accept4(accept->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
        hand_out(accept, fd);
        return true;
    }
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        jobs_watch_pause(accept->watch, true);
        jobs_timer_start(accept->retry, RETRY_MS, 0);
    }
    return errno == EINTR || errno == ECONNABORTED; /* that one left while it waited */
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

static void reopen(struct jobs_call *call) { go_on((char *)call - offsetof(struct accept, reopen)); }

bool accept_begin(struct accept *accept, struct http *const *https, size_t n)
{
    accept->https = https;
    accept->n_https = n;
    accept->reopen.fire = reopen;
    accept->retry = jobs_timer_new(accept->jobs, go_on, accept);
    accept->watch = accept->retry ? jobs_watch_new(accept->jobs, accept->fd, JOBS_READABLE, take_turn, accept) : NULL;
    return accept->watch;
}

/* The call is posted once for each time is_full was set, and set again only by the loop that makes the call. */
void accept_closed(struct accept *accept)
{
    metrics_add(METRICS_CONNECTIONS, -1);
    atomic_fetch_sub(&accept->n_open, 1);
    if (atomic_load(&accept->is_full) && atomic_exchange(&accept->is_full, false))
        jobs_post(accept->jobs, &accept->reopen);
}

void accept_close(struct accept *accept)
{
    while (accept->watch && take_one(accept)) {
    }
    jobs_watch_free(accept->watch);
    accept->watch = NULL;
    if (accept->fd >= 0)
        close(accept->fd);
    accept->fd = -1;
}

void accept_free(struct accept *accept) { free(accept); }
