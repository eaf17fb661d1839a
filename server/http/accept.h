/* The one place where connections are accepted: counts them and hands them to the I/O loops in turn.
 *
 * A listening socket of each loop's own (SO_REUSEPORT) was measured: the kernel spreads by a hash of addresses, and
 * with four clients one loop did 70 to 95 % of the work. */
#ifndef SERVER_HTTP_ACCEPT_H
#define SERVER_HTTP_ACCEPT_H

#include "server/http/http.h"

struct accept;

/* Takes listen_fd. max: connections open at a time; while there are so many, further ones are told so (503) and closed.
 * NULL: no memory, and listen_fd is closed. */
struct accept *accept_new(struct jobs *jobs, int listen_fd, uint64_t max);

/* Begins to accept, on the loop of jobs, for these (borrowed until accept_close), the first of which is on that loop
 * too. False: no memory. */
bool accept_begin(struct accept *accept, struct http *const *https, size_t n);

/* A connection has ended. Any thread. */
void accept_closed(struct accept *accept);
size_t accept_n_open(const struct accept *accept); /* handed out and not ended; any thread */

/* Hands out what waits in the socket's queue, which closing it would reset, and closes it. */
void accept_close(struct accept *accept);
void accept_free(struct accept *accept); /* after all connections have ended; NULL is accepted */

#endif
