/* Owns the order of requests to a bucket: first the blob, then the name that stands for it. A guard is compared with
 * what names/<name> says and kept by If-Match or If-None-Match of the PUT, which fails if another server came in
 * between. */
#include "server/store/s3.h"

#include "server/log.h"
#include "server/loop/clock.h"
#include "server/loop/jobs.h"
#include "server/store/answers.h"
#include "server/store/cache.h"
#include "server/store/credentials.h"
#include "server/store/s3_index.h"
#include "server/store/web.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

enum {
    NAME_MS = 2000,       /* for a request of a few hundred bytes, with its repetitions */
    LIST_MS = 10000,      /* for a part of a list */
    BLOB_AGAIN_MS = 5000, /* a blob may take as long as its bytes come, but is not asked for again after this time */
    TRIES = 3,
    FIRST_PAUSE_MS = 50,
    PARTS_MAX = 64, /* of a list */
    LIST_BYTES_MAX = 8 << 20,
    NAME_BYTES_MAX = 64 << 10,
    ERROR_BYTES_MAX = 64 << 10,
    URL_BYTES = 4096,
    PREFIX_BYTES = 600,
    SKEW_S = 300 /* worth a word; stores refuse 900 */
};

#define EMPTY_SHA256 "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
/* After a request without an answer, others fail at once for so long: a store that hangs costs one wait a second. */
#define AWAY_NS CLOCK_SECOND

enum operation { LIST, GET, HEAD, PUT, REMOVE, N_OPERATIONS };
static const char *const operation_words[N_OPERATIONS] = {"list", "get", "head", "put", "delete"};
static const char *const methods[N_OPERATIONS] = {"GET", "GET", "HEAD", "PUT", "DELETE"};

/* Done; no such key; a guard did not hold; another refusal; the store's own failure; no whole answer. */
enum outcome {
    OUTCOME_DONE,
    OUTCOME_ABSENT,
    OUTCOME_GUARDED,
    OUTCOME_REFUSED,
    OUTCOME_FAILED,
    OUTCOME_UNANSWERED,
    N_OUTCOMES
};
static const char *const outcome_words[N_OUTCOMES] = {"done", "absent", "guarded", "refused", "failed", "unanswered"};

struct s3 {
    struct store store; /* must be first: store_free frees it */
    struct s3 *first;   /* of this bucket: itself, or the one beside which it was opened */
    const char *names;  /* what its names are under, "names" */
    /* Of the first; the others use them too. */
    struct web *web;
    struct credential_source *credentials;
    atomic_uint_fast64_t away_until; /* ns; 0: it answered */
    atomic_uint_fast64_t n_requests[N_OPERATIONS][N_OUTCOMES], took_ns[N_OPERATIONS], n_spoiled;
    /* Of each. */
    struct cache *cache; /* NULL: none */
    struct s3_index *index;
    size_t files_max;
    char place[1024];
    char base[1024]; /* endpoint/bucket/, "http://127.0.0.1:9000/weights/" */
    char bucket[128];
    char prefix[PREFIX_BYTES];             /* "" or "team/a/" */
    atomic_bool is_stopping, is_dirty;     /* is_dirty: the cache has an older index */
    atomic_uint_fast64_t listed_at;        /* ns; 0: never */
    pthread_mutex_t lock;                  /* protects the field below */
    char last_spoiled[STORE_DIGEST_BYTES]; /* a blob that the store has with other bytes */
};

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

/* A random part of 50, 100, 200 ms: servers that failed together do not come back together. False: the server is
 * ending. */
static bool pause_before(const struct s3 *s3, int n_tries)
{
    uint32_t random = 0;
    if (getrandom(&random, sizeof random, 0) != sizeof random)
        random = (uint32_t)clock_now();
    uint64_t end = clock_now() + random % (((uint32_t)FIRST_PAUSE_MS << n_tries) * 1000) * (CLOCK_MS / 1000);
    jobs_wait_begin();
    while (clock_now() < end && !atomic_load(&s3->is_stopping))
        jobs_wait_on();
    return !atomic_load(&s3->is_stopping);
}

