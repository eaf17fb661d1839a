/* Owns the I/O threads and the objects they share: connections and the answers that equal requests share.
 *
 * Each loop is one thread with its own daemons, connections, buffers and exchanges, which it alone touches; so a
 * request needs no lock from its first byte to its last, except where it meets others: the workers' queue, the account
 * of memory, the answers that equal requests share. There are half as many loops as processors: one sends what a worker
 * computes.
 *
 * The first loop also has the signals, the timers of the process and the end: the others are stopped by calls to them
 * and freed before it, because they may still call it. */
#define _GNU_SOURCE /* pthread_setname_np */
#include "server/server.h"

#include "server/transport/transport.h"
#include "server/exchange/exchange.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

/* A question to one loop: does it still turn? */
struct pulse {
    struct loop_call call; /* must be first */
    atomic_bool is_asked;  /* and not answered */
};

enum { FDS_BESIDE_MAX = 1024 }; /* descriptors besides connections, including those of 64 loops (main.c) */

struct loops {
    const struct options *options;
    struct answers *answers;
    size_t n, n_started;        /* threads besides the first */
    struct transport transport; /* its loops: [n]; self is a struct exchanges */
    pthread_t *threads;         /* [n], the first is not used */
    struct pulse *pulses;       /* likewise */
};

static struct loop *loop_of(const struct loops *loops, size_t i) { return loops->transport.loops[i].loop; }

static void flush_log(void *self)
{
    (void)self;
    log_flush();
}

static bool make_loops(struct loops *loops)
{
    for (size_t i = 0; i < loops->n; i++) {
        struct loop *loop = loop_new((size_t)loops->options->max_connections + FDS_BESIDE_MAX);
        loops->transport.loops[i].loop = loop;
        if (!loop)
            return false;
        loop_before_sleep(loop, flush_log, NULL);
    }
    return true;
}

struct loops *loops_new(const struct options *options)
{
    struct loops *loops = calloc(1, sizeof *loops);
    if (!loops)
        return NULL;
    loops->options = options;
    loops->n = (size_t)options->io_threads;
    struct transport_loop *each = calloc(loops->n, sizeof *each);
    loops->transport = (struct transport){.loops = each, .n = each ? loops->n : 0, .events = &exchange_events};
    loops->threads = calloc(loops->n, sizeof(pthread_t));
    loops->pulses = calloc(loops->n, sizeof(struct pulse));
    if (each && loops->threads && loops->pulses && make_loops(loops))
        return loops;
    log_error("no memory, file descriptors or threads (ulimit -u) for %zu I/O threads and the workers", loops->n);
    loops_free(loops);
    return NULL;
}

struct loop *loops_first(struct loops *loops) { return loop_of(loops, 0); }

static void *run(void *loop)
{
    loop_run(loop);
    return NULL;
}

static bool start_thread(struct loops *loops, size_t i)
{
    char name[16];
    if (pthread_create(&loops->threads[i], NULL, run, loop_of(loops, i)) != 0)
        return false;
    snprintf(name, sizeof name, "io-%u", (unsigned)i & 0xff);
    pthread_setname_np(loops->threads[i], name); /* the name shown by top; the first thread has the program's name */
    loops->n_started++;
    return true;
}

/* Only the first thread receives signals: its loop handles them. */
static bool start_threads(struct loops *loops)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool fine = true;
    for (size_t i = 1; fine && i < loops->n; i++)
        fine = start_thread(loops, i);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return fine;
}

static void stop_threads(struct loops *loops)
{
    for (; loops->n_started > 0; loops->n_started--) {
        loop_stop(loop_of(loops, loops->n_started));
        pthread_join(loops->threads[loops->n_started], NULL);
    }
}

bool loops_serve(struct loops *loops, const struct api_host *host, const struct http_door *door, int listen_fd)
{
    loops->answers = answers_new(loops->options->answer_cache);
    if (!loops->answers)
        return false;
    for (size_t i = 0; i < loops->n; i++) {
        struct transport_loop *each = &loops->transport.loops[i];
        each->self = exchanges_new(loops->options, host, each->loop, loops->answers);
        if (!each->self)
            return false;
    }
    if (!transport_begin(&loops->transport, loops->options, host, door, listen_fd))
        return false;
    if (start_threads(loops))
        return true;
    log_error("no memory or threads (ulimit -u) for %zu I/O threads", loops->n);
    return false;
}

void loops_run(struct loops *loops)
{
    loop_run(loop_of(loops, 0));
    stop_threads(loops);
}

size_t loops_n_connections(const struct loops *loops) { return transport_n_open(&loops->transport, true); }

size_t loops_n_early(const struct loops *loops) { return transport_n_open(&loops->transport, false); }

void loops_drain(struct loops *loops) { transport_drain(&loops->transport); }

void loops_close(struct loops *loops) { transport_close(&loops->transport); }

static void answer_pulse(struct loop_call *call) { atomic_store(&((struct pulse *)call)->is_asked, false); }

bool loops_have_turned(struct loops *loops)
{
    bool all = true;
    for (size_t i = 1; i < loops->n; i++) {
        struct pulse *pulse = &loops->pulses[i];
        if (atomic_exchange(&pulse->is_asked, true)) {
            all = false;
            continue;
        }
        pulse->call.fire = answer_pulse;
        loop_post(loop_of(loops, i), &pulse->call);
    }
    return all;
}

void loops_stop(struct loops *loops) { loop_stop(loop_of(loops, 0)); }

/* The first loop is freed last, because the others may still call it. */
void loops_free(struct loops *loops)
{
    if (!loops)
        return;
    stop_threads(loops);
    transport_stop(&loops->transport);
    if (loops->answers)
        answers_abandon(loops->answers);
    for (size_t i = loops->transport.n; i-- > 0;)
        loop_free(loop_of(loops, i));
    transport_free(&loops->transport);
    for (size_t i = 0; i < loops->transport.n; i++)
        exchanges_free(loops->transport.loops[i].self);
    answers_free(loops->answers);
    free(loops->transport.loops);
    free(loops->threads);
    free(loops->pulses);
    free(loops);
}
