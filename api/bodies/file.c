/* A part of a stored file, which it holds: a PUT or DELETE meanwhile does not change the answer. */
#include "api/bodies/bodies.h"
#include "api/limits.h"

#include <stdlib.h>
#include <string.h>

struct file_body {
    struct api_body body; /* must be first */
    const struct api_store *store;
    const struct api_weights *file;
    const char *bytes; /* of the part */
};

static size_t file_piece(struct api_body *body, uint64_t i, char *dst)
{
    size_t begin = (size_t)i * API_PIECE_BYTES, rest = (size_t)body->length - begin;
    size_t n = rest < API_PIECE_BYTES ? rest : API_PIECE_BYTES;
    memcpy(dst, ((struct file_body *)body)->bytes + begin, n);
    return n;
}

static void file_drop(struct api_body *body)
{
    struct file_body *file = (struct file_body *)body;
    file->store->release(file->store->self, file->file);
    free(file);
}

struct api_body *api_file_body_new(const struct api_store *store, const struct api_weights *file, size_t first,
                                   size_t n)
{
    struct file_body *body = malloc(sizeof *body);
    if (!body) {
        store->release(store->self, file);
        return NULL;
    }
    *body = (struct file_body){.body = {.length = n,
                                        .n_pieces = (n + API_PIECE_BYTES - 1) / API_PIECE_BYTES,
                                        .piece_max = n < API_PIECE_BYTES ? n : API_PIECE_BYTES,
                                        .piece = file_piece,
                                        .drop = file_drop},
                               .store = store,
                               .file = file,
                               .bytes = file->bytes + first};
    return &body->body;
}
