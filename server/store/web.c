/* Owns the thread of transfers, and the settings that libcurl needs so that a store accepts its signature: libcurl
 * signs headers, path and query as they are given, and adds no digest of the body.
 *
 * All transfers run on one thread with curl's multi interface; a caller waits on a condition until its own is done. So
 * connections are kept and shared, and a caller that is cancelled can leave: the thread ends its transfer. A write of a
 * name is the exception, which is waited for in any case, since whether it was done would not be known.
 *
 * AWS Signature Version 4 covers method, path, query, some headers and the SHA-256 of the body. Paths and queries are
 * therefore escaped and sorted by us as the signature wants them, uploads are sent as POST fields (CURLOPT_UPLOAD would
 * sign an empty body), and a guarded write gets a new connection: on a kept one that has died libcurl would send it
 * twice. */
#define _GNU_SOURCE /* pthread_setname_np */
#include "server/store/store.h"

#include "core/inside.h"
#include "server/loop/loop.h"

#include <curl/curl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    CONNECT_MS = 1000,
    SLOW_BYTES = 1024, /* per second … */
    SLOW_SECONDS = 10, /* … over this time */
    EXPECT_MS = 200,   /* then the body is sent without 100 Continue */
    POLL_MS = 1000,
    WAIT_MS = 20,       /* between two looks whether the work was cancelled */
    WHOLE_SECONDS = 60, /* … and a second for each … */
    BYTES_A_SECOND = 1 << 20,
    IDLE_SECONDS = 30,
    CONNECTIONS_MAX = 16,
    FIRST_BYTES = 4096
};

struct transfer {
    struct web_request *request;
    CURL *easy;
    struct curl_slist *headers;
    size_t room; /* of request->bytes, without the NUL */
    bool is_too_large, is_without_memory, is_done;
    bool is_left; /* the work of its caller was cancelled; protected by the lock, as is_done */
    char error[CURL_ERROR_SIZE];
    struct transfer *next;
};

struct web {
    pthread_mutex_t lock; /* protects the queue, and is_done and is_left of transfers */
    pthread_cond_t done;
    struct transfer *queue; /* to be begun */
    struct transfer *begun; /* of the thread alone */
    bool is_stopping;
    CURLM *multi;
    pthread_t thread;
};

/* ---- The answer ------------------------------------------------------------------------------------------------ */

static bool make_room(struct transfer *t, size_t n)
{
    struct web_request *request = t->request;
    curl_off_t declared = -1;
    if (n <= t->room)
        return true;
    if (n > request->n_max)
        return t->is_too_large = true, false;
    curl_easy_getinfo(t->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &declared);
    bool is_blob = !request->timeout_ms && n > FIRST_BYTES; /* whose size is known */
    size_t room = declared > 0 && (uint64_t)declared >= n && (uint64_t)declared <= request->n_max ? (size_t)declared
                  : is_blob             ? (size_t)request->n_max
                  : 2 * n > FIRST_BYTES ? 2 * n
                                        : FIRST_BYTES;
    char *more = store_bytes_new(room);
    if (!more)
        return t->is_without_memory = true, false;
    if (request->n > 0)
        memcpy(more, request->bytes, request->n);
    free(request->bytes);
    request->bytes = more;
    t->room = room;
    return true;
}

static size_t on_bytes(char *bytes, size_t one, size_t n, void *self)
{
    struct transfer *t = self;
    struct web_request *request = t->request;
    (void)one;
    if (!make_room(t, request->n + n))
        return 0;
    memcpy(request->bytes + request->n, bytes, n);
    request->n += n;
    return n;
}

/* "abc" or W/"abc" → abc: stores quote it in some places only. */
static void take_etag(struct web_request *request, const char *value)
{
    const char *begin = strchr(value, '"');
    begin = begin ? begin + 1 : value;
    snprintf(request->etag, sizeof request->etag, "%.*s", (int)strcspn(begin, "\"\r\n"), begin);
}

