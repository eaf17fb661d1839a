/* Owns the order in which memory and store change: what a request looks up, puts and removes, and the comparison with
 * the store at intervals.
 *
 * A name is busy while a thread reads, writes or removes it in the store, and other threads that want to do so wait for
 * it. So for each name, memory changes in the order in which this server has seen the store change. */
#define _GNU_SOURCE /* pthread_setname_np */
#include "server/weights/weights.h"

#include "server/log.h"
#include "server/loop/clock.h"
#include "server/loop/jobs.h"
#include "server/weights/table.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { PASSED_MAX = 1024, ABSENT_MAX = 256, WAIT_MS = 2 };

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

struct busy {
    const char *name;
    struct busy *next;
};

struct weights {
    struct api_store face;
    struct table *table;
    struct store *store; /* NULL: memory only */
    uint64_t refresh_ms;
    bool is_beside;
    char too_large[96]; /* why a file is passed over */

    pthread_mutex_t lock; /* protects the fields of this paragraph */
    pthread_cond_t change;
    struct busy *busy;
    struct passed *passed; /* [PASSED_MAX], NULL until one is needed */
    size_t n_passed;       /* since the start or weights_reread; the first PASSED_MAX are kept, then the oldest go */
    struct absent absent[ABSENT_MAX];
    size_t n_absent;

    pthread_mutex_t looking; /* held while memory and store are compared */
    pthread_t thread;
    bool has_thread;
    atomic_bool is_stopping;
};

/* ---- Names that are busy --------------------------------------------------------------------------------------- */

/* With the lock. */
static bool is_busy(const struct weights *w, const char *name)
{
    const struct busy *busy = w->busy;
    while (busy && strcmp(busy->name, name) != 0)
        busy = busy->next;
    return busy;
}

static void wait_for_change(struct weights *w, uint64_t ms)
{
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    uint64_t ns = (uint64_t)end.tv_nsec + ms * CLOCK_MS;
    end.tv_sec += (time_t)(ns / CLOCK_SECOND);
    end.tv_nsec = (long)(ns % CLOCK_SECOND);
    pthread_cond_timedwait(&w->change, &w->lock, &end);
}

/* A worker that waits lets others have its turn. */
static void begin(struct weights *w, struct busy *busy, const char *name)
{
    jobs_wait_begin();
    pthread_mutex_lock(&w->lock);
    while (is_busy(w, name)) {
        wait_for_change(w, WAIT_MS);
        pthread_mutex_unlock(&w->lock);
        jobs_wait_on();
        pthread_mutex_lock(&w->lock);
    }
    *busy = (struct busy){.name = name, .next = w->busy};
    w->busy = busy;
    pthread_mutex_unlock(&w->lock);
}

static void end(struct weights *w, const struct busy *busy)
{
    pthread_mutex_lock(&w->lock);
    struct busy **at = &w->busy;
    while (*at != busy)
        at = &(*at)->next;
    *at = busy->next;
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

static bool was_passed(struct weights *w, const struct store_entry *entry)
{
    pthread_mutex_lock(&w->lock);
    const struct passed *passed = passed_find(w, entry->name);
    bool is_known = passed && passed->is_final && strcmp(passed->version, entry->version) == 0;
    pthread_mutex_unlock(&w->lock);
    return is_known;
}

/* Without memory for the list, it is logged every time. */
static bool is_new(struct weights *w, const char *name, const char *version, bool is_final)
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
        passed->is_final = is_final;
    }
    pthread_mutex_unlock(&w->lock);
    return !is_known;
}

static void pass_over(struct weights *w, const char *name, const char *version, bool is_final, const char *why)
{
    if (is_new(w, name, version, is_final))
        log_warn("%s %s of %s are passed over: %s", w->face.contents->what, name, w->store->place, why);
}

/* Clients may ask for any name, so this is not logged for each. */
static void note_refused(struct weights *w, const char *why)
{
    if (is_new(w, "", why, false))
        log_error("%s: names in %s cannot be read: %s", w->face.contents->what, w->store->place, why);
}

static bool was_absent(struct weights *w, const char *name)
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

static void note_absent(struct weights *w, const char *name)
{
    if (!w->store->absent_ns)
        return;
    pthread_mutex_lock(&w->lock);
    struct absent *absent = &w->absent[w->n_absent++ % ABSENT_MAX];
    snprintf(absent->name, sizeof absent->name, "%s", name);
    absent->at = clock_now();
    pthread_mutex_unlock(&w->lock);
}

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
        pass_over(w, name, reading->found, is_wrong, is_wrong ? why : "no memory");
        return is_wrong ? API_FOUND_NOTHING : API_FOUND_UNKNOWN;
    }
    enum api_stored stored = table_reserve(w->table, name, reading->n);
    if (stored <= API_STORED_REPLACED) {
        table_put(w->table, file, reading->found);
        return API_FOUND;
    }
    file_drop(file);
    pass_over(w, name, reading->found, false, stored == API_STORED_FULL ? w->too_large : "too many files");
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
        note_absent(w, name);
        return API_FOUND_NOTHING;
    case STORE_TOO_LARGE: pass_over(w, name, "", false, w->too_large); return API_FOUND_TOO_LARGE;
    case STORE_NO_MEMORY: pass_over(w, name, "", false, "no memory"); return API_FOUND_UNKNOWN;
    case STORE_REFUSED: note_refused(w, why); return API_FOUND_UNKNOWN;
    default:
        if (!atomic_load(&w->is_stopping) &&
            (!w->store->may_be_away || *reading.found)) /* refresh logs the rest once */
            pass_over(w, name, why, false, why);
        return API_FOUND_UNKNOWN;
    }
}

/* Reads the entries of a list that are not in memory in this version. */
static void fetch_listed(struct weights *w, const struct store_list *list, uint64_t since, read_store *read)
{
    for (size_t i = 0; i < list->n && !atomic_load(&w->is_stopping); i++) {
        const struct store_entry *entry = &list->entries[i];
        struct busy busy;
        if (!table_is_old(w->table, entry, since) || was_passed(w, entry))
            continue;
        begin(w, &busy, entry->name);
        if (table_is_old(w->table, entry, since))
            fetch(w, entry->name, read);
        end(w, &busy);
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
    begin(w, &busy, wanted->name);
    struct file *file = table_find(w->table, wanted->name); /* another request may have fetched it meanwhile */
    enum api_found found = is_wanted(file, wanted)                ? API_FOUND
                           : !file && was_absent(w, wanted->name) ? API_FOUND_NOTHING
                                                                  : fetch(w, wanted->name, w->store->read);
    end(w, &busy);
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
    begin(w, &busy, file->name);
    enum api_stored stored = w->store ? put_there(w, file, guard) : put_here(w, file, guard);
    end(w, &busy);
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
    begin(w, &busy, name);
    enum api_stored stored = w->store ? remove_there(w, name, guard) : remove_here(w, name, guard);
    end(w, &busy);
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

static void forget_passed(struct weights *w)
{
    pthread_mutex_lock(&w->lock);
    w->n_passed = 0;
    pthread_mutex_unlock(&w->lock);
}

void weights_reread(struct weights *w)
{
    char why[STORE_WHY_BYTES] = "";
    if (!w->store)
        return;
    pthread_mutex_lock(&w->looking);
    forget_passed(w);
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
            wait_for_change(w, (next - now) / CLOCK_MS + 1);
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
        forget_passed(w);
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
