/* Finished bytes, in one piece. */
#include "api/bodies/bodies.h"

#include <stdlib.h>
#include <string.h>

size_t api_bytes_body_piece(struct api_body *body, uint64_t i, char *dst)
{
    (void)i;
    memcpy(dst, body->bytes, body->piece_max);
    return body->piece_max;
}

static void bytes_drop(struct api_body *body) { free(((struct api_bytes_body *)body)->owned); }

struct api_bytes_body api_bytes_body_of(const char *bytes, size_t n, char *owned)
{
    return (struct api_bytes_body){.body = {.length = n,
                                            .n_pieces = n > 0,
                                            .piece_max = n,
                                            .bytes = bytes,
                                            .piece = api_bytes_body_piece,
                                            .drop = bytes_drop},
                                   .owned = owned};
}
