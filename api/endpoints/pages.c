/* GET / and GET /docs: pages that the server supplies, sent with the headers for browsers and caches. */
#include "api/replies/caching.h"
#include "api/routes.h"

#include <string.h>

static bool add_policy(struct api_reply *reply, const struct api_page *page)
{
    return api_reply_header(reply, "Content-Security-Policy", page->policy) &&
           api_reply_header(reply, "X-Content-Type-Options", "nosniff") &&
           api_reply_header(reply, "Referrer-Policy", "no-referrer");
}

/* no-cache: caches may store the page but must revalidate it each time, so that a page never outlives the program that
 * it describes. */
static bool add_headers(struct api_reply *reply, const struct api_page *page)
{
    return api_reply_header(reply, "ETag", page->etag) && api_reply_header(reply, "Cache-Control", "no-cache") &&
           add_policy(reply, page);
}

static struct api_reply *whole(int status, const struct api_page *page)
{
    return api_reply_lasting(status, "text/html; charset=utf-8", page->bytes, page->n_bytes);
}

static struct api_reply *page_reply(const struct api_asked *asked, const struct api_page *page)
{
    if (!page)
        return api_refusal(404, "this program was built without its pages");
    if (api_etag_is_among(asked->call->if_none_match, page->etag)) {
        struct api_reply *unchanged = api_reply_empty(304);
        return add_headers(unchanged, page) ? unchanged : api_reply_without_memory(unchanged);
    }
    struct api_reply *reply = whole(200, page);
    return add_headers(reply, page) ? api_reply_set_format(reply, "html") : api_reply_without_memory(reply);
}

/* A browser that opens a page cannot send a token, and a problem in JSON would not help its user. */
struct api_reply *api_docs_door(const struct api_host *host, const struct api_call *call,
                                const struct api_problem *problem)
{
    bool is_browser = call->accept && strstr(call->accept, "text/html");
    if (problem->status != 401 || !host->docs || !is_browser)
        return NULL;
    struct api_reply *reply = whole(401, host->docs);
    bool fine = add_policy(reply, host->docs) && api_reply_header(reply, "Cache-Control", "no-store") &&
                api_reply_header(reply, problem->header, problem->header_value);
    return fine ? api_reply_set_format(reply, "html") : api_reply_without_memory(reply);
}

struct api_reply *api_front(const struct api_asked *asked) { return page_reply(asked, asked->host->front); }

struct api_reply *api_docs(const struct api_asked *asked) { return page_reply(asked, asked->host->docs); }
