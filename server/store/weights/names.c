/* Owns what is known of names apart from their files: which are busy, which files of the store were passed over, and
 * which names were not there.
 *
 * The problem: an operation of a store takes from microseconds to minutes, and several threads may want one name at the
 * same time. Memory has to change in the order in which the store did, so one thread at a time works on a name. With a
 * mutex for each name, those that wait could not end their wait when their client disconnects. So a name is busy while
 * it is in a list, by a record on the stack of the thread that works on it. Others wait on one condition variable for
 * all names, and wake at intervals to see whether they are still wanted; with a store, at most NAME_WAITERS_MAX wait
 * for one name. A wait ends after PATIENCE, counted from when the first of equal requests began to wait, so that the
 * followers of one that has given up do not begin it anew.
 *
 * What failed is remembered, too, because asking again costs a request to the store or a download: a file that is wrong
 * is not read again while its version stays the same, one with other bytes than the store states not for half a minute,
 * and a name that was not there is not looked for again for the store's absent_ns (negative caching, RFC 2308). Both
 * lists have a fixed size and lose their oldest entries, so that clients that ask for invented names do not fill
 * memory.
 *
 * Invariant: a name is busy for at most one thread, and weights.lock is never held during an operation of the store. */
#include "server/store/weights/weights.h"

#include "core/inside.h"
#include "server/process/process.h"
#include "server/loop/loop.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A request that has waited for so long is refused: reading may take a minute and more, and goes on. */
#define PATIENCE (15 * CLOCK_SECOND)
/* Likewise when the server drains: what a quick store has is answered still. */
#define LAST_PATIENCE CLOCK_SECOND

/* Between two looks whether the caller's work was cancelled. In memory only, a name is busy for less. */
enum { WAIT_MS = 40, SHORT_WAIT_MS = 2 };

/* ---- Names that are busy --------------------------------------------------------------------------------------- */

bool weights_is_busy(const struct weights *w, const char *name)
{
    const struct busy *busy = w->busy;
    while (busy && strcmp(busy->name, name) != 0)
        busy = busy->next;
    return busy;
}

void weights_busy_add(struct busy **list, struct busy *busy, const char *name)
{
    *busy = (struct busy){.name = name, .next = *list};
    *list = busy;
}

void weights_busy_remove(struct busy **list, const struct busy *busy)
{
    while (*list != busy)
        list = &(*list)->next;
    *list = busy->next;
}

void weights_wait_for_change(struct weights *w, uint64_t ms)
{
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    uint64_t ns = (uint64_t)end.tv_nsec + ms * CLOCK_MS;
    end.tv_sec += (time_t)(ns / CLOCK_SECOND);
    end.tv_nsec = (long)(ns % CLOCK_SECOND);
    pthread_cond_timedwait(&w->change, &w->lock, &end);
}

/* With the lock. */
static size_t n_waiting(const struct weights *w, const char *name)
{
    size_t n = 0;
    for (const struct busy *waiting = w->waiting; waiting; waiting = waiting->next)
        n += strcmp(waiting->name, name) == 0;
    return n;
}

/* A worker that is not away lets others have its turn. */
bool weights_wait_until(struct weights *w, const char *name, bool (*is_over)(struct weights *w, const void *what),
                        const void *what)
{
    struct busy waiting;
    uint64_t none = 0, *job_since = job_waits_since(), *since = job_since ? job_since : &none;
    *since = *since ? *since : clock_now(); /* an equal request that has left may have begun the wait */
    bool goes_on = !w->store || n_waiting(w, name) < NAME_WAITERS_MAX;
    weights_busy_add(&w->waiting, &waiting, name);
    while (goes_on && !is_over(w, what)) {
        weights_wait_for_change(w, w->store ? WAIT_MS : SHORT_WAIT_MS);
        pthread_mutex_unlock(&w->lock);
        job_wait_on();
        uint64_t patience = atomic_load(&w->is_draining) ? LAST_PATIENCE : PATIENCE;
        goes_on = clock_now() - *since < patience && !atomic_load(&w->is_stopping) && !pe_is_cancelled();
        pthread_mutex_lock(&w->lock);
    }
    weights_busy_remove(&w->waiting, &waiting);
    bool is_done = is_over(w, what);
    if (is_done)
        *since = 0;
    return is_done;
}

static bool is_free(struct weights *w, const void *name) { return !weights_is_busy(w, name); }

