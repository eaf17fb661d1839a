/* Bodies that are safetensors files: tensors by name, the request as text in the metadata. */
#include "api/inputs/input.h"
#include "api/inputs/json_in.h"
#include "api/inputs/safetensors_head.h"

#include <string.h>

static bool add_tensors(const struct api_safetensors *file, struct api_request *request, struct api_problem *problem)
{
    for (size_t i = 0; i < file->n_entries; i++)
        if (!api_request_add_tensor(request, file->entries[i].name, &file->entries[i].tensor, 0, problem))
            return false;
    return true;
}

bool api_safetensors_read(struct api_request *request, const struct api_received *body, struct api_problem *problem)
{
    struct api_safetensors file;
    if (!api_safetensors_parse(&request->arena, body->bytes, body->n, API_FIELDS_MAX, &file, problem) ||
        !add_tensors(&file, request, problem))
        return false;
    return !file.request ||
           api_json_read(request, file.request, strlen(file.request), "__metadata__.request: ", problem);
}
