/* What can be made to fail in a running server, and what is counted meanwhile: numbers in a file that the test and the
 * server both map (FAULTS_CONTROL names it). All zero: nothing fails.
 *
 * The test reads this table for the names and their order, so a row is one line. */
#ifndef TESTS_FAULTS_H
#define TESTS_FAULTS_H

#include <stdatomic.h>
#include <stdbool.h>

#define FAULTS_FIELDS(FIELD)                                                                                           \
    FIELD(live_blocks)     /* blocks of the heap and mappings that have not been given back */                         \
    FIELD(live_bytes)      /* of the heap's blocks */                                                                  \
    FIELD(alloc_armed)     /* 1: allocations are counted, and may fail */                                              \
    FIELD(alloc_count)     /* how many there were since the test set it to 0 */                                        \
    FIELD(alloc_first)     /* the first to fail: 0 is the next one */                                                  \
    FIELD(alloc_burst)     /* how many fail from there on */                                                           \
    FIELD(alloc_every)     /* besides, every so manyth fails; 0: none */                                               \
    FIELD(alloc_failed)    /* how many have */                                                                         \
    FIELD(net_permille)    /* of the calls on sockets, how many go wrong */                                            \
    FIELD(net_kinds)       /* how: 1 short, 2 EINTR, 4 EAGAIN, 8 reset by peer, added up */                            \
    FIELD(net_hits)        /* how many have */                                                                         \
    FIELD(file_armed)      /* 1: calls on regular files are counted, and may fail */                                   \
    FIELD(file_count)      /* how many there were since the test set it to 0 */                                        \
    FIELD(file_first)      /* the first to fail */                                                                     \
    FIELD(file_burst)      /* how many fail from there on */                                                           \
    FIELD(file_errno)      /* with this; 0: they are short or interrupted instead */                                   \
    FIELD(file_failed)     /* how many have */                                                                         \
    FIELD(wall_offset)     /* seconds that the wall clock is wrong by */                                               \
    FIELD(worker_delay_ms) /* a worker stops for so long */                                                            \
    FIELD(worker_every)    /* at every so manyth look at the clock; 0: never */                                        \
    FIELD(worker_delays)   /* how often one has */

#define FAULTS_MEMBER(name) atomic_long name;
struct faults {
    FAULTS_FIELDS(FAULTS_MEMBER)
};

/* A page of this process until the file is mapped, and if none is named. */
extern struct faults *faults;

/* Counts one of what may fail; true: this one does. */
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

#endif