static void ask_once(struct s3 *s3, enum operation operation, struct web_request *request)
{
    struct s3 *first = s3->first;
    uint64_t begun_at = clock_now();
    struct credentials credentials;
    credentials_get(first->credentials, &credentials);
    request->credentials = &credentials;
    request->method = methods[operation];
    web_ask(first->web, request);
    credentials_wipe(&credentials);
    request->credentials = NULL;
    atomic_fetch_add(&first->took_ns[operation], clock_now() - begun_at);
    atomic_fetch_add(&first->n_requests[operation][outcome_of(request)], 1);
}

/* Repeats what may succeed the next time, within the request's time. request->bytes is freed by the caller. False: one
 * of the tries had no proper answer, so what it asked for may have been done. */
static bool ask(struct s3 *s3, enum operation operation, struct web_request *request)
{
    uint64_t whole_ms = request->timeout_ms ? request->timeout_ms : BLOB_AGAIN_MS;
    uint64_t end = clock_now() + whole_ms * CLOCK_MS;
    bool is_sure = true;
    for (int n_tries = 0;; n_tries++) {
        ask_once(s3, operation, request);
        if (!is_passing(request->status))
            break;
        is_sure = false;
        if (n_tries + 1 == TRIES || !pause_before(s3, n_tries))
            break;
        uint64_t now = clock_now();
        if (now + FIRST_PAUSE_MS * CLOCK_MS >= end)
            break;
        request->timeout_ms = request->timeout_ms ? (end - now) / CLOCK_MS : 0;
        free(request->bytes);
    }
    atomic_store(&s3->first->away_until, is_passing(request->status) ? clock_now() + AWAY_NS : 0);
    return is_sure;
}

/* Keys have no letter that needs escaping, except the slashes of the prefix in a query. */
static void print_url(const struct s3 *s3, char *url, const char *kind, const char *name)
{
    snprintf(url, URL_BYTES, "%s%s%s/%s", s3->base, s3->prefix, kind, name);
}

static bool is_away(const struct s3 *s3, char *why)
{
    if (clock_now() >= atomic_load(&s3->first->away_until))
        return false;
    snprintf(why, STORE_WHY_BYTES, "it did not answer a moment ago");
    return true;
}

static void print_hint(const struct s3 *s3, const struct web_request *request, const char *code, char *hint,
                       size_t room)
{
    *hint = '\0';
    if (strcmp(code, "NoSuchBucket") == 0)
        snprintf(hint, room, "; the bucket %s is not there", s3->bucket);
    else if (request->status == 403 && llabs((long long)request->ahead_s) > SKEW_S)
        snprintf(hint, room, "; its clock is %lld s %s ours", llabs((long long)request->ahead_s),
                 request->ahead_s > 0 ? "ahead of" : "behind");
    else if (request->status == 403 || request->status == 401)
        snprintf(hint, room, "; the keys, the region or their rights are wrong");
    else if (request->status == 301 || request->status == 307)
        snprintf(hint, room, "; the bucket is in another region or behind another endpoint");
}

/* Says why, for a request that was neither done nor answered as its caller expects. */
static enum store_result fail(const struct s3 *s3, const struct web_request *request, char *why)
{
    char code[ANSWERS_CODE_BYTES], hint[200];
    if (request->status == 0) {
        snprintf(why, STORE_WHY_BYTES, "no answer: %s", request->why);
        return STORE_FAILED;
    }
    answers_code(request->bytes, code);
    print_hint(s3, request, code, hint, sizeof hint);
    snprintf(why, STORE_WHY_BYTES, "status %d%s%s%s", request->status, *code ? " " : "", code, hint);
    return STORE_FAILED;
}

static bool has_no_bucket(const struct web_request *request)
{
    char code[ANSWERS_CODE_BYTES];
    answers_code(request->bytes, code);
    return strcmp(code, "NoSuchBucket") == 0;
}

/* ---- Names ----------------------------------------------------------------------------------------------------- */

/* What names/<name> says. */
struct said {
    char etag[STORE_VERSION_BYTES], sha256[STORE_DIGEST_BYTES];
    uint64_t n_bytes;
};

