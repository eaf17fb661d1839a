/* Messages of the Model Context Protocol: the first line is "version method name", the three headers ("-": none); the
 * rest is the body. Every answer obeys the laws of answers.h and is one message of JSON-RPC, or nothing at all; an id
 * comes back as it was written. Large lists are left out: their cost is not the message's. */
#include "tests/fuzz/answers.h"

SETUP(pe_gemm_setup())

/* The value of the first member "id" of the answer, as it is written. */
static const char *id_of(const struct answer *a)
{
    const char *id = strstr(a->body, "\"id\":");
    return id ? id + 5 : NULL;
}

static void check_message(const struct answer *a, const char *body)
{
    json_error_t error;
    int status = a->reply->status;
    REQUIRE(status == 200 || status == 202 || status == 400 || status == 404 || status == 413 || status == 503);
    if (status == 202) {
        REQUIRE(a->n == 0);
        return;
    }
    json_t *message = json_loadb(a->body, a->n, JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL, &error);
    REQUIRE(message);
    if (status != 413 && status != 503) {
        bool has_result = json_object_get(message, "result"), has_error = json_object_get(message, "error");
        REQUIRE(has_result != has_error && (status == 200 || has_error));
        const char *id = json_object_get(message, "id") ? id_of(a) : NULL;
        size_t n = id ? strcspn(id, ",}") : 0;
        char written[64];
        if (id && *id != '"' && n < sizeof written) {
            snprintf(written, sizeof written, "%.*s", (int)n, id);
            REQUIRE(strstr(body, written));
        }
    }
    json_decref(message);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct parts parts = split(data, size);
    char line[256] = "", *rest = NULL, *words[3];
    if (parts.n_line >= sizeof line || parts.n_rest == 0)
        return 0;
    memcpy(line, parts.line, parts.n_line);
    for (size_t i = 0; i < 3; i++) {
        words[i] = strtok_r(i ? NULL : line, " ", &rest);
        words[i] = words[i] && strcmp(words[i], "-") != 0 ? words[i] : NULL;
    }
    char *body = text_of((const uint8_t *)parts.rest, parts.n_rest);
    struct api_host host = small_host();
    host.has_mcp = true;
    struct api_call call = {.method = "POST",
                            .path = "/mcp",
                            .content_type = "application/json",
                            .host = "localhost",
                            .mcp_version = words[0],
                            .mcp_method = words[1],
                            .mcp_name = words[2],
                            .body = body,
                            .body_bytes = parts.n_rest};
    struct answer a = gather(api_answer(&host, &call));
    check_message(&a, body);
    answer_drop(&a);
    free(body);
    return 0;
}
