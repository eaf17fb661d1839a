/* Cross-origin requests: which pages of other origins a browser lets read our answers (Fetch standard, CORS protocol).
 */
#ifndef API_CORS_H
#define API_CORS_H

#include "api/replies/reply.h"

/* Adds what lets the page that asked read the reply, if its origin is among the host's; else returns reply as it is. */
struct api_reply *api_cors(struct api_reply *reply, const struct api_host *host, const struct api_call *call);

/* The answer to OPTIONS: which methods there are, and, to a browser's preflight, that it may use them. */
struct api_reply *api_options(const struct api_call *call, const char *allowed);

#endif
