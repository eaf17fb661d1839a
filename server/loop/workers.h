/* The worker threads and their queue, which decides which job runs next and for how long.
 *
 * Work waits by client (struct job's `client`), and clients take turns: a thousand requests of one delay another's only
 * one by a single turn. A job that has had its turn and is not done (workers_yield) waits in the queue like any other,
 * on its thread, which sleeps. Nothing here allocates for a job; a job that waits is its own place in the queue. */
#ifndef SERVER_WORKERS_H
#define SERVER_WORKERS_H

#include "server/loop/jobs.h"

/* How many jobs compute at a time, and what calls a job; before workers_start. */
void workers_set(size_t n, void (*run)(struct job *job));
bool workers_start(void); /* their threads, unless they run. False: the system gives no thread or memory */
void workers_end(void);   /* ends the threads; no job is queued or at work */

void workers_submit(struct job *job); /* any thread */
bool workers_have_room(void);         /* would a job submitted now be begun at once? Any thread */

/* ---- For a job at work, on its thread ---- */

struct job *workers_job(void); /* that the calling thread works at; NULL: it is no worker */
bool workers_are_wanted(void); /* does any job wait? Costs nothing */
/* Lets the job whose turn it is work in the caller's place, and returns when the caller's job has its next turn. False,
 * at once: none waits that has a thread. */
bool workers_yield(void);

/* ---- Figures, any thread ---- */

size_t workers_n_waiting(uint64_t client); /* first jobs (requests nobody has begun on) of this client that wait */
uint64_t workers_n_parked(void);           /* jobs begun that wait for their next turn */
uint64_t workers_n_yields(void);           /* turns that have ended before their job, since the start */

#endif
