/* Owns body buffers. Small ones are on the heap. Large ones have their own pages: they can grow without copying
 * (mremap), and go back to the system at once, except for one mapping that is kept for the next body.
 *
 * A body grows with the bytes that have arrived, by an eighth at a time, and reserves each step first, so a length that
 * is promised costs nothing and a body that exceeds what is free is refused in the middle. Clearing pages in the kernel
 * takes as long as receiving into them, so the last mapping is kept for all loops, marked as free (the kernel may
 * reclaim it), and huge pages are asked for where they fit. */
#define _GNU_SOURCE /* mremap */
#include "server/memory/memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* From this size on, a mapping of its own pays off: it costs a few system calls, while a heap block of this size may
 * stay resident. */
enum { MAPPED_MIN = 256 * 1024, FIRST_ROOM = 4096, SPARE_MAX = 32 * 1024 * 1024 };

/* A body reserves part of --max-memory in proportion to the bytes that have arrived. Its first bytes do not count for
 * the client's share: a small request is served whatever its client holds, and the connection itself costs as much. */
enum { STEP = 16 * 1024, UNSHARED = 16 * 1024, HUGE_PAGE = 2 * 1024 * 1024 };

static bool is_mapped(size_t room) { return room >= MAPPED_MIN; }

/* Clearing pages in the kernel takes as long as receiving a body into them, so the last pages are kept, one mapping for
 * all loops. They are marked as free, so the kernel may reclaim them if memory is short. */
static struct {
    pthread_mutex_t lock;
    char *bytes;
    size_t room;
} spare = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Takes the spare mapping only if it fits: a small body must not occupy many pages. NULL otherwise. */
static char *take_spare(size_t n_bytes, size_t *room)
{
    char *bytes = NULL;
    pthread_mutex_lock(&spare.lock);
    if (spare.bytes && spare.room >= n_bytes && spare.room / 4 <= n_bytes) {
        bytes = spare.bytes;
        *room = spare.room;
        spare.bytes = NULL;
    }
    pthread_mutex_unlock(&spare.lock);
    return bytes;
}

/* Keeps the new mapping and drops the old one, because the next body most likely has the size of the last one. */
static void keep_spare(char *bytes, size_t room)
{
    if (room <= SPARE_MAX) {
        madvise(bytes, room, MADV_FREE);
        pthread_mutex_lock(&spare.lock);
        char *old = spare.bytes;
        size_t old_room = spare.room;
        spare.bytes = bytes;
        spare.room = room;
        pthread_mutex_unlock(&spare.lock);
        bytes = old;
        room = old_room;
    }
    if (bytes)
        munmap(bytes, room);
}

static char *map_new(size_t room)
{
    char *bytes = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (bytes == MAP_FAILED)
        return NULL;
    madvise(bytes, room,
            MADV_NOHUGEPAGE); /* otherwise the first byte of a body that never continues would cost a whole huge page */
    return bytes;
}

static bool move_to(struct body *body, char *bytes, size_t room)
{
    if (!bytes)
        return false;
    if (body->n_bytes)
        memcpy(bytes, body->bytes, body->n_bytes);
    free(body->bytes);
    body->bytes = bytes;
    body->room = room;
    return true;
}

static uint64_t shared_of(uint64_t n_taken) { return n_taken > UNSHARED ? n_taken - UNSHARED : 0; }

static bool take_up_to(struct body *body, uint64_t n)
{
    uint64_t shared = shared_of(n) - shared_of(body->n_taken), unshared = n - body->n_taken - shared;
    if (!admission_take(unshared))
        return false;
    if (!admission_take_body(body->client, shared)) {
        admission_give(unshared);
        return false;
    }
    body->n_taken = n;
    return true;
}

/* Adds an eighth; from the first huge page on, rounds up to whole huge pages. */
static uint64_t with_margin(uint64_t n)
{
    n += n / 8 + STEP;
    return n < HUGE_PAGE ? n : (n + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
}

static bool take_needed(struct body *body, uint64_t n_needed, uint64_t n_max)
{
    if (n_needed <= body->n_taken)
        return true;
    bool was_small = body->n_taken < HUGE_PAGE;
    uint64_t wanted = with_margin(n_needed), most = body->n_declared ? body->n_declared : n_max;
    wanted = wanted < most ? wanted : most;
    if ((wanted <= n_needed || !take_up_to(body, wanted)) && !take_up_to(body, n_needed))
        return false;
    if (was_small) {
        /* Clearing many small pages costs more than copying the body into them. A kernel without huge pages rejects the
         * advice, which does no harm. */
        if (is_mapped(body->room) && body->n_taken >= HUGE_PAGE)
            madvise(body->bytes, body->room, MADV_HUGEPAGE);
    }
    return true;
}

bool body_may_come(const struct body *body, uint64_t n_bytes)
{
    return admission_fits_body(body->client, shared_of(n_bytes));
}

/* A spare mapping has pages that are not reserved in the account. They are marked as free, so the kernel reclaims them
 * if memory is short. */
static bool make_room(struct body *body, size_t n_bytes)
{
    if (n_bytes <= body->room)
        return true;
    if (!is_mapped(n_bytes))
        return move_to(body, malloc(n_bytes), n_bytes);
    if (!is_mapped(body->room)) {
        size_t room = n_bytes;
        char *kept = take_spare(n_bytes, &room);
        return move_to(body, kept ? kept : map_new(n_bytes), room);
    }
    char *bytes = mremap(body->bytes, body->room, n_bytes, MREMAP_MAYMOVE);
    if (bytes == MAP_FAILED)
        return false;
    body->bytes = bytes;
    body->room = n_bytes;
    return true;
}

bool body_reserve(struct body *body, size_t n_bytes)
{
    body->n_declared = n_bytes;
    return make_room(body, n_bytes);
}

static bool make_room_for_more(struct body *body, size_t n_needed, uint64_t n_max)
{
    if (n_needed <= body->room)
        return true;
    size_t wanted = body->room ? 2 * body->room : FIRST_ROOM;
    wanted = wanted > n_max ? (size_t)n_max : wanted;
    return (wanted > n_needed && make_room(body, wanted)) || make_room(body, n_needed);
}

bool body_add(struct body *body, const char *bytes, size_t n_bytes, uint64_t n_max)
{
    size_t n_needed = body->n_bytes + n_bytes;
    if (!make_room_for_more(body, n_needed, n_max) || !take_needed(body, n_needed, n_max))
        return false;
    memcpy(body->bytes + body->n_bytes, bytes, n_bytes);
    body->n_bytes = n_needed;
    return true;
}

bool body_is_large(const struct body *body) { return body->room > SPARE_MAX; }

void body_drop(struct body *body)
{
    uint64_t shared = shared_of(body->n_taken);
    admission_give(body->n_taken - shared);
    admission_give_body(body->client, shared);
    if (is_mapped(body->room))
        keep_spare(body->bytes, body->room);
    else
        free(body->bytes);
    *body = (struct body){0};
}
