/* Owns the folder of --store-cache: blobs on the local disk, so that a restart does not download gigabytes.
 *
 * A blob's name is the SHA-256 of its contents, so a blob never changes and needs no validation: it is checked against
 * its own name when it is read, and one with other bytes is removed as if it had never been there. A crash in the
 * middle of writing leaves a draft under another name (store.c), never half a blob.
 *
 * Room is made by removing what was used longest ago, first what no name refers to. Use is remembered as the file's
 * time, so it survives a restart, and several servers may share the folder: a file that another one has removed is a
 * miss.
 *
 * Every failure of the disk (full, read-only, slow) costs only the cache, and is logged once for each kind. */
#define _GNU_SOURCE /* O_CLOEXEC, futimens */
#include "server/store/store.h"

#include "server/process/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SUFFIX ".safetensors"
#define INDEX "index"

enum { FILE_NAME_BYTES = STORE_DIGEST_BYTES + sizeof SUFFIX, INDEX_BYTES_MAX = 16 << 20 };

struct cache {
    pthread_mutex_t lock; /* orders writes and removals; held while the disk works */
    int dir;
    uint64_t bytes_max;
    cache_is_used *is_used;
    void *self;
    atomic_uint_fast64_t n_hits, n_misses, n_spoiled, n_failed, n_bytes;
    int last_error; /* that was logged */
    char folder[];
};

static void print_file(char *file, const char *sha256) { snprintf(file, FILE_NAME_BYTES, "%s" SUFFIX, sha256); }

static bool is_blob(const char *file)
{
    enum { N = STORE_DIGEST_BYTES - 1 };
    return strspn(file, "0123456789abcdef") == N && strcmp(file + N, SUFFIX) == 0;
}

/* With the lock: one line for each kind of failure. */
static void note_failure(struct cache *cache)
{
    cache->n_failed++;
    if (errno != cache->last_error)
        log_warn("--store-cache %s: %s; weights are served, but may not outlive this process there", cache->folder,
                 strerror(errno));
    cache->last_error = errno;
}

/* ---- Reading --------------------------------------------------------------------------------------------------- */

