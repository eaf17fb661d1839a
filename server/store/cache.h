/* Blobs of a store that are kept on this machine, as <sha256>.safetensors, and the list of names that belongs to them,
 * as `index`. What was used longest ago is removed when they would have more bytes than allowed. A disk that is full or
 * broken costs only the cache. Any thread. */
#ifndef SERVER_STORE_CACHE_H
#define SERVER_STORE_CACHE_H

#include "server/store/store.h"

struct cache;

/* Returns whether a blob belongs to a name; such blobs are removed last. */
typedef bool cache_is_used(void *self, const char *sha256);

/* folder is copied. NULL: errno. */
struct cache *cache_new(const char *folder, uint64_t bytes_max, cache_is_used *is_used, void *self);
void cache_free(struct cache *cache); /* NULL is accepted */

/* The n bytes of this digest (freed with free). NULL: it has no such blob, or it was spoiled, and is removed. */
char *cache_read(struct cache *cache, const char *sha256, size_t n);
void cache_write(struct cache *cache, const char *sha256, const char *bytes, size_t n);

/* The text of the index, which ends with a NUL (freed with free); NULL: there is none. */
char *cache_read_index(struct cache *cache);
void cache_write_index(struct cache *cache, const char *text, size_t n);

struct cache_figures {
    uint64_t n_hits, n_misses, n_spoiled, n_failed, n_bytes;
};
struct cache_figures cache_figures(struct cache *cache);

#endif
