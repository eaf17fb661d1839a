/* jansson's parser, with an allocator of ours: a small request is some forty nodes and names, which cost less in the
 * arena of their request, where none is freed by itself. Out of memory it stops, but what it then says may be "invalid
 * token": so a note is taken. */
#include "api/json_load.h"

#include <stdlib.h>

static _Thread_local struct {
    struct api_arena *arena; /* of the text being read; NULL: none is */
    bool has_failed;
} memory;

static void *allocate(size_t n)
{
    void *place = memory.arena ? api_arena_alloc(memory.arena, n) : malloc(n);
    memory.has_failed |= !place;
    return place;
}

static void release(void *place)
{
    if (!memory.arena)
        free(place);
}

/* At the start of every program that reads JSON, tests too: trees of another allocator would never be freed. */
__attribute__((constructor)) static void set_allocator(void) { json_set_alloc_funcs(allocate, release); }

void api_json_setup(void)
{
    json_object_seed(0); /* random: nobody can prepare names that collide; members keep the order of the text anyway */
}

static int status_of(enum json_error_code code)
{
    bool cannot_hold =
        code == json_error_numeric_overflow || code == json_error_null_character || code == json_error_null_byte_in_key;
    return cannot_hold ? 422 : 400;
}

json_t *api_json_load(struct api_arena *arena, const char *text, size_t n, size_t flags, struct api_json_error *error)
{
    json_error_t *library = &error->library;
    memory.arena = arena;
    memory.has_failed = false;
    json_t *root = json_loadb(text, n, flags | JSON_REJECT_DUPLICATES, library);
    memory.arena = NULL;
    if (root && !memory.has_failed) /* without memory it may go on with a string that has lost some of its bytes */
        return root;
    error->no_memory = memory.has_failed;
    error->status = status_of(json_error_code(library));
    error->at = library->position > 0 ? (size_t)library->position - 1 : 0; /* its position is behind the token */
    error->text = library->text;
    return NULL;
}