static enum store_result take_name(const struct s3 *s3, const struct web_request *request, struct said *said, char *why)
{
    if (request->status == 404 && !has_no_bucket(request))
        return STORE_ABSENT;
    if (request->status != 200)
        return fail(s3, request, why);
    snprintf(said->etag, sizeof said->etag, "%s", request->etag);
    if (request->bytes && strlen(request->bytes) == request->n &&
        answers_name(request->bytes, said->sha256, &said->n_bytes))
        return STORE_DONE;
    snprintf(why, STORE_WHY_BYTES, "its name says no {\"sha256\":…,\"bytes\":…}");
    return STORE_FAILED;
}

static enum store_result get_name(struct s3 *s3, const char *name, struct said *said, char *why)
{
    char url[URL_BYTES];
    print_url(s3, url, s3->names, name);
    struct web_request request = {.url = url, .sha256 = EMPTY_SHA256, .n_max = NAME_BYTES_MAX, .timeout_ms = NAME_MS};
    ask(s3, GET, &request);
    enum store_result result = take_name(s3, &request, said, why);
    free(request.bytes);
    return result;
}

/* ---- Blobs ----------------------------------------------------------------------------------------------------- */

static void note_spoiled(struct s3 *s3, const char *sha256)
{
    atomic_fetch_add(&s3->first->n_spoiled, 1);
    pthread_mutex_lock(&s3->lock);
    snprintf(s3->last_spoiled, sizeof s3->last_spoiled, "%s", sha256);
    pthread_mutex_unlock(&s3->lock);
    log_warn("store: blob %s of %s has another digest, and is refused", sha256, s3->place);
}

static bool is_spoiled(struct s3 *s3, const char *sha256)
{
    pthread_mutex_lock(&s3->lock);
    bool is_it = strcmp(s3->last_spoiled, sha256) == 0;
    pthread_mutex_unlock(&s3->lock);
    return is_it;
}

/* A blob with other bytes is as if none had come: STORE_GUARDED, to be fetched again. */
static enum store_result download_once(struct s3 *s3, const struct said *said, struct store_reading *reading, char *why)
{
    char url[URL_BYTES];
    print_url(s3, url, "blobs", said->sha256);
    struct web_request request = {
        .url = url, .sha256 = EMPTY_SHA256, .n_max = said->n_bytes > ERROR_BYTES_MAX ? said->n_bytes : ERROR_BYTES_MAX};
    ask(s3, GET, &request);
    if (request.status != 200) {
        enum store_result result = fail(s3, &request, why);
        free(request.bytes);
        return result;
    }
    char digest[STORE_DIGEST_BYTES];
    store_digest(request.bytes ? request.bytes : "", request.n, digest);
    if (request.bytes && strcmp(digest, said->sha256) == 0) {
        reading->bytes = request.bytes;
        reading->n = request.n;
        return STORE_DONE;
    }
    free(request.bytes);
    note_spoiled(s3, said->sha256);
    snprintf(why, STORE_WHY_BYTES, "its bytes do not have the digest %s", said->sha256);
    return STORE_GUARDED;
}

static enum store_result download(struct s3 *s3, const struct said *said, struct store_reading *reading, char *why)
{
    enum store_result result = download_once(s3, said, reading, why);
    if (result == STORE_GUARDED)
        result = download_once(s3, said, reading, why);
    if (result == STORE_DONE && s3->cache)
        cache_write(s3->cache, said->sha256, reading->bytes, reading->n);
    return result == STORE_GUARDED ? STORE_FAILED : result;
}

/* From the cache, or from the store. */
static enum store_result get_blob(struct s3 *s3, const struct said *said, struct store_reading *reading, char *why)
{
    if (said->n_bytes > reading->n_max)
        return STORE_TOO_LARGE;
    snprintf(reading->digest, sizeof reading->digest, "%s", said->sha256);
    reading->bytes = s3->cache ? cache_read(s3->cache, said->sha256, (size_t)said->n_bytes) : NULL;
    reading->n = (size_t)said->n_bytes;
    return reading->bytes ? STORE_DONE : download(s3, said, reading, why);
}

