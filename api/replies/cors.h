/* Cross-origin requests: which pages of other origins a browser lets read our answers (Fetch standard, CORS protocol).
 */
#ifndef API_CORS_H
#define API_CORS_H

#include "api/replies/reply.h"

/* Whether the host lets pages of the call's origin read answers. */
bool api_cors_allows(const struct api_host *host, const struct api_call *call);

/* Adds the headers that let the requesting page read the reply, if the host allows the page's origin, and those that
 * let caches know. Every reply passes through it once. */
struct api_reply *api_cors(struct api_reply *reply, const struct api_host *host, const struct api_call *call);

/* The answer to OPTIONS: the methods of the path and, for a browser's preflight request, the permission to use them. */
struct api_reply *api_options(const struct api_call *call, const char *allowed);

#endif
