/* The one call into jansson's parser, with errors that can be told apart. */
#ifndef API_JSON_LOAD_H
#define API_JSON_LOAD_H

#include "api/arena.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct api_json_error {
    bool no_memory; /* then nothing else is said */
    int status;     /* 400: not JSON; 422: JSON that cannot be held (a number too large, a zero byte in a string) */
    size_t at;      /* the last byte of what is wrong */
    const char *text;
    json_error_t library; /* holds the text */
};

/* Before any thread: the seed of jansson's tables. */
void api_json_setup(void);

/* The tree of a whole text, or NULL. It is the arena's and ends with it: json_decref must not be called. flags as
 * jansson's; a name given twice is an error whatever they are. */
json_t *api_json_load(struct api_arena *arena, const char *text, size_t n, size_t flags, struct api_json_error *error);

#endif
