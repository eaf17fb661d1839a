/* A request's memory: small things share blocks, large ones have their own, foreign objects are listed. */
#include "api/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 16, BLOCK_BYTES = 4096 };

struct api_arena_block {
    struct api_arena_block *next;
    _Alignas(ALIGNMENT) char bytes[];
};

struct api_arena_guest {
    struct api_arena_guest *next;
    void *object;
    void (*drop)(void *);
};

static bool may_grow(const struct api_arena *arena, size_t n)
{
    return !arena->may_grow || arena->may_grow(arena->lender, n);
}

static struct api_arena_block *block_new(const struct api_arena *arena, size_t n)
{
    if (!may_grow(arena, n))
        return NULL;
    return n > SIZE_MAX - sizeof(struct api_arena_block) ? NULL : malloc(sizeof(struct api_arena_block) + n);
}

/* A block of its own for something large goes behind the newest, so that the newest's room is not lost. */
static void *alloc_large(struct api_arena *arena, size_t n)
{
    struct api_arena_block *block = block_new(arena, n);
    if (!block)
        return NULL;
    struct api_arena_block **place = arena->blocks ? &arena->blocks->next : &arena->blocks;
    block->next = *place;
    *place = block;
    arena->n_bytes += n;
    return block->bytes;
}

void *api_arena_alloc(struct api_arena *arena, size_t n)
{
    if (n > SIZE_MAX - ALIGNMENT)
        return NULL;
    n = n ? (n + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT : ALIGNMENT; /* an allocation of 0 bytes has an address too */
    if (n > BLOCK_BYTES / 4)
        return alloc_large(arena, n);
    if (arena->room - arena->used < n) {
        struct api_arena_block *block = block_new(arena, BLOCK_BYTES);
        if (!block)
            return NULL;
        block->next = arena->blocks;
        arena->blocks = block;
        arena->used = 0;
        arena->room = BLOCK_BYTES;
        arena->n_bytes += BLOCK_BYTES;
    }
    void *place = arena->blocks->bytes + arena->used;
    arena->used += n;
    return place;
}

void *api_arena_array(struct api_arena *arena, size_t n, size_t size)
{
    size_t bytes;
    return __builtin_mul_overflow(n, size, &bytes) ? NULL : api_arena_alloc(arena, bytes);
}

char *api_arena_string(struct api_arena *arena, const char *bytes, size_t n)
{
    char *copy = n < SIZE_MAX ? api_arena_alloc(arena, n + 1) : NULL;
    if (!copy)
        return NULL;
    if (n)
        memcpy(copy, bytes, n);
    copy[n] = '\0';
    return copy;
}

bool api_arena_own(struct api_arena *arena, void *object, void (*drop)(void *))
{
    struct api_arena_guest *guest = api_arena_alloc(arena, sizeof *guest);
    if (!guest) {
        drop(object);
        return false;
    }
    *guest = (struct api_arena_guest){.next = arena->guests, .object = object, .drop = drop};
    arena->guests = guest;
    return true;
}

char *api_arena_adopt(struct api_arena *arena, char *bytes, size_t n)
{
    if (!may_grow(arena, n)) {
        free(bytes);
        return NULL;
    }
    arena->n_bytes += n;
    return api_arena_own(arena, bytes, free) ? bytes : NULL;
}

bool api_arena_reserve(struct api_arena *arena, size_t n) { return may_grow(arena, n); }

void api_arena_drop(struct api_arena *arena)
{
    for (struct api_arena_guest *guest = arena->guests; guest; guest = guest->next)
        guest->drop(guest->object);
    for (struct api_arena_block *block = arena->blocks, *next; block; block = next) {
        next = block->next;
        free(block);
    }
    *arena = (struct api_arena){0};
}
