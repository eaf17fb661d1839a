/* The body of a request while it arrives: one contiguous buffer with a maximum size. */
#ifndef SERVER_MEMORY_BODY_H
#define SERVER_MEMORY_BODY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct body {
    char *bytes; /* NULL while empty */
    size_t n_bytes, room;
    size_t n_declared; /* 0: unknown */
    uint64_t client;   /* the client that the body belongs to (shares.h); the owner sets it before the first byte */
    uint64_t n_taken;  /* bytes reserved of --max-memory (admission.h): those that have arrived, and a little more */
};

/* Whether memory for a body of this length could be reserved, if nothing else were. Call it before the first byte. */
bool body_may_come(const struct body *body, uint64_t n_bytes);
/* Reserves addresses, but no memory yet, for n_bytes. A body of known length then never moves. False: no memory. */
bool body_reserve(struct body *body, size_t n_bytes);
/* Appends bytes; the buffer grows geometrically, but not past n_max unless the bytes need it. False: no memory, or
 * --max-memory would be exceeded. */
bool body_add(struct body *body, const char *bytes, size_t n_bytes, uint64_t n_max);
bool body_is_large(const struct body *body); /* whether freeing it takes long */
void body_drop(struct body *body);           /* frees the buffer and sets all to zero */

#endif
