/* Owns stored weights as a whole, and what a request looks up, puts and removes, in memory and in the store. */
#include "server/weights/internal.h"

#include "server/log.h"
#include "server/weights/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

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
                                                                          : weights_fetch(w, wanted->name);
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
    case STORE_GUARDED: weights_fetch(w, name); return API_STORED_GUARDED; /* memory may be out of date */
    case STORE_NO_MEMORY: return API_STORED_NO_MEMORY;
    case STORE_NO_FILE: return API_STORED_NO_FILE;
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

/* ---- The whole ------------------------------------------------------------------------------------------------- */

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
    if (w && w->table && weights_read_first(w, why))
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
