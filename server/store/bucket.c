/* Owns one request to a bucket and its repetitions.
 *
 * A store that is away must not make every request wait for its timeout: after a request without an answer, others fail
 * at once for a second, and then one tries again (a circuit breaker; Nygard, Release It!). So a store that does not
 * answer costs one wait a second, whatever the load. What the store refuses (403, 404, 412) is an answer and breaks
 * nothing.
 *
 * Repetitions wait for 50, 100 and 200 ms, each with a random part: servers that failed together must not return
 * together. A guarded write is repeated only while nothing can have arrived; after that it is asked whether it was done
 * (s3.c). */
#include "server/store/store.h"

#include "server/process/process.h"

#include "server/loop/loop.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum {
    BLOB_AGAIN_MS = 5000, /* a blob may take as long as its bytes arrive, but is not asked for again after this time */
    TRIES = 3,
    FIRST_PAUSE_MS = 50,
    SKEW_S = 300 /* worth a word; stores refuse 900 */
};

/* After a request without the head of an answer, or that the store had no time for, others fail at once for so long. */
#define AWAY_NS CLOCK_SECOND

static const char *const operation_words[BUCKET_N_OPERATIONS] = {"list", "get", "head", "put", "delete"};
static const char *const methods[BUCKET_N_OPERATIONS] = {"GET", "GET", "HEAD", "PUT", "DELETE"};

/* Done; no such key; a guard did not hold; another refusal; the store's own failure; no whole answer. */
enum outcome { OUTCOME_DONE, OUTCOME_ABSENT, OUTCOME_GUARDED, OUTCOME_REFUSED, OUTCOME_FAILED, OUTCOME_UNANSWERED };
static const char *const outcome_words[BUCKET_N_OUTCOMES] = {"done",    "absent", "guarded",
                                                             "refused", "failed", "unanswered"};

/* ---- One request ----------------------------------------------------------------------------------------------- */

static enum outcome outcome_of(const struct web_request *request)
{
    int status = request->status;
    if (status == 0)
        return OUTCOME_UNANSWERED;
    if (status < 300)
        return OUTCOME_DONE;
    if (status == 404)
        return OUTCOME_ABSENT;
    if (status == 412 || status == 409)
        return OUTCOME_GUARDED;
    return status < 500 ? OUTCOME_REFUSED : OUTCOME_FAILED;
}

static bool is_passing(int status)
{
    return status == 0 || status == 429 || status == 500 || (status >= 502 && status <= 504);
}

/* What one blob fails with, be it cut or unreadable, is no sign of the others. */
static bool is_away_after(const struct web_request *request)
{
    return is_passing(request->status) && !request->is_cut && request->status != 500;
}

bool bucket_pause(const struct bucket *bucket, uint64_t ns)
{
    uint64_t end = clock_now() + ns;
    job_wait_begin();
    while (clock_now() < end && !atomic_load(&bucket->is_stopping))
        job_wait_on();
    return !atomic_load(&bucket->is_stopping);
}

/* A random part of 50, 100, 200 ms: servers that failed together do not come back together. False: the server is
 * ending. */
static bool pause_before(const struct bucket *bucket, int n_tries)
{
    uint32_t random = 0;
    if (getrandom(&random, sizeof random, 0) != sizeof random)
        random = (uint32_t)clock_now();
    return bucket_pause(bucket, random % (((uint32_t)FIRST_PAUSE_MS << n_tries) * 1000) * (CLOCK_MS / 1000));
}

/* Without repetition: for what must not arrive late. */
static void ask_once(struct bucket *bucket, enum bucket_operation operation, struct web_request *request)
{
    uint64_t begun_at = clock_now();
    struct credentials credentials;
    credentials_get(bucket->credentials, &credentials);
    request->credentials = &credentials;
    request->method = methods[operation];
    web_ask(bucket->web, request);
    credentials_wipe(&credentials);
    request->credentials = NULL;
    atomic_fetch_add(&bucket->took_ns[operation], clock_now() - begun_at);
    atomic_fetch_add(&bucket->n_requests[operation][outcome_of(request)], 1);
}

bool bucket_ask(struct bucket *bucket, enum bucket_operation operation, struct web_request *request)
{
    uint64_t whole_ms = request->timeout_ms ? request->timeout_ms : BLOB_AGAIN_MS;
    uint64_t end = clock_now() + whole_ms * CLOCK_MS;
    bool is_sure = true;
    for (int n_tries = 0;; n_tries++) {
        ask_once(bucket, operation, request);
        if (!is_passing(request->status))
            break;
        is_sure = false;
        if (request->is_left)
            return is_sure; /* which is no sign of the store */
        if (n_tries + 1 == TRIES || !pause_before(bucket, n_tries))
            break;
        uint64_t now = clock_now();
        if (now + FIRST_PAUSE_MS * CLOCK_MS >= end)
            break;
        request->timeout_ms = request->timeout_ms ? (end - now) / CLOCK_MS : 0;
        free(request->bytes);
    }
    atomic_store(&bucket->away_until, is_away_after(request) ? clock_now() + AWAY_NS : 0);
    return is_sure;
}

