/* Chooses the reader of a body. */
#include "api/inputs/inputs.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static const struct api_input inputs[] = {
#define INPUT(media_type, name) {media_type, api_##name##_read},
#include "api/inputs/list.h"
#undef INPUT
};

enum { N_INPUTS = sizeof inputs / sizeof inputs[0] };

static void print_accepted(char *out, size_t room)
{
    size_t used = 0;
    for (size_t i = 0; i < N_INPUTS && used < room; i++)
        used += (size_t)snprintf(out + used, room - used, "%s%s", i ? ", " : "", inputs[i].media_type);
}

static bool fail_media_type(struct api_problem *problem, const char *pointer, const char *what)
{
    char list[256];
    print_accepted(list, sizeof list);
    api_fail(problem, 415, pointer, "%s; bodies are read as: %s", pe_text(what), list);
    api_problem_header(problem, "Accept-Post", list);
    return false;
}

static const struct api_input *input_find(const char *content_type)
{
    const char *start = content_type + strspn(content_type, " \t");
    size_t n = strcspn(start, "; \t");
    for (size_t i = 0; i < N_INPUTS; i++)
        if (strlen(inputs[i].media_type) == n && strncasecmp(inputs[i].media_type, start, n) == 0)
            return &inputs[i];
    return &inputs[0];
}

bool api_input_is_json(const char *content_type) { return !content_type || input_find(content_type) == &inputs[0]; }

bool api_input_read(struct api_request *request, const char *content_type, const char *bytes, size_t n,
                    struct api_problem *problem)
{
    const char *type = content_type ? content_type : "", *semicolon = strchr(type, ';');
    struct api_received body = {.bytes = bytes, .n = n, .parameters = semicolon ? semicolon + 1 : ""};
    return input_find(type)->read(request, &body, problem);
}

/* ---- What a body looks like ---- */

static bool npz_looks_like(const char *bytes, size_t n)
{
    enum { END_BYTES = 22 }; /* of the directory's end, which an empty archive has too */
    return n >= END_BYTES && (memcmp(bytes, "PK\3\4", 4) == 0 || memcmp(bytes, "PK\5\6", 4) == 0);
}

/* A JSON text does not have '{' as its ninth byte after eight bytes that form a plausible length, except on purpose. */
static bool safetensors_looks_like(const char *bytes, size_t n)
{
    uint64_t length = 0;
    if (n <= 8 || bytes[8] != '{')
        return false;
    for (unsigned at = 8; at-- > 0;)
        length = length << 8 | (unsigned char)bytes[at];
    return length <= n - 8;
}

/* Without this check, tensors sent with a meaningless type (curl's default is that of a form) would give unhelpful JSON
 * errors. */
bool api_json_body_read(struct api_request *request, const struct api_received *body, struct api_problem *problem)
{
    if (api_npy_looks_like(body->bytes, body->n))
        return fail_media_type(problem, "", "the body is a .npy file but its Content-Type is not application/x-npy");
    if (npz_looks_like(body->bytes, body->n))
        return fail_media_type(problem, "", "the body is a .npz file but its Content-Type is not application/zip");
    if (safetensors_looks_like(body->bytes, body->n))
        return fail_media_type(
            problem, "", "the body is a safetensors file but its Content-Type is not application/vnd.safetensors");
    if (api_gguf_looks_like(body->bytes, body->n))
        return fail_media_type(problem, "", "the body is a GGUF file but its Content-Type is not application/x-gguf");
    return api_json_read(request, body->bytes, body->n, "", problem);
}

bool api_octets_read(struct api_request *request, const struct api_received *body, struct api_problem *problem)
{
    if (api_npy_looks_like(body->bytes, body->n))
        return api_npy_read(request, body, problem);
    if (npz_looks_like(body->bytes, body->n))
        return api_npz_read(request, body, problem);
    if (safetensors_looks_like(body->bytes, body->n))
        return api_safetensors_read(request, body, problem);
    if (api_gguf_looks_like(body->bytes, body->n))
        return api_gguf_read(request, body, problem);
    return fail_media_type(problem, "",
                           "application/octet-stream must begin as a .npy, .npz, safetensors or GGUF file does");
}
