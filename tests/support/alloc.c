/* malloc, calloc and realloc of the tests: count, and fail when told to. */
#include "tests/support/alloc.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* Names given by the linker's --wrap: a call of malloc arrives at __wrap_malloc, the true one is __real_malloc. */
void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *block, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *block, size_t size);

/* Workers of the server's tests allocate too, hence atomics. */
static atomic_long count;
static atomic_long fails_at = -1, fails_until = -1; /* values of count */

void alloc_fail_burst(long n, long n_failing)
{
    atomic_store(&fails_at, n < 0 ? -1 : atomic_load(&count) + n);
    atomic_store(&fails_until, n < 0 ? -1 : atomic_load(&count) + n + n_failing);
}

void alloc_fail_at(long n) { alloc_fail_burst(n, 1); }

long alloc_count(void) { return atomic_load(&count); }

static atomic_long bytes;

long alloc_bytes(void) { return atomic_load(&bytes); }

static bool fails(size_t n)
{
    atomic_fetch_add(&bytes, (long)n);
    long at = atomic_fetch_add(&count, 1);
    return at >= atomic_load(&fails_at) && at < atomic_load(&fails_until);
}

void *__wrap_malloc(size_t size) { return fails(size) ? NULL : __real_malloc(size); }

void *__wrap_calloc(size_t n, size_t size) { return fails(n * size) ? NULL : __real_calloc(n, size); }

void *__wrap_realloc(void *block, size_t size) { return fails(size) ? NULL : __real_realloc(block, size); }
