/* Owns the account of memory and streams that requests at hand have taken. */
#include "server/memory/admission.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>

static struct {
    uint64_t max_memory, max_streams;
    atomic_uint_fast64_t memory, n_streams;
} account = {.max_memory = UINT64_MAX, .max_streams = UINT64_MAX};

void admission_setup(uint64_t max_memory, uint64_t max_streams)
{
    account.max_memory = max_memory;
    account.max_streams = max_streams;
}

/* Adds first and looks then: two who ask at once may both be refused where one would have fitted, but never both be
 * served where only one fits. */
static bool take(atomic_uint_fast64_t *taken, uint64_t n, uint64_t max)
{
    if (n > max)
        return false;
    uint64_t before = atomic_fetch_add_explicit(taken, n, memory_order_relaxed);
    if (before <= max - n)
        return true;
    atomic_fetch_sub_explicit(taken, n, memory_order_relaxed);
    return false;
}

bool admission_take(uint64_t n_bytes) { return take(&account.memory, n_bytes, account.max_memory); }

bool admission_take_spare(uint64_t n_bytes) { return take(&account.memory, n_bytes, account.max_memory / 2); }

bool admission_may_fit(uint64_t n_bytes) { return n_bytes <= account.max_memory; }

void admission_give(uint64_t n_bytes)
{
    if (n_bytes)
        atomic_fetch_sub_explicit(&account.memory, n_bytes, memory_order_relaxed);
}

uint64_t admission_memory(void) { return atomic_load_explicit(&account.memory, memory_order_relaxed); }

bool admission_begin_stream(void) { return take(&account.n_streams, 1, account.max_streams); }

void admission_end_stream(void) { atomic_fetch_sub_explicit(&account.n_streams, 1, memory_order_relaxed); }

struct admission_refusal admission_refuse_memory(const char *what, uint64_t n_bytes)
{
    struct admission_refusal refusal = {.status = n_bytes > account.max_memory ? 413 : 503};
    if (refusal.status == 413)
        snprintf(refusal.detail, sizeof refusal.detail,
                 "%s takes %" PRIu64 " bytes of memory; allowed for all requests at a time: %" PRIu64
                 " (the limit --max-memory of this server)",
                 what, n_bytes, account.max_memory);
    else
        snprintf(refusal.detail, sizeof refusal.detail,
                 "%s takes %" PRIu64 " bytes of memory, and other requests have %" PRIu64 " of the %" PRIu64
                 " for all (the limit --max-memory of this server); try again later",
                 what, n_bytes, admission_memory(), account.max_memory);
    return refusal;
}

struct admission_refusal admission_refuse_stream(void)
{
    struct admission_refusal refusal = {.status = 429};
    snprintf(refusal.detail, sizeof refusal.detail,
             "%" PRIu64 " answers are being streamed, as many as this server streams at a time (the limit "
             "--max-streams); try again later",
             account.max_streams);
    return refusal;
}
