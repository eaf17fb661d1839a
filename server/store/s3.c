/* Owns the order of requests to a bucket: first the blob, then the name that refers to it; what was read before is
 * remembered (s3_index.c) and cached (cache.c).
 *
 * The problem: several servers change names in one bucket, none may see a half-written file, and S3 has neither locks
 * nor transactions over two keys. The idea is git's: blobs/<sha256> never change, and names/<name> is a small object
 * that refers to one. Storing writes the blob, which nothing sees, and then the name in one PUT with a condition
 * (If-Match, s3_names.c): one server wins, the other looks again. A reader gets a name, then its blob, and checks the
 * blob by its key.
 *
 * Blobs without a name are removed by a sweep (s3_sweep.c). A store of a blob that is already there must not lose
 * against a sweep that has just found it unused: so a blob that is half a day old is written again, and its mark is
 * looked for after the name is written.
 *
 * Invariant: at any moment each name refers to a whole blob, whichever server dies where. */
#include "server/store/store.h"

#include "server/process/process.h"
#include "server/loop/loop.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { TRIES = 3, SPOILED_MAX = 256, PLACE_BYTES = BUCKET_URL_BYTES };

struct s3 {
    struct store store; /* must be first: store_free frees it */
    struct s3_names names;
    bool owns_bucket;    /* else it is that of the store beside which it was opened */
    struct cache *cache; /* NULL: none */
    struct s3_index *index;
    size_t files_max;
    atomic_bool is_dirty;                          /* the cache has an older index */
    atomic_uint_fast64_t listed_at;                /* ns; 0: never */
    pthread_mutex_t lock;                          /* protects the fields below */
    char spoiled[SPOILED_MAX][STORE_DIGEST_BYTES]; /* blobs that the store has with other bytes; "": none */
    size_t n_spoiled;                              /* noted since the start: the oldest give way */
};

/* ---- Blobs ----------------------------------------------------------------------------------------------------- */

/* With the lock. NULL: it is not among them. */
static char *find_spoiled(struct s3 *s3, const char *sha256)
{
    for (size_t i = 0; i < SPOILED_MAX; i++)
        if (strcmp(s3->spoiled[i], sha256) == 0)
            return s3->spoiled[i];
    return NULL;
}

static void note_spoiled(struct s3 *s3, const char *sha256)
{
    pthread_mutex_lock(&s3->lock);
    if (!find_spoiled(s3, sha256))
        snprintf(s3->spoiled[s3->n_spoiled++ % SPOILED_MAX], STORE_DIGEST_BYTES, "%s", sha256);
    pthread_mutex_unlock(&s3->lock);
}

static bool is_spoiled(struct s3 *s3, const char *sha256)
{
    pthread_mutex_lock(&s3->lock);
    bool found = find_spoiled(s3, sha256);
    pthread_mutex_unlock(&s3->lock);
    return found;
}

