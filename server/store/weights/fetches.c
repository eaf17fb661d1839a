/* Owns the names that are to be read from the store, the threads that read them, a few at a time, and how one name
 * follows the store.
 *
 * A reading belongs to no request, so it goes on when the requests that wait for it have given up: otherwise a file
 * that takes longer than its clients' patience would begin anew with each of them, and never be there. Equal names are
 * read once, whoever asks (Go's singleflight is the pattern). A name that requests gave up before its reading began is
 * dropped.
 *
 * Names that requests wait for come before those that a comparison has found to have changed, and of the READERS_MAX
 * readers at most LISTED_READERS_MAX read the latter, so that a thousand changed files do not delay a request. When all
 * read, perhaps slow files, a request looks for itself whether there is a file at all, since that is one short
 * question. Readers are threads that end when nothing is to be read: a server whose store is quiet has none.
 *
 * One name (weights_read): the store reads bytes only if they are not those that memory has, and asks before whether
 * there is room (`wants`). What cannot be used is passed over, with its version, and logged once (names.c).
 *
 * Invariant: a name is busy while it is read. What cannot be read leaves in memory what is there, unless old and new
 * can never be there together. A fetch is freed by its last user, the reader or a request. */
#define _GNU_SOURCE /* pthread_setname_np */
#include "server/store/weights/weights.h"
#include "core/inside.h"
#include "server/loop/loop.h"
#include "server/memory/memory.h"
#include "server/process/process.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The queue; all with the lock ------------------------------------------------------------------------------ */

/* NULL: the name is not to be read. */
static struct fetch *find_fetch(const struct weights *w, const char *name)
{
    struct fetch *fetch = w->fetches;
    while (fetch && strcmp(fetch->name, name) != 0)
        fetch = fetch->next;
    return fetch;
}

/* NULL: no memory. */
static struct fetch *add_fetch(struct weights *w, const char *name)
{
    struct fetch *fetch = calloc(1, sizeof *fetch), **at = &w->fetches;
    if (!fetch)
        return NULL;
    while (*at)
        at = &(*at)->next;
    snprintf(fetch->name, sizeof fetch->name, "%s", name);
    return *at = fetch;
}

static void take_out(struct weights *w, const struct fetch *fetch)
{
    struct fetch **at = &w->fetches;
    while (*at != fetch)
        at = &(*at)->next;
    *at = fetch->next;
}

/* Those that requests wait for come first; of those that were listed, some wait so that a request finds a reader. */
static struct fetch *next_of(const struct weights *w)
{
    struct fetch *listed = NULL;
    for (struct fetch *fetch = w->fetches; fetch; fetch = fetch->next) {
        if (fetch->is_begun || weights_is_busy(w, fetch->name))
            continue;
        if (fetch->is_wanted)
            return fetch;
        listed = listed ? listed : fetch;
    }
    return w->n_listed_readers < LISTED_READERS_MAX ? listed : NULL;
}

static bool has_listed(const struct weights *w)
{
    const struct fetch *fetch = w->fetches;
    while (fetch && !fetch->is_listed)
        fetch = fetch->next;
    return fetch;
}

void weights_log_figures(const struct weights *w)
{
    size_t n_files;
    uint64_t n_bytes;
    table_figures(w->table, &n_files, &n_bytes);
    log_info("%s: %zu files, %llu bytes, from %s", w->base.contents->what, n_files, (unsigned long long)n_bytes,
             w->store->place);
}

static void log_if_wanted(struct weights *w)
{
    if (w->wants_figures && !has_listed(w))
        weights_log_figures(w);
    w->wants_figures = w->wants_figures && has_listed(w);
}

/* ---- A reader -------------------------------------------------------------------------------------------------- */

static enum api_found read_one(struct weights *w, const struct fetch *fetch, bool is_wanted)
{
    struct store_entry entry;
    memcpy(entry.name, fetch->name, sizeof entry.name);
    memcpy(entry.version, fetch->version, sizeof entry.version);
    if (!is_wanted && !table_is_old(w->table, &entry, fetch->since))
        return API_FOUND; /* somebody else has read it meanwhile */
    return weights_read(w, fetch->name, w->store->read, false);
}

/* With the lock, which it releases while it reads. */
static void read_next(struct weights *w, struct fetch *fetch)
{
    struct busy busy;
    bool is_wanted = fetch->is_wanted;
    fetch->is_begun = true;
    w->n_listed_readers += !is_wanted;
    weights_busy_add(&w->busy, &busy, fetch->name);
    pthread_mutex_unlock(&w->lock);
    enum api_found found = read_one(w, fetch, is_wanted);
    pthread_mutex_lock(&w->lock);
    weights_busy_remove(&w->busy, &busy);
    w->n_listed_readers -= !is_wanted;
    take_out(w, fetch);
    fetch->found = found;
    fetch->is_done = true;
    if (fetch->n_waiting == 0)
        free(fetch);
    log_if_wanted(w);
    pthread_cond_broadcast(&w->change);
}