void bucket_print_url(const struct bucket *bucket, char *url, const char *kind, const char *name)
{
    snprintf(url, BUCKET_URL_BYTES, "%s%s%s/%s", bucket->base, bucket->prefix, kind, name);
}

bool bucket_is_away(const struct bucket *bucket, char *why)
{
    if (clock_now() >= atomic_load(&bucket->away_until))
        return false;
    snprintf(why, STORE_WHY_BYTES, "it did not answer a moment ago");
    return true;
}

static void print_hint(const struct bucket *bucket, const struct web_request *request, const char *code, char *hint,
                       size_t room)
{
    *hint = '\0';
    if (strcmp(code, "NoSuchBucket") == 0)
        snprintf(hint, room, "; the bucket %s is not there", bucket->name);
    else if (request->status == 403 && llabs((long long)request->ahead_s) > SKEW_S)
        snprintf(hint, room, "; its clock is %lld s %s ours", llabs((long long)request->ahead_s),
                 request->ahead_s > 0 ? "ahead of" : "behind");
    else if (request->status == 403 || request->status == 401)
        snprintf(hint, room, "; the keys, the region or their rights are wrong");
    else if (request->status == 301 || request->status == 307)
        snprintf(hint, room, "; the bucket is in another region or behind another endpoint");
}

enum store_result bucket_fail(const struct bucket *bucket, const struct web_request *request, char *why)
{
    char code[ANSWERS_CODE_BYTES], hint[200];
    if (request->status == 0) {
        snprintf(why, STORE_WHY_BYTES, "no %sanswer: %s", request->is_cut ? "whole " : "", request->why);
        return STORE_FAILED;
    }
    answers_code(request->bytes, code);
    print_hint(bucket, request, code, hint, sizeof hint);
    snprintf(why, STORE_WHY_BYTES, "status %d%s%s%s", request->status, *code ? " " : "", code, hint);
    return is_passing(request->status) ? STORE_FAILED : STORE_REFUSED;
}

enum store_result bucket_head(struct bucket *bucket, const char *url, struct web_request *head, char *why)
{
    *head = (struct web_request){.url = url, .sha256 = BUCKET_EMPTY_SHA256, .timeout_ms = BUCKET_SMALL_MS};
    bucket_ask(bucket, BUCKET_HEAD, head);
    free(head->bytes);
    head->bytes = NULL;
    if (head->status == 404)
        return STORE_ABSENT;
    return head->status == 200 ? STORE_DONE : bucket_fail(bucket, head, why);
}

bool bucket_is_missing(const struct web_request *request)
{
    char code[ANSWERS_CODE_BYTES];
    answers_code(request->bytes, code);
    return strcmp(code, "NoSuchBucket") == 0;
}

void bucket_put_text(struct bucket *bucket, const char *url, const char *text, const char *condition,
                     struct web_request *request)
{
    char sha256[STORE_DIGEST_BYTES];
    size_t n = strlen(text);
    store_digest(text, n, sha256);
    *request = (struct web_request){.url = url,
                                    .sha256 = sha256,
                                    .body = text,
                                    .n_body = n,
                                    .n_max = BUCKET_ERROR_BYTES,
                                    .timeout_ms = BUCKET_SMALL_MS,
                                    .headers = {condition},
                                    .is_sent_once = condition != NULL};
    if (condition)
        ask_once(bucket, BUCKET_PUT, request);
    else
        bucket_ask(bucket, BUCKET_PUT, request);
    request->sha256 = NULL;
}

bool bucket_remove(struct bucket *bucket, const char *url, bool once, char *why)
{
    struct web_request request = {.url = url,
                                  .sha256 = BUCKET_EMPTY_SHA256,
                                  .n_max = BUCKET_ERROR_BYTES,
                                  .timeout_ms = BUCKET_SMALL_MS,
                                  .is_sent_once = once};
    if (once)
        ask_once(bucket, BUCKET_REMOVE, &request);
    else
        bucket_ask(bucket, BUCKET_REMOVE, &request);
    bool is_gone = request.status / 100 == 2 || (request.status == 404 && !bucket_is_missing(&request));
    if (!is_gone)
        bucket_fail(bucket, &request, why);
    free(request.bytes);
    return is_gone;
}

/* ---- Figures --------------------------------------------------------------------------------------------------- */

