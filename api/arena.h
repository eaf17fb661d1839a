/* Memory with one lifetime: everything a request is made of is allocated here and freed by one call. */
#ifndef API_ARENA_H
#define API_ARENA_H

#include <stdbool.h>
#include <stddef.h>

struct api_arena_block;
struct api_arena_guest;

/* Initialize to zeros. Not for several threads at once. */
struct api_arena {
    struct api_arena_block *blocks; /* newest first; the first one has room */
    size_t used, room;              /* of the newest block */
    size_t n_bytes;                 /* of all blocks */
    struct api_arena_guest *guests; /* foreign objects that end with the arena */
};

/* n bytes aligned to 16, not cleared; NULL without memory. Borrowed until api_arena_drop. */
void *api_arena_alloc(struct api_arena *arena, size_t n);
/* n elements of the given size; NULL too if the product overflows. */
void *api_arena_array(struct api_arena *arena, size_t n, size_t size);
/* A NUL-terminated copy of n bytes; NULL without memory. */
char *api_arena_string(struct api_arena *arena, const char *bytes, size_t n);
/* Takes object: drop(object) is called with the arena's end, or at once (and false returned) without memory. */
bool api_arena_own(struct api_arena *arena, void *object, void (*drop)(void *));
/* Frees all, in the reverse order of making for what is owned. */
void api_arena_drop(struct api_arena *arena);

#endif
