/* Owns the order of a sweep, which removes blobs that no name refers to while servers write.
 *
 * The problem: a server may store a blob again, or write a name for an old one, between the sweep's look and its
 * DELETE. S3 has no transaction over a blob and a name, and servers that share a bucket know nothing of each other.
 *
 * A sweep lists the blobs before the names: a name is written after its blob, so a listed blob whose name comes too
 * late to be seen is a young one, or an old one that was stored again. Young ones are left alone. For the second case a
 * sweep marks what it is about to remove (blobs/<sha256>.sweep), and reads the names that are new after it has written
 * the marks; a server that has stored an old blob again looks for its mark after it has written the name. So at least
 * one of the two sees the other (as in Dekker's algorithm; Dijkstra 1965, EWD 123): the sweep leaves the blob, or the
 * server waits until the mark has gone, and writes the blob again if that has gone too. A sweep that died leaves marks,
 * which count for a minute; one that is stopped for half a minute removes nothing more under its marks.
 *
 * A DELETE is sent once, so that none arrives after its mark has gone. At the end the names are read once more: servers
 * that know nothing of marks may have used a blob that is gone, and then the sweep reports it. */
#include "server/store/store.h"

#include "server/loop/loop.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MARK ".sweep"

enum {
    BLOBS_MAX = 1 << 18,
    MARKS = 8,        /* at a time */
    MARK_S = 60,      /* an older mark is that of a sweep that has died */
    MARK_USED_S = 30, /* under an older mark nothing is removed */
    BACK_S = 10,      /* until then a server that has seen a mark has written its blob again */
    FEW = 4,          /* so many blobs may go whatever their share: a bucket of one name is not a sign of half a list */
    PAUSE_MS = 100,   /* between two looks at a mark */
    PERCENT_OF_ALL = 100 /* max_percent that allows everything */
};

struct sweep {
    struct bucket *bucket;
    struct store_list blobs, old;        /* all; those to be removed, without a version until they are */
    struct store_list names[S3_N_KINDS]; /* as last listed */
    struct store_list used; /* digests that a name has referred to since the sweep began; the version is that name */
    size_t names_max;
    struct s3_swept *swept;
    char *why;
};

/* ---- Names ----------------------------------------------------------------------------------------------------- */

static bool fail_memory(const struct sweep *s)
{
    snprintf(s->why, STORE_WHY_BYTES, "no memory");
    return false;
}

/* Adds the digest that a name refers to. */
static bool add_used(struct sweep *s, const struct s3_names *names, const char *name)
{
    struct s3_said said;
    enum store_result result = s3_names_get(names, name, &said, s->why);
    if (result != STORE_DONE)
        return result == STORE_ABSENT; /* deleted meanwhile */
    struct store_entry *entry = store_list_add(&s->used, said.sha256);
    if (!entry)
        return fail_memory(s);
    snprintf(entry->version, sizeof entry->version, "%.*s", (int)sizeof entry->version - 1, name);
    return true;
}

/* Lists the names of one kind, and reads those that are new or have changed since they were last listed. */
static bool read_kind(struct sweep *s, enum s3_kind kind)
{
    const struct s3_names names = {.bucket = s->bucket, .kind = s3_kinds[kind]};
    struct store_list list;
    if (s3_names_list(&names, s->names_max, &list, s->why) != STORE_DONE)
        return false;
    bool fine = true;
    for (size_t i = 0; fine && i < list.n; i++) {
        const struct store_entry *now = &list.entries[i], *before = store_list_find(&s->names[kind], now->name);
        if (!before || !*before->version || strcmp(before->version, now->version) != 0)
            fine = add_used(s, &names, now->name);
    }
    store_list_drop(&s->names[kind]);
    s->names[kind] = list;
    return fine;
}

static bool read_names(struct sweep *s)
{
    size_t n_before = s->used.n;
    bool fine = true;
    for (size_t i = 0; fine && i < S3_N_KINDS; i++)
        fine = read_kind(s, (enum s3_kind)i);
    if (s->used.n > n_before)
        store_list_sort(&s->used);
    return fine;
}

/* ---- Marks ----------------------------------------------------------------------------------------------------- */

static void print_mark(const struct bucket *bucket, char *url, const char *sha256)
{
    bucket_print_url(bucket, url, "blobs", sha256);
    strcat(url, MARK);
}

static bool is_mark(const char *name)
{
    size_t n = strlen(name);
    return n == STORE_DIGEST_BYTES - 1 + strlen(MARK) && strcmp(name + STORE_DIGEST_BYTES - 1, MARK) == 0;
}