void bucket_print_requests(const struct bucket *bucket, FILE *out)
{
    metrics_print_head(out, "posenc_store_requests_total", "counter", "Requests to --store.");
    for (int i = 0; i < BUCKET_N_OPERATIONS; i++)
        for (int j = 0; j < BUCKET_N_OUTCOMES; j++)
            fprintf(out, "posenc_store_requests_total{operation=\"%s\",outcome=\"%s\"} %" PRIu64 "\n",
                    operation_words[i], outcome_words[j], (uint64_t)atomic_load(&bucket->n_requests[i][j]));
    metrics_print_head(out, "posenc_store_request_seconds_total", "counter",
                       "Time that requests to --store have taken.");
    for (int i = 0; i < BUCKET_N_OPERATIONS; i++)
        fprintf(out, "posenc_store_request_seconds_total{operation=\"%s\"} %.9f\n", operation_words[i],
                (double)atomic_load(&bucket->took_ns[i]) / (double)CLOCK_SECOND);
}

/* ---- Where it is ----------------------------------------------------------------------------------------------- */

static bool read_place(struct bucket *bucket, const char *place, char *error)
{
    static const char scheme[] = "s3://";
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
    const char *name = place + sizeof scheme - 1;
    size_t n = strncmp(place, scheme, sizeof scheme - 1) == 0 ? strspn(name, letters) : 0;
    const char *prefix = name + n + (n > 0 && name[n] == '/');
    size_t n_prefix = n > 0 ? strlen(prefix) : 0;
    while (n_prefix > 0 && prefix[n_prefix - 1] == '/')
        n_prefix--;
    bool is_right =
        n > 0 && n < sizeof bucket->name && (!name[n] || name[n] == '/') && n_prefix + 2 < sizeof bucket->prefix;
    for (size_t i = 0; is_right && i < n_prefix; i++)
        is_right = strchr(letters, prefix[i]) || (prefix[i] == '/' && i > 0 && prefix[i - 1] != '/');
    if (!is_right) {
        snprintf(error, S3_ERROR_BYTES,
                 "--store \"%.200s\" must be s3://BUCKET or s3://BUCKET/PREFIX of letters, digits and . - _, the "
                 "prefix with / "
                 "between its parts",
                 place);
        return false;
    }
    snprintf(bucket->name, sizeof bucket->name, "%.*s", (int)n, name);
    snprintf(bucket->prefix, sizeof bucket->prefix, "%.*s%s", (int)n_prefix, prefix, n_prefix ? "/" : "");
    snprintf(bucket->place, sizeof bucket->place, "s3://%s/%s", bucket->name, bucket->prefix);
    return true;
}

static bool read_endpoint(struct bucket *bucket, const char *endpoint, char *error)
{
    char amazon[160];
    const char *given = *endpoint ? endpoint : getenv("AWS_ENDPOINT_URL_S3");
    if (!given || !*given) {
        struct credentials now;
        credentials_get(bucket->credentials, &now);
        snprintf(amazon, sizeof amazon, "https://s3.%s.amazonaws.com", now.region);
        credentials_wipe(&now);
        given = amazon;
    }
    size_t n = strlen(given), n_scheme = strncmp(given, "http://", 7) == 0    ? 7
                                         : strncmp(given, "https://", 8) == 0 ? 8
                                                                              : 0;
    n -= n > 0 && given[n - 1] == '/';
    if (n_scheme == 0 || n <= n_scheme || n > 500 || strcspn(given + n_scheme, "/?#@ \"\\\t\r\n") < n - n_scheme) {
        snprintf(error, S3_ERROR_BYTES, "--store-endpoint \"%.200s\" must be http://HOST:PORT or https://HOST:PORT",
                 given);
        return false;
    }
    snprintf(bucket->base, sizeof bucket->base, "%.*s/%s/", (int)n, given, bucket->name);
    return true;
}

static bool set_up(struct bucket *bucket, const struct s3_settings *settings, char *error)
{
    if (!read_place(bucket, settings->place, error))
        return false;
    bucket->credentials = credential_source_new(settings->credentials, error);
    if (!bucket->credentials || !read_endpoint(bucket, settings->endpoint, error))
        return false;
    snprintf(error, S3_ERROR_BYTES, "--store: no memory, or no thread");
    bucket->web = web_new();
    return bucket->web;
}

struct bucket *bucket_new(const struct s3_settings *settings, char *error)
{
    struct bucket *bucket = calloc(1, sizeof *bucket);
    snprintf(error, S3_ERROR_BYTES, "--store: no memory");
    if (bucket && set_up(bucket, settings, error))
        return bucket;
    bucket_free(bucket);
    return NULL;
}

void bucket_free(struct bucket *bucket)
{
    if (!bucket)
        return;
    web_free(bucket->web);
    credential_source_free(bucket->credentials);
    free(bucket);
}

void bucket_stop(struct bucket *bucket)
{
    atomic_store(&bucket->is_stopping, true);
    web_stop(bucket->web);
}
