/* Memory with one lifetime: everything that belongs to a request is allocated here and freed by one call. */
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
    bool (*may_grow)(void *lender, size_t n); /* by n bytes? NULL: always. If not, the allocation fails */
    void *lender;
};

/* n bytes aligned to 16, not cleared; NULL if memory runs out. Borrowed until api_arena_drop. */
void *api_arena_alloc(struct api_arena *arena, size_t n);
/* n elements of the given size; NULL also if the product overflows. */
void *api_arena_array(struct api_arena *arena, size_t n, size_t size);
/* A NUL-terminated copy of n bytes; NULL if memory runs out. */
char *api_arena_string(struct api_arena *arena, const char *bytes, size_t n);
/* Takes object: drop(object) is called when the arena ends. If memory runs out, it is called at once and false is
 * returned. */
bool api_arena_own(struct api_arena *arena, void *object, void (*drop)(void *));
/* Takes n bytes from malloc. Returns NULL, and frees them, if memory runs out or the arena may not grow so far. */
char *api_arena_adopt(struct api_arena *arena, char *bytes, size_t n);
/* Whether it may grow by n bytes that are about to be allocated elsewhere. */
bool api_arena_reserve(struct api_arena *arena, size_t n);
/* Frees everything; owned objects are freed in the reverse order of their creation. */
void api_arena_drop(struct api_arena *arena);

#endif