/* A blob whose bytes do not have its digest counts as not received: STORE_GUARDED, to be fetched again. */
static enum store_result download_once(struct s3 *s3, const struct s3_said *said, struct store_reading *reading,
                                       char *why)
{
    char url[BUCKET_URL_BYTES];
    bucket_print_url(s3->names.bucket, url, "blobs", said->sha256);
    struct web_request request = {.url = url,
                                  .sha256 = BUCKET_EMPTY_SHA256,
                                  .n_max = said->n_bytes > BUCKET_ERROR_BYTES ? said->n_bytes : BUCKET_ERROR_BYTES};
    bucket_ask(s3->names.bucket, BUCKET_GET, &request);
    if (request.status != 200) {
        enum store_result result = bucket_fail(s3->names.bucket, &request, why);
        free(request.bytes);
        if (!request.is_cut)
            return result;
        note_spoiled(s3, said->sha256);
        return STORE_SPOILED;
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
    atomic_fetch_add(&s3->names.bucket->n_spoiled, 1);
    log_warn("store: blob %s of %s has another digest, and is refused", said->sha256, s3->names.bucket->place);
    snprintf(why, STORE_WHY_BYTES, "its bytes do not have the digest %s", said->sha256);
    return STORE_GUARDED;
}

static enum store_result download(struct s3 *s3, const struct s3_said *said, struct store_reading *reading, char *why)
{
    enum store_result result = download_once(s3, said, reading, why);
    if (result == STORE_GUARDED)
        result = download_once(s3, said, reading, why);
    if (result == STORE_DONE && s3->cache)
        cache_write(s3->cache, said->sha256, reading->bytes, reading->n);
    return result == STORE_GUARDED ? STORE_SPOILED : result;
}

/* From the cache, or from the store. */
static enum store_result get_blob(struct s3 *s3, const struct s3_said *said, struct store_reading *reading, char *why)
{
    if (!store_wants(reading, said->n_bytes))
        return STORE_UNWANTED;
    snprintf(reading->digest, sizeof reading->digest, "%s", said->sha256);
    reading->bytes = s3->cache ? cache_read(s3->cache, said->sha256, (size_t)said->n_bytes) : NULL;
    reading->n = (size_t)said->n_bytes;
    return reading->bytes ? STORE_DONE : download(s3, said, reading, why);
}

static enum store_result upload(struct s3 *s3, const char *url, const struct store_writing *writing, char *why)
{
    struct web_request request = {.url = url,
                                  .sha256 = writing->sha256,
                                  .body = writing->bytes,
                                  .n_body = writing->n,
                                  .n_max = BUCKET_ERROR_BYTES};
    bucket_ask(s3->names.bucket, BUCKET_PUT, &request);
    enum store_result result = request.status / 100 == 2 ? STORE_DONE : bucket_fail(s3->names.bucket, &request, why);
    free(request.bytes);
    if (result == STORE_DONE) {
        pthread_mutex_lock(&s3->lock);
        char *spoiled = find_spoiled(s3, writing->sha256);
        if (spoiled)
            *spoiled = '\0';
        pthread_mutex_unlock(&s3->lock);
    }
    return result;
}

/* Unless the store has it already. A blob that was spoiled is written again. So is one that is half a day old
 * (*was_old): a sweep that has found it without a name then sees that it is new. */
static enum store_result put_blob(struct s3 *s3, const struct store_writing *writing, bool *was_old, char *why)
{
    char url[BUCKET_URL_BYTES];
    bucket_print_url(s3->names.bucket, url, "blobs", writing->sha256);
    struct web_request head;
    enum store_result result = bucket_head(s3->names.bucket, url, &head, why);
    bool is_whole = result == STORE_DONE && head.n == writing->n && !is_spoiled(s3, writing->sha256);
    bool is_old = result == STORE_DONE && head.age_s >= S3_SWEEP_AGE_S / 2;
    *was_old = *was_old || is_old;
    if (is_whole && !is_old)
        return STORE_DONE;
    return result == STORE_DONE || result == STORE_ABSENT ? upload(s3, url, writing, why) : result;
}

/* After the name: a sweep that had found the blob old may have removed it since, or be about to. */
static enum store_result keep_blob(struct s3 *s3, const struct store_writing *writing, bool was_old, char *why)
{
    char url[BUCKET_URL_BYTES];
    bucket_print_url(s3->names.bucket, url, "blobs", writing->sha256);
    struct web_request head;
    if (was_old && !s3_sweep_wait(s3->names.bucket, writing->sha256, why))
        return STORE_FAILED;
    enum store_result result = bucket_head(s3->names.bucket, url, &head, why);
    return result == STORE_ABSENT ? upload(s3, url, writing, why) : STORE_DONE;
}

/* ---- The index ------------------------------------------------------------------------------------------------- */

/* The first line of the index in the cache: whose names these are. */
static void print_place(const struct s3 *s3, char *line, size_t room)
{
    const struct bucket *bucket = s3->names.bucket;
    snprintf(line, room, "# %s%s%s", bucket->base, bucket->prefix, s3->names.kind);
}

/* Not for each name that is read: the first list may have thousands. */
static void save_index(struct s3 *s3)
{
    char place[PLACE_BYTES];
    size_t n;
    if (!atomic_exchange(&s3->is_dirty, false) || !s3->cache)
        return;
    print_place(s3, place, sizeof place);
    char *text = s3_index_print(s3->index, place, &n);
    if (text)
        cache_write_index(s3->cache, text, n);
    free(text);
}

static void remember(struct s3 *s3, const char *name, const struct s3_said *said)
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
    struct s3_said said = {.etag = ""};
    if (bucket_is_away(s3->names.bucket, why))
        return STORE_FAILED;
    enum store_result result = s3_names_get(&s3->names, name, &said, why);
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
    struct s3_said said;
    if (!s3_index_get(s3->index, name, said.etag, said.sha256, &said.n_bytes))
        return STORE_ABSENT;
    snprintf(reading->found, sizeof reading->found, "%s", said.etag);
    if (!store_wants(reading, said.n_bytes))
        return STORE_UNWANTED;
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
    snprintf(why, STORE_WHY_BYTES, "nothing is cached");
    if (!text)
        return STORE_FAILED;
    char place[PLACE_BYTES];
    print_place(s3, place, sizeof place);
    bool is_ours = s3_index_parse(s3->index, place, text);
    free(text);
    if (!is_ours) {
        log_warn("--store-cache: its list of %s does not state that it is of %s, and is not used; it is rewritten when "
                 "the store has been read",
                 s3->names.kind, place + strlen("# "));
        snprintf(why, STORE_WHY_BYTES, "what is cached may be of another place");
        return STORE_FAILED;
    }
    return s3_index_list(s3->index, list) ? STORE_DONE : STORE_NO_MEMORY;
}