static bool write_mark(struct sweep *s, const char *sha256)
{
    char url[BUCKET_URL_BYTES];
    struct web_request request;
    print_mark(s->bucket, url, sha256);
    bucket_put_text(s->bucket, url, "a sweep is removing this blob\n", NULL, &request);
    bool fine = request.status / 100 == 2;
    if (!fine)
        bucket_fail(s->bucket, &request, s->why);
    free(request.bytes);
    return fine;
}

static bool remove_mark(struct bucket *bucket, const char *sha256, char *why)
{
    char url[BUCKET_URL_BYTES];
    print_mark(bucket, url, sha256);
    return bucket_remove(bucket, url, false, why);
}

bool s3_sweep_wait(struct bucket *bucket, const char *sha256, char *why)
{
    char url[BUCKET_URL_BYTES];
    struct web_request head;
    print_mark(bucket, url, sha256);
    for (uint64_t end = clock_now() + BACK_S * CLOCK_SECOND; clock_now() < end;) {
        enum store_result result = bucket_head(bucket, url, &head, why);
        if (result != STORE_DONE || head.age_s >= MARK_S)
            return result == STORE_DONE || result == STORE_ABSENT;
        if (!bucket_pause(bucket, PAUSE_MS * CLOCK_MS))
            break;
    }
    snprintf(why, STORE_WHY_BYTES, "a sweep is removing the same bytes");
    return false;
}

/* ---- What would go --------------------------------------------------------------------------------------------- */

/* Its age, by the store's clock, and its bytes; *is_there: false if it has gone. */
static bool ask_age(const struct sweep *s, const char *blob, struct web_request *head, bool *is_there)
{
    char url[BUCKET_URL_BYTES];
    bucket_print_url(s->bucket, url, "blobs", blob);
    enum store_result result = bucket_head(s->bucket, url, head, s->why);
    *is_there = result == STORE_DONE;
    return result == STORE_DONE || result == STORE_ABSENT;
}

/* A blob without a name, or the mark of a sweep that died. */
static bool look_at(struct sweep *s, const char *blob)
{
    struct web_request head;
    bool is_there;
    if (!ask_age(s, blob, &head, &is_there))
        return false;
    if (is_mark(blob)) {
        char url[BUCKET_URL_BYTES];
        bucket_print_url(s->bucket, url, "blobs", blob);
        return !is_there || head.age_s < MARK_S || bucket_remove(s->bucket, url, false, s->why);
    }
    if (is_there && head.age_s < S3_SWEEP_AGE_S)
        s->swept->n_young++;
    else if (is_there && !store_list_add(&s->old, blob))
        return fail_memory(s);
    return true;
}

static bool find_old(struct sweep *s)
{
    bool fine = true;
    for (size_t i = 0; fine && i < s->blobs.n; i++) {
        const char *blob = s->blobs.entries[i].name;
        bool is_blob = store_is_digest(blob);
        s->swept->n_blobs += is_blob;
        if (is_mark(blob) || (is_blob && !store_list_find(&s->used, blob)))
            fine = look_at(s, blob);
    }
    return fine;
}

/* Whether few, or at most max_percent of the blobs that are a day old, would go. Of those in use only as many are asked
 * for their age as are enough. */
static bool are_few(const struct sweep *s, unsigned max_percent)
{
    size_t n_all = (s->old.n * PERCENT_OF_ALL + max_percent - 1) / max_percent;
    size_t n_missing = s->old.n > FEW ? n_all - s->old.n : 0;
    for (size_t i = 0; n_missing > 0 && i < s->blobs.n; i++) {
        const char *blob = s->blobs.entries[i].name;
        struct web_request head;
        bool is_there;
        if (!store_is_digest(blob) || !store_list_find(&s->used, blob))
            continue;
        if (!ask_age(s, blob, &head, &is_there))
            return false;
        n_missing -= is_there && head.age_s >= S3_SWEEP_AGE_S;
    }
    if (n_missing > 0)
        snprintf(s->why, STORE_WHY_BYTES,
                 "%zu blobs have no name, more than %u percent of those that are a day old, so nothing is removed: is "
                 "its list of names whole? If so, --store-sweep-max %d removes them",
                 s->old.n, max_percent, PERCENT_OF_ALL);
    return n_missing == 0;
}

/* ---- Removing -------------------------------------------------------------------------------------------------- */

