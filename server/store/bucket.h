/* A bucket of an S3-compatible store: where it is, its keys, one request after another with what is repeated and what
 * fails at once, and the reasons in words. Shared by the stores that have names in it. */
#ifndef SERVER_STORE_BUCKET_H
#define SERVER_STORE_BUCKET_H

#include "server/store/s3.h"
#include "server/store/web.h"

#include <stdatomic.h>

enum { BUCKET_URL_BYTES = 4096, BUCKET_PREFIX_BYTES = 600, BUCKET_ERROR_BYTES = 64 << 10 };
enum { BUCKET_SMALL_MS = 2000 }; /* for a request of a few hundred bytes, with its repetitions */

#define BUCKET_EMPTY_SHA256                                                                                            \
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" /* of a request without a body */

enum bucket_operation { BUCKET_LIST, BUCKET_GET, BUCKET_HEAD, BUCKET_PUT, BUCKET_REMOVE, BUCKET_N_OPERATIONS };
enum { BUCKET_N_OUTCOMES = 6 };

struct bucket {
    struct web *web;
    struct credential_source *credentials;
    char place[1024]; /* "s3://bucket/prefix" */
    char base[1024];  /* endpoint/bucket/, "http://127.0.0.1:9000/weights/" */
    char name[128];
    char prefix[BUCKET_PREFIX_BYTES]; /* "" or "team/a/" */
    atomic_bool is_stopping;
    atomic_uint_fast64_t away_until; /* ns; 0: it answered */
    atomic_uint_fast64_t n_requests[BUCKET_N_OPERATIONS][BUCKET_N_OUTCOMES], took_ns[BUCKET_N_OPERATIONS];
    atomic_int if_none_match, if_match; /* what is known of its conditional writes: s3_names.c */
    atomic_uint_fast64_t n_spoiled;     /* blobs that had another digest than their name */
};

/* Asks the store nothing. NULL: error[] of S3_ERROR_BYTES gives the reason. Call it before any other thread runs. */
struct bucket *bucket_new(const struct s3_settings *settings, char *error);
void bucket_free(struct bucket *bucket);
void bucket_stop(struct bucket *bucket); /* ends what waits; from any thread */

/* url[BUCKET_URL_BYTES] = that of kind/name below the prefix. Keys have no letter that needs escaping. */
void bucket_print_url(const struct bucket *bucket, char *url, const char *kind, const char *name);

/* Repeats what may succeed the next time, within the request's time. request->bytes is freed by the caller. False: one
 * of the tries had no proper answer, so what it asked for may have been done. */
bool bucket_ask(struct bucket *bucket, enum bucket_operation operation, struct web_request *request);

/* The same without repetition: for what must not arrive late. */
void bucket_ask_once(struct bucket *bucket, enum bucket_operation operation, struct web_request *request);

/* Writes a short text to url, once and under the condition if there is one, else with repetitions. The caller reads the
 * answer in *request and frees its bytes. */
void bucket_put_text(struct bucket *bucket, const char *url, const char *text, const char *condition,
                     struct web_request *request);

/* Removes what is at url, once or with repetitions; that it is not there is fine. False: why[STORE_WHY_BYTES]. */
bool bucket_remove(struct bucket *bucket, const char *url, bool once, char *why);

/* Waits; other jobs have their turn meanwhile. False: the server is ending. */
bool bucket_pause(const struct bucket *bucket, uint64_t ns);

/* Asks for the head of what is at url: STORE_DONE, with head->n and head->age_s; STORE_ABSENT; otherwise
 * why[STORE_WHY_BYTES] gives the reason. */
enum store_result bucket_head(struct bucket *bucket, const char *url, struct web_request *head, char *why);

/* For a second after a request without an answer: then why[STORE_WHY_BYTES] states it. */
bool bucket_is_away(const struct bucket *bucket, char *why);

/* STORE_REFUSED or STORE_FAILED, with the reason, for a request that was neither done nor answered as its caller
 * expects. */
enum store_result bucket_fail(const struct bucket *bucket, const struct web_request *request, char *why);

/* Is what is missing the bucket itself? */
bool bucket_is_missing(const struct web_request *request);

void bucket_print_requests(const struct bucket *bucket, FILE *out); /* Prometheus text */

#endif