/* -1: there is no such header, or no date in it. */
static time_t date_of(struct transfer *t, const char *name)
{
    struct curl_header *header;
    bool is_there = curl_easy_header(t->easy, name, 0, CURLH_HEADER, -1, &header) == CURLHE_OK;
    return is_there ? curl_getdate(header->value, NULL) : -1;
}

static void take_length_of_head(struct transfer *t)
{
    curl_off_t declared = -1;
    if (strcmp(t->request->method, "HEAD") != 0)
        return;
    curl_easy_getinfo(t->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &declared);
    t->request->n = declared > 0 ? (size_t)declared : 0;
}

static void finish(struct transfer *t, CURLcode code)
{
    struct web_request *request = t->request;
    long status = 0;
    curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
    request->is_cut = code != CURLE_OK && code != CURLE_ABORTED_BY_CALLBACK && status / 100 == 2;
    if (code == CURLE_OK) {
        request->status = (int)status;
        struct curl_header *header;
        if (curl_easy_header(t->easy, "ETag", 0, CURLH_HEADER, -1, &header) == CURLHE_OK)
            take_etag(t->request, header->value);
        time_t date = date_of(t, "Date"), modified = date_of(t, "Last-Modified");
        t->request->ahead_s = date > 0 ? (int64_t)date - (int64_t)time(NULL) : 0;
        t->request->age_s = date > 0 && modified > 0 ? (int64_t)date - (int64_t)modified : 0;
        take_length_of_head(t);
    } else if (t->is_too_large) {
        snprintf(request->why, sizeof request->why, "it sends more than the expected %llu bytes",
                 (unsigned long long)request->n_max);
    } else if (t->is_without_memory) {
        snprintf(request->why, sizeof request->why, "no memory");
    } else {
        snprintf(request->why, sizeof request->why, "%.200s", *t->error ? t->error : curl_easy_strerror(code));
    }
    if (request->bytes)
        request->bytes[request->n] = '\0'; /* store_bytes_new has room for one more */
}

/* ---- The question ---------------------------------------------------------------------------------------------- */

static bool add_header(struct transfer *t, const char *header)
{
    struct curl_slist *more = curl_slist_append(t->headers, header);
    t->headers = more ? more : t->headers;
    return more;
}

static bool add_headers(struct transfer *t)
{
    const struct web_request *request = t->request;
    char line[sizeof request->credentials->session_token + 64];
    snprintf(line, sizeof line, "x-amz-content-sha256: %s", request->sha256);
    bool fine = add_header(t, line);
    if (*request->credentials->session_token) {
        snprintf(line, sizeof line, "x-amz-security-token: %s", request->credentials->session_token);
        fine = fine && add_header(t, line);
    }
    if (request->body)
        fine = fine && add_header(t, "Content-Type: application/octet-stream");
    for (size_t i = 0; fine && i < WEB_HEADERS_MAX && request->headers[i]; i++)
        fine = add_header(t, request->headers[i]);
    return fine && curl_easy_setopt(t->easy, CURLOPT_HTTPHEADER, t->headers) == CURLE_OK;
}

static bool sign(struct transfer *t)
{
    const struct credentials *keys = t->request->credentials;
    char provider[96];
    if (!*keys->access_key)
        return true;
    snprintf(provider, sizeof provider, "aws:amz:%s:s3", keys->region);
    return curl_easy_setopt(t->easy, CURLOPT_AWS_SIGV4, provider) == CURLE_OK &&
           curl_easy_setopt(t->easy, CURLOPT_USERNAME, keys->access_key) == CURLE_OK &&
           curl_easy_setopt(t->easy, CURLOPT_PASSWORD, keys->secret_key) == CURLE_OK;
}

