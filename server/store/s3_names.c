/* Owns the list of the names, in parts, and the conditions of a change: If-Match or If-None-Match of the PUT, which
 * fails if another server came first.
 *
 * S3 has had conditional writes since 2024, and compatible stores have them, ignore them, or answer in their own way (a
 * tag with or without quotes). A store that ignores a condition would lose an update silently, so before its first
 * guarded change a server probes: it writes twice what may be written once, under a key that is in no list. Only if the
 * second write fails are guards offered.
 *
 * After a write without a proper answer it is not known whether it was done: the name is read again, and if it is what
 * was written, it was. */
#include "server/store/store.h"

#include "server/process/process.h"
#include "server/loop/loop.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum {
    NAME_BYTES_MAX = 64 << 10,
    LIST_MS = 10000, /* for a part of a list */
    LIST_BYTES_MAX = 8 << 20,
    PARTS_MAX = 1024 /* of a list */
};

#define ANOTHER_TAG "00000000000000000000000000000000" /* of no object */

const char *const s3_kinds[S3_N_KINDS] = {[S3_NAMES] = "names", [S3_PRESETS] = "presets"};

/* ---- Lists ----------------------------------------------------------------------------------------------------- */

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
static enum store_result list_part(const struct s3_names *names, size_t n_max, struct store_list *list,
                                   char next[ANSWERS_TOKEN_BYTES], char *why)
{
    struct bucket *bucket = names->bucket;
    char url[BUCKET_URL_BYTES], prefix[BUCKET_PREFIX_BYTES + 16], escaped[2000] = "",
                                                                  token[3 * ANSWERS_TOKEN_BYTES] = "";
    snprintf(prefix, sizeof prefix, "%s%s/", bucket->prefix, names->kind);
    escape(escaped, sizeof escaped, prefix);
    escape(token, sizeof token, next);
    size_t n_base = strlen(bucket->base) - 1; /* without its last slash: the bucket itself */
    if (snprintf(url, sizeof url, "%.*s?%s%s%slist-type=2&prefix=%s", (int)n_base, bucket->base,
                 *next ? "continuation-token=" : "", token, *next ? "&" : "", escaped) >= (int)sizeof url) {
        snprintf(why, STORE_WHY_BYTES, "its list goes on under a token that is too long");
        return STORE_FAILED;
    }
    struct web_request request = {
        .url = url, .sha256 = BUCKET_EMPTY_SHA256, .n_max = LIST_BYTES_MAX, .timeout_ms = LIST_MS};
    bucket_ask(bucket, BUCKET_LIST, &request);
    enum store_result result = STORE_DONE;
    if (request.status != 200)
        result = bucket_fail(bucket, &request, why);
    else if (!request.bytes || !answers_list(request.bytes, prefix, n_max, list, next)) {
        snprintf(why, STORE_WHY_BYTES, "its list is not whole, cannot be read, or has more than %zu names", n_max);
        result = STORE_REFUSED;
    }
    free(request.bytes);
    return result;
}

enum store_result s3_names_list(const struct s3_names *names, size_t n_max, struct store_list *list, char *why)
{
    char next[ANSWERS_TOKEN_BYTES] = "";
    enum store_result result = STORE_DONE;
    int n_parts = 0;
    *list = (struct store_list){0};
    do
        result = list_part(names, n_max, list, next, why);
    while (result == STORE_DONE && *next && ++n_parts < PARTS_MAX);
    if (result == STORE_DONE && *next) {
        snprintf(why, STORE_WHY_BYTES, "its list has more than %d parts", PARTS_MAX);
        result = STORE_REFUSED;
    }
    if (result == STORE_DONE)
        store_list_sort(list);
    else
        store_list_drop(list);
    return result;
}

/* ---- One name -------------------------------------------------------------------------------------------------- */

