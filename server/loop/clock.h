/* The server's clock: monotonic, in nanoseconds; it never jumps. */
#ifndef SERVER_CLOCK_H
#define SERVER_CLOCK_H

#include <stdint.h>
#include <time.h>

#define CLOCK_SECOND 1000000000ULL
#define CLOCK_MS 1000000ULL

static inline uint64_t clock_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * CLOCK_SECOND + (uint64_t)t.tv_nsec;
}

/* The same clock as of the last tick, up to some milliseconds ago, at a fifth of the cost. This is accurate enough for
 * deadlines of seconds, of which every request sets several. */
static inline uint64_t clock_coarse(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return (uint64_t)t.tv_sec * CLOCK_SECOND + (uint64_t)t.tv_nsec;
}

/* Processor time that the calling thread has used, without the time in which it waited for a turn. */
static inline uint64_t clock_of_thread(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * CLOCK_SECOND + (uint64_t)t.tv_nsec;
}

/* Prints a duration as milliseconds with three decimals, "12.034"; returns the end (where a NUL is). Every request
 * prints half a dozen of these, and printf takes a microsecond for a double. */
enum { CLOCK_MS_BYTES = 24 };

static inline char *clock_print_ms(char *dst, uint64_t ns)
{
    uint64_t us = (ns + 500) / 1000, ms = us / 1000;
    unsigned rest = (unsigned)(us % 1000);
    char reversed[CLOCK_MS_BYTES];
    int n = 0;
    do
        reversed[n++] = (char)('0' + ms % 10);
    while (ms /= 10);
    while (n > 0)
        *dst++ = reversed[--n];
    *dst++ = '.';
    *dst++ = (char)('0' + rest / 100);
    *dst++ = (char)('0' + rest / 10 % 10);
    *dst++ = (char)('0' + rest % 10);
    *dst = '\0';
    return dst;
}

#endif
