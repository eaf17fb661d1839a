/* Owns the index of a bucket: for each name the tag, digest and size that were last seen, as a sorted array of some
 * thousand names at most.
 *
 * The problem is a start without the bucket. The cache (cache.c) has the blobs under their digests, but which name
 * means which blob is written in the bucket alone, and one small object has to be read for each name. So the index is
 * kept beside the blobs as a text, and a server that starts serves from it what the cache has, under the tags of that
 * time; when the bucket answers, its list has the tags of now, and only names whose tag differs are read.
 *
 * The index also states which blobs are in use: when the cache needs room, those that no name means are removed first.
 *
 * The text has a line that states the place whose names these are, then a line for each name: name, digest, bytes, tag,
 * the tag last because only it may contain blanks. The text of another place is refused as a whole, because the same
 * names may mean other blobs there; a line that cannot be read costs only that name.
 *
 * Invariant: the index never decides what is right. Where it is out of date the first list corrects it, and each blob
 * is checked by its digest.
 *
 * Names are found by bisection; a digest is looked for in all of them, which only the cache's eviction does. */
#define _GNU_SOURCE /* open_memstream, strsep */
#include "server/store/store.h"

#include "api/api.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct known {
    struct store_entry entry; /* its version is the tag */
    char sha256[STORE_DIGEST_BYTES];
    uint64_t n_bytes;
};

struct s3_index {
    pthread_mutex_t lock; /* protects all fields below */
    struct known *known;  /* sorted by name */
    size_t n, room;
};

/* ---- Places; with the lock ------------------------------------------------------------------------------------- */

static const char *name_at(const void *known, size_t i) { return ((const struct known *)known)[i].entry.name; }

static size_t place_of(const struct s3_index *index, const char *name, bool *is_there)
{
    return store_place(index->known, index->n, name_at, name, is_there);
}

static struct known *look_up(const struct s3_index *index, const char *name)
{
    bool is_there;
    size_t i = place_of(index, name, &is_there);
    return is_there ? &index->known[i] : NULL;
}

/* NULL: no memory. */
static struct known *insert(struct s3_index *index, const char *name)
{
    bool is_there;
    if (index->n == index->room) {
        size_t room = index->room ? 2 * index->room : 16;
        struct known *more = realloc(index->known, room * sizeof *more);
        if (!more)
            return NULL;
        index->known = more;
        index->room = room;
    }
    size_t i = place_of(index, name, &is_there);
    memmove(&index->known[i + 1], &index->known[i], (index->n - i) * sizeof *index->known);
    index->n++;
    index->known[i] = (struct known){.n_bytes = 0};
    snprintf(index->known[i].entry.name, sizeof index->known[i].entry.name, "%s", name);
    return &index->known[i];
}

static void take_out(struct s3_index *index, size_t i)
{
    index->n--;
    memmove(&index->known[i], &index->known[i + 1], (index->n - i) * sizeof *index->known);
}

/* ---- Changing -------------------------------------------------------------------------------------------------- */

bool s3_index_put(struct s3_index *index, const char *name, const char *etag, const char *sha256, uint64_t n_bytes)
{
    pthread_mutex_lock(&index->lock);
    struct known *known = look_up(index, name);
    bool is_same = known && strcmp(known->entry.version, etag) == 0 && strcmp(known->sha256, sha256) == 0;
    if (!known)
        known = insert(index, name);
    if (known) {
        snprintf(known->entry.version, sizeof known->entry.version, "%s", etag);
        snprintf(known->sha256, sizeof known->sha256, "%s", sha256);
        known->n_bytes = n_bytes;
    }
    pthread_mutex_unlock(&index->lock);
    return !is_same && known;
}

bool s3_index_remove(struct s3_index *index, const char *name)
{
    pthread_mutex_lock(&index->lock);
    bool is_there;
    size_t i = place_of(index, name, &is_there);
    if (is_there)
        take_out(index, i);
    pthread_mutex_unlock(&index->lock);
    return is_there;
}

bool s3_index_keep_listed(struct s3_index *index, const struct store_list *list)
{
    bool has_changed = false;
    pthread_mutex_lock(&index->lock);
    for (size_t i = index->n; i-- > 0;)
        if (!store_list_find(list, index->known[i].entry.name)) {
            take_out(index, i);
            has_changed = true;
        }
    pthread_mutex_unlock(&index->lock);
    return has_changed;
}

/* ---- Looking --------------------------------------------------------------------------------------------------- */

size_t s3_index_n(struct s3_index *index)
{
    pthread_mutex_lock(&index->lock);
    size_t n = index->n;
    pthread_mutex_unlock(&index->lock);
    return n;
}

bool s3_index_get(struct s3_index *index, const char *name, char *etag, char *sha256, uint64_t *n_bytes)
{
    pthread_mutex_lock(&index->lock);
    const struct known *known = look_up(index, name);
    if (known) {
        memcpy(etag, known->entry.version, sizeof known->entry.version);
        memcpy(sha256, known->sha256, sizeof known->sha256);
        *n_bytes = known->n_bytes;
    }
    pthread_mutex_unlock(&index->lock);
    return known;
}

bool s3_index_has_blob(struct s3_index *index, const char *sha256)
{
    bool is_there = false;
    pthread_mutex_lock(&index->lock);
    for (size_t i = 0; i < index->n && !is_there; i++)
        is_there = strcmp(index->known[i].sha256, sha256) == 0;
    pthread_mutex_unlock(&index->lock);
    return is_there;
}

bool s3_index_list(struct s3_index *index, struct store_list *list)
{
    pthread_mutex_lock(&index->lock);
    *list = (struct store_list){.entries = malloc((index->n + 1) * sizeof *list->entries)};
    for (size_t i = 0; list->entries && i < index->n; i++)
        list->entries[list->n++] = index->known[i].entry;
    pthread_mutex_unlock(&index->lock);
    return list->entries;
}

/* ---- As text --------------------------------------------------------------------------------------------------- */

char *s3_index_print(struct s3_index *index, const char *head, size_t *n)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, n);
    if (!out)
        return NULL;
    fprintf(out, "%s\n", head);
    pthread_mutex_lock(&index->lock);
    for (size_t i = 0; i < index->n; i++) {
        const struct known *known = &index->known[i];
        fprintf(out, "%s %s %" PRIu64 " %s\n", known->entry.name, known->sha256, known->n_bytes, known->entry.version);
    }
    pthread_mutex_unlock(&index->lock);
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

static void parse_line(struct s3_index *index, char *line)
{
    const char *name = strsep(&line, " "), *sha256 = strsep(&line, " "), *bytes = strsep(&line, " ");
    if (!bytes || !line || !api_weight_name_is_valid(name) || !store_is_digest(sha256) ||
        strspn(bytes, "0123456789") != strlen(bytes))
        return;
    s3_index_put(index, name, line, sha256, strtoull(bytes, NULL, 10));
}

bool s3_index_parse(struct s3_index *index, const char *head, char *text)
{
    char *line = strsep(&text, "\n");
    if (strcmp(line, head) != 0)
        return false;
    while ((line = strsep(&text, "\n")))
        parse_line(index, line);
    return true;
}

/* ---- The whole ------------------------------------------------------------------------------------------------- */

struct s3_index *s3_index_new(void)
{
    struct s3_index *index = calloc(1, sizeof *index);
    if (index)
        pthread_mutex_init(&index->lock, NULL);
    return index;
}

void s3_index_free(struct s3_index *index)
{
    if (!index)
        return;
    pthread_mutex_destroy(&index->lock);
    free(index->known);
    free(index);
}
