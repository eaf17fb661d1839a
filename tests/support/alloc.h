/* Allocations that fail on demand. Test programs are linked with --wrap for malloc, calloc, realloc, aligned_alloc and
 * free, so every call from our code (not from shared libraries) arrives here. */
#ifndef TESTS_ALLOC_H
#define TESTS_ALLOC_H

/* The n-th allocation from now on fails, once: 0 is the next one. -1: none does. */
void alloc_fail_at(long n);

/* The n-th from now on and those after it, n_failing in all. */
void alloc_fail_burst(long n, long n_failing);

/* Allocations tried since the process began; the difference of two calls is the number of allocations between them. */
long alloc_count(void);

/* Bytes requested since the process began, freed ones included. */
long alloc_bytes(void);

/* Bytes in use beyond those that were in use when alloc_watch() was called: the most since then. */
void alloc_watch(void);
long alloc_peak(void);

#endif