static enum store_result take_name(const struct bucket *bucket, const struct web_request *request, struct s3_said *said,
                                   char *why)
{
    if (request->status == 404 && !bucket_is_missing(request))
        return STORE_ABSENT;
    if (request->status != 200)
        return bucket_fail(bucket, request, why);
    snprintf(said->etag, sizeof said->etag, "%s", request->etag);
    if (request->bytes && strlen(request->bytes) == request->n &&
        answers_name(request->bytes, said->sha256, &said->n_bytes))
        return STORE_DONE;
    snprintf(why, STORE_WHY_BYTES, "its name says no {\"sha256\":…,\"bytes\":…}");
    return STORE_FAILED;
}

enum store_result s3_names_get(const struct s3_names *names, const char *name, struct s3_said *said, char *why)
{
    char url[BUCKET_URL_BYTES];
    bucket_print_url(names->bucket, url, names->kind, name);
    struct web_request request = {
        .url = url, .sha256 = BUCKET_EMPTY_SHA256, .n_max = NAME_BYTES_MAX, .timeout_ms = BUCKET_SMALL_MS};
    bucket_ask(names->bucket, BUCKET_GET, &request);
    enum store_result result = take_name(names->bucket, &request, said, why);
    free(request.bytes);
    return result;
}

/* STORE_SAME: another server came in between, look again. */
static enum store_result take_change(const struct bucket *bucket, const struct web_request *request, bool had_condition,
                                     char *why)
{
    if (request->status / 100 == 2)
        return STORE_DONE;
    if (request->status == 501)
        return had_condition ? STORE_UNGUARDED : bucket_fail(bucket, request, why);
    bool is_guarded = request->status == 412 || request->status == 409 ||
                      (request->status == 404 && had_condition && !bucket_is_missing(request));
    if (!is_guarded)
        return bucket_fail(bucket, request, why);
    snprintf(why, STORE_WHY_BYTES, "others change it at the same time");
    return STORE_SAME;
}

/* ---- Are conditions obeyed? ------------------------------------------------------------------------------------ */

enum condition { CONDITION_UNKNOWN, CONDITION_OBEYED, CONDITION_MISSING, CONDITION_IGNORED };

/* What the answer to a PUT states whose condition does not hold. CONDITION_UNKNOWN: *result. */
static enum condition condition_of(const struct bucket *bucket, const struct web_request *request,
                                   enum store_result *result, char *why)
{
    if (request->status / 100 == 2)
        return CONDITION_IGNORED;
    if (request->status == 501)
        return CONDITION_MISSING;
    if (request->status == 412 || request->status == 409 || (request->status == 404 && !bucket_is_missing(request)))
        return CONDITION_OBEYED;
    *result = bucket_fail(bucket, request, why);
    return CONDITION_UNKNOWN;
}

static enum condition put_under(const struct s3_names *names, const char *url, const char *condition,
                                enum store_result *result, char *why)
{
    struct web_request request;
    bucket_put_text(names->bucket, url, "Are conditions obeyed?\n", condition, &request);
    enum condition found = condition_of(names->bucket, &request, result, why);
    free(request.bytes);
    return found;
}

static void learn(const struct bucket *bucket, atomic_int *known, enum condition found, const char *name)
{
    int before = CONDITION_UNKNOWN;
    if (atomic_compare_exchange_strong(known, &before, (int)found) && found == CONDITION_IGNORED)
        log_warn("store: %s ignores the condition %s of a PUT, so changes guarded by it are answered 501",
                 bucket->place, name);
}

/* Writes twice what may be written once, and then under a tag that nothing has. The key is no name, so that it is in no
 * list, and another one for each probe: several servers may ask at the same time. */
