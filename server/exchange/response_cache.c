/* Owns one loop's cache of the daemon's responses for cached answers: created once with all headers, queued many times.
 *
 * A response with its headers takes some twenty allocations, and the daemon checks every value for forbidden bytes: a
 * third of our own time for a small request. For a cached answer only the request's id changes; no time was spent
 * computing, so even Server-Timing stays the same. 0.9.75 prints the head right after the handler has returned, so the
 * id may change again when the next request arrives. The value of a header is the response's own copy, so an id of the
 * same length as the last one, as all of ours are, is written over it. */
#include "server/exchange/exchange.h"

#include <stdlib.h>
#include <string.h>

/* An entry holds its reply, which may have been evicted from the cache of answers: so only short replies are stored, a
 * megabyte in all. */
enum { N_ENTRIES = 256, BODY_MAX = 4096 };

struct http_kept {
    struct api_reply *reply;
    struct MHD_Response *response;
    char *id; /* the id that its header has now; belongs to the response */
};

static struct http_kept *entry_of(const struct exchange *x)
{
    uint64_t hash = (uint64_t)(uintptr_t)x->reply * 0x9e3779b97f4a7c15u;
    return &x->http->kept[hash >> 56];
}

_Static_assert(N_ENTRIES == 1 << (64 - 56), "eight bits of the hash choose the entry");

static void drop(struct http_kept *entry)
{
    daemon_response_free(entry->response); /* connections that still send it hold their own references */
    api_reply_free(entry->reply);
    *entry = (struct http_kept){0};
}

void response_cache_free(struct http *http)
{
    for (size_t i = 0; http->kept && i < N_ENTRIES; i++)
        drop(&http->kept[i]);
    free(http->kept);
    http->kept = NULL;
}

/* Whether only the id distinguishes this request's head from that of any other with the same answer. */
static bool is_usual(const struct exchange *x)
{
    return x->answering.is_kept && x->reply->body->length <= BODY_MAX && !*x->traceparent &&
           !http_is_last(x->connection);
}

static char *id_of(struct MHD_Response *response) { return daemon_response_header(response, HTTP_ID_HEADER); }

static bool set_id(struct http_kept *entry, const char *id)
{
    size_t n = strlen(id);
    if (strlen(entry->id) == n) {
        memcpy(entry->id, id, n);
        return true;
    }
    if (!daemon_response_remove(entry->response, HTTP_ID_HEADER, entry->id) ||
        !daemon_response_add(entry->response, HTTP_ID_HEADER, id))
        return false;
    entry->id = id_of(entry->response);
    return true;
}

struct MHD_Response *response_cache_find(struct exchange *x)
{
    struct http_kept *entry = is_usual(x) && x->http->kept ? entry_of(x) : NULL;
    if (!entry || entry->reply != x->reply)
        return NULL;
    if (set_id(entry, x->id))
        return entry->response;
    drop(entry); /* no memory */
    return NULL;
}

bool response_cache_add(struct exchange *x, struct MHD_Response *response)
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
    entry->id = id_of(response);
    return true;
}