/* NULL: there is none, or it cannot be read. */
static char *read_file(struct cache *cache, const char *file, size_t n_max, size_t *n)
{
    struct stat status;
    int fd = openat(cache->dir, file, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    bool fits = fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && (uint64_t)status.st_size <= n_max;
    char *bytes = fits ? store_bytes_new((size_t)status.st_size) : NULL;
    if (bytes && (!files_read(fd, bytes, (size_t)status.st_size, n) || *n != (size_t)status.st_size)) {
        free(bytes);
        bytes = NULL;
    }
    if (bytes) {
        bytes[*n] = '\0';
        futimens(fd, NULL); /* used now */
    }
    files_close(fd);
    return bytes;
}

char *cache_read(struct cache *cache, const char *sha256, size_t n)
{
    char file[FILE_NAME_BYTES], digest[STORE_DIGEST_BYTES] = "";
    size_t n_read;
    print_file(file, sha256);
    char *bytes = read_file(cache, file, SIZE_MAX / 4, &n_read);
    bool is_read = bytes; /* what cannot be read now, without memory for example, is not wrong */
    if (is_read && n_read == n)
        store_digest(bytes, n, digest);
    bool is_right = strcmp(digest, sha256) == 0;
    atomic_fetch_add(is_right ? &cache->n_hits : &cache->n_misses, 1);
    if (is_right)
        return bytes;
    free(bytes);
    if (is_read) {
        pthread_mutex_lock(&cache->lock);
        cache->n_spoiled++;
        /* With the lock. */
        struct stat status;
        if (fstatat(cache->dir, file, &status, AT_SYMLINK_NOFOLLOW) == 0 && unlinkat(cache->dir, file, 0) == 0)
            cache->n_bytes -= (uint64_t)status.st_size;
        pthread_mutex_unlock(&cache->lock);
        log_warn("--store-cache %s: %s is not what it was, and is removed", cache->folder, file);
    }
    return NULL;
}

char *cache_read_index(struct cache *cache)
{
    size_t n;
    return read_file(cache, INDEX, INDEX_BYTES_MAX, &n);
}

/* ---- Room; with the lock --------------------------------------------------------------------------------------- */

struct oldest {
    char file[FILE_NAME_BYTES];
    struct timespec used;
    bool is_in_use;
};

static bool goes_before(const struct oldest *a, const struct oldest *b)
{
    if (!*b->file || a->is_in_use != b->is_in_use)
        return !*b->file || b->is_in_use;
    return a->used.tv_sec < b->used.tv_sec || (a->used.tv_sec == b->used.tv_sec && a->used.tv_nsec < b->used.tv_nsec);
}

/* The blob to be removed next; counts the bytes of all. */
static bool find_oldest(struct cache *cache, struct oldest *oldest)
{
    DIR *entries = opendir(cache->folder);
    const struct dirent *entry;
    struct stat status;
    *oldest = (struct oldest){.file = ""};
    uint64_t n_bytes = 0;
    while (entries && (entry = readdir(entries))) {
        if (!is_blob(entry->d_name) || fstatat(cache->dir, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
            S_ISDIR(status.st_mode))
            continue;
        struct oldest this = {.used = status.st_mtim};
        char sha256[STORE_DIGEST_BYTES];
        snprintf(this.file, sizeof this.file, "%.*s", (int)sizeof this.file - 1, entry->d_name);
        snprintf(sha256, sizeof sha256, "%.64s", entry->d_name);
        this.is_in_use = cache->is_used(cache->self, sha256);
        n_bytes += (uint64_t)status.st_size;
        if (goes_before(&this, oldest))
            *oldest = this;
    }
    if (entries)
        closedir(entries);
    atomic_store(&cache->n_bytes, n_bytes);
    return *oldest->file;
}

static bool make_room(struct cache *cache, uint64_t n)
{
    struct oldest oldest;
    while (cache->n_bytes + n > cache->bytes_max && find_oldest(cache, &oldest)) {
        if (unlinkat(cache->dir, oldest.file, 0) != 0)
            return false;
        find_oldest(cache, &oldest);
    }
    return true;
}

/* ---- Writing --------------------------------------------------------------------------------------------------- */

/* With the lock. What is there is replaced, a folder too if it is empty. */
static bool write_file(struct cache *cache, const char *file, const char *bytes, size_t n)
{
    char draft[FILES_DRAFT_BYTES];
    int fd = files_write_draft(cache->dir, draft, bytes, n, NULL);
    if (fd < 0)
        return false;
    bool done = renameat(cache->dir, draft, cache->dir, file) == 0;
    if (!done && errno == EISDIR && unlinkat(cache->dir, file, AT_REMOVEDIR) == 0)
        done = renameat(cache->dir, draft, cache->dir, file) == 0;
    int kept = errno;
    if (!done)
        unlinkat(cache->dir, draft, 0);
    close(fd);
    errno = kept;
    return done;
}

/* Whether the file has n bytes and may be read. What is in them is found when they are read. */
static bool has_file(const struct cache *cache, const char *file, size_t n)
{
    struct stat status;
    int fd = openat(cache->dir, file, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    bool is_there =
        fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && (uint64_t)status.st_size == (uint64_t)n;
    files_close(fd);
    return is_there;
}

/* With the lock. */
static bool write_blob(struct cache *cache, const char *file, const char *bytes, size_t n)
{
    struct oldest unwanted;
    struct stat status;
    bool had_any = fstatat(cache->dir, file, &status, AT_SYMLINK_NOFOLLOW) == 0;
    if (!write_file(cache, file, bytes, n))
        return false;
    cache->n_bytes += n;
    if (had_any)
        find_oldest(cache, &unwanted); /* counts again: its size was another one */
    return true;
}

void cache_write(struct cache *cache, const char *sha256, const char *bytes, size_t n)
{
    char file[FILE_NAME_BYTES];
    print_file(file, sha256);
    pthread_mutex_lock(&cache->lock);
    if (n <= cache->bytes_max && !has_file(cache, file, n)) {
        if (make_room(cache, n) && write_blob(cache, file, bytes, n))
            cache->last_error = 0;
        else
            note_failure(cache);
    }
    pthread_mutex_unlock(&cache->lock);
}

void cache_write_index(struct cache *cache, const char *text, size_t n)
{
    pthread_mutex_lock(&cache->lock);
    if (!write_file(cache, INDEX, text, n))
        note_failure(cache);
    pthread_mutex_unlock(&cache->lock);
}

/* ---- The whole ------------------------------------------------------------------------------------------------- */

struct cache_figures cache_figures(struct cache *cache)
{
    return (struct cache_figures){.n_hits = atomic_load(&cache->n_hits),
                                  .n_misses = atomic_load(&cache->n_misses),
                                  .n_spoiled = atomic_load(&cache->n_spoiled),
                                  .n_failed = atomic_load(&cache->n_failed),
                                  .n_bytes = atomic_load(&cache->n_bytes)};
}

struct cache *cache_new(const char *folder, uint64_t bytes_max, cache_is_used *is_used, void *self)
{
    size_t n = strlen(folder) + 1;
    struct oldest oldest;
    struct cache *cache = calloc(1, sizeof *cache + n);
    if (!cache)
        return NULL;
    memcpy(cache->folder, folder, n);
    pthread_mutex_init(&cache->lock, NULL);
    cache->bytes_max = bytes_max;
    cache->is_used = is_used;
    cache->self = self;
    cache->dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (cache->dir >= 0 && files_clean(folder)) {
        find_oldest(cache, &oldest);
        return cache;
    }
    int kept = errno;
    cache_free(cache);
    errno = kept;
    return NULL;
}

void cache_free(struct cache *cache)
{
    if (!cache)
        return;
    files_close(cache->dir);
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}

void cache_print_metrics(struct cache *cache, FILE *out)
{
    struct cache_figures figures = cache_figures(cache);
    metrics_print_one(out, "posenc_store_cache_hits_total", "counter", "Blobs read from --store-cache.",
                      (double)figures.n_hits);
    metrics_print_one(out, "posenc_store_cache_misses_total", "counter", "Blobs that --store-cache did not have.",
                      (double)figures.n_misses);
    metrics_print_one(out, "posenc_store_cache_spoiled_total", "counter",
                      "Blobs of --store-cache that were not whole, and were removed.", (double)figures.n_spoiled);
    metrics_print_one(out, "posenc_store_cache_failures_total", "counter",
                      "Files that could not be written to --store-cache.", (double)figures.n_failed);
    metrics_print_one(out, "posenc_store_cache_bytes", "gauge", "Bytes of the blobs in --store-cache.",
                      (double)figures.n_bytes);
}