/* CURLOPT_UPLOAD would sign an empty body and send chunks. */
static bool set_method(struct transfer *t)
{
    const struct web_request *request = t->request;
    if (strcmp(request->method, "HEAD") == 0)
        return curl_easy_setopt(t->easy, CURLOPT_NOBODY, 1L) == CURLE_OK;
    if (strcmp(request->method, "GET") == 0)
        return true;
    if (request->body && (curl_easy_setopt(t->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->n_body) ||
                          curl_easy_setopt(t->easy, CURLOPT_POSTFIELDS, request->body)))
        return false;
    return curl_easy_setopt(t->easy, CURLOPT_CUSTOMREQUEST, request->method) == CURLE_OK;
}

static bool set_limits(struct transfer *t)
{
    CURL *easy = t->easy;
    const struct web_request *request = t->request;
    uint64_t n_bytes = request->n_body + (request->body ? 0 : request->n_max);
    uint64_t whole_ms = 1000 * (WHOLE_SECONDS + n_bytes / BYTES_A_SECOND);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)(request->timeout_ms ? request->timeout_ms : whole_ms));
    curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, (long)SLOW_BYTES);
    curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, (long)SLOW_SECONDS);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
    curl_easy_setopt(easy, CURLOPT_EXPECT_100_TIMEOUT_MS, (long)EXPECT_MS);
    curl_easy_setopt(easy, CURLOPT_MAXAGE_CONN, (long)IDLE_SECONDS);
    curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, (long)request->is_sent_once);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
    const char *file = getenv("AWS_CA_BUNDLE");
    if (file && *file)
        curl_easy_setopt(easy, CURLOPT_CAINFO, file);
    return curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK;
}

static bool set_up(struct transfer *t)
{
    CURL *easy = t->easy = curl_easy_init();
    return easy && curl_easy_setopt(easy, CURLOPT_URL, t->request->url) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_bytes) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_WRITEDATA, t) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, t->error) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_PRIVATE, t) == CURLE_OK && set_limits(t) && sign(t) && set_method(t) &&
           add_headers(t);
}

/* ---- The thread ------------------------------------------------------------------------------------------------ */

static void report(struct web *web, struct transfer *t)
{
    pthread_mutex_lock(&web->lock);
    t->is_done = true; /* from here on it belongs to the thread that asked */
    pthread_cond_broadcast(&web->done);
    pthread_mutex_unlock(&web->lock);
}

static void take_begun(struct web *web, struct transfer *t)
{
    struct transfer **at = &web->begun;
    while (*at != t)
        at = &(*at)->next;
    *at = t->next;
    curl_multi_remove_handle(web->multi, t->easy);
}

/* Returns whether the thread is to end. */
static bool begin_queued(struct web *web)
{
    pthread_mutex_lock(&web->lock);
    struct transfer *t = web->queue;
    web->queue = NULL;
    bool is_stopping = web->is_stopping;
    pthread_mutex_unlock(&web->lock);
    for (struct transfer *next; t; t = next) {
        next = t->next;
        t->next = web->begun;
        web->begun = t;
        curl_multi_add_handle(web->multi, t->easy);
    }
    return is_stopping;
}

/* Ends those whose caller's work was cancelled. */
static void end_left(struct web *web)
{
    for (struct transfer *t = web->begun, *next; t; t = next) {
        next = t->next;
        pthread_mutex_lock(&web->lock);
        bool is_left = t->is_left;
        pthread_mutex_unlock(&web->lock);
        if (!is_left)
            continue;
        finish(t, CURLE_ABORTED_BY_CALLBACK);
        take_begun(web, t);
        report(web, t);
    }
}

static void end_ready(struct web *web)
{
    struct CURLMsg *message;
    int n_left;
    while ((message = curl_multi_info_read(web->multi, &n_left))) {
        void *t;
        CURLcode code = message->data.result;
        if (message->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&t);
        finish(t, code);
        take_begun(web, t);
        report(web, t);
    }
}

