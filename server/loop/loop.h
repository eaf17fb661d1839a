/* What jobs.c needs of the loop, besides jobs.h. */
#ifndef SERVER_LOOP_H
#define SERVER_LOOP_H

#include "server/loop/jobs.h"

/* From now on, the process logs a reason and exits if libuv cannot enlarge a table. Call it before the first jobs_new.
 */
void loop_watch_memory(void);

/* Counts the jobs of a loop, on its thread: jobs_free waits until each that has begun has ended. A job ends before its
 * done() is called, which may submit it again. */
void loop_job_begins(struct jobs *jobs);
void loop_job_ends(struct jobs *jobs);

#endif
