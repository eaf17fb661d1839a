/* Owns a reserve of memory for the large numbers of TLS.
 *
 * GnuTLS refuses a handshake for which it has no memory, but it computes with GMP, which ends the process. The numbers
 * of a handshake are small and short-lived, so when malloc fails they are allocated from a reserve. */
#define _GNU_SOURCE /* explicit_bzero, RTLD_DEFAULT */
#include "server/transport/connections.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { SLOT_BYTES = 8192, N_SLOTS = 64 }; /* a product of two numbers for RSA with 16384 bits is half as long */

static _Alignas(64) char slots[N_SLOTS][SLOT_BYTES]; /* takes physical memory only once it is used */
static _Atomic uint64_t used;                        /* one bit per slot */

static bool is_slot(const void *block)
{
    return (const char *)block >= slots[0] && (const char *)block < slots[0] + sizeof slots;
}

static void *take_slot(size_t n)
{
    uint64_t seen = atomic_load(&used);
    while (n <= SLOT_BYTES && ~seen) {
        int i = __builtin_ctzll(~seen);
        if (atomic_compare_exchange_weak(&used, &seen, seen | UINT64_C(1) << i))
            return slots[i];
    }
    log_error("no memory for a TLS handshake: %zu bytes", n);
    log_flush_all(1000);
    abort(); /* as GMP would do: its callers cannot handle a failure */
}

static void *allocate(size_t n)
{
    void *block = malloc(n);
    return block ? block : take_slot(n);
}

/* The numbers may be parts of keys, so they are wiped. */
static void release(void *block, size_t n)
{
    if (!is_slot(block)) {
        free(block);
        return;
    }
    explicit_bzero(block, n);
    atomic_fetch_and(&used, ~(UINT64_C(1) << (((char *)block - slots[0]) / SLOT_BYTES)));
}

static void *resize(void *block, size_t n_before, size_t n)
{
    void *moved = is_slot(block) ? NULL : realloc(block, n);
    if (moved)
        return moved;
    if (is_slot(block) && n <= SLOT_BYTES)
        return block;
    moved = allocate(n);
    memcpy(moved, block, n < n_before ? n : n_before);
    release(block, n_before);
    return moved;
}

/* GMP's header is not needed, nor is the library if there is no TLS. */
void tls_reserve_numbers(void)
{
    typedef void set_functions(void *(*)(size_t), void *(*)(void *, size_t, size_t), void (*)(void *, size_t));
    set_functions *set = NULL;
    *(void **)&set = dlsym(RTLD_DEFAULT, "__gmp_set_memory_functions");
    if (set)
        set(allocate, resize, release);
}