static enum store_result probe(const struct s3_names *names, char *why)
{
    struct bucket *bucket = names->bucket;
    char url[BUCKET_URL_BYTES], key[64];
    uint64_t random[2];
    enum store_result result = STORE_DONE;
    if (getrandom(random, sizeof random, 0) != sizeof random)
        random[0] = clock_now(), random[1] = (uint64_t)getpid();
    snprintf(key, sizeof key, "_probe-%016" PRIx64 "%016" PRIx64, random[0], random[1]);
    bucket_print_url(bucket, url, names->kind, key);
    enum condition found = put_under(names, url, "If-None-Match: *", &result, why);
    if (found == CONDITION_IGNORED) /* it was written, as it should be */
        found = put_under(names, url, "If-None-Match: *", &result, why);
    learn(bucket, &bucket->if_none_match, found, "If-None-Match");
    learn(bucket, &bucket->if_match, put_under(names, url, "If-Match: " ANOTHER_TAG, &result, why), "If-Match");
    char why_not[STORE_WHY_BYTES];
    if (!bucket_remove(bucket, url, false, why_not))
        log_warn("store: the probe %s cannot be removed: %s", url, why_not);
    return result;
}

enum store_result s3_names_probe(const struct s3_names *names, const struct s3_said *said, char *why)
{
    const atomic_int *known = said ? &names->bucket->if_match : &names->bucket->if_none_match;
    enum store_result result = STORE_DONE;
    if (atomic_load(known) == CONDITION_UNKNOWN)
        result = probe(names, why);
    if (atomic_load(known) == CONDITION_UNKNOWN)
        return result;
    return atomic_load(known) == CONDITION_OBEYED ? STORE_DONE : STORE_UNGUARDED;
}

/* ---- A change -------------------------------------------------------------------------------------------------- */

/* One change of names/<name>, `operation` PUT or REMOVE; said: what it states, NULL if there is none. *is_sure: as of
 * ask. */
static enum store_result change_name(const struct s3_names *names, enum bucket_operation operation, const char *name,
                                     const struct s3_said *said, bool is_guarded, struct web_request *request,
                                     bool *is_sure, char *why)
{
    char url[BUCKET_URL_BYTES], condition[WEB_TEXT_BYTES + 32];
    bucket_print_url(names->bucket, url, names->kind, name);
    /* The condition that names/<name> is still what `said` states; NULL: nothing. Ceph takes a tag only without its
     * quotes, and others take both. */
    if (said)
        snprintf(condition, WEB_TEXT_BYTES + 32, "If-Match: %s", said->etag);
    else
        snprintf(condition, WEB_TEXT_BYTES + 32, "If-None-Match: *");
    request->url = url;
    request->n_max = BUCKET_ERROR_BYTES;
    request->timeout_ms = BUCKET_SMALL_MS;
    request->headers[0] = is_guarded ? condition : NULL;
    request->is_sent_once = is_guarded; /* the second time, the condition would not hold because of the first */
    *is_sure = bucket_ask(names->bucket, operation, request);
    enum store_result result = take_change(names->bucket, request, is_guarded, why);
    free(request->bytes);
    request->bytes = NULL;
    return result;
}

enum store_result s3_names_put(const struct s3_names *names, const char *name, const struct s3_said *said,
                               struct store_writing *writing, bool *is_sure, char *why)
{
    char text[ANSWERS_NAME_BYTES], sha256[STORE_DIGEST_BYTES];
    size_t n = answers_print_name(text, writing->sha256, writing->n);
    store_digest(text, n, sha256);
    struct web_request request = {.sha256 = sha256, .body = text, .n_body = n};
    enum store_result result =
        change_name(names, BUCKET_PUT, name, said, writing->guard.is_guarded, &request, is_sure, why);
    if (result == STORE_DONE)
        snprintf(writing->made, sizeof writing->made, "%s", request.etag);
    return result;
}

enum store_result s3_names_remove(const struct s3_names *names, const char *name, const struct s3_said *said,
                                  bool is_guarded, char *why)
{
    struct web_request request = {.sha256 = BUCKET_EMPTY_SHA256};
    bool is_sure;
    return change_name(names, BUCKET_REMOVE, name, said, is_guarded, &request, &is_sure, why);
}