/* Its age is asked for at the last moment. */
static bool remove_if_old(struct sweep *s, struct store_entry *blob, uint64_t marked_at)
{
    char url[BUCKET_URL_BYTES];
    struct web_request head;
    bool is_there;
    if (!ask_age(s, blob->name, &head, &is_there))
        return false;
    if (!is_there)
        return true;
    if (head.age_s < S3_SWEEP_AGE_S) {
        s->swept->n_young++;
        return true;
    }
    if (clock_now() - marked_at > MARK_USED_S * CLOCK_SECOND) {
        snprintf(s->why, STORE_WHY_BYTES, "it is too slow to be swept");
        return false;
    }
    bucket_print_url(s->bucket, url, "blobs", blob->name);
    if (!bucket_remove(s->bucket, url, true, s->why))
        return false;
    snprintf(blob->version, sizeof blob->version, "removed");
    s->swept->n_removed++;
    s->swept->n_bytes += head.n;
    return true;
}

/* The mark of a blob whose DELETE has not been answered stays: it may still arrive. */
static bool remove_some(struct sweep *s, struct store_entry *blobs, size_t n)
{
    uint64_t marked_at = clock_now();
    size_t n_marked = 0, unsure = n;
    bool fine = true;
    for (; fine && n_marked < n; n_marked++)
        fine = write_mark(s, blobs[n_marked].name);
    fine = fine && read_names(s);
    for (size_t i = 0; fine && i < n; i++)
        if (!store_list_find(&s->used, blobs[i].name) && !remove_if_old(s, &blobs[i], marked_at)) {
            unsure = i;
            fine = false;
        }
    for (size_t i = 0; i < n_marked; i++) {
        char why[STORE_WHY_BYTES];
        if (i != unsure && !remove_mark(s->bucket, blobs[i].name, fine ? s->why : why))
            fine = false;
    }
    return fine;
}

/* Whether every removed blob for which a name has come meanwhile is there again. */
static bool check_removed(const struct sweep *s)
{
    for (size_t i = 0; i < s->old.n; i++) {
        const struct store_entry *blob = &s->old.entries[i], *use = store_list_find(&s->used, blob->name);
        bool is_there = !*blob->version || !use;
        struct web_request head;
        for (uint64_t end = clock_now() + BACK_S * CLOCK_SECOND; !is_there && clock_now() < end;)
            if (!ask_age(s, blob->name, &head, &is_there) ||
                (!is_there && !bucket_pause(s->bucket, PAUSE_MS * CLOCK_MS)))
                return false;
        if (!is_there) {
            snprintf(s->why, STORE_WHY_BYTES, "the name %s was stored while its blob %s was removed; store it again",
                     use->version, blob->name);
            return false;
        }
    }
    return true;
}

/* ---- The whole ------------------------------------------------------------------------------------------------- */

/* The names are read twice before anything is removed, and a name that was seen once counts. */
static bool sweep(struct sweep *s, unsigned max_percent)
{
    const struct s3_names blobs = {.bucket = s->bucket, .kind = "blobs"};
    if (s3_names_list(&blobs, BLOBS_MAX, &s->blobs, s->why) != STORE_DONE)
        return false;
    if (!read_names(s) || !read_names(s) || !find_old(s) || !are_few(s, max_percent))
        return false;
    bool fine = true;
    for (size_t i = 0; fine && i < s->old.n; i += MARKS)
        fine = remove_some(s, &s->old.entries[i], s->old.n - i < MARKS ? s->old.n - i : MARKS);
    return fine && (s->swept->n_removed == 0 || (read_names(s) && check_removed(s)));
}

bool s3_sweep(const struct s3_settings *settings, unsigned max_percent, struct s3_swept *swept, char *error)
{
    char why[STORE_WHY_BYTES] = "";
    *swept = (struct s3_swept){0};
    struct sweep s = {.names_max = settings->files_max, .swept = swept, .why = why};
    s.bucket = bucket_new(settings, error);
    if (!s.bucket)
        return false;
    bool fine = sweep(&s, max_percent);
    if (!fine)
        snprintf(error, S3_ERROR_BYTES, "--store %.200s: %.300s", s.bucket->place, why);
    store_list_drop(&s.blobs);
    store_list_drop(&s.old);
    store_list_drop(&s.used);
    for (size_t i = 0; i < S3_N_KINDS; i++)
        store_list_drop(&s.names[i]);
    bucket_free(s.bucket);
    return fine;
}
