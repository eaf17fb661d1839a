/* Inferences: the first line is "model header", where header is the length said of the JSON ("-": no header); the rest
 * is the body. Whatever comes in, an answer goes out whose pieces are as long as it says. The body is copied to a block
 * of its own size and may be moved within itself, so that a sanitizer sees what passes its ends. */
#include "api/api.h"

#include <assert.h>
#include <stdio.h>
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

static void answer(const char *path, const char *header, const uint8_t *body, size_t n)
{
    static const struct api_host host = {.max_body = 1 << 20,
                                         .max_answer = 1 << 18,
                                         .max_work = 1 << 24,
                                         .commit = "",
                                         .is_ready = is_ready,
                                         .metrics_print = metrics_print};
    char *copy = malloc(n ? n : 1);
    memcpy(copy, body, n);
    struct api_call call = {.method = "POST",
                            .path = path,
                            .body = n ? copy : NULL,
                            .body_bytes = n,
                            .body_is_ours = true,
                            .inference_header = header};
    struct api_reply *reply = api_answer(&host, &call);
    make_pieces(reply);
    api_reply_free(reply);
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *newline = memchr(data, '\n', size);
    size_t n = newline ? (size_t)(newline - data) : 0, begin = newline ? n + 1 : 0;
    if (n > 200)
        return 0;
    char line[256] = "", path[320];
    memcpy(line, data, n);
    char *space = strchr(line, ' ');
    if (space)
        *space = '\0';
    snprintf(path, sizeof path, "/v2/models/%s/infer", line);
    answer(path, space && strcmp(space + 1, "-") != 0 ? space + 1 : NULL, data + begin, size - begin);
    return 0;
}