static void *read_queued(void *self)
{
    struct weights *w = self;
    struct fetch *fetch;
    pthread_setname_np(pthread_self(), "reader");
    pthread_mutex_lock(&w->lock);
    while (!atomic_load(&w->is_stopping) && (fetch = next_of(w)))
        read_next(w, fetch);
    w->n_readers--;
    pthread_cond_broadcast(&w->change);
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* A reader that finds nothing to do ends. Without a thread, whoever waits tries again. */
static void begin_readers(struct weights *w)
{
    pthread_t thread;
    sigset_t all, before;
    if (w->n_readers == READERS_MAX || atomic_load(&w->is_stopping) || !next_of(w))
        return;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&thread, NULL, read_queued, w) == 0) {
        pthread_detach(thread);
        w->n_readers++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void weights_end_readers(struct weights *w)
{
    pthread_mutex_lock(&w->lock);
    while (w->n_readers > 0)
        weights_wait_for_change(w, CLOCK_SECOND / CLOCK_MS);
    pthread_mutex_unlock(&w->lock);
}

void weights_drop_fetches(struct weights *w)
{
    for (struct fetch *fetch = w->fetches, *next; fetch; fetch = next) {
        next = fetch->next;
        free(fetch);
    }
}

/* ---- For others ------------------------------------------------------------------------------------------------ */

static bool is_done(struct weights *w, const void *fetch)
{
    begin_readers(w);
    return ((const struct fetch *)fetch)->is_done;
}

/* What no request waits for any more is not begun. */
static void leave(struct weights *w, struct fetch *fetch)
{
    if (--fetch->n_waiting > 0)
        return;
    fetch->is_wanted = fetch->is_wanted && fetch->is_begun;
    if (!fetch->is_done && (fetch->is_begun || fetch->is_listed))
        return;
    if (!fetch->is_done)
        take_out(w, fetch);
    free(fetch);
}

/* While every reader is at work, perhaps at a slow file, the calling thread looks itself whether there is a file to be
 * read at all. */
static enum api_found look(struct weights *w, const char *name)
{
    struct busy busy;
    pthread_mutex_lock(&w->lock);
    bool looks = w->n_readers == READERS_MAX && !find_fetch(w, name);
    pthread_mutex_unlock(&w->lock);
    if (!looks || !weights_busy_try(w, &busy, name))
        return API_FOUND_LATER;
    enum api_found found = weights_read(w, name, w->store->read, true);
    weights_busy_end(w, &busy);
    return found;
}

enum api_found weights_fetch(struct weights *w, const char *name, bool *is_fresh)
{
    enum api_found looked = look(w, name);
    *is_fresh = true;
    if (looked != API_FOUND_LATER)
        return looked;
    pthread_mutex_lock(&w->lock);
    struct fetch *fetch = find_fetch(w, name);
    if (!fetch)
        fetch = add_fetch(w, name);
    enum api_found found = API_FOUND_UNKNOWN;
    if (fetch) {
        *is_fresh = !fetch->is_begun;
        fetch->is_wanted = true;
        fetch->n_waiting++;
        found = weights_wait_until(w, name, is_done, fetch) ? fetch->found : API_FOUND_BUSY;
        leave(w, fetch);
    }
    pthread_mutex_unlock(&w->lock);
    return found;
}

void weights_fetch_listed(struct weights *w, const struct store_entry *entry, uint64_t since)
{
    pthread_mutex_lock(&w->lock);
    struct fetch *fetch = find_fetch(w, entry->name);
    if (!fetch && (fetch = add_fetch(w, entry->name))) {
        fetch->is_listed = true;
        fetch->since = since;
        memcpy(fetch->version, entry->version, sizeof fetch->version);
    }
    if (w->n_readers < LISTED_READERS_MAX)
        begin_readers(w);
    pthread_mutex_unlock(&w->lock);
}

void weights_wait_for_listed(struct weights *w, uint64_t ms)
{
    uint64_t end = clock_now() + ms * CLOCK_MS;
    pthread_mutex_lock(&w->lock);
    w->wants_figures = true;
    log_if_wanted(w);
    for (uint64_t now; w->wants_figures && !atomic_load(&w->is_stopping) && (now = clock_now()) < end;)
        weights_wait_for_change(w, (end - now) / CLOCK_MS + 1);
    pthread_mutex_unlock(&w->lock);
}

/* ---- How one name follows the store ------------------------------------------------------------------------------ */

struct one {
    struct weights *w;
    const char *name;
    bool is_light;
    enum api_found refused; /* why the bytes are not wanted */
    bool has_room;
    struct room room;
};

/* ---- Before the bytes are read --------------------------------------------------------------------------------- */

static enum api_stored reserve(struct one *one, uint64_t n)
{
    struct table *table = one->w->table;
    enum api_stored stored = table_reserve(table, one->name, n, &one->room);
    if (stored != API_STORED_NO_ROOM || admission_may_fit(n + n / 4))
        return stored;
    table_remove(table, one->name); /* the two can never be in memory together, so requests wait for the new one */
    return table_reserve(table, one->name, n, &one->room);
}

/* A wrong file is not read again while it stays the same. Bytes are counted before they are there. */
static bool wants(void *self, const struct store_reading *reading, uint64_t n)
{
    struct one *one = self;
    struct weights *w = one->w;
    struct store_entry entry;
    snprintf(entry.name, sizeof entry.name, "%s", one->name);
    snprintf(entry.version, sizeof entry.version, "%s", reading->found);
    enum passed_as as = weights_was_passed(w, &entry);
    one->refused = as == PASSED_WRONG ? API_FOUND_NOTHING : as == PASSED_SPOILED ? API_FOUND_UNKNOWN : API_FOUND_LATER;
    if (as || one->is_light)
        return false;
    enum api_stored stored = reserve(one, n);
    one->has_room = stored <= API_STORED_REPLACED;
    one->refused = stored == API_STORED_NO_ROOM ? API_FOUND_NO_ROOM : API_FOUND_TOO_LARGE;
    if (one->refused == API_FOUND_TOO_LARGE && !one->has_room)
        weights_pass_over(w, one->name, reading->found, PASSED_ONCE,
                          stored == API_STORED_FULL ? w->too_large : "too many files");
    return one->has_room;
}

/* ---- Afterwards ------------------------------------------------------------------------------------------------ */

/* Takes the bytes that were read. */
static enum api_found keep(struct one *one, const struct store_reading *reading)
{
    struct weights *w = one->w;
    char why[WEIGHTS_ERROR_BYTES] = "";
    enum pe_lang lang = pe_spoken();
    pe_speak_in(PE_EN); /* why is for the log */
    void *contents = w->base.contents->read(reading->bytes, reading->n, why, sizeof why);
    pe_speak_in(lang);
    struct file *file = file_new(one->name, reading->bytes, reading->n, reading->digest, w->base.contents, contents);
    if (!file) {
        bool is_wrong = *why;
        weights_pass_over(w, one->name, reading->found, is_wrong ? PASSED_WRONG : PASSED_ONCE,
                          is_wrong ? why : "no memory");
        return is_wrong ? API_FOUND_NOTHING : API_FOUND_UNKNOWN;
    }
    table_put(w->table, file, reading->found, &one->room);
    one->has_room = false;
    return API_FOUND;
}

static enum api_found end_reading(struct one *one, enum store_result result, const struct store_reading *reading,
                                  const char *why)
{
    struct weights *w = one->w;
    switch (result) {
    case STORE_DONE:
        if (strcmp(reading->digest, reading->sha256) != 0)
            return keep(one, reading);
        free(reading->bytes);
        table_revise(w->table, one->name, reading->found);
        return API_FOUND;
    case STORE_SAME: table_revise(w->table, one->name, reading->found); return API_FOUND;
    case STORE_ABSENT:
        table_remove(w->table, one->name);
        weights_note_absent(w, one->name);
        return API_FOUND_NOTHING;
    case STORE_NO_FILE: weights_pass_over(w, one->name, reading->found, PASSED_WRONG, why); return API_FOUND_NOTHING;
    case STORE_SPOILED: weights_pass_over(w, one->name, reading->found, PASSED_SPOILED, why); return API_FOUND_UNKNOWN;
    case STORE_UNWANTED: return one->refused;
    case STORE_NO_MEMORY: weights_pass_over(w, one->name, "", PASSED_ONCE, "no memory"); return API_FOUND_UNKNOWN;
    case STORE_REFUSED: weights_note_refused(w, why); return API_FOUND_UNKNOWN;
    default:
        if (!atomic_load(&w->is_stopping) && !pe_is_cancelled() &&
            (!w->store->may_be_away || *reading->found)) /* refresh logs the rest once */
            weights_pass_over(w, one->name, why, PASSED_ONCE, why);
        return API_FOUND_UNKNOWN;
    }
}

enum api_found weights_read(struct weights *w, const char *name, weights_reader *read, bool is_light)
{
    char version[STORE_VERSION_BYTES], sha256[STORE_DIGEST_BYTES], why[STORE_WHY_BYTES] = "";
    struct one one = {.w = w, .name = name, .is_light = is_light};
    table_describe(w->table, name, version, sha256);
    struct store_reading reading = {.version = version, .sha256 = sha256, .wants = wants, .self = &one};
    enum store_result result = read(w->store->self, name, &reading, why);
    enum api_found found = end_reading(&one, result, &reading, why);
    if (one.has_room)
        table_give_back(w->table, &one.room);
    return found;
}
