/* The only call into jansson's parser, with errors that the caller can distinguish. */
#ifndef API_JSON_LOAD_H
#define API_JSON_LOAD_H

#include "api/arena.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct api_json_error {
    bool no_memory; /* then the other fields are not set */
    int status;     /* 400: not JSON; 422: JSON that cannot be held (a number too large, a zero byte in a string) */
    size_t at;      /* offset of the last byte of the error */
    const char *text;
    json_error_t library; /* holds the text */
};

/* Call before any thread starts: sets the seed of jansson's hash tables. */
void api_json_setup(void);

/* The tree of a whole text, or NULL. The arena owns the tree and frees it: json_decref must not be called. flags are
 * jansson's; a name that occurs twice is always an error. */
json_t *api_json_load(struct api_arena *arena, const char *text, size_t n, size_t flags, struct api_json_error *error);

#endif
