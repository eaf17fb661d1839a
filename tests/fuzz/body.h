/* A fuzz target for bodies of one CONTENT_TYPE, which the file that includes this defines. Every byte of an accepted
 * tensor is read, so that a sanitizer sees one that lies beyond the body. */
#include "api/inputs/input.h"
#include "api/json_load.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    api_json_setup();
    return 0;
}

static volatile uint8_t sink;

static void touch(const struct pe_tensor *tensor)
{
    uint64_t count = 0;
    if (!pe_shape_count(tensor->shape, tensor->rank, &count))
        abort();
    const uint8_t *bytes = tensor->data;
    for (uint64_t i = 0; i < count * pe_dtype_size(tensor->dtype); i++)
        sink ^= bytes[i];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct api_request request;
    struct api_problem problem;
    api_request_init(&request, PE_ROTATE);
    if (api_body_read(&request, CONTENT_TYPE, (const char *)data, size, &problem))
        for (size_t i = 0; i < request.n_fields; i++)
            if (request.fields[i].value.kind == PE_ARRAY)
                touch(&request.fields[i].value.array);
    api_request_drop(&request);
    return 0;
}
