/* Buffers for the pieces of streamed answers: few, large, reused (a fresh page costs more than filling it), bounded
 * together. Used by one loop only; not locked. */
#ifndef SERVER_MEMORY_POOL_H
#define SERVER_MEMORY_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pool;

/* budget_bytes: what all buffers together may take before pool_get says no to a caller that can wait. NULL: no memory.
 */
struct pool *pool_new(uint64_t budget_bytes);
void pool_free(struct pool *pool); /* after every buffer is back; NULL is accepted */

/* A buffer of at least n_bytes, aligned to a page; give it back with pool_put and the same n_bytes. must: the caller
 * holds none and cannot go on without, so the budget does not count (no stream waits for another one's client). NULL:
 * budget used up, or no memory. */
char *pool_get(struct pool *pool, size_t n_bytes, bool must);
void pool_put(struct pool *pool, char *buffer, size_t n_bytes);

uint64_t pool_bytes(const struct pool *pool); /* handed out and kept for reuse together */

#endif
