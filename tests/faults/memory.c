/* Owns allocations that fail: every malloc, calloc, realloc, aligned block and mapping of the process, from any library
 * (strdup and open_memstream arrive here too).
 *
 * In a preloaded library the names are those of the C library, and unfreed blocks are counted. FAULTS_WRAPPED: the
 * program is linked with --wrap for these names, for sanitizers, which have their own allocators. Then only calls from
 * our archives arrive (jansson's too, because api/json/json_scan.c gives it our malloc), and the sanitizer looks for
 * leaks. */
#define _GNU_SOURCE /* RTLD_NEXT, memalign */
#include "tests/faults/faults.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef FAULTS_WRAPPED
#define OURS(name) __wrap_##name
#define TRUE(name) __real_##name
#define TRUE_ALIGNED __real_aligned_alloc
#define USABLE(block) (size_t)0
#else
#define OURS(name) name
#define TRUE(name) __libc_##name
#define TRUE_ALIGNED __libc_memalign
#define USABLE(block) malloc_usable_size(block)
void __libc_free(void *block);
#endif

void *TRUE(malloc)(size_t n);
void *TRUE(calloc)(size_t n, size_t size);
void *TRUE(realloc)(void *block, size_t n);
void *TRUE_ALIGNED(size_t alignment, size_t n);
void *OURS(malloc)(size_t n);
void *OURS(calloc)(size_t n, size_t size);
void *OURS(realloc)(void *block, size_t n);
void *OURS(aligned_alloc)(size_t alignment, size_t n);
void *OURS(mmap)(void *at, size_t n, int protection, int flags, int fd, off_t offset);

/* FAULTS_TRACE=1 prints the caller of each failed allocation on standard error. */
static bool is_tracing;

static void __attribute__((constructor)) read_trace(void)
{
    void *here[1];
    is_tracing = getenv("FAULTS_TRACE") && backtrace(here, 1) > 0; /* which loads its own dependencies now */
}

static void trace(void)
{
    void *callers[16];
    long armed = atomic_exchange(&faults->alloc_armed, 0);
    backtrace_symbols_fd(callers, backtrace(callers, 16), STDERR_FILENO);
    if (write(STDERR_FILENO, "\n", 1) == 1)
        atomic_store(&faults->alloc_armed, armed);
}

static bool is_one_of_many(void)
{
    long every =
        atomic_load_explicit(&faults->alloc_armed, memory_order_relaxed) ? atomic_load(&faults->alloc_every) : 0;
    if (every <= 0 || atomic_load(&faults->alloc_count) % every != 0)
        return false;
    atomic_fetch_add(&faults->alloc_failed, 1);
    return true;
}

/* libtasn1 4.19 uses the block that it failed to allocate, and the process crashes; our code cannot prevent that. */
static bool is_excused(void *caller)
{
    Dl_info info;
    return dladdr(caller, &info) && info.dli_fname && strstr(info.dli_fname, "libtasn1");
}

static bool fails(void *caller)
{
    if (!faults_hit(&faults->alloc_armed, &faults->alloc_count, &faults->alloc_first, &faults->alloc_burst,
                    &faults->alloc_failed) &&
        !is_one_of_many())
        return false;
    if (is_excused(caller))
        return false;
    if (is_tracing)
        trace();
    errno = ENOMEM;
    return true;
}

static void *counted(void *block)
{
    if (!block)
        return NULL;
    atomic_fetch_add_explicit(&faults->live_blocks, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&faults->live_bytes, (long)USABLE(block), memory_order_relaxed);
    return block;
}

void *OURS(malloc)(size_t n) { return fails(__builtin_return_address(0)) ? NULL : counted(TRUE(malloc)(n)); }

void *OURS(calloc)(size_t n, size_t size)
{
    return fails(__builtin_return_address(0)) ? NULL : counted(TRUE(calloc)(n, size));
}

void *OURS(realloc)(void *block, size_t n)
{
    if (fails(__builtin_return_address(0)))
        return NULL;
    size_t before = block ? USABLE(block) : 0;
    void *moved = TRUE(realloc)(block, n);
    bool is_kept = block && !moved && n > 0;
    if (is_kept)
        return NULL;
    long change = (long)(moved ? USABLE(moved) : 0) - (long)before;
    atomic_fetch_add_explicit(&faults->live_bytes, change, memory_order_relaxed);
    atomic_fetch_add_explicit(&faults->live_blocks, (moved != NULL) - (block != NULL), memory_order_relaxed);
    return moved;
}

void *OURS(aligned_alloc)(size_t alignment, size_t n)
{
    return fails(__builtin_return_address(0)) ? NULL : counted(TRUE_ALIGNED(alignment, n));
}

#ifdef FAULTS_WRAPPED

void *__real_mmap(void *at, size_t n, int protection, int flags, int fd, off_t offset);

void *__wrap_mmap(void *at, size_t n, int protection, int flags, int fd, off_t offset)
{
    return fails(__builtin_return_address(0)) ? MAP_FAILED : __real_mmap(at, n, protection, flags, fd, offset);
}

#else

static void discount(void *block)
{
    if (!block)
        return;
    atomic_fetch_sub_explicit(&faults->live_blocks, 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(&faults->live_bytes, (long)USABLE(block), memory_order_relaxed);
}

void free(void *block)
{
    discount(block);
    __libc_free(block);
}

void *memalign(size_t alignment, size_t n) { return aligned_alloc(alignment, n); }

int posix_memalign(void **place, size_t alignment, size_t n)
{
    void *block = aligned_alloc(alignment, n);
    if (block)
        *place = block;
    return block ? 0 : ENOMEM;
}

/* The C library's own mappings (stacks, large blocks of the heap) do not arrive here. */
void *mmap(void *at, size_t n, int protection, int flags, int fd, off_t offset)
{
    NEXT(mmap)
    if (fails(__builtin_return_address(0)))
        return MAP_FAILED;
    void *block = next(at, n, protection, flags, fd, offset);
    if (block != MAP_FAILED)
        atomic_fetch_add_explicit(&faults->live_blocks, 1, memory_order_relaxed);
    return block;
}

int munmap(void *block, size_t n)
{
    NEXT(munmap)
    atomic_fetch_sub_explicit(&faults->live_blocks, 1, memory_order_relaxed);
    return next(block, n);
}

#endif
