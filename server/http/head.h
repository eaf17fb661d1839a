/* The grammar of a request's head (RFC 9112), on raw bytes and before any library sees them. Strict: what two programs
 * could read in two ways is refused, because one of them may be a proxy in front of us. Knows no socket. */
#ifndef SERVER_HTTP_HEAD_H
#define SERVER_HTTP_HEAD_H

#include "server/http/checks.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a head may cost of the 10 KiB its connection has (http.c), so that the HTTP library has room for what it notes
 * and for the answer's head, whatever else has come with it: the library receives into half of it at least, all of
 * which may be full of what follows, or into as much as the head needs; beside that it notes every field, query
 * parameter and cookie, and copies cookies. The refusals quote these figures. */
enum { HEAD_COST_MIN = 5 * 1024, HEAD_COST_MAX = 9 * 1024, HEAD_ENTRY_COST = 64 };

/* One head on its way; all zero before its first byte. */
struct head_scan {
    size_t n_judged;   /* bytes of whole lines that are sound; when done, the bytes of the head */
    size_t n_searched; /* no line ends between n_judged and here */
    size_t n_extra;    /* cost besides the bytes */
    size_t cost;       /* of what has come, once that is too much */
    unsigned n_hosts, n_lengths, n_codings;
    bool has_request_line, is_http_1_0, is_head, has_expect;
    bool is_chunked; /* these two hold when the head is done */
    uint64_t length; /* of the body, 0 if it is chunked or there is none */
    struct http_refusal refusal;
};

/* Judges the lines that have come, given all bytes of the head so far. True when there is a verdict: scan->refusal has
 * a status, or the head is whole, n_judged bytes long. Blanks after a field's value are moved before it, in place: the
 * HTTP library would count them as part of it. */
bool head_scan(struct head_scan *scan, char *head, size_t n);

/* ---- The body's frame ------------------------------------------------------------------------------------------- */

/* Where a chunked body stands; all zero but n_room at its beginning. */
struct chunk_scan {
    enum { CHUNK_SIZE, CHUNK_DATA, CHUNK_DATA_END, CHUNK_TRAILER, CHUNK_DONE } at;
    uint64_t n_data; /* of the chunk, still to come */
    size_t n_room;   /* for trailers: what the head has left of HEAD_COST_MAX */
    size_t cost;     /* of head and trailers, once that is too much */
    struct http_refusal refusal;
};

/* How many of these bytes are sound and whole: data, or lines that have ended. Stops at the end of the body (at is
 * CHUNK_DONE) and at what is refused; the rest has to be shown again with what follows it. */
size_t chunk_scan(struct chunk_scan *scan, const char *bytes, size_t n);

#endif
