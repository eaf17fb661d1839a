/* A store: a place outside of the process that keeps files by name and that several servers may use at the same time, a
 * folder (folder.h) or a bucket of an S3-compatible store (s3.h). What a file contains is not known here.
 *
 * Every operation may wait for a disk or a network, and may be called from any thread, several at a time, but never
 * from an I/O thread. Names are valid names of weights (api_weight_name_is_valid), so never a path. */
#ifndef SERVER_STORE_H
#define SERVER_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    STORE_VERSION_BYTES = 128,
    STORE_DIGEST_BYTES = 65, /* SHA-256 in lower-case hexadecimal digits, and a NUL */
    STORE_NAME_BYTES = 129,
    STORE_WHY_BYTES = 512
};

enum store_result {
    STORE_DONE,
    STORE_SAME,     /* read: the file is the one that the caller knows */
    STORE_ABSENT,   /* there is no file of that name */
    STORE_GUARDED,  /* the guard does not allow the change; here and below, nothing has changed */
    STORE_NO_FILE,  /* under that name is a folder, or what can have no contents, such as a pipe */
    STORE_UNWANTED, /* read: the caller does not want the bytes */
    STORE_SPOILED,  /* read: the store has other bytes than it states; why[] has the reason */
    STORE_NO_MEMORY,
    STORE_UNGUARDED, /* the store cannot make a change depend on what is there */
    STORE_REFUSED,   /* it answers, but not with what was asked for; why[] has the reason */
    STORE_FAILED     /* it does not answer, why[] has the reason; here and above it is unknown whether a file exists */
};

/* The condition of a change. allows(self, sha256) states whether a file of this digest (NULL: none) may be replaced or
 * removed; it is called while no other server can change the file, or the change is undone by the store otherwise. */
struct store_guard {
    bool is_guarded; /* false: every change is allowed, and allows is not called */
    bool (*allows)(const void *self, const char *sha256);
    const void *self;
};

/* A version names the contents of a file under its name: while it stays the same, so does the file. Another version may
 * have the same contents. */
struct store_entry {
    char name[STORE_NAME_BYTES], version[STORE_VERSION_BYTES];
};

struct store_list {
    struct store_entry *entries; /* sorted by name */
    size_t n;
};
void store_list_drop(struct store_list *list);
/* Borrowed; NULL: not in the list. */
const struct store_entry *store_list_find(const struct store_list *list, const char *name);
/* Adds an entry at the end, without a version. NULL: no memory. */
struct store_entry *store_list_add(struct store_list *list, const char *name);
void store_list_sort(struct store_list *list);

/* A reading: what the caller knows, then what was read. */
struct store_reading {
    const char *version, *sha256; /* of the caller's file; "": none. If they are still right: STORE_SAME */
    /* Asked before a byte is read, when found is known: does the caller want n bytes, and has it room for them? NULL:
     * it does. */
    bool (*wants)(void *self, const struct store_reading *reading, uint64_t n);
    void *self;
    char *bytes; /* aligned to 64; the caller frees it with free; NULL unless STORE_DONE */
    size_t n;
    char digest[STORE_DIGEST_BYTES]; /* of bytes */
    char found[STORE_VERSION_BYTES]; /* the version that was read, also for STORE_SAME */
};

/* A file to be written. */
struct store_writing {
    const char *bytes;
    size_t n;
    const char *sha256;
    struct store_guard guard;
    bool was_there;                 /* out: a file was replaced */
    char made[STORE_VERSION_BYTES]; /* out: its version */
};

struct store {
    void *self;
    const char *flag;   /* the flag that names it, "--weights-dir" */
    const char *place;  /* for the log: the folder, or s3://bucket/prefix */
    bool may_be_away;   /* the server starts and serves also while it does not answer */
    uint64_t absent_ns; /* for so long after a name was not there it need not be looked for again */
    /* why has room for STORE_WHY_BYTES, and is set if the result is STORE_SPOILED, STORE_REFUSED or STORE_FAILED. *list
     * is dropped by the caller if the result is STORE_DONE. */
    enum store_result (*list)(void *self, struct store_list *list, char *why);
    enum store_result (*read)(void *self, const char *name, struct store_reading *reading, char *why);
    enum store_result (*write)(void *self, const char *name, struct store_writing *writing, char *why);
    enum store_result (*remove)(void *self, const char *name, const struct store_guard *guard, char *why);
    /* Reads what is kept on this machine, without waiting for a network: as at the end of the last process. NULL:
     * nothing is kept. */
    enum store_result (*recall)(void *self, struct store_list *list, char *why);
    enum store_result (*read_kept)(void *self, const char *name, struct store_reading *reading, char *why);
    void (*stop)(void *self); /* operations in progress and later ones fail at once; NULL: they are short */
    void (*free)(void *self); /* call it when no operation is in progress */
};
void store_free(struct store *store); /* and what it points to; NULL is accepted */

/* The index in a table sorted by name of the row of that name, or at which to insert it: name_at gives the names of n
 * rows. */
size_t store_place(const void *table, size_t n, const char *(*name_at)(const void *table, size_t i), const char *name,
                   bool *is_there);

bool store_allows(const struct store_guard *guard, const char *sha256);
bool store_wants(const struct store_reading *reading, uint64_t n);
/* Memory for the bytes of a file and one more, aligned to 64 (freed with free). NULL: no memory. */
char *store_bytes_new(size_t n);
void store_digest(const char *bytes, size_t n, char *text); /* [STORE_DIGEST_BYTES] */
bool store_is_digest(const char *text);

#endif
