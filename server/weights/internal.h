/* Stored weights with their table and store, and the functions by which the files of this folder work on them, lowest
 * file first.
 *
 * A name is busy while a thread reads, writes or removes it in the store, and other threads that want to do so wait for
 * it. So for each name, memory changes in the order in which this server has seen the store change. */
#ifndef SERVER_WEIGHTS_INTERNAL_H
#define SERVER_WEIGHTS_INTERNAL_H

#include "server/weights/weights.h"

#include <pthread.h>
#include <stdatomic.h>

enum { PASSED_MAX = 1024, ABSENT_MAX = 256 };

/* A file of the store that was passed over, and of which version. Such a file is not read again while it stays the
 * same, and is logged once. */
struct passed {
    char name[STORE_NAME_BYTES], version[STORE_VERSION_BYTES];
    bool is_final; /* it is wrong; otherwise there was no room for it, or it could not be read */
};

/* A name that was not there. */
struct absent {
    char name[STORE_NAME_BYTES];
    uint64_t at; /* ns; 0: this place is free */
};

/* On the stack of the thread that works on the name. */
struct busy {
    const char *name;
    struct busy *next;
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
    struct busy *busy;
    struct passed *passed; /* [PASSED_MAX], NULL until one is needed */
    size_t n_passed;       /* since the start or weights_reread; the first PASSED_MAX are kept, then the oldest go */
    struct absent absent[ABSENT_MAX];
    size_t n_absent;

    pthread_mutex_t looking; /* held while memory and store are compared; refresh.c */
    pthread_t thread;
    bool has_thread;
    atomic_bool is_stopping;
};

/* ---- names.c --------------------------------------------------------------------------------------------------- */

/* With the lock. Waits until a name is no longer busy, or weights_stop, or for ms; may return early. */
void weights_wait_for_change(struct weights *w, uint64_t ms);
/* The name is busy from here to weights_busy_end; waits while another thread has it. name: borrowed until then. Not on
 * an I/O thread. */
void weights_busy_begin(struct weights *w, struct busy *busy, const char *name);
void weights_busy_end(struct weights *w, const struct busy *busy);

/* Whether this version was passed over because it is wrong. */
bool weights_was_passed(struct weights *w, const struct store_entry *entry);
void weights_forget_passed(struct weights *w);
/* Logs it, unless this version of the name was passed over before. version "": it is not known. */
void weights_pass_over(struct weights *w, const char *name, const char *version, bool is_final, const char *why);
void weights_note_refused(struct weights *w, const char *why); /* the store refuses to read names; logs it likewise */

/* Whether the store said so less than its absent_ns ago. */
bool weights_was_absent(struct weights *w, const char *name);
void weights_note_absent(struct weights *w, const char *name);

/* ---- refresh.c; these need a store ----------------------------------------------------------------------------- */

/* Brings one name, which is busy, in line with the store. If it cannot be read, memory keeps what it has. */
enum api_found weights_fetch(struct weights *w, const char *name);
/* Reads what is there before the first request; nothing to do without a store. False: why[STORE_WHY_BYTES]. */
bool weights_read_first(struct weights *w, char *why);

#endif
