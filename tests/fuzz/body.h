/* A fuzz target for bodies of one CONTENT_TYPE, which the file that includes this defines. Every byte of an accepted
 * tensor is read, so that a sanitizer detects one beyond the body; each name occurs once; a refusal is a sentence. */
#include "tests/fuzz/laws.h"
#include "api/inputs/inputs.h"
#include "api/json/json.h"

static volatile uint8_t sink;

static void touch(const struct pe_tensor *tensor)
{
    uint64_t count = 0;
    REQUIRE(pe_shape_count(tensor->shape, tensor->rank, &count));
    const uint8_t *bytes = tensor->data;
    for (uint64_t i = 0; i < count * pe_dtype_size(tensor->dtype); i++)
        sink ^= bytes[i];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct api_request request;
    struct api_problem problem;
    api_request_init(&request, PE_ROTATE);
    if (!api_input_read(&request, CONTENT_TYPE, (const char *)data, size, &problem))
        REQUIRE(problem.status >= 400 && problem.status < 500 && *problem.error.detail);
    else
        for (size_t i = 0; i < request.n_fields; i++) {
            REQUIRE(api_request_find(&request, request.fields[i].name) == &request.fields[i].value);
            if (request.fields[i].value.kind == PE_ARRAY)
                touch(&request.fields[i].value.array);
        }
    api_request_drop(&request);
    return 0;
}
