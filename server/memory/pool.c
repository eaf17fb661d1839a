/* Owns the piece buffers: maps them, keeps a few for reuse, and counts them against the budget.
 *
 * A fresh page costs more than filling it: the kernel clears it and takes a fault for it. So buffers of streamed
 * answers, some hundred KiB each, are used again, the last one first, since that one is in the cache. There is one pool
 * for each loop, without a lock; the budget is what bounds the server's memory for answers of any size.
 *
 * A stream without a buffer gets one whatever the budget (`must`): else streams whose clients do not read could hold
 * every buffer, and one that could finish would wait for them. */
#include "server/memory/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/mman.h>

enum {
    UNIT_BYTES = 64 * 1024, /* sizes are rounded up to this, so that the few piece sizes of the formats share buffers */
    N_KEPT_MAX = 16 /* idle buffers kept mapped: enough for five streams at full speed, 8 MiB of 512 KiB pieces */
};

struct kept {
    char *buffer;
    size_t n_bytes;
};

struct pool {
    uint64_t budget_bytes, used_bytes; /* used_bytes: buffers handed out */
    uint64_t kept_bytes;
    struct kept kept[N_KEPT_MAX];
    size_t n_kept;
};

struct pool *pool_new(uint64_t budget_bytes)
{
    struct pool *pool = calloc(1, sizeof *pool);
    if (pool)
        pool->budget_bytes = budget_bytes;
    return pool;
}

static void drop_last_kept(struct pool *pool)
{
    struct kept last = pool->kept[--pool->n_kept];
    pool->kept_bytes -= last.n_bytes;
    munmap(last.buffer, last.n_bytes);
}

void pool_free(struct pool *pool)
{
    if (!pool)
        return;
    assert(pool->used_bytes == 0);
    while (pool->n_kept)
        drop_last_kept(pool);
    free(pool);
}

static size_t round_up(size_t n_bytes) { return (n_bytes + UNIT_BYTES - 1) / UNIT_BYTES * UNIT_BYTES; }

/* Last in, first out: the buffer that was used last is the most likely to be still in the cache. */
static char *take_kept(struct pool *pool, size_t n_bytes)
{
    for (size_t i = pool->n_kept; i-- > 0;) {
        if (pool->kept[i].n_bytes != n_bytes)
            continue;
        char *buffer = pool->kept[i].buffer;
        for (; i + 1 < pool->n_kept; i++)
            pool->kept[i] = pool->kept[i + 1];
        pool->n_kept--;
        pool->kept_bytes -= n_bytes;
        return buffer;
    }
    return NULL;
}

char *pool_get(struct pool *pool, size_t n_bytes, bool must)
{
    n_bytes = round_up(n_bytes);
    if (!must && pool->used_bytes + n_bytes > pool->budget_bytes)
        return NULL;
    char *buffer = take_kept(pool, n_bytes);
    if (!buffer) {
        buffer = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (buffer == MAP_FAILED)
            return NULL;
    }
    pool->used_bytes += n_bytes;
    return buffer;
}

void pool_put(struct pool *pool, char *buffer, size_t n_bytes)
{
    n_bytes = round_up(n_bytes);
    pool->used_bytes -= n_bytes;
    if (pool->used_bytes + pool->kept_bytes + n_bytes > pool->budget_bytes) {
        munmap(buffer, n_bytes);
        return;
    }
    if (pool->n_kept == N_KEPT_MAX)
        drop_last_kept(pool);
    pool->kept[pool->n_kept++] = (struct kept){buffer, n_bytes};
    pool->kept_bytes += n_bytes;
}

uint64_t pool_bytes(const struct pool *pool) { return pool->used_bytes + pool->kept_bytes; }