bool weights_busy_begin(struct weights *w, struct busy *busy, const char *name)
{
    pthread_mutex_lock(&w->lock);
    bool begins = is_free(w, name) || weights_wait_until(w, name, is_free, name);
    if (begins)
        weights_busy_add(&w->busy, busy, name);
    pthread_mutex_unlock(&w->lock);
    return begins;
}

bool weights_busy_try(struct weights *w, struct busy *busy, const char *name)
{
    pthread_mutex_lock(&w->lock);
    bool begins = is_free(w, name);
    if (begins)
        weights_busy_add(&w->busy, busy, name);
    pthread_mutex_unlock(&w->lock);
    return begins;
}

void weights_busy_end(struct weights *w, const struct busy *busy)
{
    pthread_mutex_lock(&w->lock);
    weights_busy_remove(&w->busy, busy);
    pthread_cond_broadcast(&w->change);
    pthread_mutex_unlock(&w->lock);
}

/* ---- What was passed over, and what is not there --------------------------------------------------------------- */

/* With the lock. NULL: not passed over. */
static struct passed *passed_find(const struct weights *w, const char *name)
{
    size_t n = w->n_passed < PASSED_MAX ? w->n_passed : PASSED_MAX;
    for (size_t i = 0; i < n; i++)
        if (strcmp(w->passed[i].name, name) == 0)
            return &w->passed[i];
    return NULL;
}

enum passed_as weights_was_passed(struct weights *w, const struct store_entry *entry)
{
    pthread_mutex_lock(&w->lock);
    const struct passed *passed = passed_find(w, entry->name);
    enum passed_as as = passed && strcmp(passed->version, entry->version) == 0 ? passed->as : PASSED_ONCE;
    uint64_t spoiled_ms = w->refresh_ms > SPOILED_MS ? w->refresh_ms : SPOILED_MS;
    if (as == PASSED_SPOILED && clock_now() - passed->at >= spoiled_ms * CLOCK_MS)
        as = PASSED_ONCE;
    pthread_mutex_unlock(&w->lock);
    return as;
}

void weights_forget_passed(struct weights *w, const char *name)
{
    pthread_mutex_lock(&w->lock);
    struct passed *passed = name ? passed_find(w, name) : NULL;
    if (passed)
        *passed->version = '\0', passed->as = PASSED_ONCE;
    else if (!name)
        w->n_passed = 0;
    pthread_mutex_unlock(&w->lock);
}

/* Without memory for the list, it is logged every time. */
static bool is_new(struct weights *w, const char *name, const char *version, enum passed_as as)
{
    pthread_mutex_lock(&w->lock);
    if (!w->passed)
        w->passed = calloc(PASSED_MAX, sizeof *w->passed);
    struct passed *passed = w->passed ? passed_find(w, name) : NULL;
    bool is_known = passed && strcmp(passed->version, version) == 0;
    if (!passed && w->passed)
        passed = &w->passed[w->n_passed++ % PASSED_MAX];
    if (passed) {
        snprintf(passed->name, sizeof passed->name, "%s", name);
        snprintf(passed->version, sizeof passed->version, "%s", version);
        passed->as = as;
        passed->at = clock_now();
    }
    pthread_mutex_unlock(&w->lock);
    return !is_known;
}

void weights_pass_over(struct weights *w, const char *name, const char *version, enum passed_as as, const char *why)
{
    if (is_new(w, name, version, as))
        log_warn("%s %s of %s are passed over: %s", w->base.contents->what, name, w->store->place, why);
}

/* Clients may ask for any name, so this is not logged for each. */
void weights_note_refused(struct weights *w, const char *why)
{
    if (is_new(w, "", why, PASSED_ONCE))
        log_error("%s: names in %s cannot be read: %s", w->base.contents->what, w->store->place, why);
}

bool weights_was_absent(struct weights *w, const char *name)
{
    uint64_t now = clock_now();
    bool is_known = false;
    pthread_mutex_lock(&w->lock);
    for (size_t i = 0; i < ABSENT_MAX && !is_known; i++)
        is_known =
            w->absent[i].at && now - w->absent[i].at < w->store->absent_ns && strcmp(w->absent[i].name, name) == 0;
    pthread_mutex_unlock(&w->lock);
    return is_known;
}

void weights_note_absent(struct weights *w, const char *name)
{
    if (!w->store->absent_ns)
        return;
    pthread_mutex_lock(&w->lock);
    struct absent *absent = &w->absent[w->n_absent++ % ABSENT_MAX];
    snprintf(absent->name, sizeof absent->name, "%s", name);
    absent->at = clock_now();
    pthread_mutex_unlock(&w->lock);
}