/* Unless the store has it already. A blob that was spoiled is written again. */
static enum store_result put_blob(struct s3 *s3, const struct store_writing *writing, char *why)
{
    char url[URL_BYTES];
    print_url(s3, url, "blobs", writing->sha256);
    struct web_request head = {.url = url, .sha256 = EMPTY_SHA256, .timeout_ms = NAME_MS};
    ask(s3, HEAD, &head);
    free(head.bytes);
    if (head.status == 200 && head.n == writing->n && !is_spoiled(s3, writing->sha256))
        return STORE_DONE;
    if (head.status != 200 && head.status != 404)
        return fail(s3, &head, why);
    struct web_request request = {
        .url = url, .sha256 = writing->sha256, .body = writing->bytes, .n_body = writing->n, .n_max = ERROR_BYTES_MAX};
    ask(s3, PUT, &request);
    enum store_result result = request.status / 100 == 2 ? STORE_DONE : fail(s3, &request, why);
    free(request.bytes);
    return result;
}

/* ---- The index ------------------------------------------------------------------------------------------------- */

/* Not for each name that is read: the first list may have thousands. */
static void save_index(struct s3 *s3)
{
    size_t n;
    bool is_wanted = atomic_exchange(&s3->is_dirty, false) && s3->cache;
    char *text = is_wanted ? s3_index_print(s3->index, &n) : NULL;
    if (text)
        cache_write_index(s3->cache, text, n);
    free(text);
}

static void remember(struct s3 *s3, const char *name, const struct said *said)
{
    if (s3_index_put(s3->index, name, said->etag, said->sha256, said->n_bytes))
        atomic_store(&s3->is_dirty, true);
}

static void forget(struct s3 *s3, const char *name)
{
    if (s3_index_remove(s3->index, name))
        atomic_store(&s3->is_dirty, true);
}

static bool is_used(void *self, const char *sha256)
{
    const struct s3 *s3 = self;
    return s3_index_has_blob(s3->index, sha256);
}

/* ---- Reading --------------------------------------------------------------------------------------------------- */

static enum store_result s3_read(void *self, const char *name, struct store_reading *reading, char *why)
{
    struct s3 *s3 = self;
    struct said said = {.etag = ""};
    if (is_away(s3, why))
        return STORE_FAILED;
    enum store_result result = get_name(s3, name, &said, why);
    snprintf(reading->found, sizeof reading->found, "%s", said.etag);
    if (result == STORE_ABSENT)
        forget(s3, name);
    if (result != STORE_DONE)
        return result;
    bool is_same = strcmp(said.sha256, reading->sha256) == 0;
    result = is_same ? STORE_SAME : get_blob(s3, &said, reading, why);
    if (result == STORE_DONE || result == STORE_SAME)
        remember(s3, name, &said);
    return result;
}

static enum store_result s3_read_kept(void *self, const char *name, struct store_reading *reading, char *why)
{
    struct s3 *s3 = self;
    struct said said;
    if (!s3_index_get(s3->index, name, said.etag, said.sha256, &said.n_bytes))
        return STORE_ABSENT;
    if (said.n_bytes > reading->n_max)
        return STORE_TOO_LARGE;
    snprintf(reading->found, sizeof reading->found, "%s", said.etag);
    snprintf(reading->digest, sizeof reading->digest, "%s", said.sha256);
    reading->n = (size_t)said.n_bytes;
    reading->bytes = cache_read(s3->cache, said.sha256, reading->n);
    snprintf(why, STORE_WHY_BYTES, "not in --store-cache");
    return reading->bytes ? STORE_DONE : STORE_FAILED;
}

static enum store_result s3_recall(void *self, struct store_list *list, char *why)
{
    struct s3 *s3 = self;
    char *text = s3->cache ? cache_read_index(s3->cache) : NULL;
    snprintf(why, STORE_WHY_BYTES, "nothing is kept");
    if (!text)
        return STORE_FAILED;
    s3_index_parse(s3->index, text);
    free(text);
    return s3_index_list(s3->index, list) ? STORE_DONE : STORE_NO_MEMORY;
}

/* ---- Listing --------------------------------------------------------------------------------------------------- */

/* Everything but letters, digits and -._~ as %XX. */
static void escape(char *dst, size_t room, const char *text)
{
    size_t used = 0;
    for (; *text && used + 4 < room; text++) {
        unsigned char c = (unsigned char)*text;
        bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || strchr("-._~", c);
        used += (size_t)snprintf(dst + used, room - used, is_plain ? "%c" : "%%%02X", c);
    }
    dst[used] = '\0';
}

