/* Which experiments run, against --experiments, and what /metrics shows of them. Any thread.
 *
 * Clients take turns: a client that was refused may come next, before every client that asked first after it. For this
 * it has to ask again within EXPERIMENTS_WAIT_MS of its last refusal, which is twice the Retry-After of a refusal. */
#ifndef SERVER_EXPERIMENTS_H
#define SERVER_EXPERIMENTS_H

#include <stdbool.h>
#include <stdint.h>

enum { EXPERIMENTS_WAIT_MS = 10000 };

void experiments_allow(uint64_t n); /* at a time; call it before the first */
/* False: as many run as may, or the free places are for clients that have waited longer. client: its number; 0: a
 * client that has no turn. now_ms: of a steady clock. */
bool experiments_begin(uint64_t client, uint64_t now_ms);
void experiments_end(bool is_done, uint64_t n_steps);

#endif
