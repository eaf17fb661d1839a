/* The queue before the worker threads: whose work comes next.
 *
 * Work waits by client (struct job's `client`), and clients take turns, a job each: a thousand requests of one delay
 * another's only one by a single job. Nothing here allocates; a job that waits is its own place in the queue. The
 * threads are libuv's: jobs.c calls workers, and a worker takes jobs until none waits. */
#ifndef SERVER_WORKERS_H
#define SERVER_WORKERS_H

#include "server/loop/jobs.h"

void workers_set(size_t n); /* how many there are; before the first job */

/* Any thread. True: a worker more is to be called, which takes jobs until workers_take says that none waits; it counts
 * already. Where it cannot be called now, workers_give_up, and workers_wanted once it can. */
bool workers_submit(struct job *job);
bool workers_wanted(void); /* does a job wait that no worker has been called for? True: as above */
void workers_give_up(void);
struct job *workers_take(void); /* a worker; NULL: it ends */

/* First jobs (requests nobody has begun on) of this client that wait now. Any thread. */
size_t workers_n_waiting(uint64_t client);

#endif
