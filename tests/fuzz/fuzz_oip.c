/* Inferences: the first line is "model header", where header is the length said of the JSON ("-": no header); the rest
 * is the body. Whatever comes in, an answer goes out whose pieces are as long as it says. The body is copied to a block
 * of its own size and may be moved within itself, so that a sanitizer sees what passes its ends. */
#include "tests/fuzz/answers.h"

#include <stdio.h>

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