/* One part of the list. next: in and out. */
static enum store_result list_part(struct s3 *s3, struct store_list *list, char next[ANSWERS_TOKEN_BYTES], char *why)
{
    char url[URL_BYTES], prefix[PREFIX_BYTES + 16], escaped[2000] = "", token[3 * ANSWERS_TOKEN_BYTES] = "";
    snprintf(prefix, sizeof prefix, "%s%s/", s3->prefix, s3->names);
    escape(escaped, sizeof escaped, prefix);
    escape(token, sizeof token, next);
    size_t n_base = strlen(s3->base) - 1; /* without its last slash: the bucket itself */
    if (snprintf(url, sizeof url, "%.*s?%s%s%slist-type=2&prefix=%s", (int)n_base, s3->base,
                 *next ? "continuation-token=" : "", token, *next ? "&" : "", escaped) >= (int)sizeof url) {
        snprintf(why, STORE_WHY_BYTES, "its list goes on under a token that is too long");
        return STORE_FAILED;
    }
    struct web_request request = {.url = url, .sha256 = EMPTY_SHA256, .n_max = LIST_BYTES_MAX, .timeout_ms = LIST_MS};
    ask(s3, LIST, &request);
    enum store_result result = STORE_DONE;
    if (request.status != 200)
        result = fail(s3, &request, why);
    else if (!request.bytes || !answers_list(request.bytes, prefix, s3->files_max, list, next)) {
        snprintf(why, STORE_WHY_BYTES, "its list cannot be read, or has more than %zu names", s3->files_max);
        result = STORE_FAILED;
    }
    free(request.bytes);
    return result;
}

static enum store_result s3_list(void *self, struct store_list *list, char *why)
{
    struct s3 *s3 = self;
    char next[ANSWERS_TOKEN_BYTES] = "";
    enum store_result result = STORE_DONE;
    *list = (struct store_list){0};
    for (int i = 0; i < PARTS_MAX && result == STORE_DONE && (i == 0 || *next); i++)
        result = list_part(s3, list, next, why);
    if (result != STORE_DONE) {
        store_list_drop(list);
        return result;
    }
    store_list_sort(list);
    if (s3_index_keep_listed(s3->index, list))
        atomic_store(&s3->is_dirty, true);
    save_index(s3);
    atomic_store(&s3->listed_at, clock_now());
    return STORE_DONE;
}

/* ---- Changes --------------------------------------------------------------------------------------------------- */

/* STORE_SAME: another server came in between, look again. */
static enum store_result take_change(const struct s3 *s3, const struct web_request *request, bool had_condition,
                                     char *why)
{
    if (request->status / 100 == 2)
        return STORE_DONE;
    if (request->status == 501)
        return had_condition ? STORE_UNGUARDED : fail(s3, request, why);
    bool is_guarded = request->status == 412 || request->status == 409 ||
                      (request->status == 404 && had_condition && !has_no_bucket(request));
    if (!is_guarded)
        return fail(s3, request, why);
    snprintf(why, STORE_WHY_BYTES, "others change it at the same time");
    return STORE_SAME;
}

/* The condition that names/<name> is still what `said` says; NULL: nothing. Ceph takes a tag only without its quotes,
 * and others take both. */
static void print_condition(char line[WEB_TEXT_BYTES + 32], const struct said *said)
{
    if (said)
        snprintf(line, WEB_TEXT_BYTES + 32, "If-Match: %s", said->etag);
    else
        snprintf(line, WEB_TEXT_BYTES + 32, "If-None-Match: *");
}

/* One change of names/<name>, `operation` PUT or REMOVE; said: what it says, NULL if there is none. *is_sure: as of
 * ask. */
static enum store_result change_name(struct s3 *s3, enum operation operation, const char *name, const struct said *said,
                                     bool is_guarded, struct web_request *request, bool *is_sure, char *why)
{
    char url[URL_BYTES], condition[WEB_TEXT_BYTES + 32];
    print_url(s3, url, s3->names, name);
    print_condition(condition, said);
    request->url = url;
    request->n_max = ERROR_BYTES_MAX;
    request->timeout_ms = NAME_MS;
    request->headers[0] = is_guarded ? condition : NULL;
    request->is_sent_once = is_guarded; /* the second time, the condition would not hold because of the first */
    *is_sure = ask(s3, operation, request);
    enum store_result result = take_change(s3, request, is_guarded, why);
    free(request->bytes);
    request->bytes = NULL;
    return result;
}

