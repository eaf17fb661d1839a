/* The grammar of a request's head (RFC 9112), applied to the raw bytes before any library sees them. It is strict: a
 * head that two programs could read in two ways is refused, because one of them may be a proxy in front of this server.
 * Uses no sockets. */
#ifndef SERVER_TRANSPORT_HEAD_H
#define SERVER_TRANSPORT_HEAD_H

#include "server/transport/checks.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The part that a head may use of its connection's 10 KiB (http.c). The HTTP library needs the rest for its bookkeeping
 * and for the answer's head, whatever arrives together with the request. It receives into at least half of that memory,
 * all of which may be filled by the bytes after the head, or into as much as the head needs. In addition it stores an
 * entry for every field, query parameter and cookie, and copies cookies. The refusals quote these figures. */
enum { HEAD_COST_MIN = 5 * 1024, HEAD_COST_MAX = 9 * 1024, HEAD_ENTRY_COST = 64 };

/* The state of one head while it arrives; all zero before its first byte. */
struct head_scan {
    size_t n_judged;   /* bytes of complete, valid lines; at the end, the length of the head */
    size_t n_searched; /* no line ends between n_judged and this offset */
    size_t n_extra;    /* cost in addition to the bytes */
    size_t cost;       /* of the bytes received; set when it exceeds the limit */
    unsigned n_hosts, n_lengths, n_codings;
    bool has_request_line, is_http_1_0, is_head, has_expect;
    bool is_chunked; /* these two are valid when the head is complete */
    uint64_t length; /* of the body; 0 if it is chunked or there is none */
    struct http_refusal refusal;
};

/* Checks the lines that have arrived, given all bytes of the head so far. True when there is a result: scan->refusal
 * has a status, or the head is complete, n_judged bytes long. Blanks after a field's value are moved before it, in
 * place: the HTTP library would count them as part of it. */
bool head_scan(struct head_scan *scan, char *head, size_t n);

/* ---- The body's frame ------------------------------------------------------------------------------------------- */

/* The position within a chunked body; all fields but n_room start at zero. */
struct chunk_scan {
    enum { CHUNK_SIZE, CHUNK_DATA, CHUNK_DATA_END, CHUNK_TRAILER, CHUNK_DONE } at;
    uint64_t n_data; /* bytes of the chunk still to arrive */
    size_t n_room;   /* for trailers: the part of HEAD_COST_MAX that the head has left */
    size_t cost;     /* of head and trailers; set when it exceeds the limit */
    struct http_refusal refusal;
};

/* The number of these bytes that are valid and complete: data, or whole lines. Stops at the end of the body (at is
 * CHUNK_DONE) and at a refused line. The other bytes must be passed again together with those that follow. */
size_t chunk_scan(struct chunk_scan *scan, const char *bytes, size_t n);

#endif
