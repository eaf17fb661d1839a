/* Stored weights with their table and store, and the functions by which the files of this folder work on them, lowest
 * file first.
 *
 * A name is busy while a thread reads, writes or removes it in the store, and other threads that want to do so wait for
 * it. So for each name, memory changes in the order in which this server has seen the store change.
 *
 * A store is read by reader threads, a few at a time: a request waits for its result and can give up, while the reading
 * goes on for the next one. */
#ifndef SERVER_STORE_WEIGHTS_INTERNAL_H
#define SERVER_STORE_WEIGHTS_INTERNAL_H

#include "server/store/weights/weights.h"

#include <pthread.h>
#include <stdatomic.h>

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
    struct api_store face;
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

/* ---- reading.c; from here on, all need a store ----------------------------------------------------------------- */

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

#endif
