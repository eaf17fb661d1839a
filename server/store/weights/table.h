/* Stored files in memory: reference-counted files in a table sorted by name. Any thread; no call waits for more than
 * another look-up. */
#ifndef SERVER_STORE_WEIGHTS_TABLE_H
#define SERVER_STORE_WEIGHTS_TABLE_H

#include "api/api.h"
#include "server/store/store.h"
#include "server/store/weights/weights.h"

#include <stdatomic.h>

enum { TABLE_FILES_MAX = WEIGHTS_FILES_MAX };

struct file {
    struct api_weights face; /* must be first: api/ holds its address */
    atomic_size_t n_holders; /* references to the bytes; all references to the bytes together count as one reference to
                                the card */
    atomic_size_t n_cards;
    char name[API_WEIGHT_NAME_MAX + 1];
    char *bytes;
    const struct api_contents *kind;
    void *contents;
    struct table *table; /* which counts the bytes until they are freed; NULL: it was never put */
    uint64_t n_beside;   /* bytes of --max-memory that are given back with them */
    /* Of the table, which alone reads and writes them: */
    char version[STORE_VERSION_BYTES]; /* in the store; "": not in a store */
    uint64_t changed_at;               /* the table's count of changes when it came */
};

/* Of [name, n bytes, digest] with contents. Takes bytes and contents, also on failure. The file has one reference.
 * NULL: no memory, or one of the two is NULL. */
struct file *file_new(const char *name, char *bytes, size_t n, const char *sha256, const struct api_contents *kind,
                      void *contents);
void file_hold(struct file *file);
void file_drop(struct file *file); /* NULL is accepted */
void file_hold_card(struct file *file);
void file_drop_card(struct file *file);

struct table;

struct table *table_new(uint64_t bytes_max, size_t files_max); /* NULL: no memory */
void table_free(struct table *table);                          /* NULL is accepted */

struct file *table_find(struct table *table, const char *name); /* held; NULL: not found */
/* The version and digest of a file, "" if there is none. */
void table_describe(struct table *table, const char *name, char *version, char *sha256);
bool table_nearest(struct table *table, const char *name, char *nearest);
/* Writes the cards of all files, sorted by name, each held, TABLE_FILES_MAX at most. Returns their number. */
size_t table_cards(struct table *table, const struct api_weights **cards);

/* Room for a file that is not in the table yet. */
struct room {
    uint64_t n;
    uint64_t n_beside; /* of them, what does not fit beside the file that it replaces: reserved of --max-memory until
                          the bytes of that file are freed */
};
/* Reserves room for n bytes under name, until table_put or table_give_back. Call it before the bytes are allocated.
 * Returns which of API_STORED_NEW, _REPLACED, _FULL, _TOO_MANY or _NO_ROOM it is; room is reserved for the first two.
 * Bytes count until they are freed: those of a file that was replaced or removed, too, while they are read. */
enum api_stored table_reserve(struct table *table, const char *name, uint64_t n, struct room *room);
void table_give_back(struct table *table, const struct room *room);

/* Takes the caller's reference to file, for which room was reserved; a file of the same name loses the table's. */
void table_put(struct table *table, struct file *file, const char *version, const struct room *room);
void table_remove(struct table *table, const char *name); /* nothing to do if there is none */
/* The same contents have another version now. */
void table_revise(struct table *table, const char *name, const char *version);

/* Counts of changes: what happened after `since` was taken is newer than a list that was asked for then. */
uint64_t table_now(struct table *table);
/* Removes the files that are not in list and came before `since`. */
void table_keep_listed(struct table *table, const struct store_list *list, uint64_t since);
/* Whether the store's version of this name has to be read: it is another, and ours came before `since`. */
bool table_is_old(struct table *table, const struct store_entry *entry, uint64_t since);
void table_figures(struct table *table, size_t *n_files, uint64_t *n_bytes);

#endif
