/* The one place where connections are accepted: it counts them and hands them to the I/O loops in turn.
 *
 * The alternative, a listening socket per loop (SO_REUSEPORT), was measured: the kernel distributes by a hash of
 * addresses, and with four clients one loop did 70 to 95 % of the work. */
#ifndef SERVER_HTTP_ACCEPT_H
#define SERVER_HTTP_ACCEPT_H

#include "server/http/http.h"

struct accept;

/* Takes listen_fd. max: the number of connections open at a time; while it is reached, further connections get a 503
 * and are closed. NULL: no memory, and listen_fd is closed. */
struct accept *accept_new(struct jobs *jobs, int listen_fd, uint64_t max);

/* Starts accepting, on the loop of jobs, for these daemons (borrowed until accept_close); the first of them is on that
 * loop too. False: no memory. */
bool accept_begin(struct accept *accept, struct http *const *https, size_t n);

/* Reports that a connection has ended. Any thread. */
void accept_closed(struct accept *accept);
size_t accept_n_open(const struct accept *accept); /* connections handed out and not ended; any thread */

/* Late connections are those that a loop takes after draining has begun. They only get refusals, so the end of the
 * process does not wait for them: accept_n_early counts the others. Adds 1 or -1 to their number. Any thread. */
void accept_count_late(struct accept *accept, int change);
size_t accept_n_early(const struct accept *accept);

/* Hands out the connections in the socket's queue: before draining begins, so that they are not late. */
void accept_take_queue(struct accept *accept);
/* Does the same, since they would be reset otherwise, and closes the socket. */
void accept_close(struct accept *accept);
void accept_free(struct accept *accept); /* call it after all connections have ended; NULL is accepted */

#endif
