/* Whole requests: the first line is "path accept query" (the last two may be missing), the rest the body. Whatever
 * comes in, an answer goes out whose pieces are as long as it says. */
#include "tests/fuzz/answers.h"

/* Splits the next word off a line; NULL when there is none. */
static const char *next_word(char **line)
{
    char *start = *line, *space = start ? strchr(start, ' ') : NULL;
    if (space)
        *space = '\0';
    *line = space ? space + 1 : NULL;
    return start;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct api_host host = {
        .max_body = 1 << 20, .max_answer = 1 << 18, .commit = "", .is_ready = is_ready, .metrics_print = metrics_print};
    const uint8_t *newline = memchr(data, '\n', size);
    size_t n = newline ? (size_t)(newline - data) : 0, begin = newline ? n + 1 : 0;
    char *line = calloc(1, n + 1), *rest = line;
    memcpy(line, data, n);
    struct api_call call = {
        .method = "POST", .body = size > begin ? (const char *)data + begin : NULL, .body_bytes = size - begin};
    call.path = next_word(&rest);
    call.accept = next_word(&rest);
    call.query = next_word(&rest);
    struct api_reply *reply = api_answer(&host, &call);
    make_pieces(reply);
    api_reply_free(reply);
    free(line);
    return 0;
}
