/* jansson's parser. Out of memory it stops, but what it then says may be "invalid token": so its allocator is ours and
 * takes a note. */
#include "api/json_load.h"

#include <stdlib.h>

static _Thread_local bool allocation_failed;

static void *allocate(size_t n)
{
    void *place = malloc(n);
    allocation_failed |= !place;
    return place;
}

void api_json_setup(void)
{
    json_set_alloc_funcs(allocate, free);
    json_object_seed(0); /* random: nobody can prepare names that collide; members keep the order of the text anyway */
}

static int status_of(enum json_error_code code)
{
    bool cannot_hold =
        code == json_error_numeric_overflow || code == json_error_null_character || code == json_error_null_byte_in_key;
    return cannot_hold ? 422 : 400;
}

json_t *api_json_load(const char *text, size_t n, size_t flags, struct api_json_error *error)
{
    json_error_t *library = &error->library;
    allocation_failed = false;
    json_t *root = json_loadb(text, n, flags | JSON_REJECT_DUPLICATES, library);
    if (root && !allocation_failed)
        return root;
    json_decref(root); /* without memory it may go on with a string that has lost some of its bytes */
    error->no_memory = allocation_failed;
    error->status = status_of(json_error_code(library));
    error->at = library->position > 0 ? (size_t)library->position - 1 : 0; /* its position is behind the token */
    error->text = library->text;
    return NULL;
}
