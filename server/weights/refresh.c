/* Owns how memory follows the store: one name, all names, and all names at intervals. */
#define _GNU_SOURCE /* pthread_setname_np */
#include "server/weights/internal.h"

#include "server/log.h"
#include "server/loop/clock.h"
#include "server/weights/table.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- One name; it is busy -------------------------------------------------------------------------------------- */

typedef enum store_result read_store(void *self, const char *name, struct store_reading *reading, char *why);

/* Takes the bytes that were read. */
static enum api_found keep(struct weights *w, const char *name, const struct store_reading *reading)
{
    char why[WEIGHTS_ERROR_BYTES] = "";
    void *contents = w->face.contents->read(reading->bytes, reading->n, why, sizeof why);
    struct file *file = file_new(name, reading->bytes, reading->n, w->face.contents, contents);
    if (!file) {
        bool is_wrong = *why;
        weights_pass_over(w, name, reading->found, is_wrong, is_wrong ? why : "no memory");
        return is_wrong ? API_FOUND_NOTHING : API_FOUND_UNKNOWN;
    }
    enum api_stored stored = table_reserve(w->table, name, reading->n);
    if (stored <= API_STORED_REPLACED) {
        table_put(w->table, file, reading->found);
        return API_FOUND;
    }
    file_drop(file);
    weights_pass_over(w, name, reading->found, false, stored == API_STORED_FULL ? w->too_large : "too many files");
    return API_FOUND_TOO_LARGE;
}

/* What the store has under this name is in memory afterwards. If it cannot be read, memory keeps what it has. */
static enum api_found fetch(struct weights *w, const char *name, read_store *read)
{
    char version[STORE_VERSION_BYTES], sha256[STORE_DIGEST_BYTES], why[STORE_WHY_BYTES] = "";
    table_describe(w->table, name, version, sha256);
    struct store_reading reading = {.version = version, .sha256 = sha256, .n_max = table_room(w->table, name)};
    switch (read(w->store->self, name, &reading, why)) {
    case STORE_DONE:
        if (strcmp(reading.digest, sha256) != 0)
            return keep(w, name, &reading);
        free(reading.bytes);
        table_revise(w->table, name, reading.found);
        return API_FOUND;
    case STORE_SAME: table_revise(w->table, name, reading.found); return API_FOUND;
    case STORE_ABSENT:
        table_remove(w->table, name);
        weights_note_absent(w, name);
        return API_FOUND_NOTHING;
    case STORE_NO_FILE: weights_pass_over(w, name, reading.found, true, why); return API_FOUND_NOTHING;
    case STORE_TOO_LARGE: weights_pass_over(w, name, "", false, w->too_large); return API_FOUND_TOO_LARGE;
    case STORE_NO_MEMORY: weights_pass_over(w, name, "", false, "no memory"); return API_FOUND_UNKNOWN;
    case STORE_REFUSED: weights_note_refused(w, why); return API_FOUND_UNKNOWN;
    default:
        if (!atomic_load(&w->is_stopping) &&
            (!w->store->may_be_away || *reading.found)) /* refresh logs the rest once */
            weights_pass_over(w, name, why, false, why);
        return API_FOUND_UNKNOWN;
    }
}

enum api_found weights_fetch(struct weights *w, const char *name) { return fetch(w, name, w->store->read); }

/* ---- All names ------------------------------------------------------------------------------------------------- */

/* Reads the entries of a list that are not in memory in this version. */
static void fetch_listed(struct weights *w, const struct store_list *list, uint64_t since, read_store *read)
{
    for (size_t i = 0; i < list->n && !atomic_load(&w->is_stopping); i++) {
        const struct store_entry *entry = &list->entries[i];
        struct busy busy;
        if (!table_is_old(w->table, entry, since) || weights_was_passed(w, entry))
            continue;
        weights_busy_begin(w, &busy, entry->name);
        if (table_is_old(w->table, entry, since))
            fetch(w, entry->name, read);
        weights_busy_end(w, &busy);
    }
}

/* Files that have disappeared are removed first, to free their memory. If it is not STORE_DONE: why. */
static enum store_result compare(struct weights *w, char *why)
{
    struct store_list list;
    uint64_t since = table_now(w->table);
    enum store_result result = w->store->list(w->store->self, &list, why);
    if (result == STORE_NO_MEMORY)
        snprintf(why, STORE_WHY_BYTES, "no memory");
    if (result != STORE_DONE)
        return result;
    table_keep_listed(w->table, &list, since);
    fetch_listed(w, &list, since, w->store->read);
    store_list_drop(&list);
    return result;
}

static void log_figures(const struct weights *w)
{
    size_t n_files;
    uint64_t n_bytes;
    table_figures(w->table, &n_files, &n_bytes);
    log_info("%s: %zu files, %llu bytes, from %s", w->face.contents->what, n_files, (unsigned long long)n_bytes,
             w->store->place);
}

/* What is there before the first request. */
bool weights_read_first(struct weights *w, char *why)
{
    struct store_list list;
    if (!w->store)
        return true;
    if (!w->store->may_be_away && compare(w, why) != STORE_DONE)
        return false;
    if (w->store->recall && w->store->recall(w->store->self, &list, why) == STORE_DONE) {
        fetch_listed(w, &list, table_now(w->table), w->store->read_kept);
        store_list_drop(&list);
        weights_forget_passed(w);
    }
    if (!w->store->may_be_away || w->store->recall)
        log_figures(w);
    return true;
}

void weights_reread(struct weights *w)
{
    char why[STORE_WHY_BYTES] = "";
    if (!w->store)
        return;
    pthread_mutex_lock(&w->looking);
    weights_forget_passed(w);
    if (compare(w, why) == STORE_DONE)
        log_figures(w);
    else
        log_error("%s: %s cannot be read: %s; what was stored stays", w->face.contents->what, w->store->place, why);
    pthread_mutex_unlock(&w->looking);
}

/* ---- At intervals ---------------------------------------------------------------------------------------------- */

/* One line when the store stops answering, one when it answers again. Of several that use one store, one says so; what
 * the store refuses, each says for itself. */
static void refresh(struct weights *w, bool *was_away, bool is_first)
{
    char why[STORE_WHY_BYTES] = "";
    pthread_mutex_lock(&w->looking);
    enum store_result result = compare(w, why);
    pthread_mutex_unlock(&w->looking);
    if (atomic_load(&w->is_stopping))
        return;
    bool is_away = result != STORE_DONE && (!w->is_beside || result == STORE_REFUSED);
    if (is_away && !*was_away)
        log_error("%s: %s cannot be read: %s; what is in memory is served", w->face.contents->what, w->store->place,
                  why);
    else if (result == STORE_DONE && (is_first || *was_away))
        log_figures(w);
    *was_away = is_away;
}

static void *refresh_at_intervals(void *self)
{
    struct weights *w = self;
    bool was_away = false;
    pthread_setname_np(pthread_self(), w->face.contents->what);
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
}
