/* Whole requests: the first line is "path accept query" (the last two may be missing), the rest the body. Every input
 * gets an answer that obeys the laws of answers.h, and the same answer again. A call that must not block would only be
 * sent on to a worker by the endpoints that compute before they answer. */
#include "tests/fuzz/answers.h"

SETUP(pe_gemm_setup())

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct api_host host = small_host();
    const struct parts parts = split(data, size);
    char *line = text_of(data, parts.n_line), *rest = line;
    struct api_call call = {.method = "POST", .body = parts.n_rest ? parts.rest : NULL, .body_bytes = parts.n_rest};
    call.path = strsep(&rest, " ");
    static const char *const computing[] = {"/analyze", "/diagnose",  "/diagnose/probe", "/check",
                                            "/explain", "/translate", "/golden"};
    call.must_not_block = call.path;
    for (size_t i = 0; call.path && i < sizeof computing / sizeof *computing; i++)
        call.must_not_block &= strcmp(call.path, computing[i]) != 0;
    call.accept = strsep(&rest, " ");
    call.query = strsep(&rest, " ");
    struct answer a;
    if (ask(&host, &call, &a))
        answer_drop(&a);
    free(line);
    return 0;
}
