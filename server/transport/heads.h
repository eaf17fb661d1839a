/* The head of a request on plain strings, without sockets: its grammar, its checks, and the client that it names. */
#ifndef SERVER_TRANSPORT_HEADS_H
#define SERVER_TRANSPORT_HEADS_H

#include "server/process/process.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- checks.c ---------------------------------------------------------------------------------------------------- */

/* The checks of a request's head that come before all others, on plain strings. If two programs read the same head
 * differently, an attacker can use the difference, so every ambiguous head is refused. */

/* Headers that the server or api/ uses, in the order of http_head.first. */
enum http_header {
    HTTP_HOST,
    HTTP_CONTENT_LENGTH,
    HTTP_TRANSFER_ENCODING,
    HTTP_CONTENT_TYPE,
    HTTP_CONTENT_ENCODING,
    HTTP_ACCEPT,
    HTTP_ACCEPT_LANGUAGE,
    HTTP_ACCEPT_ENCODING,
    HTTP_LAST_EVENT_ID,
    HTTP_FORWARDED_PROTO,
    HTTP_MCP_VERSION,
    HTTP_MCP_METHOD,
    HTTP_MCP_NAME,
    HTTP_IF_MATCH,
    HTTP_IF_NONE_MATCH,
    HTTP_IF_RANGE,
    HTTP_RANGE,
    HTTP_ORIGIN,
    HTTP_ACCESS_METHOD,
    HTTP_ACCESS_HEADERS,
    HTTP_INFERENCE_HEADER,
    HTTP_REQUEST_ID,
    HTTP_TRACEPARENT,
    HTTP_AUTHORIZATION,
    HTTP_REQUEST_TIMEOUT,
    HTTP_FETCH_SITE,
    HTTP_FETCH_PURPOSE,
    HTTP_PURPOSE,
    HTTP_N_HEADERS
};

struct http_head {
    const char *version;               /* "HTTP/1.1" */
    const char *method;                /* "GET"; NULL: not checked */
    const char *first[HTTP_N_HEADERS]; /* value of the first such header, NULL if there is none; borrowed */
    unsigned n[HTTP_N_HEADERS];        /* number of such headers */
};

/* Adds one header of the request; names that are not in the list are ignored. */
void http_head_take(struct http_head *head, const char *name, const char *value);

/* A refusal: status and sentence, or {0, NULL} if the head is valid. */
struct http_refusal {
    int status;
    const char *detail;
};
struct http_refusal http_head_check(const struct http_head *head);

/* Does the Host header name a host of this machine (localhost, a name under .localhost, 127.0.0.0/8, ::1), or one of
 * these: own, and names separated by spaces or commas? Any port. A request without Host (HTTP/1.0), or with an empty
 * one, comes from no browser: true. */
bool http_head_names_us(const struct http_head *head, const char *own, const char *names);
/* Is there an Origin that is not the host in the Host header? The scheme is ignored, since a proxy may end TLS. */
bool http_head_is_foreign(const struct http_head *head);
/* Does a browser send the request for a page of another site, or before its user wants it (Fetch Metadata)? */
bool http_head_is_unasked(const struct http_head *head);

/* The declared length of the body; UINT64_MAX if it is chunked or no length is declared. Call only after
 * http_head_check. */
uint64_t http_head_length(const struct http_head *head);
bool http_head_has_body(const struct http_head *head); /* at least one byte, or chunked; likewise */

/* Do these first bytes of a connection announce a body of more than 64 KiB, or one of unknown length? The result only
 * decides how fast the body is received, so a guess is enough: the head need not be complete or valid. */
bool http_begins_bulky(const char *bytes, size_t n);

/* Parses a number of seconds, above 0 and up to a million, e.g. "2.5", into microseconds. */
bool http_timeout_parse(const char *text, uint64_t *us);
bool http_id_is_valid(const char *id);            /* [A-Za-z0-9._-]{1,128} */
bool http_traceparent_is_valid(const char *text); /* W3C trace context, any version but ff */

/* ---- head.c ------------------------------------------------------------------------------------------------------ */

/* The grammar of a request's head (RFC 9112), applied to the raw bytes before any library sees them. It is strict: a
 * head that two programs could read in two ways is refused, because one of them may be a proxy in front of this server.
 * Uses no sockets. */

/* The part that a head may use of its connection's 10 KiB (transport.c). The HTTP library needs the rest for its
 * bookkeeping and for the answer's head, whatever arrives together with the request. It receives into at least half of
 * that memory, all of which may be filled by the bytes after the head, or into as much as the head needs. In addition
 * it stores an entry for every field, query parameter and cookie, and copies cookies. The refusals quote these figures.
 */
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

/* ---- checks.c: X-Forwarded-For ----------------------------------------------------------------------------------- */

/* Finds the client behind proxies from the X-Forwarded-For header. Plain strings, no sockets. */

/* The state after the lines read so far; all fields but proxies start at zero. */
struct forwarded {
    const struct networks *proxies; /* trusted proxies */
    enum { FORWARDED_NOBODY, FORWARDED_PROXIES, FORWARDED_CLIENT, FORWARDED_JUNK } kind;
    struct address client;
};

/* Reads one line of the header; call it in the order of the lines. Each proxy appends the address of its own client, so
 * the last address that is not a trusted proxy is the client. A client can forge everything before it. */
void forwarded_take(struct forwarded *forwarded, const char *line);

/* The client, if the lines name one. If all addresses are trusted proxies, the first of them is the client. */
bool forwarded_client(const struct forwarded *forwarded, struct address *client);

#endif
