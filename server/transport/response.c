/* Owns handing an answer to the HTTP library: its head, and the kind of its body; and the heads of cached answers,
 * which are used again. */
#define _GNU_SOURCE /* stpcpy */
#include "server/transport/connections.h"

#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(MHD_CONTENT_READER_END_OF_STREAM == TRANSPORT_END &&
                   MHD_CONTENT_READER_END_WITH_ERROR == TRANSPORT_CUT && MHD_SIZE_UNKNOWN == API_LENGTH_UNKNOWN,
               "what a reader returns, and the length of a body, go to the library as they are");
_Static_assert(sizeof(struct iovec) == sizeof(struct MHD_IoVec) &&
                   offsetof(struct iovec, iov_len) == offsetof(struct MHD_IoVec, iov_len),
               "the library's list of parts is the system's");

enum { CHUNKS_BLOCK_BYTES = 64 }; /* of the daemon's own block, which is not used if chunks.c sends the body */

static const char id_header[] = "X-Request-Id";

/* Copies both. False: no memory. */
static bool add_header(struct MHD_Response *response, const char *name, const char *value)
{
    return MHD_add_response_header(response, name, value) == MHD_YES;
}

static void free_response(struct MHD_Response *response)
{
    if (response)
        MHD_destroy_response(response);
}

static bool queue(struct http_request *request, int status, struct MHD_Response *response)
{
    return MHD_queue_response(request->mhd, (unsigned)status, response) == MHD_YES;
}

/* ---- The head ---------------------------------------------------------------------------------------------------- */

static char *print_timing(char *at, const char *name, uint64_t ns) { return clock_print_ms(stpcpy(at, name), ns); }

static bool add_timing(const struct transport_answer *answer, struct MHD_Response *response)
{
    char text[128], *at = print_timing(text, "queue;dur=", answer->queue_ns);
    if (answer->is_computed) {
        at = print_timing(at, ", compute;dur=", answer->compute_ns);
        print_timing(at, ", encode;dur=", answer->encode_ns);
    }
    return add_header(response, "Server-Timing", text);
}

static bool is_last(const struct http_connection *connection)
{
    return connection->request.is_refused || http_is_last(connection);
}

static bool add_headers(const struct http_connection *connection, const struct transport_answer *answer,
                        struct MHD_Response *response)
{
    const struct api_reply *reply = answer->reply;
    const char *media_type = api_reply_media_type(reply, answer->path);
    bool done = !media_type || add_header(response, "Content-Type", media_type);
    for (size_t i = 0; i < reply->n_headers; i++)
        done = done && add_header(response, reply->headers[i].name, reply->headers[i].value);
    done = done && add_header(response, "X-Content-Type-Options", "nosniff");
    if (*answer->traceparent)
        done = done && add_header(response, "traceparent", answer->traceparent);
    if (is_last(connection))
        done = done && add_header(response, "Connection", "close");
    if (!done || !add_header(response, id_header, answer->id) || !add_timing(answer, response))
        return false;
    /* A 503 states when to try again; api/ cannot know that, so the server estimates it. */
    bool is_due = reply->status == 503 || reply->status == 429;
    return !is_due || api_reply_find(reply, "Retry-After") || add_header(response, "Retry-After", "1");
}

/* ---- Heads of cached answers, used again ------------------------------------------------------------------------- */

/* One loop's responses for cached answers: created once with all headers, queued many times.
 *
 * A response with its headers takes some twenty allocations, and the daemon checks every value for forbidden bytes: a
 * third of our own time for a small request. For a cached answer only the request's id changes; no time was spent
 * computing, so even Server-Timing stays the same. 0.9.75 prints the head right after the handler has returned, so the
 * id may change again when the next request arrives. The value of a header is the response's own copy, so an id of the
 * same length as the last one, as all of ours are, is written over it. */

/* An entry holds its reply, which may have been evicted from the cache of answers: so only short replies are stored, a
 * megabyte in all. */
enum { N_CACHED = 256, CACHED_BODY_MAX = 4096 };

struct cached_head {
    struct api_reply *reply;
    struct MHD_Response *response;
    char *id; /* the id that its header has now; belongs to the response */
};

static struct cached_head *cached_head_of(const struct http *http, const struct api_reply *reply)
{
    uint64_t hash = (uint64_t)(uintptr_t)reply * 0x9e3779b97f4a7c15u;
    return &http->cached_heads[hash >> 56];
}

_Static_assert(N_CACHED == 1 << (64 - 56), "eight bits of the hash choose the entry");

static void drop_cached_head(struct cached_head *entry)
{
    free_response(entry->response); /* connections that still send it hold their own references */
    api_reply_free(entry->reply);
    *entry = (struct cached_head){0};
}

void http_free_heads(struct http *http)
{
    for (size_t i = 0; http->cached_heads && i < N_CACHED; i++)
        drop_cached_head(&http->cached_heads[i]);
    free(http->cached_heads);
    http->cached_heads = NULL;
}

/* Whether only the id distinguishes this request's head from that of any other with the same answer. */
static bool is_usual(const struct http_connection *connection, const struct transport_answer *answer)
{
    return answer->is_cached && answer->reply->body->length <= CACHED_BODY_MAX && !*answer->traceparent &&
           !is_last(connection);
}

