/* The worker threads and their queue, which decides which job runs next and for how long.
 *
 * Jobs wait in one queue per client (struct job's `client`), and clients take turns: a thousand requests of one client
 * delay the only request of another by a single turn. A job whose turn has ended before it is done (workers_yield)
 * waits in the queue like any other, while its thread sleeps. Nothing here allocates memory for a job; a waiting job is
 * itself the queue entry. */
#ifndef SERVER_WORKERS_H
#define SERVER_WORKERS_H

#include "server/loop/loop.h"

/* Sets how many jobs compute at a time, and the function that runs a job. Call before workers_start. */
void workers_set(size_t n, void (*run)(struct job *job));
bool workers_start(void); /* starts the threads unless they run. False: the system provides no thread or memory */
void workers_end(void);   /* ends the threads; no job may be queued or running */

void workers_submit(struct job *job); /* any thread */
bool workers_have_room(void);         /* would a job submitted now be started at once? Any thread */

/* ---- For a job at work, on its thread ---- */

struct job *workers_job(void);         /* the job of the calling thread; NULL: the thread is not a worker, or is away */
struct job *workers_job_or_away(void); /* also after workers_leave */
bool workers_are_wanted(void);         /* does any job wait? Costs almost nothing */
/* Lets the next job run in the caller's place, and returns when the caller's job has its next turn. Returns false at
 * once if no waiting job can get a thread. */
bool workers_yield(void);
/* Gives up the seat until workers_return, for a wait for a disk or a network. False: too many jobs are away, of all
 * clients or of this one; the job keeps its seat. */
bool workers_leave(void);
struct job *workers_return(void); /* waits for the next turn; NULL: the thread was not away */

/* ---- Figures, any thread ---- */

size_t workers_n_waiting(uint64_t client); /* waiting first jobs of this client (requests that no worker has started) */
uint64_t workers_n_parked(void);           /* started jobs that wait for their next turn */
uint64_t workers_n_yields(void);           /* turns that ended before their job was done, since the start */

#endif
