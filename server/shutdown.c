/* Owns the stages of shutdown, and the signals that begin and hasten it.
 *
 * A server that closes its socket at once loses requests: a balancer learns of it by a failed connection, and
 * keep-alive connections may carry a request at that moment. So it first answers that it is not ready, for as long as
 * probes need to see that; then it drains, with `Connection: close` on each answer, the socket still open and refusing
 * new work; then it closes. Each stage has a time, or ends with the last connection, and a second signal ends all of
 * them. server.h lists the stages; other threads only read whether the first has begun. */
#include "server/server.h"

#include "server/process/process.h"
#include "server/loop/loop.h"

#include <signal.h>
#include <unistd.h>

enum {
    DRAIN_LOOK_MS = 20,
    CLOSING_SECONDS = 1 /* longest time in which the last refusals are sent */
};

static void enter_stage(struct shutdown *shutdown, enum shutdown_stage stage, uint64_t seconds)
{
    shutdown->stage = stage;
    shutdown->stage_ends_at = clock_now() + seconds * CLOCK_SECOND;
}

static void look_at_drain(void *self)
{
    struct shutdown *shutdown = self;
    bool is_over = clock_now() >= shutdown->stage_ends_at;
    if (shutdown->stage == SHUTDOWN_DELAY && is_over) {
        enter_stage(shutdown, SHUTDOWN_DRAINING, shutdown->options->drain_seconds);
        loops_drain(shutdown->loops);
        stored_drain(shutdown->stored);
    } else if (shutdown->stage == SHUTDOWN_DRAINING && loops_n_early(shutdown->loops) == 0) {
        enter_stage(shutdown, SHUTDOWN_CLOSING, CLOSING_SECONDS);
        loops_close(shutdown->loops);
    } else if ((shutdown->stage == SHUTDOWN_DRAINING && is_over) ||
               (shutdown->stage == SHUTDOWN_CLOSING && (is_over || loops_n_connections(shutdown->loops) == 0))) {
        size_t n = loops_n_early(shutdown->loops);
        if (n > 0)
            log_warn("--drain-seconds are over; cutting %zu connections", n);
        enter_stage(shutdown, SHUTDOWN_STOPPED, 0);
        loop_timer_stop(shutdown->drain);
        loops_stop(shutdown->loops);
    }
}

static void on_end_signal(void *self, int signum)
{
    struct shutdown *shutdown = self;
    if (shutdown->stage != SHUTDOWN_SERVING) {
        log_warn("second signal: ending at once");
        log_flush_all(LOG_GRACE_MS);
        _exit(128 + signum);
    }
    log_info("signal %d: draining, %zu connections open", signum, loops_n_connections(shutdown->loops));
    supervisor_say(shutdown->supervisor, "STOPPING=1");
    atomic_store_explicit(&shutdown->has_begun, true, memory_order_relaxed);
    enter_stage(shutdown, SHUTDOWN_DELAY, shutdown->options->drain_delay);
    loop_timer_start(shutdown->drain, 0, DRAIN_LOOK_MS);
}

/* The limit of processor time (ulimit -t). The signal repeats every second, so a second one is no wish to end at once.
 */
static void on_time_limit(void *self, int signum)
{
    struct shutdown *shutdown = self;
    if (shutdown->stage == SHUTDOWN_SERVING)
        on_end_signal(self, signum);
}

bool shutdown_setup(struct shutdown *shutdown, const struct options *options, struct loops *loops,
                    struct stored *stored, const struct supervisor *supervisor)
{
    struct loop *loop = loops_first(loops);
    shutdown->options = options;
    shutdown->loops = loops;
    shutdown->stored = stored;
    shutdown->supervisor = supervisor;
    shutdown->drain = loop_timer_new(loop, look_at_drain, shutdown);
    return shutdown->drain && loop_on_signal(loop, SIGTERM, on_end_signal, shutdown) &&
           loop_on_signal(loop, SIGINT, on_end_signal, shutdown) &&
           loop_on_signal(loop, SIGXCPU, on_time_limit, shutdown);
}

bool shutdown_has_ended(const struct shutdown *shutdown) { return shutdown->stage == SHUTDOWN_STOPPED; }
