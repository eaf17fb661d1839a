/* Cross-origin requests. None are allowed unless the host names origins (--cors-origin). */
#include "api/replies/replies.h"

#include <string.h>

#define EXPOSED "ETag, Posenc-Tensors, Posenc-Fits, Content-Range, Server-Timing, X-Request-Id"
#define INFERENCE_HEADER ", Inference-Header-Content-Length" /* states where the JSON of an inference ends */

static bool is_inference(const struct api_call *call)
{
    return call->path && strncmp(call->path, "/v2", 3) == 0 && (!call->path[3] || call->path[3] == '/');
}

/* Whether text is one of the words of the list. */
static bool is_among(const char *list, const char *text)
{
    size_t n = strlen(text);
    for (const char *p = list ? list : ""; *p;) {
        p += strspn(p, " ,");
        size_t m = strcspn(p, " ,");
        if (m == n && strncmp(p, text, n) == 0)
            return true;
        p += m;
    }
    return false;
}

/* A connection has 10 KiB for the request's head and the answer's head together: a request head of full size could not
 * be repeated in the answer, and the client would get none. */
enum { SAID_AGAIN_MAX = 1024 };

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
    return call->origin && call->access_method && strcmp(call->method, "OPTIONS") == 0;
}

bool api_cors_allows(const struct api_host *host, const struct api_call *call)
{
    const char *list = host->cors_origins, *origin = call->origin;
    return origin && *origin && (is_among(list, "*") || (!strpbrk(origin, " ,") && is_among(list, origin)));
}

/* Caches serve an answer to pages of other origins than the one that asked for it first. So the origins that the
 * answer depends on must not show in whether it has these headers: with "*" every answer has them, otherwise every
 * answer has Vary, even to a request without Origin (Fetch standard, "CORS protocol and HTTP caches"). */
struct api_reply *api_cors(struct api_reply *reply, const struct api_host *host, const struct api_call *call)
{
    bool is_any = is_among(host->cors_origins, "*");
    if (!host->cors_origins || !*host->cors_origins)
        return reply;
    bool fine = is_any || api_reply_vary(reply, "Origin");
    if (is_any || api_cors_allows(host, call))
        fine = fine && api_reply_header(reply, "Access-Control-Allow-Origin", is_any ? "*" : call->origin) &&
               (is_preflight(call) || api_reply_header(reply, "Access-Control-Expose-Headers",
                                                       is_inference(call) ? EXPOSED INFERENCE_HEADER : EXPOSED));
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
