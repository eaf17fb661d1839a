/* Signed requests to an S3-compatible store, through libcurl. One thread does all transfers; the threads that ask wait
 * for it. Only web.c includes curl/curl.h. */
#ifndef SERVER_STORE_WEB_H
#define SERVER_STORE_WEB_H

#include "server/store/credentials.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WEB_HEADERS_MAX = 4, WEB_TEXT_BYTES = 256, WEB_TAG_BYTES = 128 };

/* One request, and its answer. All pointers are borrowed until web_ask returns, except bytes. */
struct web_request {
    const char *method; /* "GET", "HEAD", "PUT" or "DELETE" */
    const char *url; /* its path and query escaped as S3 wants them: upper-case digits, the names of a query sorted */
    const char *headers[WEB_HEADERS_MAX]; /* "If-Match: x"; NULL after the last; no name begins another one */
    const char *body;                     /* of a PUT; NULL: none */
    size_t n_body;
    const char *sha256; /* of the body, hexadecimal digits */
    bool is_sent_once;  /* libcurl repeats what got no answer on a connection that it had kept; not with this */
    const struct credentials *credentials;
    uint64_t n_max;      /* bytes of the answer's body; more is a failure */
    uint64_t timeout_ms; /* for all of it; 0: a minute, and a second for each MiB of its body and of n_max */
    /* The answer: */
    int status;   /* 0: none that is whole */
    bool is_cut;  /* status is 0, but it began as an answer to be read: the store is there */
    bool is_left; /* status is 0 because the caller's work was cancelled (pe_is_cancelled) */
    char *bytes; /* its body, followed by a NUL, aligned to 64 (freed with free, also if it is not whole); NULL: none */
    size_t n;    /* bytes of the body; of a HEAD, what a GET would have */
    char etag[WEB_TAG_BYTES]; /* without its quotes; "": none */
    int64_t ahead_s;          /* how far the store's clock is ahead of ours; 0 if it does not say */
    int64_t age_s;            /* how old what it has is, by its own clock; 0 if it does not say */
    char why[WEB_TEXT_BYTES]; /* if status is 0 */
};

struct web;

struct web *web_new(void); /* NULL: no memory or no thread. Call before any other thread runs. */
/* Requests in progress and later ones fail at once. Any thread. */
void web_stop(struct web *web);
void web_free(struct web *web); /* call it when no thread asks any more; NULL is accepted */

/* Any thread but one that must not wait; a worker is away meanwhile (job_leave). Ends early if the caller's work is
 * cancelled, but for a change with a time limit: whether one that is cut was done would not be known. */
void web_ask(struct web *web, struct web_request *request);

#endif
