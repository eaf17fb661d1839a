/* How many experiments run, against --experiments, and what /metrics says of them. Any thread. */
#ifndef SERVER_EXPERIMENTS_H
#define SERVER_EXPERIMENTS_H

#include <stdbool.h>
#include <stdint.h>

void experiments_allow(uint64_t n); /* at a time; call it before the first */
bool experiments_begin(void);       /* false: as many run as may */
void experiments_end(bool is_done, uint64_t n_steps);

#endif
