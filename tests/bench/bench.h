/* What the benches measure with: the time of this thread alone, and the median of rounds. */
#ifndef TESTS_BENCH_H
#define TESTS_BENCH_H

#include <stdlib.h>
#include <time.h>

static inline double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static inline int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static inline double median(double *v, size_t n) /* sorts v */
{
    qsort(v, n, sizeof *v, compare_doubles);
    return v[n / 2];
}

#endif
