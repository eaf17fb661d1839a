/* Owns the daemon's responses of kept answers, one loop's: made once with all their headers, queued again and again.
 *
 * A response with its headers is some twenty allocations, and the daemon looks through every value for bytes that do
 * not belong there: a third of what is ours of a small request. Of a kept answer only the request's id changes; it has
 * taken no time at all, so even Server-Timing says the same each time. 0.9.75 prints the head right after the handler
 * has returned, so the id may change again as soon as the next request comes. */
#include "server/http/exchange.h"

#include <stdlib.h>
#include <string.h>

/* An entry holds its reply, which may have left the kept answers meanwhile: so only short ones, a megabyte at most. */
enum { N_ENTRIES = 256, BODY_MAX = 4096 };

struct http_kept {
    struct api_reply *reply;
    struct MHD_Response *response;
    char id[sizeof((struct exchange *)0)->id]; /* the one its header has now */
};

static struct http_kept *entry_of(const struct exchange *x)
{
    uint64_t hash = (uint64_t)(uintptr_t)x->reply * 0x9e3779b97f4a7c15u;
    return &x->http->kept[hash >> 56];
}

_Static_assert(N_ENTRIES == 1 << (64 - 56), "eight bits of the hash choose the entry");

static void drop(struct http_kept *entry)
{
    if (entry->response)
        MHD_destroy_response(entry->response); /* connections that still send it have their own hold */
    api_reply_free(entry->reply);
    *entry = (struct http_kept){0};
}

void kept_free(struct http *http)
{
    for (size_t i = 0; http->kept && i < N_ENTRIES; i++)
        drop(&http->kept[i]);
    free(http->kept);
    http->kept = NULL;
}

/* Nothing but the id tells this request's head from that of any other with this answer. */
static bool is_usual(const struct exchange *x)
{
    return x->is_kept && x->reply->length <= BODY_MAX && !*x->traceparent && !x->http->is_draining;
}

struct MHD_Response *kept_find(struct exchange *x)
{
    struct http_kept *entry = is_usual(x) && x->http->kept ? entry_of(x) : NULL;
    if (!entry || entry->reply != x->reply)
        return NULL;
    if (MHD_del_response_header(entry->response, HTTP_ID_HEADER, entry->id) == MHD_YES &&
        MHD_add_response_header(entry->response, HTTP_ID_HEADER, x->id) == MHD_YES) {
        memcpy(entry->id, x->id, strlen(x->id) + 1);
        return entry->response;
    }
    drop(entry); /* no memory */
    return NULL;
}

bool kept_add(struct exchange *x, struct MHD_Response *response)
{
    if (!is_usual(x))
        return false;
    if (!x->http->kept)
        x->http->kept = calloc(N_ENTRIES, sizeof *x->http->kept);
    if (!x->http->kept)
        return false;
    struct http_kept *entry = entry_of(x);
    drop(entry);
    entry->reply = api_reply_hold(x->reply);
    entry->response = response;
    memcpy(entry->id, x->id, sizeof entry->id);
    return true;
}
