/* A reply with its pieces put together; for tests of api/ and fuzz targets, which define REQUIRE(law). */
#ifndef TESTS_SUPPORT_ANSWER_H
#define TESTS_SUPPORT_ANSWER_H

#include "api/api.h"

#include <stdlib.h>
#include <string.h>

struct answer {
    struct api_reply *reply;
    int status;
    char *body; /* NUL-terminated */
    size_t n;
};

/* Room for the largest piece. Owned. */
static inline char *piece_room(const struct api_reply *reply)
{
    char *piece = aligned_alloc(64, (reply->body->piece_max + 64) / 64 * 64);
    REQUIRE(piece);
    return piece;
}

static inline struct answer gather(struct api_reply *reply)
{
    struct answer a = {.reply = reply, .status = reply->status};
    char *piece = piece_room(reply);
    for (uint64_t i = 0; i < reply->body->n_pieces; i++) {
        size_t n = api_reply_piece(reply, i, piece);
        if (n == 0 && reply->body->n_pieces == UINT64_MAX)
            break;
        REQUIRE(n >= 1 && n <= reply->body->piece_max);
        a.body = realloc(a.body, a.n + n + 1);
        memcpy(a.body + a.n, piece, n);
        a.n += n;
    }
    a.body = a.body ? a.body : calloc(1, 1);
    a.body[a.n] = '\0';
    free(piece);
    REQUIRE(reply->body->length == API_LENGTH_UNKNOWN || reply->body->length == a.n);
    return a;
}

static inline void answer_drop(struct answer *a)
{
    free(a->body);
    api_reply_free(a->reply);
}

static inline const char *header_of(const struct answer *a, const char *name)
{
    for (size_t i = 0; i < a->reply->n_headers; i++)
        if (strcmp(a->reply->headers[i].name, name) == 0)
            return a->reply->headers[i].value;
    return NULL;
}

#endif
