/* Buffers for the pieces of streamed answers: few, large, reused (a fresh page costs more than filling it), and limited
 * by one budget. Used by one loop only; not locked. */
#ifndef SERVER_MEMORY_POOL_H
#define SERVER_MEMORY_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pool;

/* budget_bytes: the total size of all buffers above which pool_get refuses a caller that can wait. NULL: no memory. */
struct pool *pool_new(uint64_t budget_bytes);
void pool_free(struct pool *pool); /* call it when every buffer has been returned; NULL is accepted */

/* A page-aligned buffer of at least n_bytes; return it by pool_put with the same n_bytes. must: the caller holds no
 * buffer and cannot continue without one, so the budget is ignored (otherwise a stream could wait for another stream's
 * client). NULL: budget used up, or no memory. */
char *pool_get(struct pool *pool, size_t n_bytes, bool must);
void pool_put(struct pool *pool, char *buffer, size_t n_bytes);

uint64_t pool_bytes(const struct pool *pool); /* bytes of buffers handed out and of those kept for reuse */

#endif