/* ---- Listing --------------------------------------------------------------------------------------------------- */

static enum store_result s3_list(void *self, struct store_list *list, char *why)
{
    struct s3 *s3 = self;
    enum store_result result = s3_names_list(&s3->names, s3->files_max, list, why);
    if (result != STORE_DONE)
        return result;
    bool is_first = atomic_load(&s3->listed_at) == 0; /* the cache may have the index of another place */
    if (s3_index_keep_listed(s3->index, list) || is_first)
        atomic_store(&s3->is_dirty, true);
    save_index(s3);
    atomic_store(&s3->listed_at, clock_now());
    return STORE_DONE;
}

/* ---- Changes --------------------------------------------------------------------------------------------------- */

/* One round: looks, asks the guard, writes. *is_sure: false if an earlier round has sent the name and got no proper
 * answer. If the name states now what we wrote, it was written by us. */
static enum store_result write_once(struct s3 *s3, const char *name, struct store_writing *writing, bool *is_sure,
                                    bool *was_old, char *why)
{
    struct s3_said said;
    enum store_result result = s3_names_get(&s3->names, name, &said, why);
    if (result != STORE_DONE && result != STORE_ABSENT)
        return result;
    bool is_there = result == STORE_DONE;
    if (is_there && !*is_sure && strcmp(said.sha256, writing->sha256) == 0) {
        snprintf(writing->made, sizeof writing->made, "%s", said.etag);
        return STORE_DONE;
    }
    if (!store_allows(&writing->guard, is_there ? said.sha256 : NULL))
        return STORE_GUARDED;
    if (writing->guard.is_guarded && (result = s3_names_probe(&s3->names, is_there ? &said : NULL, why)) != STORE_DONE)
        return result;
    writing->was_there = is_there;
    result = put_blob(s3, writing, was_old, why);
    return result == STORE_DONE ? s3_names_put(&s3->names, name, is_there ? &said : NULL, writing, is_sure, why)
                                : result;
}

