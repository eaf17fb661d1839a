/* What the targets that ask for whole answers share: a host, and the making of every piece. */
#include "api/api.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

static bool is_ready(void *self)
{
    (void)self;
    return true;
}

static char *metrics_print(void *self, size_t *n_bytes)
{
    (void)self;
    *n_bytes = 1;
    return calloc(1, 2);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    api_setup();
    return 0;
}

static void make_pieces(const struct api_reply *reply)
{
    uint64_t total = 0;
    char *piece = aligned_alloc(64, (reply->piece_max + 64) / 64 * 64);
    for (uint64_t i = 0; i < reply->n_pieces; i++) {
        size_t n = api_reply_piece(reply, i, piece);
        assert(n >= 1 && n <= reply->piece_max);
        total += n;
    }
    assert(reply->length == API_LENGTH_UNKNOWN || reply->length == total);
    free(piece);
}
