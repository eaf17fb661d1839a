/* GET / and GET /docs: pages that the server holds and we only hand out, with what browsers and caches want to know. */
#include "api/caching.h"
#include "api/routes.h"

#include <stdlib.h>
#include <string.h>

/* no-cache: kept, but asked for again each time, so that a page never outlives the program it describes. */
static bool add_headers(struct api_reply *reply, const struct api_page *page)
{
    return api_reply_header(reply, "ETag", page->etag) && api_reply_header(reply, "Cache-Control", "no-cache") &&
           api_reply_header(reply, "Content-Security-Policy", page->policy) &&
           api_reply_header(reply, "X-Content-Type-Options", "nosniff") &&
           api_reply_header(reply, "Referrer-Policy", "no-referrer");
}

static struct api_reply *page_reply(const struct api_asked *asked, const struct api_page *page)
{
    if (!page)
        return api_refusal(404, "this program was built without its pages");
    if (api_etag_is_among(asked->call->if_none_match, page->etag)) {
        struct api_reply *unchanged = api_reply_empty(304);
        return add_headers(unchanged, page) ? unchanged : api_reply_without_memory(unchanged);
    }
    char *bytes = malloc(page->n_bytes);
    if (bytes)
        memcpy(bytes, page->bytes, page->n_bytes);
    struct api_reply *reply = api_reply_bytes(200, "text/html; charset=utf-8", bytes, page->n_bytes);
    return add_headers(reply, page) ? api_reply_set_format(reply, "html") : api_reply_without_memory(reply);
}

struct api_reply *api_front(const struct api_asked *asked) { return page_reply(asked, asked->host->front); }

struct api_reply *api_docs(const struct api_asked *asked) { return page_reply(asked, asked->host->docs); }
