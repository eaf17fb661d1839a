/* Owns body buffers: the heap for small ones, their own pages for large ones, which can then grow without copying and
 * go back to the system at once, but for one that is kept for the next body. */
#define _GNU_SOURCE /* mremap */
#include "server/memory/body.h"

#include "server/memory/admission.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Where pages of one's own begin to pay: a mapping costs a few system calls, a heap block of this size may stay
 * resident. */
enum { MAPPED_MIN = 256 * 1024, FIRST_ROOM = 4096, SPARE_MAX = 32 * 1024 * 1024 };

static bool is_mapped(size_t room) { return room >= MAPPED_MIN; }

/* Pages that the kernel must clear take as long as receiving a body into them, so the last pages are kept, one mapping
 * for all loops. They are marked as free: the kernel takes them if it is short of memory. */
static struct {
    pthread_mutex_t lock;
    char *bytes;
    size_t room;
} spare = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Only if it fits: a small body shall not hold many pages. NULL otherwise. */
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

/* The new one stays, the old one goes: what comes next is most likely of the size of what came last. */
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
    /* Fresh small pages cost more than the copy into them. A kernel without huge pages refuses, which is no harm. */
    madvise(bytes, room, MADV_HUGEPAGE);
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

/* In full and before a byte has come: a length that a client declares is a length that it may send. */
static bool take(struct body *body, size_t n_bytes)
{
    if (n_bytes <= body->n_taken)
        return true;
    if (!admission_take(n_bytes - body->n_taken))
        return false;
    body->n_taken = n_bytes;
    return true;
}

bool body_reserve(struct body *body, size_t n_bytes)
{
    if (n_bytes <= body->room)
        return true;
    if (!take(body, n_bytes))
        return false;
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

bool body_add(struct body *body, const char *bytes, size_t n_bytes, uint64_t n_max)
{
    if (n_bytes > body->room - body->n_bytes) {
        size_t needed = body->n_bytes + n_bytes, wanted = body->room ? 2 * body->room : FIRST_ROOM;
        wanted = wanted > n_max ? (size_t)n_max : wanted;
        if ((wanted <= needed || !body_reserve(body, wanted)) && !body_reserve(body, needed))
            return false;
    }
    memcpy(body->bytes + body->n_bytes, bytes, n_bytes);
    body->n_bytes += n_bytes;
    return true;
}

bool body_is_large(const struct body *body) { return body->room > SPARE_MAX; }

void body_drop(struct body *body)
{
    admission_give(body->n_taken);
    if (is_mapped(body->room))
        keep_spare(body->bytes, body->room);
    else
        free(body->bytes);
    *body = (struct body){0};
}
