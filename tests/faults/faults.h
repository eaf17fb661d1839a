/* The failures that a test can cause in a running server, and the counts kept meanwhile: numbers in a file that the
 * test and the server both map (FAULTS_CONTROL names it). All zero: nothing fails.
 *
 * The test reads this table for the names and their order, so a row is one line. */
#ifndef TESTS_FAULTS_H
#define TESTS_FAULTS_H

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>

#define FAULTS_FIELDS(FIELD)                                                                                           \
    FIELD(live_blocks)     /* blocks of the heap and mappings that have not been freed */                              \
    FIELD(live_bytes)      /* of the heap's blocks */                                                                  \
    FIELD(alloc_armed)     /* 1: allocations are counted, and may fail */                                              \
    FIELD(alloc_count)     /* number of calls since the test set it to 0 */                                            \
    FIELD(alloc_first)     /* the first to fail: 0 is the next one */                                                  \
    FIELD(alloc_burst)     /* how many calls fail from that one on */                                                  \
    FIELD(alloc_every)     /* also, every n-th call fails; 0: none */                                                  \
    FIELD(alloc_failed)    /* how many calls have failed */                                                            \
    FIELD(net_permille)    /* of 1000 calls on sockets, the number that fails */                                       \
    FIELD(net_kinds)       /* kinds, added up: 1 short, 2 EINTR, 4 EAGAIN, 8 reset by peer */                          \
    FIELD(net_hits)        /* how many calls have failed */                                                            \
    FIELD(file_armed)      /* 1: calls on regular files are counted, and may fail */                                   \
    FIELD(file_count)      /* number of calls since the test set it to 0 */                                            \
    FIELD(file_first)      /* the first to fail */                                                                     \
    FIELD(file_burst)      /* how many calls fail from that one on */                                                  \
    FIELD(file_errno)      /* the errno of the failure; 0: calls are short or interrupted instead */                   \
    FIELD(file_failed)     /* how many calls have failed */                                                            \
    FIELD(wall_offset)     /* error of the wall clock in seconds */                                                    \
    FIELD(worker_delay_ms) /* time that a worker pauses */                                                             \
    FIELD(worker_every)    /* at every n-th reading of the clock; 0: never */                                          \
    FIELD(worker_delays)   /* number of such pauses */

#define FAULTS_MEMBER(name) atomic_long name;
struct faults {
    FAULTS_FIELDS(FAULTS_MEMBER)
};

/* A page of this process until the file is mapped, or if no file is named. */
extern struct faults *faults;

/* Counts one call that may fail; true: this call fails. */
static inline bool faults_hit(atomic_long *armed, atomic_long *count, atomic_long *first, atomic_long *burst,
                              atomic_long *failed)
{
    if (!atomic_load_explicit(armed, memory_order_relaxed))
        return false;
    long n = atomic_fetch_add(count, 1) - atomic_load(first);
    if (n < 0 || n >= atomic_load(burst))
        return false;
    atomic_fetch_add(failed, 1);
    return true;
}

/* The function that ours is in place of. */
#define NEXT(name)                                                                                                     \
    static __typeof__(&name) next;                                                                                     \
    if (!next)                                                                                                         \
        *(void **)&next = dlsym(RTLD_NEXT, #name);

#endif
