/* Owns stored weights as a whole, and what a request looks up, puts and removes, in memory and in the store.
 *
 * The problem: a look-up has to cost next to nothing, since an I/O loop does it; yet the truth is in a folder or bucket
 * that other servers change, and asking that may take a minute. So a look-up takes the file that is in memory, unless
 * the request names another digest. Otherwise a loop gets API_FOUND_LATER, and the request comes again on a worker,
 * which gives up its turn (job_leave) while a reader brings the name in line with the store (fetches.c). If the reading
 * had begun before the request, it may have seen an older file than the request names, and is done once more.
 *
 * A change holds the name (names.c) while the store is asked. Room is reserved before the bytes are copied, the file is
 * written, and only then put into the table; from the store's success on nothing can fail. If a guard (If-Match) does
 * not allow the change, memory may be out of date, so the name is fetched: the client's next look shows what refused
 * it.
 *
 * Invariant: with a store, memory has only what the store has had, in the order in which this server saw it there.
 *
 * Each function that may wait runs on a worker; in memory only, names are held as well, and guards are asked here. */
#include "server/store/weights/weights.h"

#include "core/inside.h"
#include "server/process/process.h"
#include "server/loop/loop.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- What the language asks ------------------------------------------------------------------------------------ */

static struct file *file_of(const struct api_stored_file *base) { return (struct file *)(uintptr_t)base; }

static void release(void *self, const struct api_stored_file *base)
{
    (void)self;
    file_drop(file_of(base));
}

static void hold_card(void *self, const struct api_stored_file *base)
{
    (void)self;
    file_hold_card(file_of(base));
}

static void drop_card(void *self, const struct api_stored_file *base)
{
    (void)self;
    file_drop_card(file_of(base));
}

static size_t list(void *self, const struct api_stored_file **cards)
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
    return file && (!wanted->sha256 || strcasecmp(file->base.sha256, wanted->sha256) == 0);
}

/* A reading that had begun before this request may have seen an older file than the request names. */
static enum api_found fetch_wanted(struct weights *w, const struct api_wanted *wanted)
{
    bool is_fresh = false;
    enum api_found found = API_FOUND;
    for (int i = 0; i < 2 && found == API_FOUND && !is_fresh; i++) {
        found = weights_fetch(w, wanted->name, &is_fresh);
        struct file *file = table_find(w->table, wanted->name);
        is_fresh = is_fresh || is_wanted(file, wanted);
        file_drop(file);
    }
    return found;
}

static enum api_found find_there(struct weights *w, const struct api_wanted *wanted,
                                 const struct api_stored_file **base)
{
    struct file *file = table_find(w->table, wanted->name);
    bool is_absent = !file && weights_was_absent(w, wanted->name);
    file_drop(file);
    if (is_absent)
        return API_FOUND_NOTHING;
    if (!job_leave())
        return API_FOUND_BUSY;
    enum api_found found = fetch_wanted(w, wanted);
    job_return();
    if (found != API_FOUND && found != API_FOUND_NOTHING)
        return found;
    file = table_find(w->table, wanted->name);
    *base = file ? &file->base : NULL;
    return file ? API_FOUND : API_FOUND_NOTHING;
}

static enum api_found find(void *self, const struct api_wanted *wanted, const struct api_stored_file **base)
{
    struct weights *w = self;
    if (!api_weight_name_is_valid(wanted->name))
        return API_FOUND_NOTHING; /* it might be a path */
    struct file *file = table_find(w->table, wanted->name);
    if (is_wanted(file, wanted) || (file && !w->store)) {
        *base = &file->base;
        return API_FOUND;
    }
    file_drop(file);
    if (!w->store)
        return API_FOUND_NOTHING;
    return wanted->must_not_block ? API_FOUND_LATER : find_there(w, wanted, base);
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
    case STORE_GUARDED: return API_STORED_GUARDED;
    case STORE_NO_MEMORY: return API_STORED_NO_MEMORY;
    case STORE_NO_FILE: return API_STORED_NO_FILE;
    case STORE_UNGUARDED: return API_STORED_UNGUARDED;
    default:
        if (!pe_is_cancelled())
            log_error("%s %s: could not be %s %s: %s", w->base.contents->what, name, what, w->store->place, why);
        return API_STORED_FAILED;
    }
}

/* What a request puts: its bytes are copied when there is room for them. */
struct putting {
    const char *name, *bytes;
    size_t n;
    char sha256[STORE_DIGEST_BYTES];
    void *contents; /* owned until a file is made */
    const struct api_guard *guard;
    struct room room;
    struct file *file; /* set if it is stored; held */
};

/* NULL: no memory. */
static struct file *copy_of(struct weights *w, struct putting *p)
{
    char *copy = store_bytes_new(p->n);
    if (copy)
        memcpy(copy, p->bytes, p->n);
    struct file *file = file_new(p->name, copy, p->n, p->sha256, w->base.contents, p->contents);
    p->contents = NULL;
    return file;
}

