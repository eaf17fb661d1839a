/* The allocation functions of the tests: they count, measure, and fail on demand. */
#include "tests/support/alloc.h"

#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* Names given by the linker's --wrap: a call of malloc arrives at __wrap_malloc, and the real function is
 * __real_malloc. */
void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *block, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void __real_free(void *block);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *block, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void __wrap_free(void *block);

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

/* Counted in the block sizes that malloc really uses. */
static atomic_long in_use, at_watch, peak;

void alloc_watch(void)
{
    atomic_store(&at_watch, atomic_load(&in_use));
    atomic_store(&peak, atomic_load(&in_use));
}

long alloc_peak(void) { return atomic_load(&peak) - atomic_load(&at_watch); }

static bool fails(size_t n)
{
    atomic_fetch_add(&bytes, (long)n);
    long at = atomic_fetch_add(&count, 1);
    return at >= atomic_load(&fails_at) && at < atomic_load(&fails_until);
}

static void *counted(void *block)
{
    if (block) {
        long now = atomic_fetch_add(&in_use, (long)malloc_usable_size(block)) + (long)malloc_usable_size(block);
        long most = atomic_load(&peak);
        while (now > most && !atomic_compare_exchange_weak(&peak, &most, now)) {
        }
    }
    return block;
}

void *__wrap_malloc(size_t size) { return fails(size) ? NULL : counted(__real_malloc(size)); }

void *__wrap_calloc(size_t n, size_t size) { return fails(n * size) ? NULL : counted(__real_calloc(n, size)); }

void *__wrap_realloc(void *block, size_t size)
{
    if (fails(size))
        return NULL;
    long before = block ? (long)malloc_usable_size(block) : 0;
    void *grown = __real_realloc(block, size);
    if (grown)
        atomic_fetch_sub(&in_use, before);
    return counted(grown);
}

/* Never fails on demand: some callers use it only as an optimisation, and continue without it. */
void *__wrap_aligned_alloc(size_t alignment, size_t size) { return counted(__real_aligned_alloc(alignment, size)); }

void __wrap_free(void *block)
{
    if (block)
        atomic_fetch_sub(&in_use, (long)malloc_usable_size(block));
    __real_free(block);
}