static void *transfer_all(void *self)
{
    struct web *web = self;
    int n_running;
    pthread_setname_np(pthread_self(), "store");
    while (!begin_queued(web)) {
        curl_multi_perform(web->multi, &n_running);
        end_ready(web);
        end_left(web);
        curl_multi_poll(web->multi, NULL, 0, POLL_MS, NULL);
    }
    while (web->begun) {
        struct transfer *t = web->begun;
        finish(t, CURLE_ABORTED_BY_CALLBACK);
        take_begun(web, t);
        report(web, t);
    }
    return NULL;
}

/* ---- For others ------------------------------------------------------------------------------------------------ */

/* A change with a time limit is waited for in any case. */
static bool may_be_left(const struct web_request *request)
{
    return !request->timeout_ms || strcmp(request->method, "GET") == 0 || strcmp(request->method, "HEAD") == 0;
}

static void wait_for(struct web *web, struct transfer *t)
{
    bool may = may_be_left(t->request);
    pthread_mutex_lock(&web->lock);
    while (!t->is_done) {
        struct timespec end;
        clock_gettime(CLOCK_MONOTONIC, &end);
        end.tv_nsec += (long)(WAIT_MS * CLOCK_MS);
        end.tv_sec += end.tv_nsec / (long)CLOCK_SECOND;
        end.tv_nsec %= (long)CLOCK_SECOND;
        pthread_cond_timedwait(&web->done, &web->lock, &end);
        pthread_mutex_unlock(&web->lock);
        bool is_left = may && !t->request->is_left && pe_is_cancelled();
        pthread_mutex_lock(&web->lock);
        if (is_left && !t->is_done) {
            t->is_left = t->request->is_left = true;
            curl_multi_wakeup(web->multi);
        }
    }
    pthread_mutex_unlock(&web->lock);
}

static bool enter(struct web *web, struct transfer *t)
{
    pthread_mutex_lock(&web->lock);
    bool is_open = !web->is_stopping;
    if (is_open) {
        t->next = web->queue;
        web->queue = t;
    }
    pthread_mutex_unlock(&web->lock);
    if (is_open)
        curl_multi_wakeup(web->multi);
    return is_open;
}

void web_ask(struct web *web, struct web_request *request)
{
    struct transfer t = {.request = request};
    request->status = 0;
    request->bytes = NULL;
    request->n = 0;
    request->ahead_s = request->age_s = 0;
    request->is_cut = request->is_left = false;
    *request->etag = *request->why = '\0';
    if (!set_up(&t))
        snprintf(request->why, sizeof request->why, "no memory");
    else if (enter(web, &t))
        wait_for(web, &t);
    else
        snprintf(request->why, sizeof request->why, "the server is ending");
    curl_easy_cleanup(t.easy);
    curl_slist_free_all(t.headers);
}

struct web *web_new(void)
{
    struct web *web = calloc(1, sizeof *web);
    pthread_condattr_t steady;
    sigset_t all, before;
    if (!web || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK || !(web->multi = curl_multi_init())) {
        free(web);
        return NULL;
    }
    curl_multi_setopt(web->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, (long)CONNECTIONS_MAX);
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_mutex_init(&web->lock, NULL);
    pthread_cond_init(&web->done, &steady);
    pthread_condattr_destroy(&steady);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool runs = pthread_create(&web->thread, NULL, transfer_all, web) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (runs)
        return web;
    curl_multi_cleanup(web->multi);
    free(web);
    return NULL;
}

void web_stop(struct web *web)
{
    pthread_mutex_lock(&web->lock);
    web->is_stopping = true;
    pthread_mutex_unlock(&web->lock);
    curl_multi_wakeup(web->multi);
}

void web_free(struct web *web)
{
    if (!web)
        return;
    web_stop(web);
    pthread_join(web->thread, NULL);
    curl_multi_cleanup(web->multi);
    curl_global_cleanup();
    pthread_mutex_destroy(&web->lock);
    pthread_cond_destroy(&web->done);
    free(web);
}
