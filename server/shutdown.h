/* Ends the server in stages, from the first SIGTERM or SIGINT on; a second one ends the process at once. */
#ifndef SERVER_SHUTDOWN_H
#define SERVER_SHUTDOWN_H

#include "server/loops.h"
#include "server/store/weights/stored.h"
#include "server/process/supervisor.h"

/* The stages of shutdown, in order. Each lasts for a given time, or until the last connection has ended. While answers
 * are sent, the socket stays open: a balancer that cannot connect would call the server dead, and might cut them. */
enum shutdown_stage {
    SHUTDOWN_SERVING,
    SHUTDOWN_DELAY,    /* serves, but answers that it is not ready */
    SHUTDOWN_DRAINING, /* finishes what it has begun; the listening socket stays open, and what arrives is refused */
    SHUTDOWN_CLOSING,  /* nothing is left but refusals; the listening socket is closed */
    SHUTDOWN_STOPPED
};

/* Zero before shutdown_setup. */
struct shutdown {
    const struct options *options; /* borrowed, as are the next three */
    struct loops *loops;
    struct stored *stored;
    const struct supervisor *supervisor; /* gets a message when it begins */
    struct loop_timer *drain;            /* of the first loop */
    enum shutdown_stage stage;
    uint64_t stage_ends_at;
};

/* Handles the signals on the first loop from now on, until loops_free. False: no memory. */
bool shutdown_setup(struct shutdown *shutdown, const struct options *options, struct loops *loops,
                    struct stored *stored, const struct supervisor *supervisor);

bool shutdown_has_begun(const struct shutdown *shutdown); /* any thread */
bool shutdown_has_ended(const struct shutdown *shutdown); /* on the first loop: loops_stop has been called */

#endif
