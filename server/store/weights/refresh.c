/* Owns how memory follows the store as a whole: at the start, at intervals, and when the server is asked to read again
 * (SIGHUP).
 *
 * The problem: other servers and people change the store, and neither a shared folder nor a bucket reports it. Reading
 * everything again would be gigabytes. So the store is listed, with a version for each name (inode, size and time of a
 * file, the tag of an object), and only names whose version is another than in memory are read. What needs no download
 * is done at once: a name that has gone, or the same bytes in another version. The rest is read by readers, beside each
 * other (fetches.c), while requests go on with the files that they hold.
 *
 * A list is old when it arrives: this server may have stored a name meanwhile, and the list would undo that. So the
 * table counts its changes, and `since` is that count before the list was asked for: what came later is newer than the
 * list and is left alone (table.c). A name that was removed meanwhile is read, and found absent.
 *
 * At the start a folder is read before the first request, and if it cannot be listed the server does not start. A
 * bucket may be away: what this machine has kept of it is read, and the comparison follows when the server already
 * serves.
 *
 * Invariant: a store that cannot be listed changes nothing in memory, and a file that cannot be read keeps its old
 * contents. */
#define _GNU_SOURCE /* pthread_setname_np */
#include "server/store/weights/weights.h"

#include "server/process/process.h"
#include "server/loop/loop.h"

#include <signal.h>
#include <stdio.h>

/* A slow file goes on being read after that time. */
enum { REREAD_MS = 1000 };

/* ---- All names ------------------------------------------------------------------------------------------------- */

/* Whether an entry of a list has to be read. */
static bool is_due(struct weights *w, const struct store_entry *entry, uint64_t since)
{
    return table_is_old(w->table, entry, since) && !weights_was_passed(w, entry);
}

/* Before the first request: one after the other, by the calling thread. */
static void read_listed(struct weights *w, const struct store_list *list, weights_reader *read)
{
    uint64_t since = table_now(w->table);
    for (size_t i = 0; i < list->n; i++)
        if (is_due(w, &list->entries[i], since))
            weights_read(w, list->entries[i].name, read, false);
}

/* The same file in another version, or one that has gone: that needs no download, so it is done at once. A name that is
 * busy is looked at by the next comparison. */
static void revise(struct weights *w, const struct store_entry *entry)
{
    char version[STORE_VERSION_BYTES], sha256[STORE_DIGEST_BYTES];
    struct busy busy;
    table_describe(w->table, entry->name, version, sha256);
    if (!*sha256 || !weights_busy_try(w, &busy, entry->name))
        return;
    weights_read(w, entry->name, w->store->read, true);
    weights_busy_end(w, &busy);
}

static void fetch_listed(struct weights *w, const struct store_list *list, uint64_t since)
{
    for (size_t i = 0; i < list->n && !atomic_load(&w->is_stopping); i++)
        if (is_due(w, &list->entries[i], since))
            revise(w, &list->entries[i]);
    for (size_t i = 0; i < list->n && !atomic_load(&w->is_stopping); i++)
        if (is_due(w, &list->entries[i], since))
            weights_fetch_listed(w, &list->entries[i], since);
}

/* Files that have disappeared are removed first, to free their memory. What has to be read is read by readers, beside
 * each other and later. If it is not STORE_DONE: why. */
static enum store_result compare(struct weights *w, bool is_first, char *why)
{
    struct store_list list;
    uint64_t since = table_now(w->table);
    enum store_result result = w->store->list(w->store->self, &list, why);
    if (result == STORE_NO_MEMORY)
        snprintf(why, STORE_WHY_BYTES, "no memory");
    if (result != STORE_DONE)
        return result;
    table_keep_listed(w->table, &list, since);
    if (is_first)
        read_listed(w, &list, w->store->read);
    else
        fetch_listed(w, &list, since);
    store_list_drop(&list);
    return result;
}

/* What is there before the first request. */
bool weights_read_first(struct weights *w, char *why)
{
    struct store_list list;
    if (!w->store)
        return true;
    if (!w->store->may_be_away && compare(w, true, why) != STORE_DONE)
        return false;
    if (w->store->recall && w->store->recall(w->store->self, &list, why) == STORE_DONE) {
        read_listed(w, &list, w->store->read_kept);
        store_list_drop(&list);
        weights_forget_passed(w, NULL);
    }
    if (!w->store->may_be_away || w->store->recall)
        weights_log_figures(w);
    return true;
}

void weights_reread(struct weights *w)
{
    char why[STORE_WHY_BYTES] = "";
    if (!w->store)
        return;
    pthread_mutex_lock(&w->looking);
    weights_forget_passed(w, NULL);
    bool is_done = compare(w, false, why) == STORE_DONE;
    pthread_mutex_unlock(&w->looking);
    if (is_done)
        weights_wait_for_listed(w, REREAD_MS);
    else
        log_error("%s: %s cannot be read: %s; what was stored stays", w->base.contents->what, w->store->place, why);
}

/* ---- At intervals ---------------------------------------------------------------------------------------------- */

/* One line when the store stops answering, one when it answers again. Of several that use one store, one logs it; what
 * the store refuses, each logs for itself. */
static void refresh(struct weights *w, bool *was_away, bool is_first)
{
    char why[STORE_WHY_BYTES] = "";
    pthread_mutex_lock(&w->looking);
    enum store_result result = compare(w, false, why);
    pthread_mutex_unlock(&w->looking);
    if (atomic_load(&w->is_stopping))
        return;
    bool is_away = result != STORE_DONE && (!w->is_beside || result == STORE_REFUSED);
    if (is_away && !*was_away)
        log_error("%s: %s cannot be read: %s; what is in memory is served", w->base.contents->what, w->store->place,
                  why);
    else if (result == STORE_DONE && (is_first || *was_away))
        weights_wait_for_listed(w, 0);
    *was_away = is_away;
}

static void *refresh_at_intervals(void *self)
{
    struct weights *w = self;
    bool was_away = false;
    pthread_setname_np(pthread_self(), w->base.contents->what);
    if (w->store->may_be_away)
        refresh(w, &was_away, true);
    for (uint64_t next = clock_now() + w->refresh_ms * CLOCK_MS; w->refresh_ms && !atomic_load(&w->is_stopping);) {
        uint64_t now = clock_now();
        if (now >= next) {
            refresh(w, &was_away, false);
            next = clock_now() + w->refresh_ms * CLOCK_MS;
            continue;
        }
        pthread_mutex_lock(&w->lock);
        if (!atomic_load(&w->is_stopping))
            weights_wait_for_change(w, (next - now) / CLOCK_MS + 1);
        pthread_mutex_unlock(&w->lock);
    }
    return NULL;
}

bool weights_start(struct weights *w)
{
    sigset_t all, before;
    if (!w->store || (!w->refresh_ms && !w->store->may_be_away))
        return true;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    w->has_thread = pthread_create(&w->thread, NULL, refresh_at_intervals, w) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return w->has_thread;
}

void weights_drain(struct weights *w) { atomic_store(&w->is_draining, true); }

void weights_stop(struct weights *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    atomic_store(&w->is_stopping, true);
    pthread_cond_broadcast(&w->change);
    pthread_mutex_unlock(&w->lock);
    if (w->store && w->store->stop)
        w->store->stop(w->store->self);
    if (w->has_thread)
        pthread_join(w->thread, NULL);
    w->has_thread = false;
    weights_end_readers(w);
}
