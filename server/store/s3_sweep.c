/* Owns the order of a sweep: it lists the blobs before the names. A name is written after its blob, so a listed blob
 * whose name comes too late to be seen is a young one. */
#include "server/store/s3_sweep.h"

#include "server/store/s3_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REMOVE_MS = 2000, BLOBS_MAX = 1 << 18 };

/* Adds the digests that the names of one kind stand for. */
static bool add_used(const struct s3_names *names, size_t n_max, struct store_list *used, char *why)
{
    struct store_list list;
    struct s3_said said;
    if (s3_names_list(names, n_max, &list, why) != STORE_DONE)
        return false;
    struct store_entry *more = realloc(used->entries, (used->n + list.n + 1) * sizeof *more);
    bool fine = more;
    if (more)
        used->entries = more;
    else
        snprintf(why, STORE_WHY_BYTES, "no memory");
    for (size_t i = 0; fine && i < list.n; i++) {
        enum store_result result = s3_names_get(names, list.entries[i].name, &said, why);
        fine = result == STORE_DONE || result == STORE_ABSENT; /* it may have been deleted meanwhile */
        if (result == STORE_DONE)
            snprintf(used->entries[used->n++].name, STORE_NAME_BYTES, "%s", said.sha256);
    }
    store_list_drop(&list);
    return fine;
}

static bool find_used(struct bucket *bucket, size_t n_max, struct store_list *used, char *why)
{
    bool fine = true;
    for (size_t i = 0; fine && i < S3_N_KINDS; i++)
        fine = add_used(&(struct s3_names){.bucket = bucket, .kind = s3_kinds[i]}, n_max, used, why);
    store_list_sort(used);
    return fine;
}

static bool remove_blob(struct bucket *bucket, const char *url, char *why)
{
    struct web_request request = {
        .url = url, .sha256 = BUCKET_EMPTY_SHA256, .n_max = BUCKET_ERROR_BYTES, .timeout_ms = REMOVE_MS};
    bucket_ask(bucket, BUCKET_REMOVE, &request);
    bool is_gone = request.status / 100 == 2 || (request.status == 404 && !bucket_is_missing(&request));
    if (!is_gone)
        bucket_fail(bucket, &request, why);
    free(request.bytes);
    return is_gone;
}

/* Removes a blob that no name stands for, if it is old enough. Its age is asked for at the last moment. */
static bool remove_if_old(struct bucket *bucket, const char *sha256, struct s3_swept *swept, char *why)
{
    char url[BUCKET_URL_BYTES];
    struct web_request head;
    bucket_print_url(bucket, url, "blobs", sha256);
    enum store_result result = bucket_head(bucket, url, &head, why);
    if (result != STORE_DONE)
        return result == STORE_ABSENT;
    if (head.age_s < S3_SWEEP_AGE_S) {
        swept->n_young++;
        return true;
    }
    if (!remove_blob(bucket, url, why))
        return false;
    swept->n_removed++;
    swept->n_bytes += head.n;
    return true;
}

static bool sweep(struct bucket *bucket, size_t n_names_max, struct s3_swept *swept, char *why)
{
    struct store_list blobs, used = {0};
    if (s3_names_list(&(struct s3_names){.bucket = bucket, .kind = "blobs"}, BLOBS_MAX, &blobs, why) != STORE_DONE)
        return false;
    bool fine = find_used(bucket, n_names_max, &used, why);
    for (size_t i = 0; fine && i < blobs.n; i++) {
        const char *name = blobs.entries[i].name;
        if (!store_is_digest(name))
            continue;
        swept->n_blobs++;
        if (!store_list_find(&used, name))
            fine = remove_if_old(bucket, name, swept, why);
    }
    store_list_drop(&blobs);
    store_list_drop(&used);
    return fine;
}

bool s3_sweep(const struct s3_settings *settings, struct s3_swept *swept, char *error)
{
    char why[STORE_WHY_BYTES] = "";
    *swept = (struct s3_swept){0};
    struct bucket *bucket = bucket_new(settings, error);
    if (!bucket)
        return false;
    bool fine = sweep(bucket, settings->files_max, swept, why);
    if (!fine)
        snprintf(error, S3_ERROR_BYTES, "--store %.200s: %.300s", bucket->place, why);
    bucket_free(bucket);
    return fine;
}
