/* Owns the places of running experiments. */
#include "server/experiments.h"

#include "server/metrics.h"

#include <stdatomic.h>

static atomic_uint_fast64_t n_free;

void experiments_allow(uint64_t n) { atomic_store_explicit(&n_free, n, memory_order_relaxed); }

bool experiments_begin(void)
{
    uint_fast64_t n = atomic_load_explicit(&n_free, memory_order_relaxed);
    while (n > 0 &&
           !atomic_compare_exchange_weak_explicit(&n_free, &n, n - 1, memory_order_relaxed, memory_order_relaxed))
        continue;
    if (n > 0)
        metrics_add(METRICS_EXPERIMENTS, 1);
    return n > 0;
}

void experiments_end(bool is_done, uint64_t n_steps)
{
    atomic_fetch_add_explicit(&n_free, 1, memory_order_relaxed);
    metrics_add(METRICS_EXPERIMENTS, -1);
    metrics_add(is_done ? METRICS_EXPERIMENTS_DONE : METRICS_EXPERIMENTS_ENDED, 1);
    metrics_add(METRICS_EXPERIMENT_STEPS, (int64_t)n_steps);
}