static enum store_result put_name(struct s3 *s3, const char *name, const struct said *said,
                                  struct store_writing *writing, bool *is_sure, char *why)
{
    char text[ANSWERS_NAME_BYTES], sha256[STORE_DIGEST_BYTES];
    size_t n = answers_print_name(text, writing->sha256, writing->n);
    store_digest(text, n, sha256);
    struct web_request request = {.sha256 = sha256, .body = text, .n_body = n};
    enum store_result result = change_name(s3, PUT, name, said, writing->guard.is_guarded, &request, is_sure, why);
    if (result == STORE_DONE)
        snprintf(writing->made, sizeof writing->made, "%s", request.etag);
    return result;
}

/* One round: looks, asks the guard, writes. *is_sure: false if an earlier round has sent the name and got no proper
 * answer. If the name says now what we wrote, it was written by us. */
static enum store_result write_once(struct s3 *s3, const char *name, struct store_writing *writing, bool *is_sure,
                                    char *why)
{
    struct said said;
    enum store_result result = get_name(s3, name, &said, why);
    if (result != STORE_DONE && result != STORE_ABSENT)
        return result;
    bool is_there = result == STORE_DONE;
    if (is_there && !*is_sure && strcmp(said.sha256, writing->sha256) == 0) {
        snprintf(writing->made, sizeof writing->made, "%s", said.etag);
        return STORE_DONE;
    }
    if (!store_allows(&writing->guard, is_there ? said.sha256 : NULL))
        return STORE_GUARDED;
    writing->was_there = is_there;
    result = put_blob(s3, writing, why);
    return result == STORE_DONE ? put_name(s3, name, is_there ? &said : NULL, writing, is_sure, why) : result;
}

static enum store_result s3_write(void *self, const char *name, struct store_writing *writing, char *why)
{
    struct s3 *s3 = self;
    enum store_result result = STORE_SAME;
    bool is_sure = true;
    if (is_away(s3, why))
        return STORE_FAILED;
    for (int i = 0; i < TRIES && result == STORE_SAME; i++)
        result = write_once(s3, name, writing, &is_sure, why);
    if (result == STORE_SAME)
        return STORE_FAILED;
    if (result == STORE_DONE) {
        struct said said = {.n_bytes = writing->n};
        snprintf(said.etag, sizeof said.etag, "%s", writing->made);
        snprintf(said.sha256, sizeof said.sha256, "%s", writing->sha256);
        if (s3->cache)
            cache_write(s3->cache, writing->sha256, writing->bytes, writing->n);
        remember(s3, name, &said);
        save_index(s3);
    }
    return result;
}

static enum store_result remove_once(struct s3 *s3, const char *name, const struct store_guard *guard, char *why)
{
    struct said said;
    struct web_request request = {.sha256 = EMPTY_SHA256};
    bool is_sure;
    enum store_result result = get_name(s3, name, &said, why);
    if (result != STORE_DONE)
        return result;
    if (!store_allows(guard, said.sha256))
        return STORE_GUARDED;
    return change_name(s3, REMOVE, name, &said, guard->is_guarded, &request, &is_sure, why);
}

static enum store_result s3_remove(void *self, const char *name, const struct store_guard *guard, char *why)
{
    struct s3 *s3 = self;
    enum store_result result = STORE_SAME;
    if (is_away(s3, why))
        return STORE_FAILED;
    for (int i = 0; i < TRIES && result == STORE_SAME; i++)
        result = remove_once(s3, name, guard, why);
    if (result == STORE_DONE || result == STORE_ABSENT)
        forget(s3, name);
    save_index(s3);
    return result == STORE_SAME ? STORE_FAILED : result;
}

/* ---- Figures --------------------------------------------------------------------------------------------------- */

