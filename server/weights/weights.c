/* Owns the order in which memory and store change: what a request looks up, puts and removes, and the comparison with
 * the store at intervals. */
#define _GNU_SOURCE /* pthread_setname_np */
#include "server/weights/internal.h"

#include "server/log.h"
#include "server/loop/clock.h"
#include "server/weights/table.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- From the store to memory; the name is busy ---------------------------------------------------------------- */

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

/* ---- What the language asks ------------------------------------------------------------------------------------ */

static struct file *file_of(const struct api_weights *face) { return (struct file *)(uintptr_t)face; }

static void release(void *self, const struct api_weights *face)
{
    (void)self;
    file_drop(file_of(face));
}

static void hold_card(void *self, const struct api_weights *face)
{
    (void)self;
    file_hold_card(file_of(face));
}

static void drop_card(void *self, const struct api_weights *face)
{
    (void)self;
    file_drop_card(file_of(face));
}

static size_t list(void *self, const struct api_weights **cards)
{
    const struct weights *w = self;
    return table_cards(w->table, cards);
}

static bool nearest(void *self, const char *name, char *near)
{
    const struct weights *w = self;
    return table_nearest(w->table, name, near);
}

static bool is_wanted(const struct file *file, const struct api_wanted *wanted)
{
    return file && (!wanted->sha256 || strcasecmp(file->face.sha256, wanted->sha256) == 0);
}

static enum api_found find_there(struct weights *w, const struct api_wanted *wanted, const struct api_weights **face)
{
    struct busy busy;
    weights_busy_begin(w, &busy, wanted->name);
    struct file *file = table_find(w->table, wanted->name); /* another request may have fetched it meanwhile */
    enum api_found found = is_wanted(file, wanted)                        ? API_FOUND
                           : !file && weights_was_absent(w, wanted->name) ? API_FOUND_NOTHING
                                                                          : fetch(w, wanted->name, w->store->read);
    weights_busy_end(w, &busy);
    file_drop(file);
    if (found == API_FOUND_UNKNOWN || found == API_FOUND_TOO_LARGE)
        return found;
    file = table_find(w->table, wanted->name);
    *face = file ? &file->face : NULL;
    return file ? API_FOUND : API_FOUND_NOTHING;
}

static enum api_found find(void *self, const struct api_wanted *wanted, const struct api_weights **face)
{
    struct weights *w = self;
    if (!api_weight_name_is_valid(wanted->name))
        return API_FOUND_NOTHING; /* it might be a path */
    struct file *file = table_find(w->table, wanted->name);
    if (is_wanted(file, wanted) || (file && !w->store)) {
        *face = &file->face;
        return API_FOUND;
    }
    file_drop(file);
    if (!w->store)
        return API_FOUND_NOTHING;
    return wanted->must_not_block ? API_FOUND_LATER : find_there(w, wanted, face);
}

/* ---- Changes; the name is busy --------------------------------------------------------------------------------- */

static bool allows(const void *guard, const char *sha256) { return api_guard_allows(guard, sha256); }

static struct store_guard store_guard_of(const struct api_guard *guard)
{
    return (struct store_guard){.is_guarded = guard->if_match || guard->if_none_match, .allows = allows, .self = guard};
}

static enum api_stored fail(struct weights *w, const char *name, enum store_result result, const char *what,
                            const char *why)
{
    switch (result) {
    case STORE_ABSENT: table_remove(w->table, name); return API_STORED_ABSENT;
    case STORE_GUARDED: fetch(w, name, w->store->read); return API_STORED_GUARDED; /* memory may be out of date */
    case STORE_NO_MEMORY: return API_STORED_NO_MEMORY;
    case STORE_UNGUARDED: return API_STORED_UNGUARDED;
    default:
        log_error("%s %s: could not be %s %s: %s", w->face.contents->what, name, what, w->store->place, why);
        return API_STORED_FAILED;
    }
}

static enum api_stored put_there(struct weights *w, struct file *file, const struct api_guard *guard)
{
    char why[STORE_WHY_BYTES] = "";
    enum api_stored stored = table_reserve(w->table, file->name, file->face.n_bytes);
    if (stored > API_STORED_REPLACED)
        return stored;
    struct store_writing writing = {
        .bytes = file->bytes, .n = file->face.n_bytes, .sha256 = file->face.sha256, .guard = store_guard_of(guard)};
    enum store_result result = w->store->write(w->store->self, file->name, &writing, why);
    if (result == STORE_DONE) { /* from here on nothing can fail */
        file_hold(file);        /* the table's reference */
        table_put(w->table, file, writing.made);
        return writing.was_there ? API_STORED_REPLACED : API_STORED_NEW;
    }
    table_give_back(w->table, file->face.n_bytes);
    return fail(w, file->name, result, "written to", why);
}

static bool is_allowed_here(struct weights *w, const char *name, const struct api_guard *guard, bool *is_there)
{
    struct file *old = table_find(w->table, name);
    bool is_allowed = api_guard_allows(guard, old ? old->face.sha256 : NULL);
    *is_there = old;
    file_drop(old);
    return is_allowed;
}

