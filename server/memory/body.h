/* The body of a request while it arrives: one contiguous buffer that knows its maximum. */
#ifndef SERVER_MEMORY_BODY_H
#define SERVER_MEMORY_BODY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct body {
    char *bytes; /* NULL while empty */
    size_t n_bytes, room;
    size_t n_declared; /* 0: not said */
    uint64_t client;   /* the client it belongs to (shares.h); set by the owner before the first byte */
    uint64_t n_taken;  /* of --max-memory (admission.h), for what has come and a little more */
};

/* Whether a body of this length would find memory, if nothing else came. The one before the first byte. */
bool body_may_come(const struct body *body, uint64_t n_bytes);
/* Makes room for n_bytes in advance: addresses, not yet memory. A body of known length then never moves. False: no
 * memory. */
bool body_reserve(struct body *body, size_t n_bytes);
/* Appends; grows geometrically, never past n_max unless that is what the bytes need. False: no memory, or none allowed.
 */
bool body_add(struct body *body, const char *bytes, size_t n_bytes, uint64_t n_max);
bool body_is_large(const struct body *body); /* freeing it takes long */
void body_drop(struct body *body);           /* frees the buffer and sets all to zero */

#endif
