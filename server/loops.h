/* The I/O threads: each runs its own loop with its own HTTP daemons and buffers. The first loop runs on the caller's
 * thread and accepts connections for all. */
#ifndef SERVER_LOOPS_H
#define SERVER_LOOPS_H

#include "server/transport/http.h"

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

#endif
