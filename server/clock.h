/* Time as the server measures it: nanoseconds of a clock that never jumps. */
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

static inline double clock_to_ms(uint64_t ns) { return (double)ns / (double)CLOCK_MS; }

#endif
