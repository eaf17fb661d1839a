/* Stored weights and presets in memory, and their comparison with a store. Lowest file first; other rooms use the
 * sections weights.c and stored.c. */
#ifndef SERVER_STORE_WEIGHTS_H
#define SERVER_STORE_WEIGHTS_H

#include "api/api.h"
#include "server/process/process.h"
#include "server/store/store.h"

#include <pthread.h>
#include <stdatomic.h>

/* ---- weights.c --------------------------------------------------------------------------------------------------- */

/* Stored weights, and likewise stored presets: files in memory, found by name, and also in a folder or a bucket that
 * other servers may change (server/store/). api/ reaches them through struct api_store (api/api.h) and parses the
 * contents of the files; here they are plain bytes. */

struct weights;

/* The nearest name is found by comparing with every name: half a millisecond for this many. */
enum { WEIGHTS_ERROR_BYTES = 512, WEIGHTS_FILES_MAX = 4096 };

struct weights_settings {
    const struct api_contents *contents; /* what the files are */
    struct store *store;                 /* taken, also on failure; NULL: memory only */
    uint64_t bytes_max;                  /* of all files together */
    const char *limit;                   /* the flag that sets it; NULL: none does */
    size_t files_max;                    /* at most WEIGHTS_FILES_MAX */
    bool is_beside;                      /* other weights_new of the same store log whether it answers */
    uint64_t refresh_ms; /* how often the store is compared with the memory; 0: only by weights_reread */
};

/* Reads the files of the store, or, if it may be away, those that this machine has kept of it. NULL: error[] of
 * WEIGHTS_ERROR_BYTES gives the reason. */
struct weights *weights_new(const struct weights_settings *settings, char *error);
/* Begins to refresh. False: no thread. */
bool weights_start(struct weights *weights);
/* Operations on the store that are in progress and later ones fail at once, and refreshing ends. NULL is accepted. */
void weights_drain(struct weights *weights); /* requests wait for a second at most from here on */
void weights_stop(struct weights *weights);
void weights_free(struct weights *weights); /* call it when no file is held any more; NULL is accepted */

const struct api_store *weights_store(const struct weights *weights); /* borrowed until weights_free */

/* Brings the memory in line with the store; a file that cannot be read keeps its old contents. Logs the result. May
 * take as long as reading the whole store. Any thread. */
void weights_reread(struct weights *weights);

/* ---- table.c ----------------------------------------------------------------------------------------------------- */

/* Stored files in memory: reference-counted files in a table sorted by name. Any thread; no call waits for more than
 * another look-up. */

enum { TABLE_FILES_MAX = WEIGHTS_FILES_MAX };

struct file {
    struct api_stored_file base; /* must be first: api/ holds its address */
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
size_t table_cards(struct table *table, const struct api_stored_file **cards);

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

/* ---- names.c, refresh.c, fetches.c ------------------------------------------------------------------------------- */

/* Stored weights with their table and store, and the functions by which the files of this folder work on them, lowest
 * file first.
 *
 * A name is busy while a thread reads, writes or removes it in the store, and other threads that want to do so wait for
 * it. So for each name, memory changes in the order in which this server has seen the store change.
 *
 * A store is read by reader threads, a few at a time: a request waits for its result and can give up, while the reading
 * goes on for the next one. */

enum { PASSED_MAX = 1024, ABSENT_MAX = 256 };

/* Requests that wait for one name; further ones are refused. Twenty guarded writers of one name at two servers fit. */
enum { NAME_WAITERS_MAX = 16 };

/* Weights and presets together leave some of the store's 16 connections to lists, names and changes. */
enum { READERS_MAX = 6, LISTED_READERS_MAX = 4 };

/* Why a file is not read again: it may change or find room at any time; the store has it with other bytes, which
 * another server can mend without a new version; it is wrong. */
enum passed_as { PASSED_ONCE, PASSED_SPOILED, PASSED_WRONG };

/* A spoiled file is read again after this time, or after refresh_ms if that is longer. */
enum { SPOILED_MS = 30 * 1000 };

/* A file of the store that was passed over, and of which version. Such a file is not read again while it stays the
 * same, and is logged once. */
struct passed {
    char name[STORE_NAME_BYTES], version[STORE_VERSION_BYTES];
    enum passed_as as;
    uint64_t at; /* ns */
};

/* A name that was not there. */
struct absent {
    char name[STORE_NAME_BYTES];
    uint64_t at; /* ns; 0: this place is free */
};

/* On the stack of the thread that works on the name, or waits for it. */
struct busy {
    const char *name;
    struct busy *next;
};

/* A name that is to be read, or is being read, from the store. */
struct fetch {
    char name[STORE_NAME_BYTES], version[STORE_VERSION_BYTES];
    uint64_t since; /* with version: of the list (table_is_old) */
    bool is_listed; /* a comparison has found it; is_wanted: a request asks for it */
    bool is_wanted, is_begun, is_done;
    size_t n_waiting; /* the last one frees it, if it is done */
    enum api_found found;
    struct fetch *next;
};

struct weights {
    struct api_store base;
    struct table *table; /* owned */
    struct store *store; /* owned; NULL: memory only */
    uint64_t refresh_ms;
    bool is_beside;
    char too_large[96]; /* why a file is passed over */

