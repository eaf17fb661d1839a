/* Owns body buffers: the heap for small ones, their own pages for large ones, which can then grow without copying and
 * go back to the system at once. */
#define _GNU_SOURCE /* mremap */
#include "server/body.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Where pages of one's own begin to pay: a mapping costs a few system calls, a heap block of this size may stay
 * resident. */
enum { MAPPED_MIN = 256 * 1024, FIRST_ROOM = 4096 };

static bool is_mapped(size_t room) { return room >= MAPPED_MIN; }

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

bool body_reserve(struct body *body, size_t n_bytes)
{
    if (n_bytes <= body->room)
        return true;
    if (!is_mapped(n_bytes))
        return move_to(body, malloc(n_bytes), n_bytes);
    if (!is_mapped(body->room))
        return move_to(body, map_new(n_bytes), n_bytes);
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
        if (!body_reserve(body, wanted > needed ? wanted : needed))
            return false;
    }
    memcpy(body->bytes + body->n_bytes, bytes, n_bytes);
    body->n_bytes += n_bytes;
    return true;
}

void body_drop(struct body *body)
{
    if (is_mapped(body->room))
        munmap(body->bytes, body->room);
    else
        free(body->bytes);
    *body = (struct body){0};
}
