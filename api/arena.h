/* Memory with one lifetime: everything a request is made of is allocated here and freed by one call. */
#ifndef API_ARENA_H
#define API_ARENA_H

#include <stdbool.h>
#include <stddef.h>

struct api_arena_block;
struct api_arena_guest;

/* Initialize to zeros. Not for several threads at once. */
struct api_arena {
    struct api_arena_block *blocks;           /* newest first; the first one has room */
    size_t used, room;                        /* of the newest block */
    size_t n_bytes;                           /* of all blocks */
    struct api_arena_guest *guests;           /* foreign objects that end with the arena */
    bool (*may_grow)(void *lender, size_t n); /* by n bytes? NULL: always. Without leave there is no memory */
    void *lender;
};

/* n bytes aligned to 16, not cleared; NULL without memory. Borrowed until api_arena_drop. */
void *api_arena_alloc(struct api_arena *arena, size_t n);
/* n elements of the given size; NULL too if the product overflows. */
void *api_arena_array(struct api_arena *arena, size_t n, size_t size);
/* A NUL-terminated copy of n bytes; NULL without memory. */
char *api_arena_string(struct api_arena *arena, const char *bytes, size_t n);
/* Takes object: drop(object) is called with the arena's end, or at once (and false returned) without memory. */
bool api_arena_own(struct api_arena *arena, void *object, void (*drop)(void *));
/* Takes n bytes that malloc gave; NULL (and they are freed) without memory, or leave to hold so much. */
char *api_arena_adopt(struct api_arena *arena, char *bytes, size_t n);
/* May it grow by n bytes, which are about to be made elsewhere? */
bool api_arena_reserve(struct api_arena *arena, size_t n);
/* Frees all, in the reverse order of making for what is owned. */
void api_arena_drop(struct api_arena *arena);

#endif
