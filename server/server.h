/* The server's start and end: its I/O threads, the stages of its shutdown, what is read again while it serves, and what
 * it is for api/. */
#ifndef SERVER_H
#define SERVER_H

#include "api/api.h"
#include "server/process/process.h"
#include "server/store/weights/weights.h"
#include "server/transport/transport.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/* ---- loops.c ----------------------------------------------------------------------------------------------------- */

/* The I/O threads: each runs its own loop with its own HTTP daemons and buffers. The first loop runs on the caller's
 * thread and accepts connections for all. */

struct loops;

/* Creates options->io_threads loops (≥ 1); nothing runs yet. NULL: no memory, or no file descriptor left. */
struct loops *loops_new(const struct options *options);
struct loop *loops_first(struct loops *loops);

/* Serves on listen_fd (takes it): the other threads start now, and the first loop accepts once loops_run is called.
 * options, host and door are borrowed until loops_free. False: serving is impossible; the log gives the reason. */
bool loops_serve(struct loops *loops, const struct api_host *host, const struct http_door *door, int listen_fd);

/* Runs the first loop; returns when loops_stop has been called and all threads have ended. */
void loops_run(struct loops *loops);

/* Call these on the first loop, in this order. Drain: idle connections are closed, running requests continue, those of
 * later connections are refused. Close: the listening socket is closed. Stop: all loops end. */
size_t loops_n_connections(const struct loops *loops);
size_t loops_n_early(const struct loops *loops); /* of these, the ones opened before draining began */
void loops_drain(struct loops *loops);
void loops_close(struct loops *loops);
void loops_stop(struct loops *loops);

/* Whether every loop has turned since the previous call. On the first loop. */
bool loops_have_turned(struct loops *loops);

/* Cuts off the connections that are still open, then waits for the workers. NULL is accepted. */
void loops_free(struct loops *loops);

/* ---- shutdown.c -------------------------------------------------------------------------------------------------- */

/* Ends the server in stages, from the first SIGTERM or SIGINT on; a second one ends the process at once. */

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
    atomic_bool has_begun; /* any thread may read it */
    uint64_t stage_ends_at;
};

/* Handles the signals on the first loop from now on, until loops_free. False: no memory. */
bool shutdown_setup(struct shutdown *shutdown, const struct options *options, struct loops *loops,
                    struct stored *stored, const struct supervisor *supervisor);

bool shutdown_has_ended(const struct shutdown *shutdown); /* on the first loop: loops_stop has been called */

/* ---- host.c: running experiments --------------------------------------------------------------------------------- */

/* Which experiments run, against --experiments, and what /metrics shows of them. Any thread.
 *
 * Clients take turns: a client that was refused may come next, before every client that asked first after it. For this
 * it has to ask again within EXPERIMENTS_WAIT_MS of its last refusal, which is twice the Retry-After of a refusal. */

enum { EXPERIMENTS_WAIT_MS = 10000 };

void experiments_allow(uint64_t n); /* at a time; call it before the first */
/* False: as many run as may, or the free places are for clients that have waited longer. client: its number; 0: a
 * client that has no turn. now_ms: of a steady clock. */
bool experiments_begin(uint64_t client, uint64_t now_ms);
void experiments_end(bool is_done, uint64_t n_steps);

/* ---- reload.c ---------------------------------------------------------------------------------------------------- */

/* Reads again what may change while the server serves: after SIGHUP the tokens, the certificate and the stored files;
 * tokens and certificate also when their files have been replaced. */

/* A file that may be replaced by another one. */
struct replaced {
    const char *path; /* borrowed; NULL or "": no file */
    dev_t device;
    ino_t inode; /* 0: there was none */
};

/* A thing that is reloaded while the server keeps serving. */
struct reload_job {
    struct job job;
    struct reload *reload;
    bool is_at_work, is_wanted; /* is_wanted: reload once more afterwards */
};

struct reload {
    const struct options *options; /* borrowed, as are the next three */
    const struct stored *stored;
    const struct shutdown *shutdown;
    struct http_door *door;
    struct reload_job secrets, folder; /* secrets are tokens and certificate, folder the stored files */
    struct reload_job looking;         /* whether one of the secrets has been replaced */
    struct replaced files[3];          /* token file, certificate, key; used by the job that looks */
    bool is_replaced;                  /* its result */
    struct loop *loop;                 /* the first loop, as of reload_setup */
    struct loop_timer *look;
};

/* Notes which files of secrets there are; call it before they are read. Everything is borrowed until loops_free. */
void reload_init(struct reload *reload, const struct options *options, const struct stored *stored,
                 const struct shutdown *shutdown, struct http_door *door);

/* Handles SIGHUP on this loop, the first, from now on. False: no memory. */
bool reload_setup(struct reload *reload, struct loop *loop);

/* Looks for replaced files from now on, if tokens or a certificate are in use. */
void reload_start(struct reload *reload);

/* ---- host.c ------------------------------------------------------------------------------------------------------ */

/* What the machine is for api/: limits, memory, clock, stored files, metrics, experiments. */

/* Options, stored files and shutdown are borrowed while the host is used. The caller sets page, clients and commit. */
void host_init(struct api_host *host, const struct options *options, const struct stored *stored,
               const struct shutdown *shutdown);
void host_print_metrics(void *self, FILE *out); /* what api/ counts: for metrics_append */

#endif
