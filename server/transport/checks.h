/* The checks of a request's head that come before all others, on plain strings. If two programs read the same head
 * differently, an attacker can use the difference, so every ambiguous head is refused. */
#ifndef SERVER_TRANSPORT_CHECKS_H
#define SERVER_TRANSPORT_CHECKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* Splits a request target, as received ("/encode?len=4", "http://host/encode"), in place: *host becomes the host and
 * port, or NULL, *path the decoded path, and *query the text after the ?, still encoded, or NULL. */
struct http_refusal http_target_split(char *target, const char **host, const char **path, const char **query);

/* Parses a number of seconds, above 0 and up to a million, e.g. "2.5", into microseconds. */
bool http_timeout_parse(const char *text, uint64_t *us);
bool http_id_is_valid(const char *id);            /* [A-Za-z0-9._-]{1,128} */
bool http_traceparent_is_valid(const char *text); /* W3C trace context, any version but ff */

#endif