static char *id_of(struct MHD_Response *response)
{
    return (char *)(uintptr_t)MHD_get_response_header(response, id_header);
}

static bool set_id(struct cached_head *entry, const char *id)
{
    size_t n = strlen(id);
    if (strlen(entry->id) == n) {
        memcpy(entry->id, id, n);
        return true;
    }
    if (MHD_del_response_header(entry->response, id_header, entry->id) != MHD_YES ||
        !add_header(entry->response, id_header, id))
        return false;
    entry->id = id_of(entry->response);
    return true;
}

static struct MHD_Response *cached_head_find(const struct http *http, const struct transport_answer *answer)
{
    struct cached_head *entry = http->cached_heads ? cached_head_of(http, answer->reply) : NULL;
    if (!entry || entry->reply != answer->reply)
        return NULL;
    if (set_id(entry, answer->id))
        return entry->response;
    drop_cached_head(entry); /* no memory */
    return NULL;
}

/* Takes the response; false: no memory. */
static bool cached_head_add(struct http *http, const struct transport_answer *answer, struct MHD_Response *response)
{
    if (!http->cached_heads)
        http->cached_heads = calloc(N_CACHED, sizeof *http->cached_heads);
    if (!http->cached_heads)
        return false;
    struct cached_head *entry = cached_head_of(http, answer->reply);
    drop_cached_head(entry);
    entry->reply = api_reply_hold(answer->reply);
    entry->response = response;
    entry->id = id_of(response);
    return true;
}

/* ---- The body ---------------------------------------------------------------------------------------------------- */

/* 0.9.75: a reader that returns 0 without suspending the connection is called again at once, for ever. */
static ssize_t read_some(void *self, uint64_t pos, char *dst, size_t room)
{
    struct http_connection *connection = self;
    const struct http_request *request = &connection->request;
    struct iovec parts[TRANSPORT_PARTS];
    size_t n_read = 0;
    (void)pos;
    ssize_t share = request->reader->share(request->exchange, true);
    if (share <= 0)
        return share;
    room = room < (size_t)share ? room : (size_t)share;
    ssize_t n_parts = request->reader->look(request->exchange, dst, room, parts);
    if (n_parts == 0)
        transport_suspend(connection);
    if (n_parts <= 0)
        return n_parts;
    for (ssize_t i = 0; i < n_parts && n_read < room; i++) {
        size_t left = room - n_read, n = parts[i].iov_len < left ? parts[i].iov_len : left;
        if (parts[i].iov_base != dst) /* else it has been computed there */
            memcpy(dst + n_read, parts[i].iov_base, n);
        n_read += n;
    }
    request->reader->skip(request->exchange, n_read);
    return (ssize_t)n_read;
}

/* To other clients than those of HTTP/1.1 the daemon may send a body of unknown length without chunks, up to the end of
 * the connection. Under TLS only the daemon can write.
 *
 * 0.9.75 ends the head of a chunked answer to HEAD with the empty chunk that would end a body. A client that keeps the
 * connection would read it before its next answer. So such an answer has no chunks, and the connection closes. */
static struct MHD_Response *response_of(struct http_connection *connection, const struct transport_answer *answer)
{
    const struct http_request *request = &connection->request;
    bool is_known = answer->length != API_LENGTH_UNKNOWN;
    if (!answer->reader)
        return MHD_create_response_from_iovec((const struct MHD_IoVec *)answer->parts, answer->n_parts, NULL, NULL);
    if (!is_known && !request->is_head && !request->is_http_1_0 && !connection->daemon->http->door->tls.cert)
        return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, CHUNKS_BLOCK_BYTES, chunks_read, connection, NULL);
    struct MHD_Response *response =
        MHD_create_response_from_callback(answer->length, answer->block, read_some, connection, NULL);
    if (response && !is_known && request->is_head)
        MHD_set_response_options(response, MHD_RF_HTTP_1_0_COMPATIBLE_STRICT, MHD_RO_END);
    return response;
}

static bool send_new(struct http_connection *connection, const struct transport_answer *answer, bool is_usual_head)
{
    struct MHD_Response *response = response_of(connection, answer);
    bool is_sent = false;
    if (response && add_headers(connection, answer, response))
        is_sent = queue(&connection->request, answer->reply->status, response);
    else
        metrics_add(METRICS_REJECTED_MEMORY, 1);
    if (!(is_sent && is_usual_head && cached_head_add(connection->daemon->http, answer, response)))
        free_response(response);
    return is_sent;
}

bool transport_send(struct http_connection *connection, const struct transport_answer *answer)
{
    struct http *http = connection->daemon->http;
    struct http_request *request = &connection->request;
    bool is_usual_head = is_usual(connection, answer);
    struct MHD_Response *response = is_usual_head ? cached_head_find(http, answer) : NULL;
    request->is_sending = true;
    request->is_live = answer->reply->pace == API_PACE_LIVE;
    request->reader = answer->reader;
    bool is_sent =
        response ? queue(request, answer->reply->status, response) : send_new(connection, answer, is_usual_head);
    http_phase(http, connection, HTTP_PHASE_ANSWER);
    return is_sent;
}