    pthread_mutex_t lock; /* protects the fields of this paragraph; names.c */
    pthread_cond_t change;
    struct busy *busy, *waiting;
    struct fetch *fetches; /* not done; the oldest first */
    size_t n_readers, n_listed_readers;
    bool wants_figures;    /* log them when all that a comparison has found is read */
    struct passed *passed; /* [PASSED_MAX], NULL until one is needed */
    size_t n_passed;       /* since the start or weights_reread; the first PASSED_MAX are kept, then the oldest go */
    struct absent absent[ABSENT_MAX];
    size_t n_absent;

    pthread_mutex_t looking; /* held while memory and store are compared; refresh.c */
    pthread_t thread;
    bool has_thread;
    atomic_bool is_draining, is_stopping;
};

/* ---- names.c --------------------------------------------------------------------------------------------------- */

/* With the lock. Waits until a name is no longer busy, or weights_stop, or for ms; may return early. */
void weights_wait_for_change(struct weights *w, uint64_t ms);
/* The name is busy from here to weights_busy_end; waits while another thread has it. name: borrowed until then. False:
 * too many wait for it, it took too long, or the caller's work is cancelled (pe_is_cancelled). Not on an I/O thread. */
bool weights_busy_begin(struct weights *w, struct busy *busy, const char *name);
bool weights_busy_try(struct weights *w, struct busy *busy, const char *name); /* does not wait */
void weights_busy_end(struct weights *w, const struct busy *busy);

/* With the lock: for what needs more than one step under it. */
bool weights_is_busy(const struct weights *w, const char *name);
void weights_busy_add(struct busy **list, struct busy *busy, const char *name);
void weights_busy_remove(struct busy **list, const struct busy *busy);
/* With the lock, which it releases meanwhile. Waits until is_over(w, what), as one of those that wait for the name.
 * False: as for weights_busy_begin. */
bool weights_wait_until(struct weights *w, const char *name, bool (*is_over)(struct weights *w, const void *what),
                        const void *what);

/* Whether this version need not be read again: PASSED_ONCE if it is to be read. */
enum passed_as weights_was_passed(struct weights *w, const struct store_entry *entry);
void weights_forget_passed(struct weights *w, const char *name); /* NULL: all */
/* Logs it, unless this version of the name was passed over before. version "": it is not known. */
void weights_pass_over(struct weights *w, const char *name, const char *version, enum passed_as as, const char *why);
void weights_note_refused(struct weights *w, const char *why); /* the store refuses to read names; logs it likewise */

/* Whether the store reported it less than its absent_ns ago. */
bool weights_was_absent(struct weights *w, const char *name);
void weights_note_absent(struct weights *w, const char *name);

/* ---- fetches.c; from here on, all need a store ----------------------------------------------------------------- */

typedef enum store_result weights_reader(void *self, const char *name, struct store_reading *reading, char *why);
/* Brings one name, which is busy, in line with the store. If it cannot be read, memory keeps what it has. read: a
 * function of the store. With is_light, it reads no file: API_FOUND_LATER if one has to be read. */
enum api_found weights_read(struct weights *w, const char *name, weights_reader *read, bool is_light);

/* ---- fetches.c ------------------------------------------------------------------------------------------------- */

/* Waits until a reader has brought the name in line with the store. *is_fresh: it began after this call. */
enum api_found weights_fetch(struct weights *w, const char *name, bool *is_fresh);
/* Has readers read an entry of a list, unless its name is waiting for that already. */
void weights_fetch_listed(struct weights *w, const struct store_entry *entry, uint64_t since);
/* Logs the figures when all that a comparison has found is read, and waits for at most ms until then. */
void weights_wait_for_listed(struct weights *w, uint64_t ms);
void weights_end_readers(struct weights *w); /* after is_stopping is set; waits for them */
void weights_drop_fetches(struct weights *w);
void weights_log_figures(const struct weights *w);

/* ---- refresh.c ------------------------------------------------------------------------------------------------- */

/* Reads what is there before the first request; nothing to do without a store. False: why[STORE_WHY_BYTES]. */
bool weights_read_first(struct weights *w, char *why);

/* ---- stored.c ---------------------------------------------------------------------------------------------------- */

/* The stored weights and presets of this process, and the folder or bucket that the options name for them. */

struct stored {
    struct weights *weights, *presets; /* owned */
    struct store *bucket; /* the store of weights with --store, which is also that of presets; owned by weights */
};

/* Opens both and reads what they hold. False: the log gives the reason; what has been opened is for stored_free all the
 * same.
 */
bool stored_open(struct stored *stored, const struct options *options);
bool stored_start(struct stored *stored); /* begins to refresh. False: no thread */
void stored_drain(struct stored *stored); /* requests wait for the store for a second at most from here on */
void stored_stop(
    struct stored *stored); /* call it before loops_free, which waits for jobs: one may wait for the store */
void stored_free(struct stored *stored); /* when nothing holds a stored file any more, see disposal_finish */

/* --store-sweep: prints what was removed of the bucket, to standard output. False: why not is on standard error. */
bool stored_sweep(const struct options *options);

#endif