static void print_head(FILE *out, const char *name, const char *type, const char *help)
{
    fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void print_one(FILE *out, const char *name, const char *type, const char *help, double value)
{
    print_head(out, name, type, help);
    fprintf(out, "%s %.17g\n", name, value);
}

static void print_requests(const struct s3 *s3, FILE *out)
{
    print_head(out, "posenc_store_requests_total", "counter", "Requests to --store.");
    for (int i = 0; i < N_OPERATIONS; i++)
        for (int j = 0; j < N_OUTCOMES; j++)
            fprintf(out, "posenc_store_requests_total{operation=\"%s\",outcome=\"%s\"} %" PRIu64 "\n",
                    operation_words[i], outcome_words[j], (uint64_t)atomic_load(&s3->n_requests[i][j]));
    print_head(out, "posenc_store_request_seconds_total", "counter", "Time that requests to --store have taken.");
    for (int i = 0; i < N_OPERATIONS; i++)
        fprintf(out, "posenc_store_request_seconds_total{operation=\"%s\"} %.9f\n", operation_words[i],
                (double)atomic_load(&s3->took_ns[i]) / (double)CLOCK_SECOND);
}

void s3_print_metrics(void *store, FILE *out)
{
    struct s3 *s3 = ((struct store *)store)->self;
    uint64_t listed_at = atomic_load(&s3->listed_at), now = clock_now();
    print_requests(s3, out);
    print_one(out, "posenc_store_reachable", "gauge", "Whether the last request to --store was answered.",
              atomic_load(&s3->first->away_until) == 0 && listed_at ? 1 : 0);
    if (listed_at)
        print_one(out, "posenc_store_index_age_seconds", "gauge", "Time since the names of --store were last listed.",
                  (double)(now - listed_at) / (double)CLOCK_SECOND);
    print_one(out, "posenc_store_names", "gauge", "Names of --store that this process knows.",
              (double)s3_index_n(s3->index));
    print_one(out, "posenc_store_spoiled_total", "counter", "Blobs that had another digest than their name.",
              (double)atomic_load(&s3->n_spoiled));
    if (!s3->cache)
        return;
    struct cache_figures figures = cache_figures(s3->cache);
    print_one(out, "posenc_store_cache_hits_total", "counter", "Blobs read from --store-cache.",
              (double)figures.n_hits);
    print_one(out, "posenc_store_cache_misses_total", "counter", "Blobs that --store-cache did not have.",
              (double)figures.n_misses);
    print_one(out, "posenc_store_cache_spoiled_total", "counter",
              "Blobs of --store-cache that were not whole, and were removed.", (double)figures.n_spoiled);
    print_one(out, "posenc_store_cache_failures_total", "counter", "Files that could not be written to --store-cache.",
              (double)figures.n_failed);
    print_one(out, "posenc_store_cache_bytes", "gauge", "Bytes of the blobs in --store-cache.",
              (double)figures.n_bytes);
}

/* ---- The whole ------------------------------------------------------------------------------------------------- */

static void s3_stop(void *self)
{
    struct s3 *s3 = self;
    atomic_store(&s3->is_stopping, true);
    if (s3->first->web)
        web_stop(s3->first->web);
}

static void s3_free(void *self)
{
    struct s3 *s3 = self;
    save_index(s3);
    web_free(s3->web);
    credential_source_free(s3->credentials);
    cache_free(s3->cache);
    s3_index_free(s3->index);
    pthread_mutex_destroy(&s3->lock);
}

static bool read_place(struct s3 *s3, const char *place, char *error)
{
    static const char scheme[] = "s3://";
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
    const char *bucket = place + sizeof scheme - 1;
    size_t n = strncmp(place, scheme, sizeof scheme - 1) == 0 ? strspn(bucket, letters) : 0;
    const char *prefix = bucket + n + (n > 0 && bucket[n] == '/');
    size_t n_prefix = n > 0 ? strlen(prefix) : 0;
    while (n_prefix > 0 && prefix[n_prefix - 1] == '/')
        n_prefix--;
    bool is_right =
        n > 0 && n < sizeof s3->bucket && (!bucket[n] || bucket[n] == '/') && n_prefix + 2 < sizeof s3->prefix;
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
    snprintf(s3->bucket, sizeof s3->bucket, "%.*s", (int)n, bucket);
    snprintf(s3->prefix, sizeof s3->prefix, "%.*s%s", (int)n_prefix, prefix, n_prefix ? "/" : "");
    snprintf(s3->place, sizeof s3->place, "s3://%s/%s", s3->bucket, s3->prefix);
    return true;
}

static bool read_endpoint(struct s3 *s3, const char *endpoint, char *error)
{
    char amazon[160];
    const char *given = *endpoint ? endpoint : getenv("AWS_ENDPOINT_URL_S3");
    if (!given || !*given) {
        struct credentials now;
        credentials_get(s3->credentials, &now);
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
    snprintf(s3->base, sizeof s3->base, "%.*s/%s/", (int)n, given, s3->bucket);
    return true;
}

static bool open_cache(struct s3 *s3, const struct s3_settings *settings, char *error)
{
    if (!*settings->cache)
        return true;
    s3->cache = cache_new(settings->cache, settings->cache_bytes, is_used, s3);
    if (!s3->cache)
        snprintf(error, S3_ERROR_BYTES, "--store-cache %.200s: %s", settings->cache, strerror(errno));
    return s3->cache;
}

static bool set_up(struct s3 *s3, const struct s3_settings *settings, char *error)
{
    snprintf(error, S3_ERROR_BYTES, "--store: no memory");
    s3->index = s3_index_new();
    if (!s3->index || !read_place(s3, settings->place, error))
        return false;
    s3->credentials = credential_source_new(settings->credentials, error);
    if (!s3->credentials || !read_endpoint(s3, settings->endpoint, error) || !open_cache(s3, settings, error))
        return false;
    snprintf(error, S3_ERROR_BYTES, "--store: no memory, or no thread");
    s3->web = web_new();
    return s3->web;
}

/* has_cache: what was read is kept. */
static void fill_in(struct s3 *s3, bool has_cache)
{
    s3->store = (struct store){.self = s3,
                               .flag = "--store",
                               .place = s3->place,
                               .may_be_away = true,
                               .absent_ns = CLOCK_SECOND,
                               .list = s3_list,
                               .read = s3_read,
                               .write = s3_write,
                               .remove = s3_remove,
                               .recall = has_cache ? s3_recall : NULL,
                               .read_kept = has_cache ? s3_read_kept : NULL,
                               .stop = s3_stop,
                               .free = s3_free};
}

struct store *s3_store_new(const struct s3_settings *settings, char *error)
{
    struct s3 *s3 = calloc(1, sizeof *s3);
    if (!s3) {
        snprintf(error, S3_ERROR_BYTES, "--store: no memory");
        return NULL;
    }
    pthread_mutex_init(&s3->lock, NULL);
    s3->first = s3;
    s3->names = "names";
    s3->files_max = settings->files_max;
    fill_in(s3, *settings->cache);
    if (set_up(s3, settings, error))
        return &s3->store;
    store_free(&s3->store);
    return NULL;
}

/* ---- Beside another -------------------------------------------------------------------------------------------- */

/* A folder in that of the first. Without it, nothing is kept. */
static void open_cache_beside(struct s3 *s3, const struct s3_beside *beside)
{
    char folder[PATH_MAX];
    if (!*beside->cache || snprintf(folder, sizeof folder, "%s/%s", beside->cache, s3->names) >= (int)sizeof folder)
        return;
    if (mkdir(folder, 0777) == 0 || errno == EEXIST)
        s3->cache = cache_new(folder, beside->cache_bytes, is_used, s3);
    if (!s3->cache)
        log_warn("--store-cache %s: %s; these are not kept", folder, strerror(errno));
}

struct store *s3_store_beside(struct store *store, const struct s3_beside *beside)
{
    struct s3 *first = store->self, *s3 = calloc(1, sizeof *s3);
    if (!s3)
        return NULL;
    pthread_mutex_init(&s3->lock, NULL);
    s3->first = first;
    s3->names = beside->names;
    s3->files_max = beside->files_max;
    memcpy(s3->place, first->place, sizeof s3->place);
    memcpy(s3->base, first->base, sizeof s3->base);
    memcpy(s3->bucket, first->bucket, sizeof s3->bucket);
    memcpy(s3->prefix, first->prefix, sizeof s3->prefix);
    s3->index = s3_index_new();
    if (s3->index)
        open_cache_beside(s3, beside);
    fill_in(s3, s3->cache);
    if (s3->index)
        return &s3->store;
    store_free(&s3->store);
    return NULL;
}
