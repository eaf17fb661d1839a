/* Cross-origin requests. None are allowed unless the host names origins (--cors-origin). */
#include "api/replies/cors.h"

#include <string.h>

#define EXPOSED "ETag, Posenc-Tensors, Content-Range, Server-Timing, X-Request-Id"
#define INFERENCE_HEADER ", Inference-Header-Content-Length" /* states where the JSON of an inference ends */

static bool is_inference(const struct api_call *call)
{
    return strncmp(call->path, "/v2", 3) == 0 && (!call->path[3] || call->path[3] == '/');
}

/* A connection has 10 KiB for the request's head and the answer's head together: a request head of full size could not
 * be repeated in the answer, and the client would get none. */
enum { SAID_AGAIN_MAX = 1024 };

/* Whether origin is one of the words of the list. "*" matches every origin that is valid as a header value. */
static bool is_allowed(const char *list, const char *origin)
{
    size_t n = strlen(origin);
    if (n > SAID_AGAIN_MAX)
        return false;
    for (const char *c = origin; *c; c++)
        if (*c < 0x21 || *c > 0x7e)
            return false;
    for (const char *p = list ? list : ""; *p;) {
        p += strspn(p, " ,");
        size_t m = strcspn(p, " ,");
        if ((m == n && strncmp(p, origin, n) == 0) || (m == 1 && *p == '*'))
            return true;
        p += m;
    }
    return false;
}

/* Whether text consists of header names with commas and spaces between them, and so may be copied into a header of the
 * answer. Browsers send nothing else. */
static bool are_names(const char *list)
{
    static const char alphabet[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~, ";
    size_t n = list ? strspn(list, alphabet) : 0;
    return n > 0 && n <= SAID_AGAIN_MAX && list[n] == '\0';
}

static bool is_preflight(const struct api_call *call)
{
    return strcmp(call->method, "OPTIONS") == 0 && call->origin && call->access_method;
}

struct api_reply *api_cors(struct api_reply *reply, const struct api_host *host, const struct api_call *call)
{
    if (!call->origin || !*call->origin || !is_allowed(host->cors_origins, call->origin))
        return reply;
    bool fine = api_reply_header(reply, "Access-Control-Allow-Origin", call->origin) &&
                api_reply_header(reply, "Vary", "Origin");
    if (!is_preflight(call))
        fine = fine && api_reply_header(reply, "Access-Control-Expose-Headers",
                                        is_inference(call) ? EXPOSED INFERENCE_HEADER : EXPOSED);
    (void)fine; /* if memory runs out, the page cannot read the answer; other clients can */
    return reply;
}

/* A preflight request always gets the headers that it asks for: they permit nothing that a client without a browser
 * could not do. */
struct api_reply *api_options(const struct api_call *call, const char *allowed)
{
    struct api_reply *reply = api_reply_empty(204);
    bool fine = api_reply_header(reply, "Allow", allowed);
    if (is_preflight(call)) {
        const char *headers = call->access_headers;
        if (!are_names(headers))
            headers = is_inference(call) ? "Content-Type" INFERENCE_HEADER : "Content-Type";
        fine = fine && api_reply_header(reply, "Access-Control-Allow-Methods", allowed) &&
               api_reply_header(reply, "Access-Control-Allow-Headers", headers) &&
               api_reply_header(reply, "Access-Control-Max-Age", "86400");
    }
    return fine ? reply : api_reply_without_memory(reply);
}