static enum api_stored write_there(struct weights *w, struct file *file, const struct putting *p)
{
    char why[STORE_WHY_BYTES] = "";
    struct store_writing writing = {
        .bytes = file->bytes, .n = p->n, .sha256 = p->sha256, .guard = store_guard_of(p->guard)};
    enum store_result result = w->store->write(w->store->self, p->name, &writing, why);
    if (result != STORE_DONE)
        return fail(w, p->name, result, "written to", why);
    weights_forget_passed(w, p->name);
    file_hold(file); /* the table's reference; from here on nothing can fail */
    table_put(w->table, file, writing.made, &p->room);
    return writing.was_there ? API_STORED_REPLACED : API_STORED_NEW;
}

static bool is_allowed_here(struct weights *w, const char *name, const struct api_guard *guard, bool *is_there)
{
    struct file *old = table_find(w->table, name);
    bool is_allowed = api_guard_allows(guard, old ? old->base.sha256 : NULL);
    *is_there = old;
    file_drop(old);
    return is_allowed;
}

static enum api_stored put_busy(struct weights *w, void *what)
{
    struct putting *p = what;
    bool is_there;
    if (!w->store && !is_allowed_here(w, p->name, p->guard, &is_there))
        return API_STORED_GUARDED;
    enum api_stored stored = table_reserve(w->table, p->name, p->n, &p->room);
    if (stored > API_STORED_REPLACED)
        return stored;
    struct file *made = copy_of(w, p);
    if (!made) {
        stored = API_STORED_NO_MEMORY;
    } else if (w->store) {
        stored = write_there(w, made, p);
    } else {
        file_hold(made);
        table_put(w->table, made, "", &p->room);
    }
    if (stored > API_STORED_REPLACED) {
        file_drop(made);
        table_give_back(w->table, &p->room);
    } else {
        p->file = made;
    }
    return stored;
}

/* While the name is busy. If the guard does not allow it, memory may be out of date. */
static enum api_stored change(struct weights *w, const char *name, void *what,
                              enum api_stored (*work)(struct weights *w, void *what))
{
    struct busy busy;
    bool is_fresh;
    if (w->store && !job_leave())
        return API_STORED_BUSY;
    enum api_stored stored = API_STORED_BUSY;
    if (weights_busy_begin(w, &busy, name)) {
        stored = work(w, what);
        weights_busy_end(w, &busy);
    }
    if (stored == API_STORED_GUARDED && w->store)
        weights_fetch(w, name, &is_fresh);
    job_return();
    return stored;
}

static enum api_stored put(void *self, const char *name, const char *bytes, size_t n, void *contents,
                           const struct api_guard *guard, const struct api_stored_file **base)
{
    struct weights *w = self;
    struct putting p = {.name = name, .bytes = bytes, .n = n, .contents = contents, .guard = guard};
    enum api_stored stored = API_STORED_FULL;
    if (n <= w->base.bytes_max) {
        store_digest(bytes, n, p.sha256);
        stored = change(w, name, &p, put_busy);
    }
    if (p.contents)
        w->base.contents->free(p.contents);
    if (p.file)
        *base = &p.file->base;
    return stored;
}

struct removing {
    const char *name;
    const struct api_guard *guard;
};

static enum api_stored remove_busy(struct weights *w, void *what)
{
    const struct removing *r = what;
    char why[STORE_WHY_BYTES] = "";
    struct store_guard there = store_guard_of(r->guard);
    bool is_there, is_allowed = w->store || is_allowed_here(w, r->name, r->guard, &is_there);
    if (!w->store && !is_there)
        return API_STORED_ABSENT;
    if (!is_allowed)
        return API_STORED_GUARDED;
    enum store_result result = w->store ? w->store->remove(w->store->self, r->name, &there, why) : STORE_DONE;
    if (result != STORE_DONE)
        return fail(w, r->name, result, "removed from", why);
    table_remove(w->table, r->name);
    return API_STORED_REPLACED;
}

static enum api_stored remove_file(void *self, const char *name, const struct api_guard *guard)
{
    struct removing r = {.name = name, .guard = guard};
    return api_weight_name_is_valid(name) ? change(self, name, &r, remove_busy) : API_STORED_ABSENT;
}

/* ---- The whole ------------------------------------------------------------------------------------------------- */

struct weights *weights_new(const struct weights_settings *settings, char *error)
{
    char why[STORE_WHY_BYTES] = "no memory";
    struct weights *w = calloc(1, sizeof *w);
    if (w) {
        pthread_condattr_t steady;
        pthread_condattr_init(&steady);
        pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
        pthread_mutex_init(&w->lock, NULL);
        pthread_mutex_init(&w->looking, NULL);
        pthread_cond_init(&w->change, &steady);
        pthread_condattr_destroy(&steady);
        w->store = settings->store;
        w->refresh_ms = settings->refresh_ms;
        w->is_beside = settings->is_beside;
        w->base = (struct api_store){.self = w,
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
    weights_drop_fetches(w);
    store_free(w->store);
    free(w->passed);
    pthread_mutex_destroy(&w->lock);
    pthread_mutex_destroy(&w->looking);
    pthread_cond_destroy(&w->change);
    free(w);
}

const struct api_store *weights_store(const struct weights *w) { return &w->base; }