static enum store_result s3_write(void *self, const char *name, struct store_writing *writing, char *why)
{
    struct s3 *s3 = self;
    enum store_result result = STORE_SAME;
    bool is_sure = true, was_old = false;
    if (bucket_is_away(s3->names.bucket, why))
        return STORE_FAILED;
    for (int i = 0; i < TRIES && result == STORE_SAME; i++)
        result = write_once(s3, name, writing, &is_sure, &was_old, why);
    if (result == STORE_SAME)
        return STORE_FAILED;
    if (result == STORE_DONE)
        result = keep_blob(s3, writing, was_old, why);
    if (result == STORE_DONE) {
        struct s3_said said = {.n_bytes = writing->n};
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
    struct s3_said said;
    enum store_result result = s3_names_get(&s3->names, name, &said, why);
    if (result != STORE_DONE)
        return result;
    if (!store_allows(guard, said.sha256))
        return STORE_GUARDED;
    if (guard->is_guarded && (result = s3_names_probe(&s3->names, &said, why)) != STORE_DONE)
        return result;
    return s3_names_remove(&s3->names, name, &said, guard->is_guarded, why);
}

static enum store_result s3_remove(void *self, const char *name, const struct store_guard *guard, char *why)
{
    struct s3 *s3 = self;
    enum store_result result = STORE_SAME;
    if (bucket_is_away(s3->names.bucket, why))
        return STORE_FAILED;
    for (int i = 0; i < TRIES && result == STORE_SAME; i++)
        result = remove_once(s3, name, guard, why);
    if (result == STORE_DONE || result == STORE_ABSENT)
        forget(s3, name);
    save_index(s3);
    return result == STORE_SAME ? STORE_FAILED : result;
}

/* ---- Figures --------------------------------------------------------------------------------------------------- */

void s3_print_metrics(void *store, FILE *out)
{
    struct s3 *s3 = ((struct store *)store)->self;
    uint64_t listed_at = atomic_load(&s3->listed_at), now = clock_now();
    bucket_print_requests(s3->names.bucket, out);
    metrics_print_one(out, "posenc_store_reachable", "gauge", "Whether the last request to --store was answered.",
                      atomic_load(&s3->names.bucket->away_until) == 0 && listed_at ? 1 : 0);
    if (listed_at)
        metrics_print_one(out, "posenc_store_index_age_seconds", "gauge",
                          "Time since the names of --store were last listed.",
                          (double)(now - listed_at) / (double)CLOCK_SECOND);
    metrics_print_one(out, "posenc_store_names", "gauge", "Names of --store that this process knows.",
                      (double)s3_index_n(s3->index));
    metrics_print_one(out, "posenc_store_spoiled_total", "counter", "Blobs that had another digest than their name.",
                      (double)atomic_load(&s3->names.bucket->n_spoiled));
    if (s3->cache)
        cache_print_metrics(s3->cache, out);
}

/* ---- The whole ------------------------------------------------------------------------------------------------- */

static void s3_stop(void *self)
{
    const struct s3 *s3 = self;
    bucket_stop(s3->names.bucket);
}

static void s3_free(void *self)
{
    struct s3 *s3 = self;
    save_index(s3);
    if (s3->owns_bucket)
        bucket_free(s3->names.bucket);
    cache_free(s3->cache);
    s3_index_free(s3->index);
    pthread_mutex_destroy(&s3->lock);
}

/* has_cache: what was read is kept. */
static void fill_in(struct s3 *s3, bool has_cache)
{
    s3->store = (struct store){.self = s3,
                               .flag = "--store",
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

static bool set_up(struct s3 *s3, const struct s3_settings *settings, char *error)
{
    snprintf(error, S3_ERROR_BYTES, "--store: no memory");
    s3->index = s3_index_new();
    s3->names.bucket = s3->index ? bucket_new(settings, error) : NULL;
    if (!s3->names.bucket)
        return false;
    s3->store.place = s3->names.bucket->place;
    if (!*settings->cache)
        return true;
    s3->cache = cache_new(settings->cache, settings->cache_bytes, is_used, s3);
    if (!s3->cache)
        snprintf(error, S3_ERROR_BYTES, "--store-cache %.200s: %s", settings->cache, strerror(errno));
    return s3->cache;
}

struct store *s3_store_new(const struct s3_settings *settings, char *error)
{
    struct s3 *s3 = calloc(1, sizeof *s3);
    if (!s3) {
        snprintf(error, S3_ERROR_BYTES, "--store: no memory");
        return NULL;
    }
    pthread_mutex_init(&s3->lock, NULL);
    s3->owns_bucket = true;
    s3->names.kind = s3_kinds[S3_NAMES];
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
    if (!*beside->cache ||
        snprintf(folder, sizeof folder, "%s/%s", beside->cache, s3->names.kind) >= (int)sizeof folder)
        return;
    if (mkdir(folder, 0777) == 0 || errno == EEXIST)
        s3->cache = cache_new(folder, beside->cache_bytes, is_used, s3);
    if (!s3->cache)
        log_warn("--store-cache %s: %s; these are not cached", folder, strerror(errno));
}

struct store *s3_store_beside(struct store *store, const struct s3_beside *beside)
{
    const struct s3 *first = store->self;
    struct s3 *s3 = calloc(1, sizeof *s3);
    if (!s3)
        return NULL;
    pthread_mutex_init(&s3->lock, NULL);
    s3->names = (struct s3_names){.bucket = first->names.bucket, .kind = s3_kinds[beside->kind]};
    s3->files_max = beside->files_max;
    s3->index = s3_index_new();
    if (s3->index)
        open_cache_beside(s3, beside);
    fill_in(s3, s3->cache);
    s3->store.place = first->store.place;
    if (s3->index)
        return &s3->store;
    store_free(&s3->store);
    return NULL;
}