static enum api_stored put_here(struct weights *w, struct file *file, const struct api_guard *guard)
{
    bool is_there;
    if (!is_allowed_here(w, file->name, guard, &is_there))
        return API_STORED_GUARDED;
    enum api_stored stored = table_reserve(w->table, file->name, file->face.n_bytes);
    if (stored > API_STORED_REPLACED)
        return stored;
    file_hold(file);
    table_put(w->table, file, "");
    return stored;
}

static enum api_stored put(void *self, const char *name, const char *bytes, size_t n, void *contents,
                           const struct api_guard *guard, const struct api_weights **face)
{
    struct weights *w = self;
    struct busy busy;
    if (n > w->face.bytes_max) {
        w->face.contents->free(contents);
        return API_STORED_FULL;
    }
    char *copy = store_bytes_new(n);
    if (copy)
        memcpy(copy, bytes, n);
    struct file *file = file_new(name, copy, n, w->face.contents, contents);
    if (!file)
        return API_STORED_NO_MEMORY;
    weights_busy_begin(w, &busy, file->name);
    enum api_stored stored = w->store ? put_there(w, file, guard) : put_here(w, file, guard);
    weights_busy_end(w, &busy);
    if (stored <= API_STORED_REPLACED)
        *face = &file->face;
    else
        file_drop(file);
    return stored;
}

static enum api_stored remove_there(struct weights *w, const char *name, const struct api_guard *guard)
{
    char why[STORE_WHY_BYTES] = "";
    struct store_guard there = store_guard_of(guard);
    enum store_result result = w->store->remove(w->store->self, name, &there, why);
    if (result != STORE_DONE)
        return fail(w, name, result, "removed from", why);
    table_remove(w->table, name);
    return API_STORED_REPLACED;
}

static enum api_stored remove_here(struct weights *w, const char *name, const struct api_guard *guard)
{
    bool is_there, is_allowed = is_allowed_here(w, name, guard, &is_there);
    if (!is_there)
        return API_STORED_ABSENT;
    if (!is_allowed)
        return API_STORED_GUARDED;
    table_remove(w->table, name);
    return API_STORED_REPLACED;
}

static enum api_stored remove_file(void *self, const char *name, const struct api_guard *guard)
{
    struct weights *w = self;
    struct busy busy;
    if (!api_weight_name_is_valid(name))
        return API_STORED_ABSENT;
    weights_busy_begin(w, &busy, name);
    enum api_stored stored = w->store ? remove_there(w, name, guard) : remove_here(w, name, guard);
    weights_busy_end(w, &busy);
    return stored;
}

/* ---- At intervals ---------------------------------------------------------------------------------------------- */

static void log_figures(const struct weights *w)
{
    size_t n_files;
    uint64_t n_bytes;
    table_figures(w->table, &n_files, &n_bytes);
    log_info("%s: %zu files, %llu bytes, from %s", w->face.contents->what, n_files, (unsigned long long)n_bytes,
             w->store->place);
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

/* ---- The whole ------------------------------------------------------------------------------------------------- */

/* What is there before the first request. */
static bool read_first(struct weights *w, char *why)
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

static void set_up_locks(struct weights *w)
{
    pthread_condattr_t steady;
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_mutex_init(&w->lock, NULL);
    pthread_mutex_init(&w->looking, NULL);
    pthread_cond_init(&w->change, &steady);
    pthread_condattr_destroy(&steady);
}

struct weights *weights_new(const struct weights_settings *settings, char *error)
{
    char why[STORE_WHY_BYTES] = "no memory";
    struct weights *w = calloc(1, sizeof *w);
    if (w) {
        set_up_locks(w);
        w->store = settings->store;
        w->refresh_ms = settings->refresh_ms;
        w->is_beside = settings->is_beside;
        w->face = (struct api_store){.self = w,
                                     .contents = settings->contents,
                                     .bytes_max = settings->bytes_max,
                                     .limit = settings->limit,
                                     .files_max = settings->files_max,
                                     .place = w->store ? w->store->flag : NULL,
                                     .find = find,
                                     .release = release,
                                     .list = list,
                                     .hold_card = hold_card,
                                     .drop_card = drop_card,
                                     .nearest = nearest,
                                     .put = put,
                                     .remove = remove_file};
        w->table = table_new(settings->bytes_max, settings->files_max);
        if (settings->limit)
            snprintf(w->too_large, sizeof w->too_large, "with them all together would pass %s", settings->limit);
        else
            snprintf(w->too_large, sizeof w->too_large, "with them all together would have more than %llu bytes",
                     (unsigned long long)settings->bytes_max);
    } else {
        store_free(settings->store);
    }
    if (w && w->table && read_first(w, why))
        return w;
    snprintf(error, WEIGHTS_ERROR_BYTES, "%s %.200s: %.200s", w && w->store ? w->store->flag : settings->contents->what,
             w && w->store ? w->store->place : "", why);
    weights_free(w);
    return NULL;
}

void weights_free(struct weights *w)
{
    if (!w)
        return;
    weights_stop(w);
    table_free(w->table);
    store_free(w->store);
    free(w->passed);
    pthread_mutex_destroy(&w->lock);
    pthread_mutex_destroy(&w->looking);
    pthread_cond_destroy(&w->change);
    free(w);
}

const struct api_store *weights_store(const struct weights *w) { return &w->face; }
