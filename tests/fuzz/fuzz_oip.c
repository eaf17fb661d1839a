/* Inferences: the first line is "model header", where header is the stated length of the JSON ("-": no header); the
 * rest is the body. Every input gets an answer that obeys the laws of answers.h; a call with must_not_block or with a
 * writable body gets the same answer (checked for one input in 16). The body is copied to a block of its own size and
 * may be moved within itself, so that a sanitizer detects accesses beyond it. */
#include "tests/fuzz/answers.h"

SETUP(pe_gemm_setup())

static void answer(const char *path, const char *header, const char *body, size_t n)
{
    const struct api_host host = small_host();
    struct api_call call = {.method = "POST",
                            .path = path,
                            .body = n ? body : NULL,
                            .body_bytes = n,
                            .must_not_block = true,
                            .inference_header = header};
    struct answer hurried, whole;
    if (!ask_once(&host, &call, &hurried))
        return;
    if (is_one_of(16)) {
        char *copy = malloc(n ? n : 1);
        memcpy(copy, body, n);
        call.body = n ? copy : NULL;
        call.body_is_ours = true;
        call.must_not_block = false;
        REQUIRE(ask_once(&host, &call, &whole));
        check_same(&hurried, &whole);
        answer_drop(&whole);
        free(copy);
    }
    answer_drop(&hurried);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct parts parts = split(data, size);
    char line[256] = "", path[320];
    if (parts.n_line > 200)
        return 0;
    memcpy(line, parts.line, parts.n_line);
    char *space = strchr(line, ' ');
    if (space)
        *space = '\0';
    snprintf(path, sizeof path, "/v2/models/%s/infer", line);
    answer(path, space && strcmp(space + 1, "-") != 0 ? space + 1 : NULL, parts.rest, parts.n_rest);
    return 0;
}
