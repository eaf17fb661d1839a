/* What folder and bucket have in common: lists, guards, digests. */
#include "server/store/store.h"

#include "server/auth/auth.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64 };

static int compare(const void *left, const void *right)
{
    return strcmp(((const struct store_entry *)left)->name, ((const struct store_entry *)right)->name);
}

struct store_entry *store_list_add(struct store_list *list, const char *name)
{
    if ((list->n & (list->n - 1)) == 0) { /* room doubles at each power of two */
        struct store_entry *more = realloc(list->entries, (list->n ? 2 * list->n : 1) * sizeof *more);
        if (!more)
            return NULL;
        list->entries = more;
    }
    struct store_entry *entry = &list->entries[list->n++];
    *entry = (struct store_entry){.version = ""};
    snprintf(entry->name, sizeof entry->name, "%s", name);
    return entry;
}

void store_list_sort(struct store_list *list)
{
    if (list->n > 1)
        qsort(list->entries, list->n, sizeof *list->entries, compare);
}

static int compare_name(const void *name, const void *entry)
{
    return strcmp(name, ((const struct store_entry *)entry)->name);
}

const struct store_entry *store_list_find(const struct store_list *list, const char *name)
{
    return list->n > 0 ? bsearch(name, list->entries, list->n, sizeof *list->entries, compare_name) : NULL;
}

void store_list_drop(struct store_list *list)
{
    free(list->entries);
    *list = (struct store_list){0};
}

size_t store_place(const void *table, size_t n, const char *(*name_at)(const void *table, size_t i), const char *name,
                   bool *is_there)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(name_at(table, middle), name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *is_there = low < n && strcmp(name_at(table, low), name) == 0;
    return low;
}

bool store_allows(const struct store_guard *guard, const char *sha256)
{
    return !guard->is_guarded || guard->allows(guard->self, sha256);
}

bool store_wants(const struct store_reading *reading, uint64_t n)
{
    return !reading->wants || reading->wants(reading->self, reading, n);
}

char *store_bytes_new(size_t n)
{
    return n < SIZE_MAX / 2 ? aligned_alloc(ALIGNMENT, (n + ALIGNMENT) / ALIGNMENT * ALIGNMENT) : NULL;
}

void store_digest(const char *bytes, size_t n, char *text)
{
    uint8_t sum[DIGEST_BYTES];
    digest_make(bytes, n, sum);
    digest_print(sum, text);
}

bool store_is_digest(const char *text)
{
    return strspn(text, "0123456789abcdef") == STORE_DIGEST_BYTES - 1 && text[STORE_DIGEST_BYTES - 1] == '\0';
}

void store_free(struct store *store)
{
    if (!store)
        return;
    store->free(store->self);
    free(store);
}
